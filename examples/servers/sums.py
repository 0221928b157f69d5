# A small MCP server, for mcp_server.py.
from mcp.server.mcpserver import MCPServer

server = MCPServer("sums")


@server.tool()
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


server.run()

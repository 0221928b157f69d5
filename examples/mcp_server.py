# The tools of an MCP server: a command that is started here, or a URL. Needs `pip install 'deepstrike[mcp]'`.
import sys

from deepstrike import Agent, mcp

server = mcp([sys.executable, f"{sys.path[0]}/servers/sums.py"])
print(Agent("demo", tools=[server]).run_sync("What is 17 + 28?").text)

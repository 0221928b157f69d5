# An agent as a tool of another one: a session, limits and rules of its own within those of the run that calls it.
from deepstrike import Agent


def add(x: int, y: int) -> int:
    return x + y


sums = Agent("demo", tools=[add]).as_tool("sums", "Does sums.")
print(Agent("demo", tools=[sums]).run_sync("sums 'What is 17 + 28?'").text)

# An agent with a tool. "demo" is the embedded model, which needs no key; write "openai:gpt-5-mini" for a real one.
from deepstrike import Agent


def add(x: int, y: int) -> int:
    return x + y


print(Agent("demo", tools=[add]).run_sync("What is 17 + 28?").text)

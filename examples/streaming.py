# The answer as it is written. `async for event in agent.run_streaming(…)` is the same where you can await.
from deepstrike import Agent

for event in Agent("demo").stream_sync("Say hello"):
    if event.type == "text_delta":
        print(event.delta, end="", flush=True)

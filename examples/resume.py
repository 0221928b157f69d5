# A run that outlives its process. `python resume.py crash` dies in the middle, `python resume.py` then goes on.
import os
import sys

from deepstrike import Agent, tool


@tool(effect="idempotent")  # may run again after a crash; without that the model is told that nobody knows
def ship(order: int) -> str:
    return f"order {order} is on its way" if "crash" not in sys.argv else os._exit(1)


agent = Agent("demo", tools=[ship])
if "crash" in sys.argv:
    agent.run_sync("ship order 4711", session_id="job-1")
print(agent.resume_sync("job-1").text)

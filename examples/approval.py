# A call that a person must allow. The run waits, here or in a log on disk, until somebody answers.
from deepstrike import Agent, Governance


def pay(euros: int, to: str) -> str:
    return f"{to} got {euros} euros"


agent = Agent("demo", tools=[pay], governance=Governance("ask"))
waiting = agent.run_sync("pay 50 euros to 'Ann'")
print(waiting.status, [(ask.name, dict(ask.arguments)) for ask in waiting.pending])
print(agent.resume_sync(waiting.session_id, {ask.request_id: True for ask in waiting.pending}).text)

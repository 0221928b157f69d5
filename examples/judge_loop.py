# Tries again until a judge is content. Both models are scripted; the judge gives its verdict in a form.
import asyncio

from deepstrike import Agent, HarnessLoop, HarnessRequest, ScriptedProvider

writer = Agent(ScriptedProvider(["Autumn.", "Autumn evening\nOn a bare branch a crow\nsettles and is still"]))
judge = ScriptedProvider(['{"passed": false, "feedback": "one line, not three"}', '{"passed": true}'])
outcome = asyncio.run(HarnessLoop(writer.runner, judge).run(HarnessRequest("Write a haiku")))
print(outcome.passed, outcome.attempts, outcome.result, sep="\n")

# An answer in a form, checked here. The scripted model says what a real one might; "openai:gpt-5-mini" is a real one.
from pydantic import BaseModel

from deepstrike import Agent, ScriptedProvider


class Invoice(BaseModel):
    number: str
    total: float


model = ScriptedProvider(['Here it is: {"number": "A-7", "total": 12.5}'])
print(Agent(model, output_type=Invoice).run_sync("Read this: invoice A-7 over 12.50 euros").output)

"""`python bench/mortal.py CONTESTANT FOLDER DIE_AT AFTER_US`: one process that sends three letters, or dies of it.

The model asks for letters to Ann and Bob at once, then for one to Eve, then says that all are sent. It goes by what it
is shown alone. Every letter sent is a line in `FOLDER/letters`. The process kills itself at the `DIE_AT`-th place (each
question to the model, each letter before and after it is sent), or is killed `AFTER_US` microseconds after it began to
work (0: neither). Whatever is in the folder already, it goes on from there as its framework means one to.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

GOAL = "Write to Ann, Bob and Eve."
SAID = "All sent."
LETTERS = (("Ann", "Bob"), ("Eve",))


class Mortal:
    """Counts the places, and dies at one of them."""

    def __init__(self, folder: Path, die_at: int) -> None:
        self.folder = folder
        self.left = die_at
        self.unknown = 0

    def passes(self) -> None:
        """A place where the process may die."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def send(self, to: str) -> str:
        """Send a letter, so that the world knows."""
        self.passes()
        with (self.folder / "letters").open("a") as file:
            file.write(f"{to}\n")
        self.passes()
        return f"sent to {to}"

    def wanted(self, results: list[str]) -> tuple[str, ...]:
        """To whom the model wants letters sent next, having been shown so many results."""
        self.passes()
        self.unknown = sum("unknown" in result for result in results)
        return {0: LETTERS[0], 2: LETTERS[1]}.get(len(results), ())


async def deepstrike(mortal: Mortal) -> str:
    """`resume` of a session that exists, else a run. `send` has the default effect class, `once`."""
    from deepstrike import LocalExecutionPlane, RuntimeOptions, RuntimeRunner, ScriptedProvider
    from deepstrike.providers.base import ModelEvent, ModelRequest, ToolCall
    from deepstrike.sessions.sqlite import SqliteSessionLog
    from deepstrike.wire.message import ResultBlock, Text

    async def send(to: str) -> str:
        """Send a letter."""
        return mortal.send(to)

    def answer(request: ModelRequest) -> str | list[ModelEvent]:
        parts = [part for turn in request.turns if isinstance(turn, ResultBlock) for part in turn.parts]
        names = mortal.wanted([part.text for part in parts if isinstance(part, Text)])
        return [ToolCall(f"call_{name}", "send", f'{{"to":"{name}"}}') for name in names] or SAID

    log = SqliteSessionLog(mortal.folder / "sessions.db")
    plane = LocalExecutionPlane().register(send)
    model = ScriptedProvider([answer], repeat_last=True)
    runner = RuntimeRunner(RuntimeOptions(provider=model, session_log=log, execution_plane=plane))
    known = "s" in await log.sessions()
    return (await runner.resume("s") if known else await runner.run(GOAL, session_id="s")).text


async def langgraph(mortal: Mortal) -> str:
    """The prebuilt tool loop with `SqliteSaver`, every step kept before the next one (`durability="sync"`)."""
    from langchain_core.language_models import BaseChatModel  # type: ignore[import-not-found]
    from langchain_core.messages import AIMessage, ToolMessage  # type: ignore[import-not-found]
    from langchain_core.outputs import ChatGeneration, ChatResult  # type: ignore[import-not-found]
    from langchain_core.tools import tool  # type: ignore[import-not-found]
    from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found]
    from langgraph.prebuilt import create_react_agent  # type: ignore[import-not-found]

    class Model(BaseChatModel):  # type: ignore[misc]
        _llm_type = "scripted"

        def bind_tools(self, tools: object, **_: object) -> BaseChatModel:
            return self

        def _generate(self, messages: list[Any], *_: object, **__: object) -> ChatResult:
            results = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
            names = mortal.wanted(results)
            calls = [{"id": f"call_{name}", "name": "send", "args": {"to": name}} for name in names]
            message = AIMessage(content="" if calls else SAID, tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=message)])

    @tool  # type: ignore[untyped-decorator]
    def send(to: str) -> str:
        """Send a letter."""
        return mortal.send(to)

    with SqliteSaver.from_conn_string(str(mortal.folder / "checkpoints.db")) as saver:
        graph = create_react_agent(Model(), [send], checkpointer=saver)
        thread = {"configurable": {"thread_id": "s"}}
        known = bool(graph.get_state(thread).values)
        goal = None if known else {"messages": [("user", GOAL)]}
        ended = graph.invoke(goal, thread, durability="sync")
    return str(ended["messages"][-1].content)


async def openai_agents(mortal: Mortal) -> str:
    """`Runner.run` with a `SQLiteSession`; after a crash, with the same session, and the goal if it was not kept."""
    from agents import (  # type: ignore[import-not-found]
        Agent,
        Model,
        ModelResponse,
        Runner,
        SQLiteSession,
        Usage,
        function_tool,
        set_tracing_disabled,
    )
    from openai.types.responses import (  # type: ignore[import-not-found]
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    def said(text: str) -> ResponseOutputMessage:
        content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
        return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=content)

    def asked(name: str) -> ResponseFunctionToolCall:
        arguments = f'{{"to":"{name}"}}'
        return ResponseFunctionToolCall(type="function_call", call_id=f"call_{name}", name="send", arguments=arguments)

    class Scripted(Model):  # type: ignore[misc]
        async def get_response(self, *_: object, **given: Any) -> ModelResponse:
            items = [] if isinstance(given["input"], str) else [dict(item) for item in given["input"]]
            outputs = {item["call_id"]: item for item in items if item.get("type") == "function_call_output"}
            calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
            for call_id in calls:
                if call_id not in outputs:  # as the service says it, with status 400
                    raise RuntimeError(f"No tool output found for function call {call_id}.")
            names = mortal.wanted([str(item["output"]) for item in outputs.values()])
            output = [asked(name) for name in names] or [said(SAID)]
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        async def stream_response(self, *_: object, **__: object) -> AsyncIterator[object]:
            raise NotImplementedError
            yield

    @function_tool  # type: ignore[untyped-decorator]
    def send(to: str) -> str:
        """Send a letter."""
        return mortal.send(to)

    set_tracing_disabled(True)
    agent = Agent(name="Writer", tools=[send], model=Scripted())
    session = SQLiteSession("s", str(mortal.folder / "items.db"))
    known = bool(await session.get_items())
    ended = await Runner.run(agent, [] if known else GOAL, session=session)
    return str(ended.final_output)


CONTESTANTS = {"deepstrike": deepstrike, "langgraph": langgraph, "openai_agents": openai_agents}


def main() -> None:
    """Work, and write into `FOLDER/said` what the model said last, how many unknown outcomes it was shown, the time."""
    who, folder, die_at, after_us = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    mortal = Mortal(folder, die_at)
    if after_us:
        # Its default action ends the process as SIGKILL does, with nothing of the process having a say.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, after_us / 1e6)
    before = time.perf_counter()
    text = asyncio.run(CONTESTANTS[who](mortal))
    signal.setitimer(signal.ITIMER_REAL, 0)
    took_us = int((time.perf_counter() - before) * 1e6)
    (folder / "said").write_text(f"{text}\n{mortal.unknown}\n{took_us}")


if __name__ == "__main__":
    main()

"""The snippets of the description that this package was asked for by: where each stands there, and a copy of our own.

Copies are for checkouts without the description beside them: the same calls, in our own words. `needs` are the public
names and options without which a snippet cannot run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from textwrap import dedent

Names = Mapping[str, object]


@dataclass(frozen=True)
class Snippet:
    """A snippet: the lines it begins and ends with in the description, our copy, and what must hold when it has run."""

    begins: str
    ends: str
    copy: str
    holds: Callable[[Names], bool] = field(default=lambda names: True)
    needs: tuple[str, ...] = ()

    def printed(self, description: str) -> str:
        """As it stands in the description. Raises `ValueError` if it does not."""
        start = description.index(f"\n{self.begins}\n") + 1
        end = description.index(f"\n{self.ends}\n", start) + len(self.ends) + 2
        return description[start:end]


def _runner(*options: str, before: str = "", after: str = "") -> str:
    lines = "".join(f"    {option},\n" for option in options)
    usual = "    provider=provider,\n    session_log=InMemorySessionLog(),\n    execution_plane=plane,\n"
    return f"{before}runner = RuntimeRunner(RuntimeOptions(\n{usual}{lines}))\n{after}"


def _answers(names: Names, value: object) -> bool:
    return names["_"] == value


SNIPPETS: Mapping[str, Snippet] = {
    "quick start": Snippet(
        "import asyncio",
        'asyncio.run(collect_text(runner.run_streaming("What is 17 + 28?")))',
        dedent(
            '''\
            import asyncio
            from deepstrike import InMemorySessionLog, LocalExecutionPlane, OpenAIProvider, RuntimeOptions
            from deepstrike import RuntimeRunner, collect_text, tool

            @tool
            async def add(x: int, y: int) -> str:
                """The sum of two numbers."""
                return str(x + y)

            plane = LocalExecutionPlane().register(add)
            runner = RuntimeRunner(RuntimeOptions(
                provider=OpenAIProvider(api_key="sk-...", model="gpt-5-mini"),
                session_log=InMemorySessionLog(), execution_plane=plane, max_tokens=4096, max_turns=25,
            ))
            asyncio.run(collect_text(runner.run_streaming("What is 17 + 28?")))
            '''
        ),
        lambda names: _answers(names, "45"),
    ),
    "streaming": Snippet(
        'async for event in runner.run_streaming("Summarize README.md"):',
        '        print(f"\\ndone in {event.iterations} turns ({event.status})")',
        dedent(
            """\
            async for event in runner.run_streaming("What does README.md say?"):
                if isinstance(event, TextDelta):
                    print(event.delta, end="", flush=True)
                elif isinstance(event, ToolCallEvent):
                    print(event.name)
                elif isinstance(event, DoneEvent):
                    print(event.iterations, event.status)
            """
        ),
        lambda names: getattr(names["event"], "status", None) == "completed",
    ),
    "slots": Snippet(
        "runner = RuntimeRunner(RuntimeOptions(\n"
        '    initial_memory=["User prefers chartreuse."],  # → Slot 2\n'
        '    system_prompt="You are a helpful assistant.",  # → Slot 1\n'
        "    # ...",
        "))",
        _runner('initial_memory=["The user is left-handed."]', 'system_prompt="You are kind."'),
    ),
    "options": Snippet(
        "runner = RuntimeRunner(RuntimeOptions(\n"
        "    provider=provider,\n"
        "    session_log=InMemorySessionLog(),\n"
        "    execution_plane=plane,\n"
        "    max_tokens=4096,            # context window size",
        "))",
        _runner(
            "max_tokens=4096",
            "max_turns=25",
            "timeout_ms=60_000",
            'extensions={"temperature": 0.1}',
            'skill_dir="./skills"',
            "knowledge_source=my_ks",
            "governance=gov",
            "signal_source=gateway",
            "dream_store=my_store",
            'agent_id="my-agent"',
            'initial_memory=["…"]',
            "sub_agent_harness=SubAgentHarnessConfig(eval_provider=eval_provider, max_attempts=3)",
        ),
        needs=(
            "skill_dir",
            "knowledge_source",
            "signal_source",
            "dream_store",
            "sub_agent_harness",
            "SubAgentHarnessConfig",
            "SignalGateway",
            "DreamStore",
            "KnowledgeSource",
        ),
    ),
    "tools": Snippet(
        "from deepstrike import tool, read_file",
        'plane.unregister("search")',
        dedent(
            """\
            from deepstrike import read_file, tool
            plane.register(tool(name="search", description="Looks things up.", parameters=schema)(my_fn))
            plane.register(read_file)
            plane.unregister("search")
            """
        ),
        lambda names: [spec.name for spec in names["plane"].specs()] == ["read_file"],  # type: ignore[attr-defined]
    ),
    "skills": Snippet(
        "Set skill_dir — the kernel auto-injects a skill meta-tool, and the LLM loads skills by name on demand.\n\n"
        "runner = RuntimeRunner(RuntimeOptions(",
        "))",
        _runner("max_tokens=4096", "max_turns=25", 'skill_dir="./skills"'),
        needs=("skill_dir",),
    ),
    "knowledge": Snippet(
        "from deepstrike import KnowledgeSource",
        "))",
        _runner(
            "max_turns=25",
            "knowledge_source=VectorSearch()",
            before=dedent(
                """\
                from deepstrike import KnowledgeSource

                class VectorSearch(KnowledgeSource):
                    async def init(self) -> None:
                        await vector_db.connect()

                    async def retrieve(self, query: str, top_k: int = 5) -> list[str]:
                        return await vector_db.search(query, top_k)

                """
            ),
        ),
        needs=("KnowledgeSource", "knowledge_source"),
    ),
    "working memory": Snippet(
        "from deepstrike import WorkingMemory",
        "mem.clear()",
        'import deepstrike\nmem = deepstrike.WorkingMemory()\nmem.set("step", 1)\nmem.get("step")\nmem.clear()\n',
        lambda names: names["mem"].get("step") is None,  # type: ignore[attr-defined]
        needs=("WorkingMemory",),
    ),
    "dreams": Snippet(
        "from deepstrike import DreamStore",
        'result = await runner.dream("my-agent", now_ms=int(time.time() * 1000))',
        _runner(
            "dream_store=MyStore()",
            'agent_id="my-agent"',
            before=dedent(
                """\
                from deepstrike import DreamStore

                class MyStore(DreamStore):
                    async def load_sessions(self, agent_id): ...
                    async def load_memories(self, agent_id): ...
                    async def commit(self, agent_id, result, existing): ...
                    async def search(self, agent_id, query, top_k): ...
                    async def save_session(self, data): ...

                """
            ),
            after='result = await runner.dream("my-agent", now_ms=1_000)\n',
        ),
        lambda names: names["result"].sessions_processed == 0,  # type: ignore[attr-defined]
        needs=("DreamStore", "dream_store"),
    ),
    "permissions": Snippet(
        "from deepstrike import PermissionManager, PermissionMode",
        'pm.evaluate("fs", "read")  # PermissionDecision(allowed=True, ...)',
        dedent(
            """\
            from deepstrike import PermissionManager, PermissionMode
            pm = PermissionManager(PermissionMode.DEFAULT)
            pm.grant("fs", "read")
            pm.revoke("db", "drop")
            pm.evaluate("fs", "read")
            """
        ),
        lambda names: names["_"].allowed and not names["pm"].evaluate("db", "drop").allowed,  # type: ignore[attr-defined]
    ),
    "governance": Snippet(
        "from deepstrike import Governance",
        "# Every tool call: Permission → Veto → RateLimit → Constraint → Audit",
        _runner(
            "governance=gov",
            before=dedent(
                """\
                from deepstrike import Governance
                gov = Governance("allow")
                gov.add_permission_rule("danger.*", "deny")
                gov.block_tool("rm_rf")
                gov.set_rate_limit("api_call", max_calls=10, window_ms=60_000)
                """
            ),
        ),
        lambda names: (
            [names["gov"].evaluate(name).kind for name in ("danger.x", "rm_rf", "api_call")]  # type: ignore[attr-defined]
            == ["deny", "deny", "allow"]
        ),
    ),
    "signals": Snippet(
        "from deepstrike import SignalGateway, ScheduledPrompt, RuntimeSignal",
        "gw.destroy()",
        _runner(
            "signal_source=gw",
            before=dedent(
                """\
                from deepstrike import RuntimeSignal, ScheduledPrompt, SignalGateway
                gw = SignalGateway()
                gw.schedule(ScheduledPrompt(goal="water the plants", run_at_ms=target_time))
                gw.ingest(RuntimeSignal(kind="interrupt", payload={}, urgency="critical"))
                """
            ),
            after="runner.interrupt()\ngw.destroy()\n",
        ),
        needs=("SignalGateway", "ScheduledPrompt", "RuntimeSignal", "signal_source"),
    ),
    "harness": Snippet(
        "from deepstrike import SinglePassHarness, EvalLoopHarness, HarnessLoop, HarnessRequest",
        "        print(event.verdict.passed, event.verdict.feedback)",
        dedent(
            """\
            from deepstrike import EvalLoopHarness, HarnessLoop, HarnessRequest, SinglePassHarness
            from deepstrike import SubAgentHarnessConfig
            first = await SinglePassHarness(runner).run(HarnessRequest(goal="Greet us"))

            class ContainsHello(QualityGate):
                async def evaluate(self, request, outcome) -> bool:
                    return "hello" in outcome.result.lower()

            outcome = await EvalLoopHarness(runner, gate=ContainsHello(), max_attempts=3).run(req)
            loop = HarnessLoop(runner, eval_provider=eval_provider, max_attempts=3, skill_dir="./skills")
            runner = RuntimeRunner(RuntimeOptions(
                provider=provider,
                sub_agent_harness=SubAgentHarnessConfig(eval_provider=eval_provider, max_attempts=3),
            ))
            async for event in loop.run_streaming(HarnessRequest(goal="Write a limerick")):
                if event.type == "done":
                    print(event.verdict.passed, event.verdict.feedback)
            """
        ),
        lambda names: names["event"].type == "done" and names["outcome"].passed,  # type: ignore[attr-defined]
        needs=(
            "SinglePassHarness",
            "EvalLoopHarness",
            "HarnessLoop",
            "HarnessRequest",
            "QualityGate",
            "SubAgentHarnessConfig",
            "sub_agent_harness",
        ),
    ),
}

SKILL = Snippet(
    "---\nname: summarize",
    "2. Express each as a concise bullet",
    "---\nname: summarize\ndescription: Make a long text short\nwhen_to_use: When a text is long\neffort: 1\n---\n"
    "1. Find what matters\n2. Say it in bullets\n",
)
"""The skill that the description prints, a file and no program."""

_CODE = re.compile(r"^(from |import |@|class |(async )?(def|for) |await |\w+ = |\w+\.\w+\(|\)|  +\S)")


def lines_of_code(description: str) -> set[str]:
    """Every line of the description that looks like Python, but for the skill and the command that installs."""
    without = description.replace(SKILL.printed(description), "")
    return {line for line in without.splitlines() if _CODE.match(line)}


def runnable(source: str) -> str:
    """A snippet with what its `# ...` stands for; the caption that a snippet begins with in the description goes."""
    code = source[source.index("runner = ") :] if source.startswith("Set skill_dir") else source
    if "provider=provider" in code or "provider=" not in code:
        filled = "    provider=provider,\n    # ..." if "provider=provider" not in code else "    # ..."
        code = code.replace("    # ...", filled)
    return code

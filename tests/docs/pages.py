"""Runs the Python blocks of a Markdown page, in order, in one namespace: `python tests/docs/pages.py PAGE`.

What surrounds a page, so that its text runs as it is printed:
* a chat server on loopback, named by OPENAI_BASE_URL; it calls `add` for "17 + 28", else answers "It is short.";
* OPENAI_API_KEY is set; nothing is imported;
* `await`, `async for` and `async with` work at the top level, all blocks on one event loop;
* a block whose last lines are an expression and `# => value` must give that value.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import re
import sys
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"^# => (.+)$", re.MULTILINE)
AWAITS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
NOTHING = object()


@dataclass(frozen=True)
class Block:
    """A Python block: where it stands, its statements, its last expression and what that must give."""

    line: int
    statements: CodeType
    last: CodeType | None
    promised: object


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, compiled so that a traceback names the page and its line."""
    text = page.read_text()
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start(1))
        yield compiled(found[1], page, line)


def compiled(source: str, page: Path, line: int) -> Block:
    """One block; its last expression apart when a promise follows."""
    tree = ast.parse("\n" * line + source, str(page))
    promise = PROMISE.search(source)
    last: CodeType | None = None
    if promise and isinstance(tree.body[-1], ast.Expr):
        expression = tree.body.pop()
        assert isinstance(expression, ast.Expr)
        last = compile(ast.Expression(expression.value), str(page), "eval", AWAITS)
    statements = compile(tree, str(page), "exec", AWAITS, dont_inherit=True)
    return Block(line, statements, last, ast.literal_eval(promise[1]) if promise else NOTHING)


def run(page: Path) -> int:
    """Run all blocks of the page; how many there were."""
    names: dict[str, object] = {"__name__": "__page__"}
    count = 0
    for block in blocks(page):
        evaluate(block.statements, names)
        if block.last is not None:
            value = evaluate(block.last, names)
            assert value == block.promised, f"{page}:{block.line}: {value!r} instead of {block.promised!r}"
        count += 1
    return count


def evaluate(code: CodeType, names: dict[str, object]) -> object:
    """Run a piece of a page, on an event loop if it awaits."""
    value = eval(code, names)
    if code.co_flags & inspect.CO_COROUTINE:
        return asyncio.run(value)
    return value


class Chat(BaseHTTPRequestHandler):
    """The least of a chat-completions server that a page needs."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = body["messages"][-1]
        finish = "stop"
        delta: dict[str, object] = {"content": "It is short."}
        if last["role"] == "tool":
            delta = {"content": last["content"]}
        elif "17 + 28" in json.dumps(last) and body.get("tools"):
            function = {"name": "add", "arguments": '{"x": 17, "y": 28}'}
            finish = "tool_calls"
            delta = {"tool_calls": [{"index": 0, "id": "call_1", "function": function}]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for choice in ({"index": 0, "delta": delta}, {"index": 0, "delta": {}, "finish_reason": finish}):
            self.wfile.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
        usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        self.wfile.write(f"data: {json.dumps({'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
        """Say nothing."""


def main() -> None:
    """Serve, run the page, say how many blocks ran."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    Thread(target=server.serve_forever, daemon=True).start()
    os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{server.server_address[1]}/v1"
    os.environ["OPENAI_API_KEY"] = "sk-page"
    count = run(Path(sys.argv[1]))
    server.shutdown()
    server.server_close()
    print(f"\n{count} blocks ran")


if __name__ == "__main__":
    main()

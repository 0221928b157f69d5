"""A server of the older revision that does what servers should not. `python mcp_rogue_server.py MODE [JOURNAL]`.

Each tool misbehaves in its own way; MODE is how the server begins. Every line that it receives goes to JOURNAL.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1]
JOURNAL = Path(sys.argv[2]) if len(sys.argv) > 2 else None
TOOLS = [
    "ask",
    "asks_roots",
    "big",
    "broken",
    "bytes",
    "closed",
    "deep",
    "endless",
    "half",
    "minus",
    "mute",
    "noise",
    "ok",
]
TOOLS += ["deaf_notes", "deaf_pings", "deaf_progress", "deaf_answers", "surrogate", "tells"]


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(number: object, result: object) -> None:
    say(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}))


def words(number: object, text: str) -> None:
    answer(number, {"content": [{"type": "text", "text": text}]})


def tool(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "description": name, "inputSchema": {"type": "object"}, **more}


def progress(token: object) -> dict[str, object]:
    """Word of a call whose answer never comes, though the server serves on."""
    params = {"progressToken": token, "progress": 1, "message": "begun"}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        if MODE == "stubborn":
            time.sleep(600)
        sys.exit(0)
    if JOURNAL is not None:
        with JOURNAL.open("a") as journal:
            journal.write(line)
    message: dict[str, Any] = json.loads(line)
    return message


def listing(number: object, cursor: str | None) -> None:
    if MODE.startswith("@"):
        raw(number, '"result": {"tools": ' + Path(MODE[1:]).read_text() + "}}")
    elif MODE == "pages" and cursor is None:
        answer(number, {"tools": [tool("b")], "nextCursor": "p2"})
    elif MODE == "pages":
        answer(number, {"tools": [tool("a")]})
    elif MODE == "half_list" and cursor is not None:
        say(json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": -32603, "message": "page two is lost"}}))
    elif MODE in ("half_list", "endless_list"):
        answer(number, {"tools": [tool("b")], "nextCursor": "next"})
    elif MODE == "odd_names":
        listed = [tool("x.y"), tool("x/y"), tool("x_y"), tool("x_y", description="the second"), tool("n" * 80)]
        listed.append(tool("bad", inputSchema={"type": "object", "properties": {"a": {"type": "nonsense"}}}))
        listed.append(tool("vast", inputSchema={"type": "object", "description": "", "enum": ["v" * 70_000]}))
        answer(number, {"tools": listed})
    elif MODE == "misfits":
        misfits = [tool("empty", inputSchema={}), tool("word", inputSchema="any"), {"description": "nameless"}]
        answer(number, {"tools": [tool("recall"), *misfits, tool("ok")]})
    else:
        strict = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        answer(number, {"tools": [*(tool(name) for name in TOOLS), tool("strict", inputSchema=strict)]})


def ask(method: str, params: object) -> str:
    """What the client says to a question."""
    say(json.dumps({"jsonrpc": "2.0", "id": "q", "method": method, "params": params}))
    while (message := hear()).get("id") != "q":
        pass
    return json.dumps(message.get("result", message.get("error")), sort_keys=True)


def raw(number: object, rest: str) -> None:
    """The beginning of an answer, and whatever follows."""
    say(f'{{"jsonrpc": "2.0", "id": {json.dumps(number)}, {rest}')


def answer_oddly(number: object, name: str) -> None:
    """Tools that answer, after a fashion."""
    match name:
        case "ok":
            words(number, "fine")
        case "noise":
            say("INFO this is a log line")
            say('{"level": "info"}')
            words(number, "fine, too")
        case "bytes":
            os.write(1, b"\xff\xfe\x00 no text\n")
            words(number, "after it")
        case "big":
            words(number, "y" * 1_100_000)
        case "surrogate":
            raw(number, '"result": {"content": [{"type": "text", "text": "a\\ud83d"}]}}')
        case "asks_roots":
            words(number, ask("roots/list", {}))
        case "ask":
            fields = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
            words(number, ask("elicitation/create", {"message": "Sure?\x1b", "requestedSchema": fields}))


def fail(number: object, name: str) -> None:
    """Tools that do not."""
    match name:
        case "broken":
            raw(number, '"result": "oops"}')
        case "half":
            raw(number, '"result": {"cont')
        case "deep":
            raw(number, '"result": ' + "[" * 9000 + "]" * 9000 + "}")
        case "minus":
            raw(number, '"error": {"code": -32000, "message": "the disk is full"}}')
        case "endless":
            sys.stdout.write("z" * (17 * 1024 * 1024))
            sys.stdout.flush()
            time.sleep(600)
        case "mute":
            time.sleep(600)
        case "closed":
            os.close(1)
            time.sleep(600)


def talk_on(number: object, name: str) -> None:
    """Read nothing any more, and say something again and again."""
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
    said = {
        "deaf_notes": note,
        "deaf_pings": {"jsonrpc": "2.0", "id": "p", "method": "ping"},
        "deaf_progress": progress(number),
        "deaf_answers": {"jsonrpc": "2.0", "id": 1, "result": {}},
    }
    while name in said:
        say(json.dumps(said[name]))
        time.sleep(0.02)


def serve() -> None:
    while True:
        message = hear()
        number, params = message.get("id"), message.get("params", {})
        match message.get("method"):
            case "initialize":
                server = {"name": "rogue", "version": "1"}
                capabilities: dict[str, object] = {"tools": {}}
                answer(number, {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server})
            case "tools/list":
                listing(number, params.get("cursor"))
            case "tools/call":
                answer_oddly(number, params["name"])
                if params["name"] == "tells":
                    say(json.dumps(progress(params["_meta"]["progressToken"])))
                fail(number, params["name"])
                talk_on(number, params["name"])
            case method if number is not None:
                error = {"code": -32601, "message": f"no {method} here"}
                say(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}))


if __name__ == "__main__":
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "usage":
        print("usage: nothing of the kind")
        print("no such option; the key is", os.environ.get("KEY"), file=sys.stderr)
        sys.exit(2)
    if MODE == "wordy":
        print(str(os.environ.get("KEY")) + "z" * 2045, file=sys.stderr)
        sys.exit(1)
    if MODE == "silent":
        time.sleep(600)
    if MODE == "chatty":
        say("Welcome to the server!")
    serve()

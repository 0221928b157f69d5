"""A server of the older revision that says far too much. A tool for each way; with `at once`, before it is asked."""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

FIELDS = {"type": "object", "properties": {}}
INFO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "flood", "version": "1"}}
TOOLS = ["asks", "blanks", "nags", "noise", "notes", "ok", "pings", "vast"]
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
QUESTION = {"message": "Really?", "requestedSchema": FIELDS}


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(number: object, result: object) -> None:
    say(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}))


def request(number: object, method: str, params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def for_ever(text: str) -> NoReturn:
    while True:
        say(text)


def nag() -> str:
    """What becomes of forty questions, each answer read."""
    told = []
    for number in range(40):
        say(request(f"q{number}", "elicitation/create", {**QUESTION, "message": f"Really {number}?"}))
        told.append(hear()["result"]["action"])
    return " ".join(told)


def vast() -> str:
    say(request("vast", "elicitation/create", {**QUESTION, "message": "x" * 300_000}))
    refused = json.dumps(hear().get("error"))
    say(request("i" * 300_000, "ping", {}))
    say(request("next", "ping", {}))
    return refused + str(hear()["id"])


def called(number: object, name: str) -> None:
    """Those that flood end with the process."""
    match name:
        case "ok":
            answer(number, {"content": [{"type": "text", "text": "fine"}]})
        case "nags":
            answer(number, {"content": [{"type": "text", "text": nag()}]})
        case "vast":
            answer(number, {"content": [{"type": "text", "text": vast()}]})
        case "asks":
            for_ever("\n".join(request(f"r{each}", "roots/list", {}) for each in range(100)))
        case "pings":
            for_ever("\n".join([request("the same", "elicitation/create", QUESTION)] * 100))
        case "notes":
            for_ever("\n".join([json.dumps(NOTE)] * 100))
        case "noise":
            for_ever("\n".join(["no message at all"] * 100))
        case "blanks":
            for_ever("\n" * 100)


def serve() -> None:
    while True:
        message = hear()
        match message.get("method"):
            case "initialize":
                answer(message["id"], INFO)
            case "tools/list":
                answer(message["id"], {"tools": [{"name": name, "inputSchema": FIELDS} for name in TOOLS]})
            case "tools/call":
                called(message["id"], message["params"]["name"])


if __name__ == "__main__":
    if sys.argv[1:] == ["at once"]:
        for_ever("\n".join(request(f"r{each}", "roots/list", {}) for each in range(100)))
    serve()

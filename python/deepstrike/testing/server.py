"""A chat completions server on the loopback address, scripted by the test, that judges what it is sent.

with ModelServer(["Hello!"]) as server:
    provider = OpenAIProvider(api_key="any", model="test", base_url=server.base_url)
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from deepstrike.providers.base import Finish, ModelEvent, ToolCall
from deepstrike.stream import TextDelta, ThinkingDelta
from deepstrike.wire.message import Usage

if TYPE_CHECKING:
    from types import TracebackType

End = Literal["complete", "fin", "rst", "stall"]
_EVENT_STREAM = "text/event-stream"
_JSON = "application/json"
_WORDS = re.compile(r"\S+\s*|\s+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer byte by byte: `writes` are sent one after the other, a number among them is a pause in seconds.

    `end`: `complete` ends the body properly, `fin` closes the connection in mid-body, `rst` resets it, `stall` keeps it
    open without another byte until the client goes.
    """

    writes: Sequence[bytes | float]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    end: End = "complete"


def refusal(status: int, message: str = "refused by the script", *, code: str = "", **headers: str) -> Raw:
    """An error answer. Header names are given with underscores: `refusal(429, retry_after="2")`."""
    body = json.dumps({"error": {"message": message, "type": code or None, "param": None, "code": code or None}})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Raw([body.encode()], status, {"content-type": _JSON, **named})


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came. `body` is its JSON, `raw` its bytes; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, object]
    raw: bytes


Spoken = str | Sequence[ModelEvent] | Raw
Reply = Spoken | Callable[[Received], Spoken]


class ModelServer:
    """Answers the n-th accepted request with the n-th of `replies`, then with `otherwise`.

    A reply is a text, a list of model events, a `Raw` answer, or a function of the request that gives one of these. A
    request that breaks a rule is refused with 400 and takes no reply: the body must be strict JSON (no NaN, no lone
    surrogate), every tool call must be answered by exactly one result directly behind its message, no result may stand
    without its call, no id may be empty, arguments must be JSON and names what hosts accept. `requests` holds all
    that came, `refused` why some were refused. With `judged=False` only strict JSON is asked for: so it serves other
    dialects than chat completions, by `Raw` answers. Runs in a thread of its own; use `with` or `async with`.
    """

    def __init__(self, replies: Iterable[Reply] = (), *, otherwise: Reply = "ok", judged: bool = True) -> None:
        self.requests: list[Received] = []
        self.refused: list[str] = []
        self.connections = 0
        self.accepted = 0
        self._replies = tuple(replies)
        self._otherwise = otherwise
        self._judged = judged
        self._changed = threading.Condition()
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="deepstrike-model-server", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop: asyncio.Event | None = None

    @property
    def base_url(self) -> str:
        """What to give a provider as `base_url`."""
        return f"http://127.0.0.1:{self._port}/v1"

    def wait_until(self, condition: Callable[[ModelServer], bool], timeout: float = 10.0) -> bool:
        """Wait until `condition` of this server holds, looking at every change; False after `timeout` seconds.

        Blocks the calling thread: in a coroutine use `await asyncio.to_thread(server.wait_until, …)`.
        """
        with self._changed:
            return self._changed.wait_for(lambda: condition(self), timeout)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        if not self.wait_until(lambda server: server._port != 0):
            raise RuntimeError("the model server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def __aenter__(self) -> ModelServer:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    # What follows runs in the server's own thread.

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=2**26)
        with self._changed:
            self._port = server.sockets[0].getsockname()[1]
            self._changed.notify_all()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._converse(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._note(connections=1)
        try:
            while (request := await _read_request(reader)) is not None:
                if not await _write_answer(reader, writer, self._answer(request)):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self._note(connections=-1)

    def _note(self, *, connections: int) -> None:
        with self._changed:
            self.connections += connections
            self._changed.notify_all()

    def _answer(self, request: Received | _Broken) -> Raw:
        """Judge the request and take its reply."""
        fault = request.fault if isinstance(request, _Broken) else judge(request.body) if self._judged else None
        with self._changed:
            if isinstance(request, Received):
                self.requests.append(request)
            if fault is not None:
                self.refused.append(fault)
            turn = self.accepted
            self.accepted += fault is None
            self._changed.notify_all()
        if fault is not None or isinstance(request, _Broken):
            return refusal(400, fault or "", code="invalid_request_error")
        reply = self._replies[turn] if turn < len(self._replies) else self._otherwise
        spoken = reply(request) if callable(reply) else reply
        return spoken if isinstance(spoken, Raw) else Raw(chat_stream(spoken))


@dataclass(frozen=True, slots=True)
class _Broken:
    """A request whose body is not strict JSON."""

    fault: str


async def _read_request(reader: asyncio.StreamReader) -> Received | _Broken | None:
    """The next request of the connection; None when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    try:
        body = _strict(raw)
    except ValueError as fault:
        return _Broken(f"the body is not strict JSON: {fault}")
    return Received(first.split(" ")[1], headers, body, raw)


def _strict(raw: bytes) -> dict[str, object]:
    def refuse(word: str) -> object:
        raise ValueError(f"{word} is no JSON value")

    body: object = json.loads(raw.decode("utf-8", "strict"), parse_constant=refuse)
    json.dumps(body, ensure_ascii=False).encode()  # a lone surrogate, written as an escape, shows here
    if not isinstance(body, dict):
        raise ValueError("it must be an object")
    return body


async def _write_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Raw) -> bool:
    """Send the answer; False when the connection must not be used again."""
    headers = {"content-type": _EVENT_STREAM, **answer.headers, "transfer-encoding": "chunked"}
    lines = [f"HTTP/1.1 {answer.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    for write in answer.writes:
        if isinstance(write, bytes):
            if write:
                writer.write(b"%x\r\n%b\r\n" % (len(write), write))
                await writer.drain()
        else:
            await asyncio.sleep(write)
    return await _end(reader, writer, answer.end)


async def _end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, end: End) -> bool:
    if end == "complete":
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
    if end == "stall":
        await reader.read()
    elif end == "rst":
        # Let what was written leave first: a reset takes back what the client has not read.
        await asyncio.sleep(0.05)
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    return False


def chat_stream(spoken: str | Sequence[ModelEvent]) -> list[bytes]:
    """The writes of a chat completion stream that says this: one for each event, usage and end marker included."""
    events = [TextDelta(word) for word in _WORDS.findall(spoken)] if isinstance(spoken, str) else list(spoken)
    usage = next((event for event in events if isinstance(event, Usage)), Usage(1, 1))
    calls = [event for event in events if isinstance(event, ToolCall)]
    reason = next((event.reason for event in events if isinstance(event, Finish)), "tool_calls" if calls else "stop")
    writes = [_event(_choice({"role": "assistant", "content": ""}))]
    for event in events:
        if isinstance(event, TextDelta):
            writes.append(_event(_choice({"content": event.delta})))
        elif isinstance(event, ThinkingDelta):
            writes.append(_event(_choice({"reasoning_content": event.delta})))
    for index, call in enumerate(calls):
        writes.extend(_call_writes(index, call))
    writes.append(_event(_choice({}, reason)))
    writes.append(_event({"choices": [], "usage": _usage(usage)}))
    return [*writes, _DONE]


def _call_writes(index: int, call: ToolCall) -> list[bytes]:
    opened = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
    half = len(call.arguments_text) // 2
    pieces = [call.arguments_text[:half], call.arguments_text[half:]]
    deltas = [opened, *({"index": index, "function": {"arguments": piece}} for piece in pieces if piece)]
    return [_event(_choice({"tool_calls": [delta]})) for delta in deltas]


def _choice(delta: Mapping[str, object], finish: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _event(chunk: Mapping[str, object]) -> bytes:
    plain = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    return b"data: " + json.dumps({**plain, **chunk}, ensure_ascii=False).encode() + b"\n\n"


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def judge(body: Mapping[str, object]) -> str | None:
    """Why a strict chat service would refuse this request; None if it would not."""
    messages = body.get("messages")
    if not isinstance(body.get("model"), str) or not isinstance(messages, list) or not messages:
        return "a request needs a model and messages"
    open_ids: list[str] = []
    for place, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"messages[{place}] is not an object"
        fault = _judge_result(message, open_ids) if message.get("role") == "tool" else _judge_turn(message, open_ids)
        if fault is not None:
            return f"messages[{place}]: {fault}"
    return f"tool calls without a result: {open_ids}" if open_ids else None


def _judge_result(message: Mapping[str, object], open_ids: list[str]) -> str | None:
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str) or call_id not in open_ids:
        return f"a tool result for {call_id!r}, which no call directly before it has open"
    open_ids.remove(call_id)
    return None if isinstance(message.get("content"), str | list) else "a tool result without content"


def _judge_turn(message: Mapping[str, object], open_ids: list[str]) -> str | None:
    if open_ids:
        return f"tool calls without a result: {open_ids}"
    role, calls = message.get("role"), message.get("tool_calls")
    if role not in ("system", "developer", "user", "assistant"):
        return f"unknown role {role!r}"
    if calls is None:
        return None if isinstance(message.get("content"), str | list) else "neither content nor tool calls"
    if role != "assistant" or not isinstance(calls, list) or not calls:
        return "tool_calls must be a list of calls in an assistant message"
    for call in calls:
        fault = _judge_call(call, open_ids)
        if fault is not None:
            return fault
    return None


def _judge_call(call: object, open_ids: list[str]) -> str | None:
    call_id = call.get("id") if isinstance(call, dict) else None
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call_id, str) or not call_id or not isinstance(function, dict):
        return "a tool call needs an id that is not empty, and a function"
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"a host refuses the tool name {name!r}"
    try:
        json.loads(arguments if isinstance(arguments, str) else "")
    except ValueError:
        return f"the arguments of {call_id!r} are not JSON: {arguments!r}"
    open_ids.append(call_id)
    return None

"""Dialogues to replay: recorded ones (tau-bench's form), and generated ones."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class User:
    """The user says something."""

    text: str


@dataclass(frozen=True, slots=True)
class Model:
    """The model says something, or calls one tool."""

    text: str
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """The tool gives this."""

    text: str


Turn = User | Model | Tool


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One conversation: ends with a turn of the model."""

    system: str
    turns: tuple[Turn, ...]


def recorded(path: Path) -> list[Dialogue]:
    """The dialogues of a file of trajectories: a list of `{"traj": [chat messages]}`."""
    rows = json.loads(path.read_text())
    return [_dialogue(row["traj"]) for row in rows]


def _dialogue(messages: list[dict[str, object]]) -> Dialogue:
    system = str(messages[0]["content"])
    turns = [_turn(message) for message in messages[1:]]
    while turns and not isinstance(turns[-1], Model):
        turns.pop()
    if turns and isinstance(turns[-1], Model) and turns[-1].name:
        turns += [Tool("done"), Model("Done.")]
    return Dialogue(system, tuple(turns))


def _turn(message: dict[str, object]) -> Turn:
    text = str(message.get("content") or "")
    if message["role"] == "user":
        return User(text)
    if message["role"] == "tool":
        return Tool(text)
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        function = calls[0]["function"]
        return Model(text, function["name"], function["arguments"])
    return Model(text)


def generated(count: int, seed: int) -> list[Dialogue]:
    """Order desks: look a customer up, look at orders, change one. Ids come up again much later."""
    dice = random.Random(seed)
    return [Dialogue(_POLICY, tuple(_desk(dice))) for _ in range(count)]


_POLICY = "You work at an order desk. Look a customer up before anything else. " * 40


def _desk(dice: random.Random) -> Iterator[Turn]:
    customer = f"cust_{dice.randrange(10**6)}"
    orders = [f"ORD{dice.randrange(10**7)}" for _ in range(dice.randrange(3, 9))]
    yield User(f"Hello, I am {customer}. Never ship before {dice.randrange(2, 28)} May. What is open?")
    yield Model("", "get_customer", json.dumps({"customer_id": customer}))
    yield Tool(json.dumps({"customer_id": customer, "orders": orders, "address": f"{dice.randrange(99)} Main Street"}))
    for order in orders:
        yield Model("", "get_order", json.dumps({"order_id": order}))
        items = [
            {"sku": f"SKU-{dice.randrange(10**5)}", "count": dice.randrange(9), "note": "in stock " * 6}
            for _ in range(8)
        ]
        yield Tool(json.dumps({"order_id": order, "customer_id": customer, "items": items}))
    yield Model("These are your orders: " + ", ".join(orders))
    changed = dice.choice(orders)
    yield User("Please cancel the oldest one that has not shipped.")
    yield Model("", "cancel_order", json.dumps({"order_id": changed, "customer_id": customer}))
    yield Tool(json.dumps({"order_id": changed, "status": "cancelled"}))
    yield Model(f"{changed} is cancelled.")

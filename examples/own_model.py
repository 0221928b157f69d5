"""A provider of one's own: a clerk that looks orders up and has no other thought."""

import re
from collections.abc import AsyncIterator

from deepstrike import LocalExecutionPlane, ModelRequest, RuntimeOptions, RuntimeRunner, TextDelta, tool
from deepstrike.providers.base import Finish, ModelEvent, ToolCall
from deepstrike.wire.message import ResultBlock, Text


@tool(effect="read")
def order_state(order: int) -> str:
    """Where an order is."""
    return f"order {order} is on its way"


class Clerk:
    """Looks up the first number that it sees, then says what it found."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        last = request.turns[-1]
        text = " ".join(part.text for part in last.parts if isinstance(part, Text))
        number = re.search(r"\d+", text)
        if number and not isinstance(last, ResultBlock):
            yield ToolCall("", "order_state", f'{{"order": {number[0]}}}')
        else:
            yield TextDelta(f"The clerk says: {text}.")
        yield Finish("stop")


def main() -> None:
    """Ask the clerk."""
    plane = LocalExecutionPlane().register(order_state)
    print(RuntimeRunner(RuntimeOptions(provider=Clerk(), execution_plane=plane)).run_sync("Where is order 4711?").text)


if __name__ == "__main__":
    main()

"""What a server calls an image, a sound or a file, where its data is none: a model service would refuse it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deepstrike.wire.message import File, Image, Part, Text

pytest.importorskip("mcp", reason="the official client is not installed")
import mcp_types

from deepstrike.execution.mcp.content import to_result

if TYPE_CHECKING:
    from collections.abc import Callable

PNG = "iVBORw0KGgo="
BEFORE, AFTER = (mcp_types.TextContent(type="text", text=text) for text in ("before", "after"))


def shown(block: mcp_types.ContentBlock) -> Part:
    """The part that is made of it, between two texts that are kept."""
    first, part, last = to_result(mcp_types.CallToolResult(content=[BEFORE, block, AFTER]), ()).parts
    assert (first, last) == (Text("before"), Text("after"))
    return part


def image(data: str, media_type: str = "image/png") -> mcp_types.ImageContent:
    return mcp_types.ImageContent(type="image", data=data, mime_type=media_type)


def blob(data: str, media_type: str) -> mcp_types.EmbeddedResource:
    resource = mcp_types.BlobResourceContents(uri="file:///a.bin", mime_type=media_type, blob=data)
    return mcp_types.EmbeddedResource(type="resource", resource=resource)


@pytest.mark.parametrize(
    "data", ["!!!notbase64", "iVBORw0KGgo", "iVBO\u00e9w0KGgo=", "iVBO-_0KGgo=", "data:image/png;base64,iVBO"]
)
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (image, "image: image/png"),
        (lambda data: mcp_types.AudioContent(type="audio", data=data, mime_type="audio/wav"), "audio: audio/wav"),
        (lambda data: blob(data, "image/webp"), "file:///a.bin: image/webp"),
        (lambda data: blob(data, "application/pdf"), "file:///a.bin: application/pdf"),
        (lambda data: blob(data, "application/zip"), "file:///a.bin: application/zip"),
    ],
    ids=["image", "audio", "image blob", "pdf", "zip"],
)
def test_given_data_that_is_no_base64_when_it_is_shown_then_a_text_names_the_cause_and_the_rest_is_kept(
    make: Callable[[str], mcp_types.ContentBlock], what: str, data: str
) -> None:
    part = shown(make(data))

    assert isinstance(part, Text)
    cause = f"[{what}, cannot be shown: the server sent data that is no base64 ("
    assert part.text[: len(cause)] == cause


def test_given_no_data_when_it_is_shown_then_a_text_says_so() -> None:
    assert shown(image(" \n")) == Text("[image: image/png, cannot be shown: the server sent no data]")


def test_given_data_in_lines_when_it_is_shown_then_it_is_joined() -> None:
    assert shown(image("iVBO\r\nRw0K\nGgo=\n")) == Image("image/png", PNG)
    assert shown(blob("iVBO\nRw0KGgo=", "application/pdf")) == File("application/pdf", PNG, "file:///a.bin")


def test_given_a_type_without_end_when_it_is_not_shown_then_the_cause_is_still_there() -> None:
    part = shown(image("!", "x" * 10_000))

    assert isinstance(part, Text)
    assert "no base64" in part.text
    assert len(part.text) < 1000

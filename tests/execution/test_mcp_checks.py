"""What a caller may give of an MCP server: what cannot be meant is an error at once, and it names the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deepstrike.errors import ConfigError
from deepstrike.execution.mcp.endpoint import Address, Command, read_endpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMAND = "server= is a command"
URL = "server= is no URL like"
ENV = "env= "
HEADERS = "headers= "
CWD = "cwd= is the path of a directory"


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("", COMMAND),
        ("  ", COMMAND),
        ([], COMMAND),
        ([""], COMMAND),
        ([" "], COMMAND),
        (None, "not NoneType"),
        (5, "not int"),
        (b"python server.py", "not bytes"),
        ({"python": 1}, "not dict"),
        ({"python"}, "not set"),
        (Path("/bin/server"), "not PosixPath"),
        (["server", 1], "server=[…] holds int"),
        ([Path("/bin/server")], "server=[…] holds PosixPath"),
        ("'unclosed", "cannot be split"),
        ("a\0b", "with a NUL"),
        (["server", "\ud800"], "no text of Unicode"),
        (["https://example.org/mcp"], "give a URL by itself"),
        ("ftp://example.org", "begins with 'ftp'"),
        ("ws://example.org", "begins with 'ws'"),
        ("http:/example.org", URL),
        ("http://", "names no host"),
        ("http:///mcp", "names no host"),
        ("http://[bad", "cannot be read"),
        ("http://[v1.a]/", "names no host"),
        ("http://256.1.1.1/", "names no host"),
        ("http://a..b/", "names no host"),
        (f"http://{'a' * 64}/", "names no host"),
        ("http://%zz/", "names no host"),
        ("http://€.example/", "names no host"),
        ("http://example.org:port/", "cannot be read"),
        ("http://example.org:0/", "its port is 0"),
        ("http://example.org:99999/", "cannot be read"),
        (" http://example.org/", "white space"),
        ("http://example.org/\n", "white space"),
        ("http://exa mple.org/", "white space"),
        ("http://example.org/\ud800", "cannot be seen"),
        ("http://example.org/" + "a" * 65_536, "longer than 65536 characters"),
    ],
)
def test_given_a_server_that_cannot_be_meant_when_read_then_the_error_names_the_remedy(server: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_endpoint(server, None, None, None)

    assert words in caught.value.message
    assert "server" in caught.value.message or words == "cannot be split"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"A=B": "secret"}, "'A=B' for a name"),
        ({"": "secret"}, "'' for a name"),
        ({"A\0": "secret"}, "'A\\x00' for a name"),
        ({1: "secret"}, "1 for a name"),
        ({"A": "secret\0"}, "the value of 'A' does not fit"),
        ({"A": "secret\ud800"}, "the value of 'A' does not fit"),
        ({"A": 1}, "the value of 'A' does not fit"),
        ({"A": None}, "the value of 'A' does not fit"),
        (["A=secret"], "not list"),
        ("A=secret", "not str"),
        (5, "not int"),
    ],
)
def test_given_an_environment_that_no_program_can_have_when_read_then_the_error_names_it_and_no_value(
    env: Any, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_endpoint("server", env, None, None)

    message = caught.value.message
    assert (ENV in message, words in message, "secret" in message) == (True, True, False)


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"A B": "secret"}, "'A B' for a name"),
        ({"A\r\nB": "secret"}, "'A\\r\\nB' for a name"),
        ({"": "secret"}, "'' for a name"),
        ({"Ä": "secret"}, "'Ä' for a name"),
        ({1: "secret"}, "1 for a name"),
        ({"A": "secret\r\nC: d"}, "'A' does not fit"),
        ({"A": "secret é"}, "'A' does not fit"),
        ({"A": "secret €"}, "'A' does not fit"),
        ({"A": "secret "}, "'A' does not fit"),
        ({"A": 1}, "'A' does not fit"),
        ({"A": b"secret"}, "'A' does not fit"),
        ({"Token": "secret", "token": "secret"}, "'token' twice"),
        ({"Content-Length": "5"}, "'Content-Length', which the connection sets"),
        ({"transfer-encoding": "chunked"}, "'transfer-encoding', which the connection sets"),
        ({"Mcp-Session-Id": "secret"}, "'Mcp-Session-Id', which the connection sets"),
        ([("A", "secret")], "not list"),
        ("A: secret", "not str"),
    ],
)
def test_given_headers_that_no_request_can_have_when_read_then_the_error_names_one_and_no_value(
    headers: Any, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_endpoint("https://example.org/mcp", None, headers, None)

    message = caught.value.message
    assert (HEADERS in message, words in message, "secret" in message) == (True, True, False)


@pytest.mark.parametrize("cwd", ["", "a\0b", "\ud800", b"/tmp", 5, True, ["/tmp"]])
def test_given_what_is_no_directory_when_read_then_the_error_says_so(cwd: Any) -> None:
    with pytest.raises(ConfigError, match=CWD):
        read_endpoint("server", None, None, cwd)


@pytest.mark.parametrize(
    ("server", "env", "headers", "words"),
    [
        ("http://example.org", {"A": "b"}, None, "env= and cwd= are for a server that is started here"),
        ("server", None, {"A": "b"}, "headers= are for a URL"),
    ],
)
def test_given_what_belongs_to_another_kind_of_server_when_read_then_the_error_says_what_this_one_takes(
    server: str, env: dict[str, str] | None, headers: dict[str, str] | None, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_endpoint(server, env, headers, None)

    assert words in caught.value.message


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "HTTP://Example.org:8080/mcp?a=b#c",
        "https://exämple.org/ä",
        "http://[::1]:80/",
        "http://127.0.0.1:1/",
        "http://my_server.internal./mcp",
        "http://1.2.3.example/",
    ],
)
def test_given_an_address_that_is_taken_when_the_client_reads_it_then_it_takes_it_too(url: str) -> None:
    httpx2 = pytest.importorskip("httpx2", reason="the official client is not installed")

    assert read_endpoint(url, None, {"X-Empty": "", "Host": "other"}, None) == Address(
        url, {"X-Empty": "", "Host": "other"}
    )
    assert httpx2.URL(url).host


@pytest.mark.parametrize("server", ["server --at http://example.org", ("server", "--at", "http://example.org")])
def test_given_a_command_with_an_address_among_its_words_when_read_then_it_is_a_command(
    server: str | Sequence[str],
) -> None:
    endpoint = read_endpoint(server, {"A": "ä"}, None, Path("/tmp"))

    assert endpoint == Command(("server", "--at", "http://example.org"), {"A": "ä"}, "/tmp")

"""Values are masked by the name before them, in whatever notation, and also where the text comes in pieces."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepstrike.secrets.curtain import Curtain
from deepstrike.secrets.shapes import masked

VALUE = "hunter2hunter2xyz"
# What is left of each is `***` in the place of the value.
NAMED = [
    # JSON and its like
    '{"accessToken": "@"}',
    '{"refreshToken":"@","n":1}',
    '{"clientSecret": "@"}',
    '{"secretKey": "@"}',
    '"token": "@"',
    "{'password': '@'}",
    "{'Authorization': '@'}",
    "{password:@}",
    # code
    'f(access_token="@")',
    "api_key='@'",
    'password = "@"',
    'password: str = "@"',
    'password = """@"""',
    'os.environ["API_KEY"] = "@"',
    "client_secret => '@'",
    "(b'x-api-key', b'@')",
    # settings, an environment, a command line
    "access_token=@",
    "password: @",
    "db_password:@",
    "aws_secret_access_key = @",
    'X_TOKEN="@"',
    "AUTH_TOKEN=@;",
    "DB_PASS=@",
    "PGPASSWORD=@ psql",
    "GOOGLE_CREDENTIALS=@",
    "Server=x;Password=@;User=b",
    "--api-key @",
    "--password=@",
    "curl -u me:@ https://x",
    "['curl', '--api-key', '@', '-v']",
    '["--password", "@"]',
    # headers
    "Authorization: Bearer @",
    "authorization: Basic @",
    "x-api-key: @",
    "X-Api-Key:@",
    "said Bearer @",
    # addresses
    "postgres://u:@@host/db",
    "redis://:@@localhost:6379/0",
    "https://x.y/?access_token=@&b=1",
    "https://x/?sig=@",
    "//r.io/:_authToken=@",
    "<password>@</password>",
    '<ns:password kind="x">@</ns:password>',
    "Error: invalid api_key: @.",
]
KEY_BLOCK = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----"


def filled(text: str, value: str) -> str:
    return text.replace("@@", f"{value}\0").replace("@", value).replace("\0", "@")


@pytest.mark.parametrize("text", NAMED)
@pytest.mark.parametrize("frame", ["@", "see @ and more", "a\n@\nb"])
def test_given_a_value_behind_its_name_when_masked_then_all_else_is_left(text: str, frame: str) -> None:
    whole, hidden = (frame.replace("@", filled(text, value)) for value in (VALUE, "***"))
    assert masked(whole) == hidden
    assert masked(hidden) == hidden


@pytest.mark.parametrize("text", NAMED)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_given_a_named_value_within_json_when_masked_then_it_is_still_json(text: str, depth: int) -> None:
    whole = f"see {filled(text, VALUE)} and"
    for _ in range(depth):
        whole = json.dumps({"m": whole})
    found = masked(whole)
    for _ in range(depth):
        found = json.loads(found)["m"]
    assert found == f"see {filled(text, '***')} and"


@pytest.mark.parametrize("text", ['token = "@"', "Authorization: Token @", "Bearer @", "id_token: @"])
@pytest.mark.parametrize("space", ["\n", "\t", "\r\n"])
def test_given_a_name_at_the_start_of_a_line_within_json_when_masked_then_its_escape_is_no_part_of_it(
    text: str, space: str
) -> None:
    whole, hidden = (json.dumps({"m": f"a{space}{filled(text, value)}{space}b"}) for value in (VALUE, "***"))
    assert masked(whole) == hidden


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_given_a_number_behind_the_name_of_a_secret_when_masked_then_a_string_stands_for_it(depth: int) -> None:
    whole = json.dumps({"password": 12345678, "n": 12345678})
    for _ in range(depth):
        whole = json.dumps(whole)
    found: object = masked(whole)
    for _ in range(depth + 1):
        found = json.loads(str(found))
    assert found == {"password": "***", "n": 12345678}


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096",
        "token count = 500, token: 5",
        "the password is short",
        "password: required",
        "the secret: be kind",
        "authorization: the user must approve",
        "use --password to set it",
        "Basic understanding of things",
        "secret = None",
        "api_key: str | None = None",
        "password: Optional[str] = None",
        "api_key=os.environ['X_KEY']",
        "api_key = os.environ.get('OPENAI_API_KEY')",
        "f(password=password, api_key=self.api_key)",
        "self.password = password",
        "api_key=${API_KEY} api_key=$API_KEY",
        '"required": ["password", "username"]',
        '{"password": {"type": "string"}}',
        "primary_key=12345678 and sort_key: 12345678",
        "keyboard: qwerty12, Author: a1b2c3d4",
        "https://example.com:8080/a@b at 12:30 by me@x.de",
        "see http://a.b/c?x=1&y=2",
        "docker run -u 1000:1000 image",
        '[{"ask":"password:"},{"ask":"name"}]',
        '{"ask": "password="}, INFO {"ask": "name"}',
        '{"a":[{"password":1},23456]}',
        '{"token":1234567890123456789}',
        '["--password", "--verbose"]',
        "\u0130 password: required",
    ],
)
def test_given_code_or_prose_that_names_a_secret_when_masked_then_it_stays(text: str) -> None:
    assert masked(text) == text


def test_given_letters_whose_lower_case_is_longer_when_masked_then_the_value_is_still_found() -> None:
    assert masked("\u0130\u0130\u0130 password=hunter2") == "\u0130\u0130\u0130 password=***"


@given(st.sampled_from([*NAMED, KEY_BLOCK]), st.lists(st.integers(1, 20), min_size=1))
def test_given_a_named_value_that_streams_in_pieces_when_shown_then_it_is_masked_as_in_one(
    text: str, sizes: list[int]
) -> None:
    whole = f"I looked, and see: {filled(text, VALUE)} and then\nthe password is short. More."
    curtain, shown, place = Curtain(), "", 0
    for at in range(len(whole)):
        size = sizes[at % len(sizes)]
        shown += curtain.passed(whole[place : place + size])
        place += size
    assert shown + curtain.rest() == masked(whole)
    assert VALUE not in shown


def test_given_a_name_whose_value_never_ends_when_streamed_then_it_is_not_waited_for_without_end() -> None:
    curtain = Curtain()
    shown = [curtain.passed('password="' + "ab " * 1000) for _ in range(10)]
    assert sum(map(len, shown)) > 10_000


MARKS = [*" =:,;<>{}[]()@&`'\"\\\n", ": ", "://", "</", "=>", "--", "-u ", "b'", "+/="]
NAMES = ["password", "token", "_token", "api_key", "DB_PASS", "secret", "Bearer ", "--password", "<password>"]
ENDS = ["password:", "token=", '"password"', "the secret: ", "password\\\\"]
VALUES = [VALUE, "sk-ant-" + "a1B2c3D4" * 3, f"\n{KEY_BLOCK}\n"]
WORDS = ["1", "12345678", "null", "xyz ", "u:", "f(", "\u00e9"]
TEXTS = st.lists(st.sampled_from([*MARKS, *NAMES, *ENDS, *VALUES, *WORDS]), max_size=20).map("".join)
KEYS = st.sampled_from(["password", "token", "n", *ENDS])
SCALARS = TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | TEXTS, inner, max_size=3)
)


@given(JSON, st.integers(0, 3), st.sampled_from([None, 2]), st.booleans())
def test_given_any_json_when_masked_then_it_is_still_json(
    value: object, depth: int, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for _ in range(depth):
        text = json.dumps({"m": text})
    text = masked(text)
    for _ in range(depth):
        text = json.loads(text)["m"]
    json.loads(text)


@given(TEXTS, st.booleans(), st.randoms(use_true_random=False))
def test_given_any_text_that_streams_in_pieces_when_shown_then_no_value_is_that_is_masked_in_one(
    text: str, as_json: bool, random: Random
) -> None:
    whole = f"see {json.dumps([text, 'n']) if as_json else text} and\n more"
    curtain, shown, place = Curtain(), "", 0
    while place < len(whole):
        size = random.randint(1, 12)
        shown += curtain.passed(whole[place : place + size])
        place += size
    assert shown + curtain.rest() == masked(whole)


@pytest.mark.parametrize(
    "text",
    [
        'password="',
        "password:",
        "token:",
        "<password ",
        "password='\\",
        "--password ",
        "Bearer ",
        "-u ",
        "?sig=a",
        '\\"',
    ],
)
def test_given_text_of_nothing_but_names_when_streamed_then_no_more_than_its_limit_is_held(text: str) -> None:
    curtain, shown, whole = Curtain(), 0, text * 4000
    for place in range(0, len(whole), 16):
        shown += len(curtain.passed(whole[place : place + 16]))
    assert len(curtain.rest()) < 10_000
    assert shown

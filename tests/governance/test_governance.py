"""Policies: rules, limits, constraints, files, permission managers."""

from __future__ import annotations

import math
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from deepstrike.errors import ConfigError
from deepstrike.governance import (
    Governance,
    GovernanceVerdict,
    Permission,
    PermissionDecision,
    PermissionManager,
    PermissionMode,
)
from deepstrike.kernel import glob


def kinds(governance: Governance, *tools: str) -> list[str]:
    return [governance.evaluate(tool).kind for tool in tools]


def test_given_the_documented_policy_when_evaluated_then_every_stage_has_its_say() -> None:
    governance = Governance("allow")
    governance.add_permission_rule("danger.*", "deny")
    governance.block_tool("rm_rf")
    governance.set_rate_limit("api_call", max_calls=1, window_ms=60_000)

    assert kinds(governance, "danger.zone", "rm_rf", "search") == ["deny", "deny", "allow"]
    assert governance.evaluate("api_call", now_ms=1_000, consume=True).kind == "allow"
    assert governance.evaluate("api_call", now_ms=2_000) == GovernanceVerdict(
        "rate_limited",
        "rate_limit",
        "rate api_call 1/60000 ms",
        "more than 1 calls of api_call in 60000 ms",
        59_000,
        (("permission", "allow"), ("veto", "allow"), ("rate_limit", "refuse")),
    )
    assert governance.evaluate("api_call", now_ms=61_000).allowed


def test_given_rules_in_any_order_when_evaluated_then_deny_beats_ask_beats_allow() -> None:
    for order in (("allow", "ask", "deny"), ("deny", "ask", "allow"), ("ask", "deny", "allow")):
        governance = Governance()
        for action in order:
            governance.add_permission_rule("fs.*", action, reason=f"because {action}")
        found = governance.evaluate("fs.read")
        assert (found.kind, found.stage, found.rule, found.reason) == (
            "deny",
            "permission",
            "deny fs.*",
            "because deny",
        )


@pytest.mark.parametrize(("default", "kind"), [("allow", "allow"), ("deny", "deny"), ("ask", "ask")])
def test_given_a_default_when_no_rule_fits_then_it_holds(default: str, kind: str) -> None:
    assert Governance(default).evaluate("anything").kind == kind


def test_given_constraints_when_evaluated_then_arguments_are_judged_by_them() -> None:
    governance = Governance()
    governance.require_param("pay", "to")
    governance.allow_param_values("pay", "currency", ["EUR", "USD"])
    governance.limit_param_range("pay", "amount", min=1, max=100)
    governance.add_constraint("send_*", {"properties": {"to": {"pattern": "@example\\.org$"}}})

    def pay(**arguments: object) -> str:
        return governance.evaluate("pay", arguments).kind

    assert pay(to="a", currency="EUR", amount=100) == "allow"
    assert pay(to="a") == "allow"
    assert pay(currency="EUR") == "deny"
    assert pay(to="a", currency="eur") == "deny"
    assert pay(to="a", amount=100.01) == "deny"
    assert pay(to="a", amount=True) == "deny"
    assert pay(to="a", amount="5") == "deny"
    found = governance.evaluate("send_mail", '{"to": "x@evil.org"}')
    assert (found.kind, found.stage) == ("deny", "constraint")
    assert "to" in found.reason


def test_given_arguments_that_are_no_object_when_evaluated_then_the_audit_denies_them() -> None:
    found = Governance().evaluate("pay", "[1]")
    assert Governance().evaluate("pay", "{bad") == Governance().evaluate("pay", '{"a":1} trailing') == found
    assert (found.kind, found.stage, found.rule) == ("deny", "audit", "error")


def test_given_no_clock_when_a_rate_is_to_be_measured_then_the_call_is_denied() -> None:
    governance = Governance().set_rate_limit("*", max_calls=5, window_ms=10)
    found = governance.evaluate("look", now_ms=0)
    assert (found.kind, found.stage, found.rule) == ("deny", "rate_limit", "error")


def test_given_a_changed_limit_when_set_again_then_what_was_counted_still_counts() -> None:
    governance = Governance().set_rate_limit("a", max_calls=1, window_ms=100)
    assert governance.evaluate("a", now_ms=1_000, consume=True).allowed
    governance.set_rate_limit("a", max_calls=2, window_ms=100)
    assert governance.evaluate("a", now_ms=1_001, consume=True).allowed
    assert governance.evaluate("a", now_ms=1_002).retry_after_ms == 98


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Governance("maybe"),
        lambda: Governance().add_permission_rule("x", "Deny"),
        lambda: Governance().add_permission_rule("", "deny"),
        lambda: Governance().block_tool("x" * 513),
        lambda: Governance().set_rate_limit("x", max_calls=-1, window_ms=1),
        lambda: Governance().set_rate_limit("x", max_calls=1, window_ms=0),
        lambda: Governance().set_rate_limit("x", max_calls=True, window_ms=1),
        lambda: Governance().limit_param_range("x", "y"),
        lambda: Governance().limit_param_range("x", "y", min=2, max=1),
        lambda: Governance().limit_param_range("x", "y", min=float("nan")),
        lambda: Governance().allow_param_values("x", "y", "abc"),
        lambda: Governance().add_constraint("x", {"type": "nonsense"}),
        lambda: Governance().add_constraint("x", "{"),
        lambda: Governance().add_constraint("x", {"$ref": "https://example.org/schema"}),
    ],
)
def test_given_a_wrong_rule_when_set_then_it_is_refused_at_once(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ConfigError):
        wrong()


def test_given_a_manager_when_it_changes_then_the_next_verdict_follows() -> None:
    manager = PermissionManager()
    governance = Governance().use(manager)
    assert kinds(governance, "fs.read", "look") == ["deny", "deny"]
    manager.grant("fs", "read").grant("look", "call", requires_approval=True)
    assert kinds(governance, "fs.read", "look") == ["allow", "ask"]
    policy = governance.policy()
    assert governance.policy() is policy
    manager.mode = PermissionMode.PLAN
    assert governance.policy() is not policy
    assert kinds(governance, "fs.read", "look") == ["deny", "deny"]


def test_given_globs_of_actions_and_tools_when_revoked_or_granted_then_they_fit_like_those_of_rules(
    tmp_path: Path,
) -> None:
    manager = PermissionManager(PermissionMode.AUTO).revoke("fs", "del*").grant("mail*", "*", requires_approval=True)
    manager.grant("mail_in", "read").grant("mail_?n", "*")
    governance = Governance().use(manager)
    names = ("fs.delete", "fs.read", "mails.send", "mail_in.read", "mail_on.read", "mail_in.send")
    wanted = ["deny", "allow", "ask", "allow", "allow", "allow"]
    assert kinds(governance, *names) == wanted
    assert (manager.evaluate("fs", "delete").allowed, manager.evaluate("mails", "send").requires_approval) == (
        False,
        True,
    )

    file = tmp_path / "policy.yaml"
    file.write_text("permissions:\n  mode: auto\n  revoke:\n    - {tool: fs, action: del*}\n")
    assert kinds(Governance.from_file(file), "fs.delete", "fs.read") == ["deny", "allow"]
    manager.grant("f*", "delet?")
    assert kinds(governance, "fs.delete") == ["deny"]
    manager.grant("fs", "delet?")
    assert kinds(governance, "fs.delete") == ["allow"]


def test_given_the_documented_manager_when_evaluated_then_it_decides_as_described() -> None:
    manager = PermissionManager(PermissionMode.DEFAULT)
    manager.grant("fs", "read", note="reading is fine")
    manager.revoke("db", "drop")

    granted = Permission("fs", "read", granted=True, note="reading is fine")
    revoked = Permission("db", "drop", granted=False)
    assert manager.evaluate("fs", "read") == PermissionDecision(True, "reading is fine", False, granted)
    assert manager.evaluate("db", "drop") == PermissionDecision(False, "db.drop was revoked", False, revoked)
    assert manager.evaluate("db", "read").allowed is False
    assert manager.evaluate("db", "read").matched_permission is None


def test_given_the_modes_when_evaluated_then_plan_denies_all_and_auto_what_is_revoked() -> None:
    plan, auto = PermissionManager(PermissionMode.PLAN), PermissionManager(PermissionMode.AUTO)
    plan.grant("*", "*")
    auto.revoke("db", "*").grant("db", "read")
    assert not plan.evaluate("fs", "read").allowed
    assert [auto.evaluate("db", action).allowed for action in ("read", "drop")] == [True, False]
    assert auto.evaluate("fs", "write").allowed


@pytest.mark.parametrize("mode", ["default", None, 1])
def test_given_a_mode_that_is_none_when_made_then_it_is_refused(mode: object) -> None:
    with pytest.raises(ConfigError, match=r"PermissionMode\.DEFAULT"):
        PermissionManager(mode)  # type: ignore[arg-type]


POLICY = """\
default: ask
rules:
  - deny: "danger.*"
    reason: not here
  - allow: [look, "search.*"]
block: [rm_rf]
rate_limits:
  - {tool: api_call, max_calls: 10, window_ms: 60000}
constraints:
  - tool: pay
    require: to
    values: {currency: [EUR, USD]}
    range: {amount: {min: 1, max: 100}}
  - tool: send
    schema: {required: [to]}
permissions:
  mode: auto
  revoke:
    - {tool: db, action: drop, note: never}
"""


def test_given_a_policy_file_when_read_then_it_is_the_policy_made_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    by_hand = Governance("ask")
    by_hand.add_permission_rule("danger.*", "deny", reason="not here")
    by_hand.add_permission_rule("look", "allow").add_permission_rule("search.*", "allow").block_tool("rm_rf")
    by_hand.set_rate_limit("api_call", 10, 60_000)
    by_hand.require_param("pay", "to").allow_param_values("pay", "currency", ["EUR", "USD"])
    by_hand.limit_param_range("pay", "amount", 1, 100).add_constraint("send", {"required": ["to"]})
    by_hand.use(PermissionManager(PermissionMode.AUTO).revoke("db", "drop", note="never"))

    assert Governance.from_file(file).policy() == by_hand.policy()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "policy.yaml: the policy is empty"),
        ("# nothing\n", "policy.yaml: the policy is empty"),
        ("- a\n", "policy.yaml:1: must be a mapping of default"),
        ("default: allow\nrulez: []\n", "policy.yaml:2: unknown word 'rulez'; did you mean 'rules'?"),
        ("default: alow\n", "policy.yaml:1: unknown word 'alow'; did you mean 'allow'?"),
        ("rules:\n  - deny: no\n", "policy.yaml:2: must be a text; YAML reads 'no' as something else"),
        ("rules:\n  - deny: x\n    allow: y\n", "policy.yaml:2: a rule is one of"),
        ("rules:\n  - deny: ''\n", "policy.yaml:2: a glob must be"),
        ("rate_limits:\n  - {tool: x, max_calls: 1}\n", "policy.yaml:2: 'window_ms' is missing"),
        ("rate_limits:\n  - {tool: x, max_calls: 1.5, window_ms: 1}\n", "policy.yaml:2: must be a whole number"),
        ("constraints:\n  - tool: x\n", "policy.yaml:2: a constraint needs"),
        ("constraints:\n  - tool: x\n    schema: {type: nonsense}\n", "policy.yaml:3: the constraint cannot be used"),
        ("constraints:\n  - tool: x\n    range:\n      n: {min: a}\n", "policy.yaml:4: must be a number"),
        ("default: allow\ndefault: deny\n", "policy.yaml:2: 'default' stands here twice"),
        ("default: [allow\n", "policy.yaml:2: not YAML"),
        ("permissions: {mode: yolo}\n", "policy.yaml:1: unknown word 'yolo'"),
        ("permissions:\n  grant:\n    - {tool: fs, action: ''}\n", "policy.yaml:3: action must be a text of 1 to 512"),
        ("permissions:\n  revoke:\n    - {tool: '', action: x}\n", "policy.yaml:3: tool must be a text of 1 to 512"),
        ("a: &a [*a]\n", "policy.yaml:1: "),
        ("rules:\n  - deny: []\n", "policy.yaml:2: the list is empty"),
        ("constraints:\n  - tool: x\n    require: []\n", "policy.yaml:3: the list is empty"),
        ("default: allow\n# \0\n", "policy.yaml:2: not YAML: character 0x0"),
        (
            "constraints:\n  - tool: x\n    schema: {propertes: {a: {type: string}}}\n",
            "policy.yaml:3: unknown word 'propertes' in the schema; did you mean 'properties'?",
        ),
        (
            "constraints:\n  - tool: x\n    schema: {anyOf: [{properties: {a: {patern: b}}}]}\n",
            "policy.yaml:3: unknown word 'patern' in the schema; did you mean 'pattern'?",
        ),
        ("constraints:\n  - tool: x\n    schema: {properties: {a: {format: email}}}\n", "`format` is not checked"),
        ("constraints:\n  - tool: x\n    schema: {}\n", "policy.yaml:3: schema must be a JSON schema"),
        ("constraints:\n  - tool: x\n    range: {}\n", "policy.yaml:3: the mapping is empty"),
        ("constraints:\n  - tool: x\n    values: {}\n", "policy.yaml:3: the mapping is empty"),
        ("constraints:\n  - tool: x\n    require:\n      - a\n      - ''\n", "policy.yaml:5: "),
        ("rules:\n  - deny:\n      - a\n      - ''\n", "policy.yaml:4: a glob must be"),
        ("constraints:\n  - tool: x\n    values: {a: [.inf]}\n", "policy.yaml:2: the schema cannot be written as JSON"),
    ],
)
def test_given_a_wrong_policy_file_when_read_then_the_error_names_the_line(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Governance.from_file(file)
    assert said in caught.value.message


def test_given_a_file_that_is_not_utf_8_when_read_then_the_error_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_bytes(b"default: allow\n# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"policy\.yaml:2: not UTF-8: byte 0xe9"):
        Governance.from_file(tmp_path / "policy.yaml")


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"properties": {"a": {"contentEncoding": "base64"}}}, "`contentEncoding` is not checked"),
        ({"properties": {"a": {"contentMediaType": "text/html"}}}, "`contentMediaType` is not checked"),
        ({"properties": {"a": {"contentSchema": {"type": "string"}}}}, "`contentSchema` is not checked"),
        ({"properties": {"a": {"items": {}, "additionalItems": False}}}, "`additionalItems` is not checked"),
        ({"dependencies": {"a": ["b"]}}, "`dependencies` is not checked.*`dependentRequired`"),
        ({"then": {"required": ["a"]}}, "`then` constrains nothing without `if`"),
        ({"if": {"required": ["a"]}}, "`if` constrains nothing without `then` or `else`"),
        ({"properties": {"a": {"minContains": 1}}}, "`minContains` constrains nothing without `contains`"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "dependentRequired": {"a": ["b"]}},
            "must be 'https://j",
        ),
        ({"allOf": [{"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}]}, "must be 'https://j"),
    ],
)
def test_given_what_would_constrain_nothing_when_added_then_it_is_refused(schema: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Governance().add_constraint("send", schema)


def test_given_the_draft_that_is_checked_when_named_then_it_is_taken() -> None:
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema", "dependentRequired": {"a": ["b"]}}
    governance = Governance().add_constraint("send", draft)
    assert kinds_of(governance, {"a": 1}, {"a": 1, "b": 1}) == ["deny", "allow"]


def kinds_of(governance: Governance, *arguments: dict[str, object]) -> list[str]:
    return [governance.evaluate("send", each).kind for each in arguments]


def test_given_schema_words_of_ones_own_and_names_like_words_when_added_then_they_are_taken() -> None:
    schema = {"x-owner": "ann", "properties": {"format": {"type": "string"}, "patern": {"enum": ["a"]}}}
    governance = Governance().add_constraint("send", schema)
    assert governance.evaluate("send", {"patern": "b"}).kind == "deny"


def test_given_two_windows_of_one_glob_when_calls_come_then_both_hold() -> None:
    governance = Governance().set_rate_limit("s*", 2, 1_000).set_rate_limit("s*", 3, 60_000)
    kinds = [governance.evaluate("see", now_ms=now, consume=True).kind for now in (1_000, 1_001, 1_002, 2_500, 5_000)]
    assert kinds == ["allow", "allow", "rate_limited", "allow", "rate_limited"]


def test_given_a_tighter_limit_when_set_then_it_begins_with_what_was_counted() -> None:
    governance = Governance().set_rate_limit("see", 3, 60_000)
    assert [governance.evaluate("see", now_ms=now, consume=True).kind for now in (1_000, 2_000)] == ["allow"] * 2
    governance.set_rate_limit("see", 2, 30_000)
    assert governance.evaluate("see", now_ms=3_000).kind == "rate_limited"
    assert governance.evaluate("see", now_ms=31_500).kind == "allow"


def test_given_a_manager_in_auto_when_the_default_denies_or_asks_then_it_still_does() -> None:
    manager = PermissionManager(PermissionMode.AUTO).grant("fs", "read")
    kinds = [
        [Governance(default).use(manager).evaluate(tool).kind for tool in ("rm", "fs.read")]
        for default in ("allow", "deny", "ask")
    ]
    assert kinds == [["allow", "allow"], ["deny", "allow"], ["ask", "allow"]]


def test_given_everything_revoked_when_evaluated_then_no_older_grant_lets_pass() -> None:
    manager = PermissionManager(PermissionMode.AUTO).grant("fs", "*").revoke("*", "*", note="stop")
    stopped = Permission("*", "*", False, note="stop")
    assert manager.evaluate("fs", "delete") == PermissionDecision(False, "stop", False, stopped)
    assert manager.grant("fs", "*").evaluate("fs", "delete").allowed is True


NO_END = Path("/dev/zero")


@pytest.mark.skipif(not NO_END.exists(), reason="there is no such device here")
def test_given_a_file_without_end_when_read_then_it_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"longer than"):
        Governance.from_file(NO_END)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_given_a_pipe_when_read_then_what_is_written_counts_and_nobody_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="the policy is empty"):
        Governance.from_file(tmp_path / "pipe")
    reading, writing = os.pipe()
    os.write(writing, b"default: deny\n")
    os.close(writing)
    assert Governance.from_file(f"/dev/fd/{reading}").evaluate("a", {}).kind == "deny"
    os.close(reading)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, [1, math.nan], {"deep": math.inf}])
def test_given_what_is_no_number_when_it_would_become_null_then_it_is_refused(odd: object) -> None:
    with pytest.raises(ConfigError, match=r"cannot be written as JSON"):
        Governance().allow_param_values("pay", "amount", [odd])
    with pytest.raises(ConfigError, match=r"cannot be written as JSON"):
        Governance().evaluate("pay", {"amount": odd})


def test_given_null_when_it_is_meant_then_it_is_taken() -> None:
    governance = Governance().allow_param_values("pay", "amount", [None])
    assert [governance.evaluate("pay", {"amount": each}).kind for each in (None, 1)] == ["allow", "deny"]


def test_given_a_bound_beyond_every_float_when_set_then_it_holds() -> None:
    governance = Governance().limit_param_range("pay", "amount", max=10**400)
    kinds = [governance.evaluate("pay", {"amount": each}).kind for each in (10**400, 10**400 + 1)]
    assert kinds == ["allow", "deny"]


def test_given_arguments_that_nest_too_deep_when_evaluated_then_they_are_denied() -> None:
    verdict = Governance().evaluate("pay", '{"a":' + "[" * 5_000 + "]" * 5_000 + "}")
    assert (verdict.kind, verdict.stage) == ("deny", "audit")


def test_given_a_policy_when_shown_then_it_says_what_it_holds() -> None:
    governance = Governance("deny").add_permission_rule("see", "allow").block_tool("rm").block_tool("mv")
    assert repr(governance) == "<Governance: default deny, 1 rule, 2 blocks>"


def test_given_a_file_that_is_not_there_when_read_then_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        Governance.from_file(tmp_path / "nowhere.yaml")


_members = re.compile(r"(.)-(.)|(.)", re.DOTALL)


def bracket(rest: str) -> tuple[bool, str, str] | None:
    """What stands behind a `[`: negated or not, the members, and the pattern behind the `]`; None if there is none."""
    negated = rest.startswith("!")
    body = rest[negated:]
    close = body.find("]", 1)  # a `]` that comes first is a member
    return (negated, body[:close], body[close + 1 :]) if close > 0 else None


def fits(pattern: str, name: str) -> bool:
    """What a glob means, written to be read."""
    if not pattern:
        return not name
    head, rest = pattern[0], pattern[1:]
    if head == "*":
        return any(fits(rest, name[start:]) for start in range(len(name) + 1))
    if head == "[" and (found := bracket(rest)):
        negated, inside, behind = found
        ranges = [(low or one, high or one) for low, high, one in _members.findall(inside)]
        return bool(name) and any(a <= name[0] <= b for a, b in ranges) != negated and fits(behind, name[1:])
    return bool(name) and head in ("?", name[0]) and fits(rest, name[1:])


def test_given_random_globs_when_matched_then_they_fit_what_the_reference_fits(
    record_property: Callable[[str, object], None],
) -> None:
    letters, odd = "ab-]^.[!*\\", "ab*?[]!-^.\\"
    seed = int(os.environ.get("DEEPSTRIKE_SEED", "20261130"))
    print(f"seed {seed}")
    dice = random.Random(seed)
    pairs = 1_000_000 if os.environ.get("DEEPSTRIKE_FULL") else 10_000
    for _ in range(pairs):
        pattern = "".join(dice.choices(odd, k=dice.randint(0, 8)))
        name = "".join(dice.choices(letters, k=dice.randint(0, 6)))
        assert glob(pattern, name) == fits(pattern, name), (pattern, name)
    record_property("globs", pairs)

"""The scratch pad."""

from __future__ import annotations

import pytest

from deepstrike.memory import WorkingMemory


def test_given_the_documented_snippet_when_run_then_it_does_what_it_says() -> None:
    mem = WorkingMemory()
    mem.set("step", 1)

    assert mem.get("step") == 1
    mem.clear()
    assert mem.get("step") is None
    assert mem.get("step", 0) == 0


def test_given_values_when_used_as_a_mapping_then_it_is_one() -> None:
    mem = WorkingMemory()
    mem.set("a", 1)
    mem["b"] = [2]
    mem.set("a", 3)

    assert (len(mem), list(mem), "a" in mem, "c" in mem) == (2, ["a", "b"], True, False)
    assert (dict(mem.items()), mem == {"a": 3, "b": [2]}, repr(mem)) == (
        {"a": 3, "b": [2]},
        True,
        "WorkingMemory(a, b)",
    )
    assert (mem.delete("a"), mem.delete("a"), list(mem.values())) == (True, False, [[2]])
    del mem["b"]
    with pytest.raises(KeyError):
        mem["b"]

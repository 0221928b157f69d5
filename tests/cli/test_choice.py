"""Without --model the first model that there is answers; what is asked for wins."""

from __future__ import annotations

import pytest

from deepstrike.cli.choice import KEYS, Choice, choose
from deepstrike.cli.probe import LocalServer
from deepstrike.errors import ConfigError
from deepstrike.providers.base import ModelInfo, Provider
from deepstrike.providers.demo import DemoProvider

OLLAMA = LocalServer("Ollama", "http://127.0.0.1:11434/v1", ("qwen3:4b", "llama3"))


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def named(choice: Choice) -> tuple[str, str]:
    return choice.name, choice.why


def never() -> list[LocalServer]:
    raise AssertionError("local servers were looked for")


def test_given_nothing_when_chosen_then_it_is_the_demo_model() -> None:
    choice = choose(None, None, list)
    assert named(choice) == ("demo", "no key is set and no model server runs on this machine")
    assert isinstance(choice.provider(), DemoProvider)


def test_given_a_local_server_when_chosen_then_its_first_model_answers() -> None:
    choice = choose(None, None, lambda: [OLLAMA])
    assert named(choice) == ("qwen3:4b at http://127.0.0.1:11434/v1", "Ollama runs on this machine")


def test_given_a_key_when_chosen_then_no_local_server_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert named(choose(None, None, never)) == ("openai's default model", "OPENAI_API_KEY is set")


@pytest.mark.parametrize(("key", "vendor"), KEYS.items())
def test_given_the_key_of_a_vendor_when_chosen_then_its_provider_is_made(
    key: str, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(key, "sk-secret")

    choice = choose(None, None, never)
    named_model = choose(f"{vendor}:some-model", "http://127.0.0.1:1/v1", never)

    assert named(choice) == (f"{vendor}'s default model", f"{key} is set")
    for made in (choice.provider(), named_model.provider()):
        assert isinstance(made, Provider)
        assert type(made).__name__.lower() == f"{vendor}provider"
    assert _info(named_model).id == "some-model"


def _info(choice: Choice) -> ModelInfo:
    provider = choice.provider()
    assert isinstance(provider, Provider)
    return provider.info


def test_given_a_model_of_ollama_when_chosen_then_no_key_is_needed() -> None:
    assert _info(choose("ollama:qwen3:4b", None, never)).id == "qwen3:4b"


def test_given_an_address_with_a_password_when_chosen_then_the_password_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:secret@models.example/v1?key=secret")
    choice = choose(None, None, never)
    assert named(choice) == ("the default model at https://models.example/v1", "OPENAI_BASE_URL is set")


def test_given_a_model_when_chosen_then_it_wins_over_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert isinstance(choose("demo", None, never).provider(), DemoProvider)
    assert named(choose("openai:gpt-5-mini", None, never)) == ("openai:gpt-5-mini", "--model")


@pytest.mark.parametrize("model", ["", "gpt-5", "openai", "openai:", "nobody:x"])
def test_given_an_unknown_model_when_chosen_then_it_says_the_form(model: str) -> None:
    with pytest.raises(ConfigError, match=r"write vendor:name, with one of openai, .*, demo as the vendor$"):
        choose(model, None, never)


def test_given_an_address_for_the_demo_model_when_chosen_then_it_refuses() -> None:
    with pytest.raises(ConfigError, match="leave out --base-url"):
        choose("demo", "http://127.0.0.1:1/v1", never)

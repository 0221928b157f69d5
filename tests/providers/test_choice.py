"""Without a model the first model that there is answers; what is asked for wins."""

from __future__ import annotations

import pytest

from deepstrike.errors import ConfigError
from deepstrike.providers.base import ModelInfo, Provider
from deepstrike.providers.choice import KEYS, Choice, choose, names
from deepstrike.providers.demo import DemoProvider
from deepstrike.providers.ollama import OllamaProvider
from deepstrike.providers.tables.servers import SERVERS
from deepstrike.providers.transport.probe import LOCAL_SERVERS, LocalServer

OLLAMA = LocalServer("Ollama", "ollama", "http://127.0.0.1:11434/v1", ("nomic-embed-text", "qwen3:4b", "llama3"))


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


def test_given_a_local_server_when_chosen_then_its_first_model_for_conversation_answers_by_its_own_provider() -> None:
    choice = choose(None, None, lambda: [OLLAMA])

    assert named(choice) == ("qwen3:4b at http://127.0.0.1:11434/v1", "Ollama runs on this machine")
    made = choice.provider()
    assert isinstance(made, OllamaProvider)
    assert made.info.id == "qwen3:4b"


def test_given_the_local_servers_when_each_is_chosen_then_it_has_a_provider() -> None:
    for name, port, provider in LOCAL_SERVERS:
        server = LocalServer(name, provider, f"http://127.0.0.1:{port}/v1", ("m",))
        assert _info(choose(None, None, [server].copy)).id == "m"


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
    assert named(choose("openai:gpt-5-mini", None, never)) == ("openai:gpt-5-mini", "it was asked for")


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("", ""),
        ("nothing of the kind", ""),
        ("nobody:x", ""),
        ("openai", "; did you mean 'openai:NAME'?"),
        ("openai:", "; did you mean 'openai:NAME'?"),
        ("opnai:gpt-5", "; did you mean 'openai:gpt-5'?"),
        ("OpenAI:gpt-5", "; did you mean 'openai:gpt-5'?"),
        ("gpt-5-mini", "; did you mean 'openai:gpt-5-mini'?"),
        ("claude-sonet-5-5", "; did you mean 'anthropic:claude-sonnet-5-5'?"),
        ("demo:x", "; did you mean 'demo'?"),
    ],
)
def test_given_an_id_that_means_no_model_when_chosen_then_it_says_the_form_and_the_nearest(
    model: str, meant: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        choose(model, None, never)

    known = ", ".join(names())
    assert str(raised.value) == (
        f"unknown model {model!r}: write provider:name, with one of {known} as the provider{meant}"
    )


def test_given_the_profiles_of_servers_when_compared_with_what_an_id_may_name_then_each_is_there() -> None:
    assert set(SERVERS) - {"generic"} <= set(names())


@pytest.mark.parametrize("provider", sorted(set(SERVERS) - {"generic", "azure"}))
def test_given_a_server_with_a_key_when_an_id_names_it_then_its_provider_is_made(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SERVERS[provider].key_variable or "NO_KEY", "sk-secret")

    assert _info(choose(f"{provider}:vendor/some:model", None, never)).id == "vendor/some:model"


def test_given_a_server_of_ones_own_resource_when_an_id_names_it_then_its_address_is_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"OpenAICompatibleProvider\(base_url=…, model=…, profile='azure'\)"):
        choose("azure:gpt-5", None, never).provider()
    assert _info(choose("azure:gpt-5", "http://127.0.0.1:1/openai/v1", never)).id == "gpt-5"


def test_given_an_address_for_the_demo_model_when_chosen_then_it_refuses() -> None:
    with pytest.raises(ConfigError, match="leave the address out"):
        choose("demo", "http://127.0.0.1:1/v1", never)

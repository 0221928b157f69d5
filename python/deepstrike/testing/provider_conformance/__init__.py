"""What every provider must hold, as checks that run on a provider of one's own.

One that speaks HTTP is held against a server that answers in its dialect, with seeded faults:

    def make(service: Service) -> LLMProvider:
        return MyProvider(service.key, base_url=service.address, **service.options)

    @pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=str)
    async def test_my_provider(check: ProviderCheck) -> None:
        await check.run(make, CHAT)

or all at once: `await check_provider(make, CHAT)`. The five dialects are `CHAT`, `MESSAGES`, `RESPONSES`, `GEMINI` and
`OLLAMA` of `deepstrike.testing.renderers`; another one is a `Renderer` of one's own.

One without HTTP is held to the protocol alone: `await check_protocol(make_plain)`, or one by one `PROTOCOL_CHECKS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deepstrike.testing.provider_conformance import answers, faults, refusals, secrets, stopping
from deepstrike.testing.provider_conformance.protocol import PROTOCOL_CHECKS, MakePlain, ProtocolCheck
from deepstrike.testing.provider_conformance.trial import MakeProvider, ProviderCheck, Service
from deepstrike.testing.trying import require_all

if TYPE_CHECKING:
    from deepstrike.testing.renderers import Renderer

PROVIDER_CHECKS: list[ProviderCheck] = [
    ProviderCheck(body.__name__, body)
    for body in (*answers.CHECKS, *faults.CHECKS, *refusals.CHECKS, *stopping.CHECKS, *secrets.CHECKS)
]
"""All checks of a provider that speaks HTTP."""

__all__ = [
    "PROTOCOL_CHECKS",
    "PROVIDER_CHECKS",
    "MakePlain",
    "MakeProvider",
    "ProtocolCheck",
    "ProviderCheck",
    "Service",
    "check_protocol",
    "check_provider",
]


async def check_provider(make: MakeProvider, renderer: Renderer) -> None:
    """Run every check, each on a provider of its own. Raises one `AssertionError` that lists all that failed."""
    await require_all((check.name, check.run(make, renderer)) for check in PROVIDER_CHECKS)


async def check_protocol(make: MakePlain) -> None:
    """Run every check of the protocol. Raises one `AssertionError` that lists all that failed."""
    await require_all((check.name, check.run(make)) for check in PROTOCOL_CHECKS)

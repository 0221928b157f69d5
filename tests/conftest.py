"""What holds for all tests: a slow machine is no failure of a property; what one test binds is bound for it alone."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from deepstrike.secrets import Bound, binding

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def secrets_of_its_own() -> Iterator[None]:
    """Secrets are bound for the whole process; a word of the next test may begin like one."""
    before = (binding._values, binding._bound)
    binding._values, binding._bound = frozenset(), Bound()
    yield
    binding._values, binding._bound = before

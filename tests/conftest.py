"""What holds for all tests: a slow machine is no failure of a property; what one test binds is bound for it alone; and
the commands that tests start hear signals, also where the tests themselves run in the background or under `nohup`.
"""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from deepstrike.secrets import Bound, binding

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# What is ignored here is ignored by every program started from here; what is handled here is not.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def secrets_of_its_own() -> Iterator[None]:
    """Secrets are bound for the whole process; a word of the next test may begin like one."""
    before = (binding._values, binding._bound)
    binding._values, binding._bound = frozenset(), Bound()
    yield
    binding._values, binding._bound = before

"""Fakes for testing agents: the same ones this package is tested with.

`ScriptedProvider` answers from a script in process; `ModelServer` speaks the wire over a loopback socket and judges the
requests; `ManualClock` makes time pass on command; `check_session_log` holds a log of one's own to the contract, and
`check_durable_log` one that outlives its process.
"""

from __future__ import annotations

from deepstrike.providers.scripted import ScriptedProvider
from deepstrike.testing.clock import ManualClock
from deepstrike.testing.log_conformance import check_durable_log, check_session_log
from deepstrike.testing.server import ModelServer

__all__ = ["ManualClock", "ModelServer", "ScriptedProvider", "check_durable_log", "check_session_log"]

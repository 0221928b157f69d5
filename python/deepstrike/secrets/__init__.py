"""Secrets that this process was given: no run lets them into the kernel, the log or a prompt.

Providers bind their keys. Bind what else must not be told to a model, such as a password that a tool uses:
`secrets.bind(os.environ["DB_PASSWORD"])`. In everything that a run records, `[secret]` stands in its place. What merely
looks like a secret is left alone there, and masked where text leaves: in what deepstrike logs, shows and exports.
"""

from __future__ import annotations

from deepstrike.errors import hide_messages
from deepstrike.secrets.binding import HIDDEN, SHORTEST, Bound, bind, bind_named, bound
from deepstrike.secrets.logs import mask_logs
from deepstrike.secrets.veil import Veil

__all__ = ["HIDDEN", "SHORTEST", "Bound", "Veil", "bind", "bind_named", "bound"]

# Whatever can bind or record a secret imports this first, so nothing is logged unmasked.
mask_logs()
hide_messages(lambda text: bound().hidden(text))

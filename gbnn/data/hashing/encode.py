"""From Python's objects to one buffer of bytes: the only part of hashing that runs in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, KindError

__all__ = ["as_stream", "as_utf8", "in_blocks", "joined", "texts_joined"]

Array = np.ndarray[Any, Any]


def as_stream(where: str, values: Any, what: str) -> Iterator[Any]:
    """Return an iterator over many `what`; raise KindError for a single one, and for what has no items.

    A string is refused although it can be iterated over: its characters are never what was meant.
    """
    if isinstance(values, str | bytes):
        raise KindError(where, f"many {what}", f"a single {type(values).__name__}")
    try:
        return iter(values)
    except TypeError:  # an array of no dimensions, too
        raise KindError(where, f"many {what}", type(values).__name__) from None


def in_blocks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of `size` items, the last may be shorter; no more than one is held."""
    stream = iter(items)
    while block := list(islice(stream, size)):
        yield block


def joined(parts: list[bytes]) -> tuple[Array, Array]:
    """Return all bytes in one array of uint8, and where each part stops, int64."""
    stops = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
    return np.frombuffer(b"".join(parts), np.uint8), stops


def texts_joined(texts: list[str], joint: str = "") -> tuple[Array, Array]:
    """Return the UTF-8 of all texts, `joint` after each, and where each stops (its joint included).

    Raises UnicodeEncodeError at lone surrogates, which UTF-8 cannot hold; `as_utf8` says where they are.
    """
    every = joint.join([*texts, ""])
    if not every.isascii():
        end = joint.encode()
        return joined([text.encode() + end for text in texts])
    # One call instead of one a text: as many bytes as characters.
    stops = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + len(joint))
    return np.frombuffer(every.encode("ascii"), np.uint8), stops


def as_utf8(where: str, value: Any) -> bytes:
    """Return a text's UTF-8, or bytes as they are.

    Raises
    ------
    KindError
        If it is neither str nor bytes.
    ArgumentError
        If it holds lone surrogates.
    """
    if isinstance(value, bytes):
        return bytes(value)
    if not isinstance(value, str):
        raise KindError(where, "str or bytes", f"{value!r} of type {type(value).__name__}")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(where, "text that UTF-8 can hold", f"a lone surrogate at {error.start}") from None

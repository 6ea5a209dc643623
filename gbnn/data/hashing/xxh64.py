"""XXH64: the hash that turns a feature's bytes into its address, the same on every machine.

Yann Collet's XXH64 (the xxHash specification, 2012-2023) is published with test vectors, mixes every bit of
its result well (so that any of them may serve as an address), and is fastest on short keys among those that
do. It is no cryptographic hash: who chooses the texts can make them collide.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gbnn.engine import kept_on_disk
from gbnn.errors import KindError, check_int

__all__ = ["hash_span", "hash_spans", "xxh64"]

_u = np.uint64
_P1, _P2, _P3 = _u(0x9E3779B185EBCA87), _u(0xC2B2AE3D27D4EB4F), _u(0x165667B19E3779F9)
_P4, _P5 = _u(0x85EBCA77C2B2AE63), _u(0x27D4EB2F165667C5)
_0, _1, _4, _8, _16, _24, _32, _64 = (_u(k) for k in (0, 1, 4, 8, 16, 24, 32, 64))
_R1, _R7, _R11, _R12, _R18, _R23, _R27, _R31 = (_u(k) for k in (1, 7, 11, 12, 18, 23, 27, 31))
_S29, _S33 = _u(29), _u(33)

_compiled = partial(kept_on_disk, nogil=True)


@_compiled
def _rotated(x, bits):  # type: ignore[no-untyped-def]
    return (x << bits) | (x >> (_64 - bits))


@_compiled
def _four(data, at):  # type: ignore[no-untyped-def]
    """Read 4 bytes, the lowest first: byte by byte, so that the machine's own order does not matter."""
    low = _u(data[at]) | _u(data[at + _1]) << _8
    return low | _u(data[at + _u(2)]) << _16 | _u(data[at + _u(3)]) << _24


@_compiled
def _round(state, lane):  # type: ignore[no-untyped-def]
    return _rotated(state + lane * _P2, _R31) * _P1


@_compiled
def _eight(data, at):  # type: ignore[no-untyped-def]
    return _four(data, at) | _four(data, at + _4) << _32


@_compiled
def hash_span(data, start, stop, seed):  # type: ignore[no-untyped-def]
    """Return XXH64 of the bytes from `start` to `stop`, all of them uint64."""
    at, length = start, stop - start
    if length >= _32:
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + _32 <= stop:
            a = _round(a, _eight(data, at))
            b = _round(b, _eight(data, at + _8))
            c = _round(c, _eight(data, at + _16))
            d = _round(d, _eight(data, at + _24))
            at += _32
        mixed = _rotated(a, _R1) + _rotated(b, _R7) + _rotated(c, _R12) + _rotated(d, _R18)
        for lane in (a, b, c, d):
            mixed = (mixed ^ _round(_0, lane)) * _P1 + _P4
    else:
        mixed = seed + _P5
    mixed += length
    while at + _8 <= stop:
        mixed = _rotated(mixed ^ _round(_0, _eight(data, at)), _R27) * _P1 + _P4
        at += _8
    if at + _4 <= stop:
        mixed = _rotated(mixed ^ _four(data, at) * _P1, _R23) * _P2 + _P3
        at += _4
    while at < stop:
        mixed = _rotated(mixed ^ _u(data[at]) * _P5, _R11) * _P1
        at += _1
    mixed = (mixed ^ mixed >> _S33) * _P2
    mixed = (mixed ^ mixed >> _S29) * _P3
    return mixed ^ mixed >> _32


@_compiled
def hash_spans(data, stops, seed, hashes):  # type: ignore[no-untyped-def]
    """hashes[k] = XXH64 of the bytes from stops[k - 1] (0 at first) to stops[k]."""
    start = _0
    for k in range(stops.size):
        stop = _u(stops[k])
        hashes[k] = hash_span(data, start, stop, seed)
        start = stop


def xxh64(data: Any, seed: int = 0) -> int:
    """Return the XXH64 hash of bytes, or of a text's UTF-8.

    Parameters
    ----------
    data : str or bytes
    seed : int
        From 0 to 2**64 - 1.

    Returns
    -------
    int
        From 0 to 2**64 - 1.

    Raises
    ------
    KindError
        If `data` is neither, or holds lone surrogates, which have no UTF-8.

    Examples
    --------
    >>> from gbnn.data.hashing import xxh64
    >>> hex(xxh64("abc"))
    '0x44bc2cf5ad770999'
    """
    if not isinstance(data, str | bytes):
        raise KindError("data", "str or bytes", type(data).__name__)
    try:
        encoded = data.encode() if isinstance(data, str) else data
    except UnicodeEncodeError as error:
        raise KindError("data", "text that UTF-8 can hold", f"a lone surrogate at {error.start}") from None
    hashes = np.empty(1, dtype=np.uint64)
    key = _u(check_int("seed", seed, 0, 2**64 - 1))
    hash_spans(np.frombuffer(encoded, np.uint8), np.array([len(encoded)]), key, hashes)
    return int(hashes[0])

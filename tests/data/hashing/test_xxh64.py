from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import hashing as definition

from gbnn.data.hashing.xxh64 import hash_spans, xxh64
from gbnn.errors import ArgumentError, KindError

PRIME32 = 0x9E3779B1


def sanity_bytes(length):
    """What xxHash's own tests hash (tests/sanity_test.c)."""
    state, out = 2654435761, bytearray()
    for _ in range(length):
        out.append(state >> 56)
        state = state * 11400714785074694797 % 2**64
    return bytes(out)


# xxHash 0.8, tests/sanity_test_vectors.h: every path, by length.
PUBLISHED = [
    (0, 0, 0xEF46DB3751D8E999),
    (0, PRIME32, 0xAC75FDA2929B17EF),
    (1, 0, 0xE934A84ADB052768),
    (1, PRIME32, 0x5014607643A9B4C3),
    (2, 0, 0x5D48CD60A77E23FF),
    (3, 0, 0xFF7E1959CB50794A),
    (4, 0, 0x9136A0DCA57457EE),
    (4, PRIME32, 0xCAAB286BD8E9FDB5),
    (8, 0, 0xCDBCF538E71D1348),
    (8, PRIME32, 0xFE0C047A5353CDAC),
    (9, 0, 0x554B1AE991EDA6B6),
    (14, 0, 0x8282DCC4994E35C8),
    (14, PRIME32, 0xC3BD6BF63DEB6DF0),
    (31, 0, 0x299B39A290E6D783),
    (32, 0, 0x18B216492BB44B70),
    (32, PRIME32, 0xB3F33BDF93ADE409),
    (33, 0, 0x55C8DC3E578F5B59),
    (33, PRIME32, 0xE92C292F64BC3071),
    (64, 0, 0xEF558F8ACAC2B5CD),
    (222, 0, 0xB641AE8CB691C174),
    (222, PRIME32, 0x20CB8AB7AE10C14A),
    (4096, 0, 0xAB77F4AF85F4E70B),
]


@pytest.mark.parametrize(("length", "seed", "expected"), PUBLISHED)
def test_published_vectors(length, seed, expected):
    data = sanity_bytes(length)
    assert xxh64(data, seed) == expected
    assert definition.xxh64(data, seed) == expected


@settings(deadline=None)
@given(st.binary(max_size=100), st.integers(0, 2**64 - 1))
def test_is_the_definition(data, seed):
    assert xxh64(data, seed) == definition.xxh64(data, seed)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=70), max_size=8), st.integers(0, 2**64 - 1))
def test_spans_of_one_buffer(parts, seed):
    stops = np.cumsum([len(part) for part in parts], dtype=np.int64)
    hashes = np.empty(len(parts), dtype=np.uint64)
    hash_spans(np.frombuffer(b"".join(parts), np.uint8), stops, np.uint64(seed), hashes)
    assert hashes.tolist() == [definition.xxh64(part, seed) for part in parts]


def test_text_stands_for_its_utf8():
    assert xxh64("Größe") == xxh64("Größe".encode())


@pytest.mark.parametrize("bad", [None, 5, ["a"], bytearray(b"a"), "\ud800"])
def test_bad_data(bad):
    with pytest.raises(KindError, match="data"):
        xxh64(bad)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_bad_seed(seed):
    with pytest.raises(ArgumentError, match="seed"):
        xxh64("a", seed)

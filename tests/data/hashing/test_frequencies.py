from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.data.hashing.frequencies import Frequencies, look_up

columns = st.integers(0, 2**60 - 1) | st.integers(0, 5)


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(columns, st.integers(1, 9)), max_size=20), max_size=4), st.booleans())
def test_is_a_counter(batches, by_amount):
    seen, counter = Frequencies(), Counter()
    for batch in batches:
        keys = np.array([key for key, _ in batch], dtype=np.int64)
        seen.add(keys, np.array([n for _, n in batch], dtype=np.int64) if by_amount else None)
        for key, n in batch:
            counter[key] += n if by_amount else 1
    keys, counts = seen.sorted()
    assert list(zip(keys.tolist(), counts.tolist(), strict=True)) == sorted(counter.items())
    assert len(seen) == len(counter)
    for key in [*counter, 0, 3, 2**60 - 1]:
        assert look_up(seen.keys, seen.counts, np.int64(key)) == counter[key]


def test_grows_and_stays_at_most_half_full():
    rng = np.random.default_rng(0)
    seen, keys = Frequencies(), rng.integers(0, 2**60, 50_000)
    for part in np.split(np.concatenate([keys, keys]), 40):
        seen.add(part)
    assert len(seen) == 50_000
    assert 2 * len(seen) <= seen.keys.size <= 4 * len(seen)
    found, counts = seen.sorted()
    np.testing.assert_array_equal(found, np.sort(keys))
    assert (counts == 2).all()


def test_amounts_follow_their_columns_through_growth():
    seen, keys = Frequencies(), np.arange(3000)
    seen.add(keys, keys + 1)
    np.testing.assert_array_equal(seen.sorted()[1], keys + 1)


def test_neighbouring_columns_do_not_crowd():
    # What small `bits` gives: a run of small numbers, or multiples of a power of two.
    for step in (1, 2**20, 2**40):
        seen = Frequencies()
        seen.add(np.arange(20_000) * step)
        assert len(seen) == 20_000

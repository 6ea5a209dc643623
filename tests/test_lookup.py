"""Looking up neurons: against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.lookup import Lookup

BIG = 2**60
numbers = st.integers(0, 40) | st.integers(0, BIG - 1) | st.integers(BIG - 40, BIG - 1)


@settings(deadline=None, max_examples=200)
@given(ids=st.sets(numbers, max_size=60), others=st.lists(numbers, max_size=20))
def test_find_is_a_dictionary(ids, others):
    ascending = sorted(ids)
    place = {number: k for k, number in enumerate(ascending)}
    asked = [*ascending, *others, *(n + 1 for n in ascending), *(max(n - 1, 0) for n in ascending)]
    found = Lookup(np.array(ascending, dtype=np.int64)).find(np.array(asked, dtype=np.int64))
    assert found.tolist() == [place.get(number, -1) for number in asked]


@pytest.mark.parametrize("top", [10**5, 10**6, 2**40, BIG])
def test_the_table_takes_no_more_than_the_numbers(top):
    ids = np.unique(np.random.default_rng(0).integers(0, top, 10**5))
    lookup = Lookup(ids)
    assert lookup.nbytes <= 2 * ids.nbytes
    np.testing.assert_array_equal(lookup.find(ids), np.arange(ids.size))


def test_numbers_of_one_interval_are_found():
    crowded = np.append(np.arange(1000, dtype=np.int64), BIG - 1)
    np.testing.assert_array_equal(Lookup(crowded).find(crowded), np.arange(1001))
    assert Lookup(crowded).find(np.array([1000, BIG - 2])).tolist() == [-1, -1]

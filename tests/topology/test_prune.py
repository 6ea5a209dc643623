"""Which edges go: against a sort of everything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gbnn.topology import Prune, Site, magnitude, set_magnitude
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]

patient = settings(deadline=None)  # other work may keep the cores busy
every_rule = pytest.mark.parametrize("rule", [magnitude, set_magnitude])
shares = st.one_of(st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.floats(0, 1))
# Few different numbers: ties abound, also between w and -w, and zeros of both signs.
coarse = st.sampled_from([-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0])
some_values = st.one_of(
    arrays(np.float32, st.integers(0, 30), elements=coarse),
    arrays(np.float64, st.integers(0, 30), elements=coarse),
    arrays(np.float32, st.integers(0, 30), elements=st.floats(-4, 4, width=32)),
    arrays(np.float32, st.integers(0, 8), elements=st.floats(0, 1, width=32)),
)


def site_of(values: Any, dtype: Any = None) -> Site:
    """A layer of 5 outputs whose edges in canonical order have these values."""
    array = np.asarray(values, dtype=dtype or np.asarray(values).dtype)
    where = np.arange(array.size)
    return Site("w", Weights.from_coo(where // 5, where % 5, array, (7, 5), dtype=array.dtype))


def pruned(rule: Prune, values: Any, fraction: float) -> list[int]:
    gone = rule(site_of(values), fraction, np.random.default_rng(0))
    assert gone.dtype.kind == "i"
    positions: list[int] = gone.tolist()
    return positions


def nearest_zero(values: Array, among: Array, count: int) -> list[int]:
    """The first `count` of the positions `among` by (|w|, position)."""
    positions: list[int] = sorted(among.tolist(), key=lambda k: (abs(values[k]), k))
    return positions[:count]


@patient
@given(some_values, shares)
def test_magnitude_is_the_head_of_a_sort(values: Array, fraction: float) -> None:
    expected = nearest_zero(values, np.arange(values.size), math.floor(fraction * values.size))
    assert pruned(magnitude, values, fraction) == sorted(expected)


@patient
@given(some_values, shares)
def test_set_is_the_head_of_a_sort_of_each_sign(values: Array, fraction: float) -> None:
    positive, negative = np.flatnonzero(values >= 0), np.flatnonzero(values < 0)
    expected = [
        k
        for sign in (positive, negative)
        for k in nearest_zero(values, sign, math.floor(fraction * sign.size + 0.5))
    ]
    assert pruned(set_magnitude, values, fraction) == sorted(expected)


@every_rule
@patient
@given(some_values)
def test_nothing_and_everything(rule: Prune, values: Array) -> None:
    assert pruned(rule, values, 0.0) == []
    assert pruned(rule, values, 1.0) == list(range(values.size))


@every_rule
@patient
@given(some_values, shares)
def test_deterministic_and_without_side_effects(rule: Prune, values: Array, fraction: float) -> None:
    site, rng = site_of(values), np.random.default_rng(3)
    before, state = site.weights.values.tobytes(), str(rng.bit_generator.state)
    first = rule(site, fraction, rng)
    np.testing.assert_array_equal(rule(site, fraction, np.random.default_rng(4)), first)
    assert site.weights.values.tobytes() == before
    assert str(rng.bit_generator.state) == state


def test_set_takes_from_both_signs_where_magnitude_takes_one() -> None:
    # The trap: by size alone every positive weight would go, and no negative one.
    values = [0.1, -9.0, 0.2, -8.0, 0.3, -7.0, 0.4, -6.0]
    assert pruned(magnitude, values, 0.5) == [0, 2, 4, 6]
    assert pruned(set_magnitude, values, 0.5) == [0, 2, 5, 7]


@pytest.mark.parametrize(
    ("rule", "values", "fraction", "gone"),
    [
        (magnitude, [1.0, -1.0, 1.0, -1.0], 0.5, [0, 1]),  # at a tie the earlier edge goes
        (magnitude, [3.0, -1.0, 1.0, -1.0], 0.25, [1]),
        (magnitude, [3.0, -1.0, 2.0], 0.3, []),  # 0.9 of an edge is none
        (magnitude, [2.0, 0.0, -0.0, 1.0], 0.5, [1, 2]),
        (set_magnitude, [1.0, 1.0, -1.0, -1.0], 0.5, [0, 2]),
        (set_magnitude, [1.0, 2.0, 3.0, -1.0], 0.3, [0]),  # 0.9 of an edge is one, 0.3 none
        (set_magnitude, [1.0, 0.0, -0.0, -1.0], 0.7, [1, 2, 3]),  # zeros count as positive
        (set_magnitude, [0.0, 0.0, 0.0, 0.0], 0.5, [0, 1]),
        (set_magnitude, [-0.5], 0.5, [0]),
    ],
)
def test_by_value(rule: Prune, values: list[float], fraction: float, gone: list[int]) -> None:
    assert pruned(rule, values, fraction) == gone


def test_a_large_layer_against_a_sort() -> None:
    values = np.random.default_rng(0).standard_normal(35).astype(np.float32)
    many = np.repeat(values, 2000)  # every size 2000 times: the limit lies inside a tie
    where = np.arange(many.size)
    site = Site("w", Weights.from_coo(where, where, many, (many.size, many.size)))
    gone = magnitude(site, 0.37, np.random.default_rng(0))
    order = np.argsort(np.abs(many), kind="stable")
    np.testing.assert_array_equal(gone, np.sort(order[: math.floor(0.37 * many.size)]))

"""Which edges go: against a sort of everything."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.sites import some_site

from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.topology import Prune, Site, magnitude, set_magnitude
from gbnn.topology.prune import at_random, count_of, lowest, lowest_by_sign, sampled, union
from gbnn.topology.scores import Score, movement, neuron_strength, size, taylor
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]

patient = settings(deadline=None, max_examples=60)  # other work may keep the cores busy
every_rule = pytest.mark.parametrize("rule", [magnitude, set_magnitude])
every_score = pytest.mark.parametrize("score", [size, taylor, movement, neuron_strength])
lots = [at_random, sampled(size), sampled(taylor, 2.5), sampled(size, 0), sampled(size, lambda site: 3)]
every_lot = pytest.mark.parametrize("rule", lots)
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


def head(scores: Array, among: Array, count: int) -> list[int]:
    """The first `count` of the positions `among` by (score, position)."""
    positions: list[int] = sorted(among.tolist(), key=lambda k: (scores[k], k))
    return positions[:count]


def floor(fraction: float, nnz: int) -> int:
    """⌊fraction·nnz⌋ in exact arithmetic, where what is an integer but for rounding is that integer."""
    exact = Fraction(fraction) * nnz
    near = round(exact)
    return near if abs(exact - near) <= near * Fraction(1, 2**50) else math.floor(exact)


# -- How many ------------------------------------------------------------------------------------------------


@patient
@given(st.integers(0, 2**48), st.integers(1, 2**48))
def test_count_of_the_nearest_fraction_is_the_count(count: int, nnz: int) -> None:
    count = min(count, nnz)
    assert count_of(count / nnz, nnz) == count
    assert type(count_of(count / nnz, nnz)) is int


@patient
@given(st.integers(0, 1000), st.integers(0, 10**6))
def test_count_of_decimals_is_their_floor(thousandths: int, nnz: int) -> None:
    assert count_of(thousandths / 1000, nnz) == thousandths * nnz // 1000


@patient
@given(shares, st.integers(0, 10**6))
def test_count_of_is_a_floor(fraction: float, nnz: int) -> None:
    assert count_of(fraction, nnz) == floor(fraction, nnz)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, np.nan, np.inf, "1", None, True])
def test_count_of_what_is_no_fraction(fraction: Any) -> None:
    with pytest.raises(GbnnError, match="fraction"):
        count_of(fraction, 10)


# -- The head of a sort --------------------------------------------------------------------------------------


@patient
@given(some_values, shares)
def test_magnitude_is_the_head_of_a_sort(values: Array, fraction: float) -> None:
    expected = head(np.abs(values), np.arange(values.size), floor(fraction, values.size))
    assert pruned(magnitude, values, fraction) == sorted(expected)


@patient
@given(some_values, shares)
def test_set_is_the_head_of_a_sort_of_each_sign(values: Array, fraction: float) -> None:
    positive, negative = np.flatnonzero(values >= 0), np.flatnonzero(values < 0)
    expected = [
        k
        for sign in (positive, negative)
        for k in head(np.abs(values), sign, math.floor(fraction * sign.size + 0.5))
    ]
    assert pruned(set_magnitude, values, fraction) == sorted(expected)


@every_score
@patient
@given(site=some_site(), fraction=shares)
def test_lowest_of_any_score(score: Score, site: Site, fraction: float) -> None:
    nnz = site.weights.nnz
    gone = lowest(score)(site, fraction, np.random.default_rng(0))
    assert gone.tolist() == sorted(head(score(site), np.arange(nnz), floor(fraction, nnz)))


@every_score
@patient
@given(site=some_site(), fraction=shares)
def test_lowest_by_sign_of_any_score(score: Score, site: Site, fraction: float) -> None:
    gone = lowest_by_sign(score)(site, fraction, np.random.default_rng(0)).tolist()
    negative = site.weights.values < 0
    expected = []
    for sign in (np.flatnonzero(~negative), np.flatnonzero(negative)):
        expected += head(score(site), sign, math.floor(fraction * sign.size + 0.5))
    assert gone == sorted(expected)


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


# -- By lot --------------------------------------------------------------------------------------------------


@every_lot
@patient
@given(site=some_site(), fraction=shares, seed=st.integers(0, 2**16))
def test_lots_drop_exactly_so_many(rule: Prune, site: Site, fraction: float, seed: int) -> None:
    before = site.weights.values.tobytes()
    gone = rule(site, fraction, np.random.default_rng(seed))
    assert gone.dtype.kind == "i"
    assert gone.size == floor(fraction, site.weights.nnz)
    assert (np.diff(gone) > 0).all()
    assert np.isin(gone, np.arange(site.weights.nnz)).all()
    np.testing.assert_array_equal(rule(site, fraction, np.random.default_rng(seed)), gone)
    assert site.weights.values.tobytes() == before


def chance(weights: list[float], keep: int) -> dict[tuple[int, ...], float]:
    """How likely each set goes if `keep` are drawn one after the other in proportion to `weights`."""
    result: Counter[tuple[int, ...]] = Counter()
    for drawn in permutations(range(len(weights)), keep):
        left, likely = list(range(len(weights))), 1.0
        for k in drawn:
            likely *= weights[k] / sum(weights[j] for j in left)
            left.remove(k)
        result[tuple(left)] += likely  # type: ignore[assignment]
    return dict(result)


@pytest.mark.parametrize(
    ("rule", "power"),
    [(at_random, 0), (sampled(size, 0), 0), (sampled(size), 1), (sampled(size, lambda site: 3.0), 3)],
)
def test_lots_have_their_chances(rule: Prune, power: float) -> None:
    values, draws = [2.0, -1.0, 0.5, -1.5], 4000
    site, rng = site_of(values), np.random.default_rng(0)
    seen = Counter(tuple(rule(site, 0.5, rng).tolist()) for _ in range(draws))
    expected = chance([abs(v) ** power for v in values], 2)
    assert set(seen) <= set(expected)
    for gone, likely in expected.items():
        # Five deviations of the binomial distribution, and one draw where that is less.
        assert abs(seen[gone] - draws * likely) <= 5 * math.sqrt(draws * likely * (1 - likely)) + 1


def test_sampled_drops_what_is_worth_nothing_first_and_by_lot() -> None:
    site, rng = site_of([0.0, 1e-30, 0.0, 1.0, -0.0], np.float64), np.random.default_rng(0)
    assert all(sampled(size, 0.01)(site, 0.6, rng).tolist() == [0, 2, 4] for _ in range(200))
    seen = Counter(tuple(sampled(size)(site, 0.2, rng).tolist()) for _ in range(300))
    assert set(seen) == {(0,), (2,), (4,)}
    assert min(seen.values()) > 60
    # T = 0 knows no worth.
    assert any(3 in sampled(size, 0)(site, 0.6, rng) for _ in range(50))


def test_sampled_with_a_high_temperature_is_magnitude() -> None:
    values = np.random.default_rng(0).permutation(np.geomspace(1e-30, 1e30, 30))
    for power in (1e3, 1e200):
        assert pruned(sampled(size, power), values, 0.4) == pruned(magnitude, values, 0.4)


def test_sampled_refuses() -> None:
    site, rng = site_of([1.0, -1.0]), np.random.default_rng(0)
    with pytest.raises(ArgumentError, match="lowest score, w"):
        sampled(lambda site: site.weights.values)(site, 0.5, rng)
    with pytest.raises(ArgumentError, match="temperature"):
        sampled(size, lambda site: -1.0)(site, 0.5, rng)
    for bad in (-1.0, np.nan, np.inf, "1"):
        with pytest.raises(GbnnError, match="temperature"):
            sampled(size, bad)  # type: ignore[arg-type]


# -- Several, and errors -------------------------------------------------------------------------------------


def test_union_is_what_any_drops() -> None:
    first, last = lambda s, f, r: [2, 0], lambda s, f, r: np.array([2, 3])
    assert pruned(union(first, last), [1.0] * 5, 0.1) == [0, 2, 3]  # type: ignore[arg-type]
    assert pruned(union(), [1.0] * 5, 0.5) == []
    assert pruned(union(magnitude, set_magnitude), [1.0, 2.0, -3.0, -4.0], 0.5) == [0, 1, 2]


@pytest.mark.parametrize("rule", [magnitude, set_magnitude, lowest(taylor), sampled(size), at_random])
def test_a_fraction_that_is_none(rule: Prune) -> None:
    site = Site("w", Weights.from_dense(np.ones((2, 2))), np.ones(4))
    for bad in (-0.1, 1.5, np.nan):
        with pytest.raises(ArgumentError, match="fraction"):
            rule(site, bad, np.random.default_rng(0))


@pytest.mark.parametrize("rule", [magnitude, set_magnitude, lowest(taylor), sampled(size)])
def test_a_weight_that_is_none(rule: Prune) -> None:
    site = Site("w", Weights.from_dense(np.ones((2, 2))), np.ones(4))
    site.weights.assign([1.0, np.nan, 1.0, 1.0])
    with pytest.raises(NonFiniteError, match="scores, w"):
        rule(site, 0.5, np.random.default_rng(0))


@pytest.mark.parametrize("make", [lowest, lowest_by_sign, sampled, union])
def test_a_part_that_is_no_function(make: Any) -> None:
    with pytest.raises(KindError, match=r"expected a function, got 0\.3"):
        make(0.3)

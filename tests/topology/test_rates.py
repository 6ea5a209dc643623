"""How much each layer drops: what `prune.lowest` then drops, against sorts of all edges together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sites import site_of, some_sites

from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.topology import Site, magnitude, rates
from gbnn.topology.prune import count_of, lowest
from gbnn.topology.rates import Rates
from gbnn.topology.scores import Score, momentum_size, size, taylor
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]

patient = settings(deadline=None, max_examples=60)  # other work may keep the cores busy
shares = st.one_of(st.sampled_from([0.0, 0.29, 0.5, 1.0]), st.floats(0, 1))
EVERY: dict[str, Rates] = {
    "equal": rates.equal,
    "rising": rates.rising(0.2, 3.0),
    "overall": rates.overall(),
    "overall, keep": rates.overall(taylor, keep=1),
    "threshold": rates.adaptive_threshold(0.5, aim=3),
    "threshold, share": rates.adaptive_threshold(0.5, aim=0.3),
    "down to": rates.down_to(0.2),
    "down, all": rates.down_to(None, rates.overall()),
    "settled": rates.until_settled(0.5),
    "guard": rates.momentum_guard,
    "rounded up": rates.rounded_up(),
    "one in another": rates.rounded_up(rates.until_settled(0.5, rates.rising(0.5, 1, rates.overall()))),
}
every_one = pytest.mark.parametrize("rule", EVERY.values(), ids=EVERY.keys())


def dropped(sites: list[Site], each: list[float], score: Score = size) -> list[list[int]]:
    """What each layer loses at these fractions."""
    rng = np.random.default_rng(0)
    return [lowest(score)(site, rate, rng).tolist() for site, rate in zip(sites, each, strict=True)]


def by_layer(sites: list[Site], edges: list[tuple[float, int, int]]) -> list[list[int]]:
    return [sorted(k for _, layer, k in edges if layer == j) for j in range(len(sites))]


@every_one
@settings(deadline=None, max_examples=50)
@given(sites=some_sites(), fraction=shares, again=shares)
def test_a_fraction_for_every_layer(rule: Rates, sites: list[Site], fraction: float, again: float) -> None:
    before = [site.weights.values.tobytes() for site in sites]
    for now in (fraction, again):
        each = rule(sites, now)
        assert isinstance(each, list)
        assert len(each) == len(sites)
        assert all(isinstance(rate, float) and 0 <= rate <= 1 for rate in each)
        for site in sites:
            site.memory.layer["overlap"] = np.array(0.6)
    assert [site.weights.values.tobytes() for site in sites] == before


# -- Factors -------------------------------------------------------------------------------------------------


def test_rising_goes_in_a_line_over_all_layers() -> None:
    full = np.ones((2, 2))
    sites = [site_of(full, index=k, count=5) for k in (0, 2, 3)]  # layer 1 is dense, the last one spared
    assert rates.rising(0.0, 2.0)(sites, 0.1) == pytest.approx([0.0, 0.1, 0.15])
    assert rates.rising(1.0, 0.0)(sites, 0.4) == pytest.approx([0.4, 0.2, 0.1])
    assert rates.rising(0.0, 9.0)(sites, 0.4) == [0.0, 1.0, 1.0]
    assert rates.rising()(sites, 0.4) == pytest.approx([0.0, 0.2, 0.3])
    assert rates.rising(0.2, 0.5)([site_of(full)], 0.4) == pytest.approx([0.2])


def test_given_multiplies_and_stops_at_all() -> None:
    sites = [site_of(np.ones((2, 2)), index=k, count=3) for k in range(3)]
    assert rates.given([0, 0.5, 3])(sites, 0.5) == [0.0, 0.25, 1.0]
    assert rates.given([1, 1, 2], rates.given([2, 1, 0.5]))(sites, 0.25) == [0.5, 0.25, 0.25]
    with pytest.raises(
        ArgumentError, match="factors: expected 2 numbers, one a layer that takes part, got 3"
    ):
        rates.given([1, 1, 1])(sites[:2], 0.5)


# -- All edges together --------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [size, taylor])
@patient
@given(sites=some_sites(), fraction=shares)
def test_overall_drops_the_lowest_of_all(score: Score, sites: list[Site], fraction: float) -> None:
    edges = sorted((s, j, k) for j, site in enumerate(sites) for k, s in enumerate(score(site)))
    count = count_of(fraction, len(edges))
    found = dropped(sites, rates.overall(score)(sites, fraction), score)
    assert found == by_layer(sites, edges[:count])
    assert sum(map(len, found)) == count


@patient
@given(some_sites(), shares, st.integers(0, 3))
def test_overall_spares_the_best_of_each_layer(sites: list[Site], fraction: float, keep: int) -> None:
    edges = []
    for j, site in enumerate(sites):
        ranked = sorted((s, j, k) for k, s in enumerate(size(site)))
        edges += ranked[: max(0, len(ranked) - keep)]
    count = count_of(fraction, sum(site.weights.nnz for site in sites))
    found = dropped(sites, rates.overall(size, keep)(sites, fraction))
    assert found == by_layer(sites, sorted(edges)[:count])
    for site, gone in zip(sites, found, strict=True):
        assert site.weights.nnz - len(gone) >= min(keep, site.weights.nnz)


def test_overall_is_exact_in_large_layers_with_ties() -> None:
    rng, nnz = np.random.default_rng(0), 70_001
    where = np.arange(nnz)
    sites = [
        Site(f"{k}", Weights.from_coo(where, where, rng.integers(1, 9, nnz), (2**60, 2**60)))
        for k in range(3)
    ]
    every = np.concatenate([size(site) for site in sites])
    gone = np.zeros(every.size, dtype=bool)
    gone[np.argsort(every, kind="stable")[: math.floor(0.37 * every.size)]] = True
    expected = [np.flatnonzero(some).tolist() for some in np.split(gone, 3)]
    assert dropped(sites, rates.overall()(sites, 0.37)) == expected


# -- DSR -----------------------------------------------------------------------------------------------------


@patient
@given(
    some_sites(least=1),
    st.sampled_from([0.1, 0.5, 0.75, 1.0, 3.0]),
    st.one_of(st.integers(1, 40), st.floats(0.01, 1)),
)
def test_the_threshold_halves_and_doubles(sites: list[Site], limit: float, aim: int | float) -> None:
    rule, nnz = rates.adaptive_threshold(limit, aim), sum(site.weights.nnz for site in sites)
    wanted = aim if isinstance(aim, int) else aim * nnz
    for fraction in (0.3, 0.0, 1.0):  # is ignored
        expected = []
        for site in sites:
            low = [k for k, w in enumerate(site.weights.values) if abs(w) < limit]
            if low and len(low) == site.weights.nnz:  # the strongest stays, the last one at a tie
                low.remove(max(low, key=lambda k, w=site.weights.values: (abs(w[k]), k)))  # type: ignore[misc]
            expected.append(low)
        each = rule(sites, fraction)
        rng = np.random.default_rng(0)
        assert [magnitude(s, r, rng).tolist() for s, r in zip(sites, each, strict=True)] == expected
        gone = sum(map(len, expected))
        limit = limit / 2 if gone > 1.1 * wanted else limit * 2 if gone < 0.9 * wanted else limit
        assert [float(site.memory.layer["threshold"]) for site in sites] == [limit] * len(sites)


@pytest.mark.parametrize(
    ("below", "factor"), [(89, 2), (90, 1), (100, 1), (110, 1), (111, 0.5), (119, 0.5), (0, 2)]
)
def test_the_threshold_stays_within_a_tenth_of_the_aim(below: int, factor: float) -> None:
    values = np.where(np.arange(200) < below, 0.25, 0.5)  # 0.5 is not below 0.5
    site = Site("w", Weights.from_coo(np.arange(200), np.zeros(200, dtype=int), values, (200, 1)))
    assert rates.adaptive_threshold(0.5, aim=100)([site], 0.0) == [below / 200]
    assert site.memory.layer["threshold"] == 0.5 * factor


def test_a_threshold_that_always_doubles_stays_a_number() -> None:
    site = site_of(np.zeros((2, 2)))
    rule = rates.adaptive_threshold(1e308)
    for _ in range(3):
        assert rule([site], 0.3) == [0.0]
    assert np.isfinite(site.memory.layer["threshold"])


def test_a_layer_that_joins_later_takes_the_threshold_of_the_others() -> None:
    old, new = (site_of(np.ones((4, 4)), seed) for seed in (1, 2))
    rule = rates.adaptive_threshold(0.5, aim=1)
    rule([old], 0.0)
    limit = float(old.memory.layer["threshold"])
    assert limit != 0.5
    assert dropped([new, old], rule([new, old], 0.0))[0] == np.flatnonzero(size(new) < limit).tolist()


# -- Down to a share -----------------------------------------------------------------------------------------


@patient
@given(some_sites(), shares)
def test_down_to_leaves_the_share_of_each_layers_places(sites: list[Site], share: float) -> None:
    for rule, fraction in ((rates.down_to(share), 0.4), (rates.down_to(), share)):
        for site, gone in zip(sites, dropped(sites, rule(sites, fraction)), strict=True):
            assert site.weights.nnz - len(gone) == min(site.weights.nnz, count_of(share, site.places))


@patient
@given(some_sites(), shares)
def test_down_to_of_all_layers_together(sites: list[Site], share: float) -> None:
    nnz, places = sum(site.weights.nnz for site in sites), sum(site.places for site in sites)
    count = nnz - min(nnz, count_of(share, places))
    edges = sorted((s, j, k) for j, site in enumerate(sites) for k, s in enumerate(size(site)))
    for rule, fraction in (
        (rates.down_to(share, rates.overall()), 0.4),
        (rates.down_to(None, rates.overall()), share),
    ):
        assert dropped(sites, rule(sites, fraction)) == by_layer(sites, edges[:count])


def test_down_to_in_a_layer_of_any_size() -> None:
    w = Weights.from_coo([0, 2**60 - 1], [5, 0], [1.0, 2.0], (2**60, 2**60))
    assert rates.down_to(1e-30)([Site("w", w)], 0.0) == [0.0]
    assert rates.down_to(1e-36)([Site("w", w)], 0.0) == [0.5]
    assert rates.down_to(0.0)([Site("w", w)], 0.0) == [1.0]


# -- Layers that rest ----------------------------------------------------------------------------------------


def test_a_layer_once_settled_stays_so() -> None:
    sites = [site_of(np.ones((2, 2)), index=k, count=2) for k in range(2)]
    rule = rates.until_settled(0.9)
    for overlaps, expected in [
        ((None, None), [0.3, 0.3]),
        ((0.9, 0.1), [0.3, 0.3]),  # not above it
        ((0.91, 0.5), [0.0, 0.3]),
        ((0.1, 0.5), [0.0, 0.3]),
        ((0.1, 1.0), [0.0, 0.0]),
        ((0.0, 0.0), [0.0, 0.0]),
    ]:
        for site, overlap in zip(sites, overlaps, strict=True):
            if overlap is not None:
                site.memory.layer["overlap"] = np.array(overlap)
        assert rule(sites, 0.3) == expected


def test_settled_does_not_write_into_what_it_wraps() -> None:
    mine, site = [0.5], site_of(np.ones((2, 2)))
    site.memory.layer["overlap"] = np.array(1.0)
    assert rates.until_settled(0.9, lambda sites, fraction: mine)([site], 0.1) == [0.0]
    assert mine == [0.5]


# -- Sparse momentum's exception -----------------------------------------------------------------------------


@patient
@given(some_sites(), shares)
def test_momentum_guard_is_its_definition(sites: list[Site], fraction: float) -> None:
    means = [float(momentum_size(site).mean()) if site.weights.nnz else 0.0 for site in sites]
    for site, mean, rate in zip(sites, means, rates.momentum_guard(sites, fraction), strict=True):
        empty = site.free / site.places
        if abs(mean * len(sites) - sum(means)) <= 1e-12 * sum(means):
            continue  # a share of exactly 1/layers but for rounding
        growing = mean * len(sites) > sum(means)
        assert rate == (min(fraction, empty) if empty < 0.2 and growing else fraction)


def test_momentum_guard_by_value() -> None:
    def layer(nnz: int, momentum: float) -> Site:
        site = site_of(np.arange(100).reshape(10, 10) < nnz)
        site.slots = {"momentum": np.full(nnz, -momentum)}
        return site

    guard = rates.momentum_guard
    assert guard([layer(90, 2.0), layer(90, 1.0)], 0.5) == [0.1, 0.5]
    assert guard([layer(90, 2.0), layer(90, 2.0)], 0.5) == [0.5, 0.5]  # as much as the others is not more
    assert guard([layer(80, 2.0), layer(81, 1.0)], 0.5) == [0.5, 0.5]  # a fifth empty is not less
    assert guard([layer(81, 2.0), layer(50, 1.0)], 0.1) == [0.1, 0.1]
    assert guard([layer(100, 2.0), layer(50, 1.0)], 0.1) == [0.0, 0.1]
    assert guard([layer(90, 0.0), layer(0, 0.0)], 0.1) == [0.1, 0.1]
    both = rates.rounded_up(guard)([layer(93, 2.0), layer(95, 1.0)], 0.5)
    assert [count_of(rate, nnz) for rate, nnz in zip(both, (93, 95), strict=True)] == [
        7,
        48,
    ]  # ⌈6.51⌉, ⌈47.5⌉


@patient
@given(some_sites(), st.integers(0, 100))
def test_rounded_up_is_a_ceiling(sites: list[Site], percent: int) -> None:
    for site, rate in zip(sites, rates.rounded_up()(sites, percent / 100), strict=True):
        assert count_of(rate, site.weights.nnz) == -(-percent * site.weights.nnz // 100)


def test_rounded_up_is_not_misled_by_floating_point() -> None:
    site = site_of(np.ones((10, 10)))
    assert math.ceil(0.07 * 100) == 8
    assert rates.rounded_up()([site], 0.07) == [0.07]
    assert rates.rounded_up()([site], 0.0701) == [0.08]


# -- Errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda bad: rates.given([1.0, bad]),
        lambda bad: rates.rising(bad, 1.0),
        lambda bad: rates.rising(0.0, bad),
        lambda bad: rates.overall(size, bad),
        lambda bad: rates.adaptive_threshold(bad),
        lambda bad: rates.adaptive_threshold(1e-3, bad),
        lambda bad: rates.down_to(bad),
        lambda bad: rates.until_settled(bad),
    ],
)
@pytest.mark.parametrize("bad", [-1, -0.5, math.nan, math.inf, "1", True])
def test_arguments(make: Any, bad: Any) -> None:
    with pytest.raises(GbnnError):
        make(bad)


@pytest.mark.parametrize("aim", [0, 0.0, 1.5, None])
def test_aims_that_are_none(aim: Any) -> None:
    with pytest.raises(GbnnError, match="aim"):
        rates.adaptive_threshold(1e-3, aim)


@pytest.mark.parametrize("rule", [rates.overall(), rates.adaptive_threshold(), rates.momentum_guard])
def test_what_is_not_finite(rule: Rates) -> None:
    site = site_of(np.ones((2, 2)))
    site.weights.assign(np.nan)
    site.slots["momentum"] = np.full(4, np.nan)
    with pytest.raises(NonFiniteError):
        rule([site], 0.5)


MADE_OF_RATES: list[Any] = [
    lambda part: rates.given([1.0, 1.0], part),
    lambda part: rates.rising(0.5, 1.0, part),
    lambda part: rates.rounded_up(part),
    lambda part: rates.until_settled(0.5, part),
    lambda part: rates.down_to(0.1, part),
]


@pytest.mark.parametrize("make", MADE_OF_RATES)
def test_parts_that_are_no_functions(make: Any) -> None:
    for part in (0.3, "equal", [0.1, 0.2]):
        with pytest.raises(KindError, match=r"^rates: expected a function"):
            make(part)


def test_a_score_that_is_no_function_and_factors_that_are_no_list() -> None:
    with pytest.raises(KindError, match=r"^score: expected a function"):
        rates.overall(None)  # type: ignore[arg-type]
    for factors in (None, 3.0):
        with pytest.raises(KindError, match=r"^factors: expected a list of numbers"):
            rates.given(factors)  # type: ignore[arg-type]
    with pytest.raises(KindError, match=r"^factors\[0\]: expected a number"):
        rates.given("12")  # type: ignore[arg-type]


@pytest.mark.parametrize("make", MADE_OF_RATES)
@pytest.mark.parametrize("returned", [None, 0.3, [0.3], [0.3, "x"], [0.3, math.nan], [0.3, 1.5], "ab"])
def test_parts_that_return_no_fractions(make: Any, returned: Any) -> None:
    sites = [site_of(np.ones((2, 2)), index=k, count=2) for k in range(2)]
    with pytest.raises(GbnnError, match=r"^rates"):
        make(lambda sites, fraction: returned)(sites, 0.3)

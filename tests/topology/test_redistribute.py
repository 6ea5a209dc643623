"""How much each layer grows: exact sums that find room, and each rule against its definition."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sites import partly_dropped, site_of

from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.topology import Site, gradient, redistribute
from gbnn.topology.redistribute import Allocate
from gbnn.topology.scores import momentum_size, movement, size
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
Case = tuple[list[Site], list[Array], int]

patient = settings(deadline=None, max_examples=50)  # other work may keep the cores busy
EVERY: dict[str, Allocate] = {
    "same": redistribute.same,
    "survivors": redistribute.by_survivors,
    "edges": redistribute.by_edges,
    "size": redistribute.by_size,
    "momentum": redistribute.by_momentum,
    "mean weight": redistribute.by_mean(size),
    "gradient": redistribute.by_gradient,
    "fixed": lambda sites, dropped, total: redistribute.fixed([k % 3 for k in range(len(sites))])(
        sites, dropped, total
    ),
}
every_one = pytest.mark.parametrize("rule", EVERY.values(), ids=EVERY.keys())
proportional = pytest.mark.parametrize(
    ("rule", "weight"),
    [
        (redistribute.same, lambda site, gone: gone.size),
        (redistribute.by_survivors, lambda site, gone: site.weights.nnz - gone.size),
        (redistribute.by_edges, lambda site, gone: site.weights.nnz),
        (redistribute.by_size, lambda site, gone: site.weights.in_features * site.weights.out_features),
    ],
)


def room(sites: list[Site], dropped: list[Array]) -> list[int]:
    return [
        site.weights.in_features * site.weights.out_features - site.weights.nnz + gone.size
        for site, gone in zip(sites, dropped, strict=True)
    ]


@every_one
@patient
@given(case=partly_dropped())
def test_the_sum_is_exact_and_finds_room(rule: Allocate, case: Case) -> None:
    sites, dropped, total = case
    counts = rule(sites, dropped, total)
    assert isinstance(counts, list)
    assert all(type(count) is int for count in counts)
    assert sum(counts) == total
    assert len(counts) == len(sites)
    assert all(0 <= n <= most for n, most in zip(counts, room(sites, dropped), strict=True))
    assert rule(sites, dropped, total) == counts


@every_one
@patient
@given(case=partly_dropped())
def test_more_than_all_free_places_is_refused(rule: Allocate, case: Case) -> None:
    sites, dropped, _ = case
    free = sum(room(sites, dropped))
    for bad in (free + 1, -1, 0.5, True):
        with pytest.raises(GbnnError):
            rule(sites, dropped, bad)  # type: ignore[arg-type]


@patient
@given(partly_dropped())
def test_same_is_what_was_dropped(case: Case) -> None:
    sites, dropped, _ = case
    before = [gone.size for gone in dropped]
    assert redistribute.same(sites, dropped, sum(before)) == before


@proportional
@patient
@given(case=partly_dropped())
def test_in_proportion_where_there_is_room(rule: Allocate, weight: Any, case: Case) -> None:
    sites, dropped, total = case
    weights = [weight(site, gone) for site, gone in zip(sites, dropped, strict=True)]
    free = room(sites, dropped)
    ideal = [Fraction(total * w, max(1, sum(weights))) for w in weights]
    if sum(weights) and all(wish <= most for wish, most in zip(ideal, free, strict=True)):
        for count, wish in zip(rule(sites, dropped, total), ideal, strict=True):
            assert abs(count - wish) < 1


@proportional
def test_by_hand(rule: Allocate, weight: Any) -> None:
    sites = [site_of(np.arange(100).reshape(10, 10) < 30), site_of(np.arange(200).reshape(10, 20) < 10)]
    dropped = [np.arange(6), np.arange(4)]
    expected = {
        redistribute.same: [12, 8],
        redistribute.by_survivors: [16, 4],
        redistribute.by_edges: [15, 5],
        redistribute.by_size: [7, 13],
    }
    assert rule(sites, dropped, 20) == expected[rule]


def test_what_one_has_no_room_for_goes_to_the_others() -> None:
    tight, wide = site_of(np.arange(9).reshape(3, 3) < 8), site_of(np.arange(400).reshape(20, 20) < 4)
    wider = site_of(np.arange(400).reshape(20, 20) < 8)
    none = np.empty(0, dtype=np.int64)
    assert redistribute.by_edges([tight, wide, wider], [none] * 3, 13) == [1, 4, 8]
    assert redistribute.fixed([5, 0, 0])([tight, wide, wider], [none] * 3, 10) == [1, 5, 4]  # 396 : 392
    assert redistribute.fixed([0.5, 0.25, 0.25])([tight, wide, wider], [none] * 3, 5) == [1, 2, 2]


def test_fixed_takes_one_share_a_layer() -> None:
    with pytest.raises(ArgumentError, match="shares: expected 1 numbers, one a layer that takes part, got 2"):
        redistribute.fixed([1, 2])([site_of(np.zeros((2, 2)))], [np.empty(0, dtype=np.int64)], 1)
    for bad in (-1.0, np.nan, np.inf, "1", None, True):
        with pytest.raises(GbnnError, match=r"shares\[1\]"):
            redistribute.fixed([1.0, bad])  # type: ignore[list-item]


def test_in_layers_of_any_size() -> None:
    w = Weights.from_coo([0, 2**60 - 1], [2**60 - 1, 0], 1.0, (2**60, 2**60))
    sites, none = [Site("a", w), Site("b", w), Site("c", w)], [np.empty(0, dtype=np.int64)] * 3
    total = 3 * 2**119 + 1
    for rule in (redistribute.by_edges, redistribute.by_mean(size), redistribute.fixed([1, 1.0, np.int8(1)])):
        assert rule(sites, none, total) == [2**119 + 1, 2**119, 2**119]


# -- Sparse momentum -----------------------------------------------------------------------------------------


def reference(shares: list[float], free: list[int], total: int) -> list[float]:
    """What the authors' loop makes of shares: rounded up, capped, the rest divided evenly again and again."""
    counts = [float(math.ceil(share * total)) for share in shares]
    extra = 0.0
    for _ in range(1000):
        residual = 0.0
        for k, most in enumerate(free):
            counts[k] += extra
            if counts[k] > 0.99 * most:
                residual += counts[k] - 0.99 * most
                counts[k] = 0.99 * most
        extra = residual / len(free)
        if residual == 0:
            break
    return counts


@patient
@given(partly_dropped())
def test_momentum_is_the_authors_loop_but_for_its_rounding(case: Case) -> None:
    sites, dropped, total = case
    free = room(sites, dropped)
    means = [float(momentum_size(site).mean()) if site.weights.nnz else 0.0 for site in sites]
    counts = redistribute.by_momentum(sites, dropped, total)
    if not sum(means):
        assert counts == redistribute.same(sites, dropped, total)
    elif total + len(sites) <= 0.99 * sum(free):  # else its loop finds no end
        expected = reference([mean / sum(means) for mean in means], free, total)
        # Rounding up gives it less than an edge a layer more, which full layers hand to the others.
        for count, wish in zip(counts, expected, strict=True):
            assert -len(sites) - 1 < count - wish < 1
    else:
        for count, most in zip(counts, free, strict=True):
            assert count > 0.99 * most - len(sites) - 2


@patient
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=1, max_size=5), st.integers(0, 100)
)
def test_mean_fills_evenly(layers: list[tuple[int, int]], percent: int) -> None:
    """In exact numbers: Σ min(cap, share·total + λ) = total, λ by bisection; counts are within an edge."""
    sites = []
    for mean, free in layers:
        w = Weights.from_coo([0], [free], 1.0, shape=(1, free + 1), dtype=np.float64)
        sites.append(Site("w", w, slots={"momentum": np.array([float(mean)])}))
    total, caps = percent * sum(free for _, free in layers) // 100, [0.99 * free for _, free in layers]
    whole = sum(mean for mean, _ in layers)
    none = [np.empty(0, dtype=np.int64)] * len(sites)
    counts = redistribute.by_momentum(sites, none, total)
    assert sum(counts) == total
    if not whole or total >= sum(caps):
        return
    low, high = 0.0, float(total)
    for _ in range(100):
        level = (low + high) / 2
        filled = sum(min(c, m / whole * total + level) for c, (m, _) in zip(caps, layers, strict=True))
        low, high = (level, high) if filled < total else (low, level)
    for count, cap, (mean, _) in zip(counts, caps, layers, strict=True):
        assert abs(count - min(cap, mean / whole * total + high)) < 1 + 1e-9


def test_momentum_by_value() -> None:
    def layer(nnz: int, momentum: float, square: float | None = None) -> Site:
        site = site_of(np.arange(400).reshape(20, 20) < nnz)
        signs = np.where(np.arange(nnz) % 2, 1.0, -1.0)
        site.slots = {"momentum": momentum * signs}
        if square is not None:
            site.slots["square"] = np.full(nnz, square)
        return site

    none = np.empty(0, dtype=np.int64)
    by = redistribute.by_momentum
    assert by([layer(10, 3.0), layer(300, 1.0)], [none, none], 40) == [30, 10]  # means, whatever the sizes
    assert by([layer(10, 3.0, 9.0), layer(9, 1.0, 1.0)], [none, none], 40) == [20, 20]  # Adam's own units
    assert by([layer(0, 0.0), layer(9, 1.0)], [none, none], 5) == [0, 5]  # no edges, no momentum
    # 300 of 400 would go to a layer with 100 places: it gets 99, and the other 201 more.
    assert by([layer(300, 3.0), layer(10, 1.0)], [none, none], 400) == [99, 301]
    assert by([layer(300, 3.0), layer(0, 0.0)], [none, none], 498) == [100, 398]  # 99 % are not enough
    assert by([layer(390, 1.0), layer(390, 1.0)], [np.arange(6), np.arange(4)], 10) == [5, 5]
    assert by([layer(390, 0.0), layer(390, 0.0)], [np.arange(6), np.arange(4)], 10) == [6, 4]
    assert by([layer(300, 3.0), layer(300, 1.0)], [none, none], 200) == [100, 100]  # all there is


def test_mean_refuses_scores_below_zero_and_what_is_not_finite() -> None:
    site, none = site_of(np.ones((3, 3))), [np.arange(3)]
    with pytest.raises(ArgumentError, match=r"lowest score, 0\.weights"):
        redistribute.by_mean(movement)([site], none, 1)
    site.slots["momentum"][4] = np.inf
    with pytest.raises(NonFiniteError):
        redistribute.by_momentum([site], none, 1)
    del site.slots["momentum"]
    with pytest.raises(ArgumentError, match="keeps a slot 'momentum'"):
        redistribute.by_momentum([site], none, 1)


def test_mean_shares() -> None:
    sites = [site_of(np.zeros((2, 2))), site_of(np.ones((2, 2)), 1), site_of(np.ones((3, 2)), 2)]
    shares = redistribute.mean_shares(sites, size)
    means = [0.0, *(float(np.abs(site.weights.values).mean()) for site in sites[1:])]
    assert sum(shares) == 1
    assert [float(share) for share in shares] == pytest.approx([mean / sum(means) for mean in means])
    assert redistribute.mean_shares(sites[:1], size) == [0]


# -- Gradient ------------------------------------------------------------------------------------------------


@patient
@given(partly_dropped())
def test_gradient_counts_the_strongest_absent_of_all_layers(case: Case) -> None:
    sites, dropped, total = case
    absent = []
    for layer, (site, gone) in enumerate(zip(sites, dropped, strict=True)):
        kept = site.kept(gone)
        present = set(zip(kept.sources.tolist(), kept.targets.tolist(), strict=True))
        strength = np.abs(site.probe.x.T @ site.probe.dy)
        for i, j in np.ndindex(strength.shape):
            if (i, j) not in present:
                # Multiples of 1/4 are exact; sums of others may differ in the last bits.
                absent.append((-round(strength[i, j], 10), layer, i, j))
    chosen = sorted(absent)[:total]
    expected = [sum(1 for entry in chosen if entry[1] == layer) for layer in range(len(sites))]
    counts = redistribute.by_gradient(sites, dropped, total)
    assert counts == expected
    rng = np.random.default_rng(0)
    for layer, (site, gone, count) in enumerate(zip(sites, dropped, counts, strict=True)):
        grown = set(zip(*(ends.tolist() for ends in gradient(site, gone, count, rng)), strict=True))
        assert grown == {(i, j) for _, k, i, j in chosen if k == layer}


def test_gradient_of_a_layer_that_has_none() -> None:
    site = Site("w", Weights.from_dense(np.eye(3)), np.ones(3))
    with pytest.raises(ArgumentError, match="rewiring w"):
        redistribute.by_gradient([site], [np.array([0])], 1)
    assert redistribute.by_gradient([site], [np.array([0])], 0) == [0]


def test_parts_of_another_kind() -> None:
    for score in (None, "size", 1.0):
        with pytest.raises(KindError, match=r"^score: expected a function"):
            redistribute.by_mean(score)  # type: ignore[arg-type]
    for shares in (None, 1.0):
        with pytest.raises(KindError, match=r"^shares: expected a list of numbers"):
            redistribute.fixed(shares)  # type: ignore[arg-type]

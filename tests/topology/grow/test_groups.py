"""N:M growth and pruning, against a loop over all groups of a small layer."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growing import NONE, activations, layers, pairs, patient, random_edges, rng_of, site_of

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.topology import Site
from gbnn.topology.grow.groups import by_chance, by_gradient, in_groups, weakest_in_groups
from gbnn.weights import Weights

sizes = st.sampled_from([1, 2, 3, 4, 7, 100, 2**20])


def groups_of(edges: Edges, m: int) -> Counter[tuple[int, int]]:
    return Counter((i // m, j) for i, j in pairs(edges.sources, edges.targets))


def after(site: Site, dropped: Any, grown: Any) -> Edges:
    kept = site.kept(dropped)
    ends = np.append(kept.sources, grown[0]), np.append(kept.targets, grown[1])
    return Edges.from_coo(*ends, kept.shape)[0]


@patient
@given(layers(), sizes, st.sampled_from([by_gradient, by_chance]), st.integers(0, 2**32))
def test_every_group_is_as_full_as_before(layer: Any, m: int, by: Any, seed: int) -> None:
    edges, dropped = layer
    site = site_of(edges)
    grown = in_groups(m, by)(site, dropped, dropped.size, rng_of(seed))
    assert groups_of(after(site, dropped, grown), m) == groups_of(edges, m)


@patient
@given(layers(), sizes)
def test_the_strongest_of_each_group(layer: Any, m: int) -> None:
    edges, dropped = layer
    x, dy = activations(edges.shape)
    strength = np.abs(x.T @ dy)
    site = site_of(edges, x, dy)
    kept = site.kept(dropped)
    taken = set(pairs(kept.sources, kept.targets))
    expected = set()
    lost = Counter((i // m, j) for i, j in pairs(edges.sources[dropped], edges.targets[dropped]))
    for (g, j), number in lost.items():
        free = [i for i in range(g * m, min((g + 1) * m, edges.shape[0])) if (i, j) not in taken]
        expected |= {(i, j) for i in sorted(free, key=lambda i, j=j: (-strength[i, j], i))[:number]}
    assert set(pairs(*in_groups(m)(site, dropped, dropped.size, rng_of()))) == expected


def two_of_four(shape: tuple[int, int]) -> Edges:
    """Two edges in each group of four inputs; a last group of two has both, of one has one."""
    ends = [(i, j) for j in range(shape[1]) for g in range(0, shape[0], 4)
            for i in rng_of(g + j).permutation(np.arange(g, min(g + 4, shape[0])))[:2]]  # fmt: skip
    return Edges.from_coo(*zip(*ends, strict=True), shape)[0]


@pytest.mark.parametrize("rows", [16, 18, 17])
def test_two_of_four_stay_two_of_four(rows: int) -> None:
    edges = two_of_four((rows, 9))
    expected = groups_of(edges, 4)
    rng = rng_of()
    for by in (by_gradient, by_chance):
        for _ in range(10):
            site = site_of(edges)
            dropped = weakest_in_groups(4)(site, 0.3, rng)
            edges = after(site, dropped, in_groups(4, by)(site, dropped, dropped.size, rng))
            assert groups_of(edges, 4) == expected


def test_by_chance_is_uniform_and_spares_those_just_dropped() -> None:
    edges, _ = Edges.from_coo([0, 1, 5], [0, 0, 0], (6, 2))
    counts, rng = np.zeros(6), rng_of()
    for _ in range(2000):
        sources, targets = in_groups(6, by_chance)(site_of(edges), np.array([1]), 1, rng)
        assert targets.tolist() == [0]
        counts[sources] += 1
    assert counts[[0, 1, 5]].tolist() == [0, 0, 0]
    assert np.abs(counts[2:5] - 2000 / 3).max() < 5 * np.sqrt(2000 / 3)


def test_pieces_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = random_edges((50, 40), 600)
    dropped = np.arange(0, 600, 3)
    whole = pairs(*in_groups(8)(site_of(edges), dropped, 200, rng_of()))
    for block in (1, 8, 100):
        monkeypatch.setitem(in_groups.__globals__, "_BLOCK", block)
        assert pairs(*in_groups(8)(site_of(edges), dropped, 200, rng_of())) == whole


def test_merits_of_ones_own() -> None:
    edges, _ = Edges.from_coo([0, 2], [0, 1], (3, 2))
    last = in_groups(3, lambda site, sources, targets, rng: sources.astype(float))
    assert set(pairs(*last(site_of(edges), np.array([0, 1]), 2, rng_of()))) == {(2, 0), (2, 1)}
    with pytest.raises(NonFiniteError, match="growth in groups"):
        in_groups(3, lambda site, sources, targets, rng: np.full(sources.size, np.nan))(
            site_of(edges), np.array([0]), 1, rng_of()
        )


def test_beyond_int64() -> None:
    size = 2**60
    edges, _ = Edges.from_coo([0, 1, size - 1], [size - 1, 5, size - 1], (size, size))
    grown = in_groups(7, by_chance)(site_of(edges), np.array([0, 2]), 2, rng_of())
    assert groups_of(after(site_of(edges), np.array([0, 2]), grown), 7) == groups_of(edges, 7)
    assert weakest_in_groups(7)(site_of(edges), 1.0, rng_of()).tolist() == [0, 1, 2]


# -- Pruning -------------------------------------------------------------------------------------------------


@patient
@given(layers(), sizes, st.floats(0, 1), st.integers(0, 2**32))
def test_each_group_loses_its_weakest_and_its_share(layer: Any, m: int, fraction: float, seed: int) -> None:
    edges, _ = layer
    values = rng_of(seed).integers(-3, 4, edges.nnz).astype(float)
    site = Site("w", Weights(edges, values))
    gone = weakest_in_groups(m)(site, fraction, rng_of(seed))
    assert gone.dtype == np.int64
    assert (np.diff(gone) > 0).all()
    assert gone.size == int(fraction * edges.nnz * (1 + 2**-50))
    lost = Counter((i // m, j) for i, j in pairs(edges.sources[gone], edges.targets[gone]))
    for (g, j), size in groups_of(edges, m).items():
        assert abs(lost[g, j] - fraction * size) < 1
        mine = np.flatnonzero((edges.sources // m == g) & (edges.targets == j))
        weakest = mine[np.lexsort((mine, np.abs(values[mine])))][: lost[g, j]]
        assert set(weakest.tolist()) <= set(gone.tolist())


def test_the_odd_ones_are_anybodys() -> None:
    edges = two_of_four((16, 9))
    hit: set[int] = set()
    for seed in range(40):
        hit |= set(weakest_in_groups(4)(site_of(edges), 0.1, rng_of(seed)).tolist())
    assert len(hit) == 36  # the weaker one of each group, at one time or another


@pytest.mark.parametrize("m", [0, -1, 2**20 + 1, 2.0, True, None])
def test_groups_that_cannot_be(m: Any) -> None:
    for make in (in_groups, weakest_in_groups):
        with pytest.raises(GbnnError, match="m: expected"):
            make(m)


def test_shares_that_are_none() -> None:
    for fraction in (-0.1, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match="fraction"):
            weakest_in_groups(2)(site_of(random_edges((4, 4), 3)), fraction, rng_of())
    assert weakest_in_groups(2)(site_of(Edges(NONE, NONE, (4, 4))), 0.5, rng_of()).size == 0


@pytest.mark.parametrize("by", [None, "gradient", 1.0])
def test_a_merit_that_is_no_function(by: Any) -> None:
    with pytest.raises(KindError, match=r"^by: expected a function"):
        in_groups(2, by)


@pytest.mark.parametrize(
    "returned", [None, "ab", 1.0, np.ones(1), np.ones((2, 2)), [None, 1.0, 1.0], [1j] * 3]
)
def test_what_are_no_merits(returned: Any) -> None:
    site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(3, 1)))
    with pytest.raises(GbnnError, match=r"^merits \(by\): expected"):
        in_groups(3, lambda *arguments: returned)(site, np.array([0]), 1, rng_of())
    grown = in_groups(3, lambda *arguments: [1, 3, 2])(site, np.array([0]), 1, rng_of())  # a list is as good
    assert pairs(*grown) == [(1, 0)]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_not_finite(bad: float) -> None:
    site = site_of(random_edges((4, 4), 3), values=[1.0, bad, 2.0])
    with pytest.raises(NonFiniteError, match="scores, w"):
        weakest_in_groups(2)(site, 0.5, rng_of())

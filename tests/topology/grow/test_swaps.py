"""Swapped ends: fans against counts, matchings against all that are possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growing import NONE, layers, pairs, patient, random_edges, rng_of, site_of

from gbnn.edges import Edges
from gbnn.errors import GbnnError
from gbnn.topology.grow.swaps import swapped


def fans(edges: Edges) -> list[Any]:
    return [np.bincount(side, minlength=n).tolist() for side, n in zip(
        (edges.sources, edges.targets), edges.shape, strict=True)]  # fmt: skip


@patient
@given(layers(), st.integers(0, 3), st.integers(0, 2**32))
def test_no_fan_changes(layer: Any, tries: int, seed: int) -> None:
    edges, dropped = layer
    site = site_of(edges)
    grown = swapped(tries)(site, dropped, dropped.size, rng_of(seed))
    kept = site.kept(dropped)
    after, _ = Edges.from_coo(
        np.append(kept.sources, grown[0]), np.append(kept.targets, grown[1]), edges.shape
    )
    assert fans(after) == fans(edges)
    # Who grows again what was dropped does so at its own place.
    np.testing.assert_array_equal(grown[0], edges.sources[dropped])
    at = edges.find(*grown)
    assert (at[at >= 0] == dropped[at >= 0]).all()


@pytest.mark.parametrize("shape", [(200, 300), (2**60, 2**60)])
def test_in_a_sparse_layer_every_edge_finds_another_place(shape: tuple[int, int]) -> None:
    few = random_edges((200, 300), 3000)
    edges, _ = Edges.from_coo(few.sources, few.targets, shape)
    dropped = np.sort(rng_of(1).permutation(3000)[:900])
    at_home = [
        np.count_nonzero(edges.find(*swapped(tries)(site_of(edges), dropped, 900, rng_of())) >= 0)
        for tries in (0, 20)
    ]
    # 5 % of places have an edge: so many of a matching fail at first, and few chains do so twice.
    assert 20 < at_home[0] < 120
    assert at_home[1] == 0


def test_matchings_come_equally_often() -> None:
    n, times = 4, 1800
    edges, _ = Edges.from_coo(np.arange(n), np.arange(n), (n, n))
    seen: dict[tuple[int, ...], int] = {}
    rng = rng_of()
    for _ in range(times):
        sources, targets = swapped()(site_of(edges), np.arange(n), n, rng)
        assert sources.tolist() == list(range(n))
        seen[tuple(targets.tolist())] = seen.get(tuple(targets.tolist()), 0) + 1
    assert len(seen) == 9  # the derangements of four
    # Mending a matching of so few is no exact draw; but none is rare.
    assert min(seen.values()) > times / 9 / 3


def test_one_edge_and_a_full_layer_stay() -> None:
    one, _ = Edges.from_coo([3], [2], (9, 9))
    assert pairs(*swapped()(site_of(one), np.array([0]), 1, rng_of())) == [(3, 2)]
    full, _ = Edges.from_coo(*np.nonzero(np.ones((30, 40))), (30, 40))
    dropped = np.arange(0, 1200, 2)
    grown = swapped()(site_of(full), dropped, 600, rng_of())
    np.testing.assert_array_equal(full.find(*grown), dropped)
    assert pairs(*swapped()(site_of(full), NONE, 0, rng_of())) == []


def test_edges_of_one_source_stay() -> None:
    # All targets of the source are its own already, whoever gets whose.
    star, _ = Edges.from_coo(np.zeros(6, dtype=int), np.arange(6), (4, 9))
    grown = swapped()(site_of(star), np.arange(1, 5), 4, rng_of())
    assert pairs(*grown) == [(0, 1), (0, 2), (0, 3), (0, 4)]


def test_two_that_can_only_swap_do() -> None:
    # Every place but two is taken: those that the two dropped edges give each other.
    cells = np.ones((5, 6), dtype=bool)
    cells[0, 1] = cells[3, 4] = False
    edges, _ = Edges.from_coo(*np.nonzero(cells), cells.shape)
    dropped = edges.find(np.array([0, 3]), np.array([4, 1]))
    for seed in range(10):
        assert set(pairs(*swapped()(site_of(edges), dropped, 2, rng_of(seed)))) == {(0, 1), (3, 4)}


@pytest.mark.parametrize("tries", [-1, 1.0, True, None])
def test_tries_that_are_none(tries: Any) -> None:
    with pytest.raises(GbnnError, match="tries"):
        swapped(tries)

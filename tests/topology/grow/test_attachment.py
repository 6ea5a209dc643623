"""Preferential attachment, against the chance of every place and of every pair of places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.growing import NONE, pairs, random_edges, rng_of, site_of

from gbnn.edges import Edges
from gbnn.errors import GbnnError
from gbnn.topology.grow.attachment import preferential

EDGES, _ = Edges.from_coo([0, 0, 0, 1, 2, 2], [0, 1, 2, 0, 0, 3], (4, 5))
DROPPED = np.array([2, 5])


def chances(offset: float) -> Any:
    """The chance of each place to be grown first: fans of the kept graph, old places excluded."""
    kept = np.zeros((4, 5))
    kept[EDGES.sources, EDGES.targets] = 1
    kept[EDGES.sources[DROPPED], EDGES.targets[DROPPED]] = 0
    weight = np.outer(kept.sum(axis=1) + offset, kept.sum(axis=0) + offset)
    weight[EDGES.sources, EDGES.targets] = 0
    return weight / weight.sum()


@pytest.mark.parametrize("offset", [0.0, 0.5, 1.0, 20.0])
@pytest.mark.parametrize("count", [1, 5])  # of 14 empty places one is drawn by rejection, five by a race
def test_the_first_is_drawn_by_the_fans(offset: float, count: int) -> None:
    counts, rng, times = np.zeros((4, 5)), rng_of(), 1500
    grow, site = preferential(offset), site_of(EDGES)
    for _ in range(times):
        sources, targets = grow(site, DROPPED, count, rng)
        counts[sources[0], targets[0]] += 1
    expected = times * chances(offset)
    assert (counts[expected == 0] == 0).all()
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("count", [2, 14])
def test_the_second_is_drawn_from_what_is_left(count: int) -> None:
    first, rng, times = chances(1.0), rng_of(1), 2000
    expected = np.zeros((4, 5))
    for place in zip(*np.nonzero(first), strict=True):
        rest = first.copy()
        rest[place] = 0
        expected += first[place] * rest / rest.sum()
    counts = np.zeros((4, 5))
    for _ in range(times):
        sources, targets = preferential()(site_of(EDGES), DROPPED, count, rng)
        counts[sources[1], targets[1]] += 1
    assert (np.abs(counts - times * expected) <= 5 * np.sqrt(times * expected)).all()


def test_hubs_grow() -> None:
    sources = np.concatenate([np.zeros(200, dtype=int), rng_of().integers(1, 1000, 800)])
    edges, _ = Edges.from_coo(sources, np.arange(1000), (1000, 1000))
    site = site_of(edges)
    even, hub = (np.count_nonzero(preferential(o)(site, NONE, 500, rng_of())[0] == 0) for o in (1e9, 1.0))
    assert even < 10
    assert 25 < hub < 80  # 201 of 2000 shares


def test_only_neurons_with_edges_where_the_offset_is_zero() -> None:
    edges = random_edges((1000, 1000), 300)
    sources, targets = preferential(0.0)(site_of(edges), NONE, 400, rng_of())
    assert np.isin(sources, edges.sources).all()
    assert np.isin(targets, edges.targets).all()


def test_where_no_place_has_a_chance_any_is_taken() -> None:
    # One source has edges, to all the targets that have any: offset 0 gives no other place a chance.
    edges, _ = Edges.from_coo(np.zeros(3, dtype=int), np.arange(3), (40, 50))
    assert len(set(pairs(*preferential(0.0)(site_of(edges), NONE, 10, rng_of())))) == 10


@pytest.mark.parametrize("offset", [-1, float("nan"), float("inf"), "1", True, None])
def test_offsets_that_are_none(offset: Any) -> None:
    with pytest.raises(GbnnError, match="offset"):
        preferential(offset)

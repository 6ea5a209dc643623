"""Small worlds: nearest neighbours on a ring, and the share of edges that leaves them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.errors import GbnnError
from gbnn.topology import wire

Shape = tuple[int, int]


def distances(edges: Edges) -> list[Fraction]:
    """How far each edge goes around a ring of length 1, exactly."""
    rows, columns = edges.shape
    far = []
    for i, j in zip(edges.sources.tolist(), edges.targets.tolist(), strict=True):
        apart = abs(Fraction(2 * i + 1, 2 * rows) - Fraction(2 * j + 1, 2 * columns))
        far.append(min(apart, 1 - apart))
    return far


@settings(deadline=None)
@given(st.integers(1, 15), st.integers(1, 15), st.data())
def test_a_lattice_takes_the_nearest_sources(rows: int, columns: int, data: st.DataObject) -> None:
    nnz = data.draw(st.integers(0, rows * columns))
    edges = wire.small_world(0)(np.random.default_rng(0), (rows, columns), nnz)
    fan_in = np.bincount(edges.targets, minlength=columns)
    assert fan_in.max() - fan_in.min() <= 1
    # Every target's edges are as short as any it could have.
    full = wire.random(np.random.default_rng(0), (rows, columns), rows * columns)
    have, could = np.array(distances(edges)), np.array(distances(full))
    for j in range(columns):
        assert sorted(have[edges.targets == j]) == sorted(could[full.targets == j])[: fan_in[j]]


@pytest.mark.parametrize("shape", [(200, 200), (300, 100), (100, 300)])
def test_a_lattice_leaves_no_source_out(shape: Shape) -> None:
    edges = wire.small_world(0)(np.random.default_rng(0), shape, 1200)
    fan_out = np.bincount(edges.sources, minlength=shape[0])
    assert fan_out.min() == fan_out.max() == 1200 // shape[0]


def test_the_largest_lattice_is_one() -> None:
    edges = wire.small_world(0)(np.random.default_rng(0), (2**60, 2**59), 500)
    assert max(distances(edges)) < 2**-45
    edges = wire.small_world(0)(np.random.default_rng(0), (2**60, 4), 500)
    assert edges.nnz == 500
    assert max(distances(edges)) < 2**-45


def test_windows_are_centred_beyond_int64_too() -> None:
    edges = wire.small_world(0)(np.random.default_rng(0), (2**51, 2**10), 7 * 2**10)
    centre = edges.targets * 2**41 + 2**40  # between two sources
    away = edges.sources - centre
    assert (away.min(), away.max()) == (-3, 3)
    assert np.count_nonzero(away == 0) == 2**10


@pytest.mark.parametrize("probability", [0.05, 0.3, 0.8])
def test_the_share_of_edges_that_is_rewired(probability: float) -> None:
    shape, nnz = (500, 400), 4000
    lattice = wire.small_world(0)(np.random.default_rng(0), shape, nnz)
    edges = wire.small_world(probability)(np.random.default_rng(0), shape, nnz)
    left = nnz - np.count_nonzero(edges.find(lattice.sources, lattice.targets) >= 0)
    # Of those rewired one in fifty lands in the lattice again: 4000 of 200,000 places.
    expected = nnz * probability * (1 - nnz / 200_000)
    assert abs(left - expected) < 5 * math.sqrt(nnz * probability)


def clustering(edges: Edges) -> float:
    graph = nx.Graph()
    graph.add_nodes_from(range(edges.shape[0]), bipartite=0)
    graph.add_edges_from(zip(edges.sources.tolist(), (-1 - edges.targets).tolist(), strict=True))
    return float(nx.bipartite.robins_alexander_clustering(graph))


def path_length(edges: Edges) -> float:
    graph = nx.Graph(zip(edges.sources.tolist(), (-1 - edges.targets).tolist(), strict=True))
    return float(nx.average_shortest_path_length(graph))


def test_a_small_world_is_clustered_and_small() -> None:
    """Watts and Strogatz's finding: a few shortcuts shorten paths long before neighbourhoods dissolve."""
    lattice, world, random = (
        wire.small_world(p)(np.random.default_rng(0), (120, 120), 720) for p in (0.0, 0.05, 1.0)
    )
    assert clustering(world) > 0.7 * clustering(lattice) > 3 * clustering(random)
    assert path_length(world) < 0.5 * path_length(lattice)
    assert path_length(random) < path_length(world)


@pytest.mark.parametrize("probability", [-0.1, 1.1, math.nan, None, "0.1", True])
def test_what_is_no_probability(probability: Any) -> None:
    with pytest.raises(GbnnError, match="rewire_probability: expected"):
        wire.small_world(probability)

"""Preferential attachment: hubs, exponents of the degrees, and everyone takes part."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gbnn.edges import Edges
from gbnn.topology import wire

Shape = tuple[int, int]


def degrees(edges: Edges) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.bincount(edges.sources, minlength=edges.shape[0]),
        np.bincount(edges.targets, minlength=edges.shape[1]),
    )


def exponent(degree: np.ndarray, smallest: int) -> float:
    """The exponent of a power law's tail by maximum likelihood (Clauset, Shalizi and Newman, 2009)."""
    tail = degree[degree >= smallest]
    return float(1 + tail.size / np.log(tail / (smallest - 0.5)).sum())


def test_both_sides_have_hubs() -> None:
    shape, nnz = (2000, 2000), 16_000
    free, random = (make(np.random.default_rng(0), shape, nnz) for make in (wire.scale_free, wire.random))
    for hubs, usual in zip(degrees(free), degrees(random), strict=True):
        assert hubs.max() > 4 * usual.max()
        assert np.count_nonzero(hubs > 32) > 10
        assert np.count_nonzero(usual > 32) == 0


@pytest.mark.parametrize("shape", [(20_000, 20_000), (30_000, 10_000), (10_000, 30_000)])
def test_exponents(shape: Shape) -> None:
    edges = wire.scale_free(np.random.default_rng(0), shape, 160_000)
    for degree, others in zip(degrees(edges), reversed(shape), strict=True):
        expected = 1 + sum(shape) / others
        assert exponent(degree, 10) == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize("shape", [(60, 60), (10, 300), (300, 10), (1, 50)])
def test_everyone_takes_part_in_one_component(shape: Shape) -> None:
    nnz = sum(shape) - 1
    for more in (0, 7):
        count = min(nnz + more, shape[0] * shape[1])
        edges = wire.scale_free(np.random.default_rng(0), shape, count)
        assert edges.nnz == count
        joined = coo_array(
            (np.ones(count), (edges.sources, edges.targets + shape[0])), shape=[sum(shape)] * 2
        )
        if more == 0:  # each neuron brings one edge: a tree
            assert connected_components(joined, directed=False)[0] == 1
        assert min(int(side.min()) for side in degrees(edges)) >= 1


def test_few_edges_are_shared_by_both_sides() -> None:
    edges = wire.scale_free(np.random.default_rng(0), (3000, 1000), 399)
    sources, targets = (np.count_nonzero(side) for side in degrees(edges))
    assert (sources, targets) == (300, 100)


def test_hubs_are_anywhere() -> None:
    places = [
        int(np.argmax(degrees(wire.scale_free(np.random.default_rng(s), (50, 50), 200))[0]))
        for s in range(60)
    ]
    assert len(set(places)) > 25
    assert 15 < np.mean(places) < 35


@pytest.mark.parametrize("density", [0.2, 0.5, 0.9])
def test_dense_layers_still_prefer_hubs(density: float) -> None:
    nnz = round(density * 100 * 80)
    edges = wire.scale_free(np.random.default_rng(0), (100, 80), nnz)
    assert edges.nnz == nnz
    plain = wire.random(np.random.default_rng(0), (100, 80), nnz)
    assert degrees(edges)[0].std() > 1.2 * degrees(plain)[0].std()

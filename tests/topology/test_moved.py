"""The gradient of a sparse batch by edges of active neurons, against the dense one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from support.active import WIDE, probes, site_of, sparse_of, spread
from support.memory import peak_while

from gbnn.edges import Edges
from gbnn.layers import Linear
from gbnn.semirings import ActiveGradient, ActiveProbe, EdgeGradient, Probe
from gbnn.topology import sites
from gbnn.topology.moved import MovedGradient, among, at_edges, edges_out_of, ranks_in

patient = settings(deadline=None)
NONE = np.empty(0, dtype=np.int64)


def test_ranks() -> None:
    ids = np.array([0, 3, WIDE - 1])
    assert ranks_in(ids, np.array([WIDE - 1, 1, 0, 3, WIDE - 2])).tolist() == [2, -1, 0, 1, -1]
    assert ranks_in(NONE, ids).tolist() == [-1, -1, -1]
    assert ranks_in(ids, NONE).size == 0


@patient
@given(probes())
def test_edges_out_of_and_among(drawn: tuple[ActiveProbe, Probe, Edges]) -> None:
    probe, _, edges = drawn
    _, sources, targets = probe.compact()
    positions, owners = edges_out_of(edges, sources)
    expected = [k for k, source in enumerate(edges.sources) if source in sources]
    assert positions.tolist() == expected
    assert sources[owners].tolist() == edges.sources[expected].tolist()
    some, positions = among(edges, sources, targets)
    expected = [k for k in expected if edges.targets[k] in targets]
    assert positions.tolist() == expected
    assert sources[some.sources].tolist() == edges.sources[expected].tolist()
    assert targets[some.targets].tolist() == edges.targets[expected].tolist()
    assert some.shape == (sources.size, targets.size)


@patient
@given(probes())
def test_gradient_is_that_of_the_dense_batch(drawn: tuple[ActiveProbe, Probe, Edges]) -> None:
    probe, dense, edges = drawn
    moved = MovedGradient(probe.x, probe.dy, edges)
    assert isinstance(moved, ActiveGradient)
    expected = np.asarray(EdgeGradient(dense.x, dense.dy, edges))
    np.testing.assert_array_equal(np.asarray(moved), expected)
    assert (np.diff(moved.positions) > 0).all()
    assert moved.probe.x is probe.x
    rows, columns = (side.ravel() for side in np.indices(edges.shape))
    np.testing.assert_array_equal(at_edges(probe, rows, columns), dense.at(rows, columns))
    np.testing.assert_array_equal(at_edges(dense, rows, columns), dense.at(rows, columns))


@patient
@given(probes())
def test_a_site_keeps_its_gradient_when_it_moves(drawn: tuple[ActiveProbe, Probe, Edges]) -> None:
    probe, dense, edges = drawn
    site = site_of(probe, edges)
    free = np.flatnonzero(np.ones(edges.shape) - (dense_of(edges) > 0))
    site.rewire(np.arange(edges.nnz // 2), free // edges.shape[1], free % edges.shape[1])
    expected = EdgeGradient(dense.x, dense.dy, site.weights.edges)
    np.testing.assert_array_equal(site.edge_gradient, np.asarray(expected))
    assert isinstance(site.probe, ActiveProbe)


def dense_of(edges: Edges) -> np.ndarray:
    made = np.zeros(edges.shape)
    made[edges.sources, edges.targets] = 1
    return made


def test_the_widest_layer() -> None:
    rng = np.random.default_rng(0)
    x = spread(sparse_of(rng, 3, 9, 15, np.float32), np.sort(rng.integers(WIDE, size=9)), WIDE)
    layer = Linear.random(WIDE, WIDE, nnz=0, bias=False, output="sparse", seed=0)
    y, pullback = layer.forward(x)
    dy = spread(sparse_of(rng, 3, 5, 9, np.float32), np.sort(rng.integers(WIDE, size=5)), WIDE)
    site = site_of(ActiveProbe(x, dy), layer.weights.edges)
    new = x.columns[:1], dy.columns[:1]
    peak, _ = peak_while(lambda: (site.rewire([], *new), site.edge_gradient))
    assert site.edge_gradient == at_edges(site.probe, *new)
    assert peak < 200_000
    (site,) = sites(layer.parameters(), pullback(y, inputs=False)[1])
    assert site.edge_gradient.shape == (0,)

"""Sparse batches for rewiring: drawn by hypothesis, as layers of any width and as a dense twin."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.rows import SparseRows
from gbnn.sampling import distinct_edges
from gbnn.semirings import ActiveGradient, ActiveProbe, Probe
from gbnn.topology import Site
from gbnn.topology.moved import MovedGradient
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
WIDE = 2**60


def sparse_of(rng: np.random.Generator, rows: int, features: int, entries: int, dtype: Any) -> SparseRows:
    """Small integers, so that derivatives are exact and tie; some stored zeros, and rows without entries."""
    dense = np.zeros((rows, features), dtype=dtype)
    at = rng.permutation(rows * features)[:entries]
    dense.ravel()[at] = 1
    made = SparseRows.from_dense(dense)
    return made.with_values(rng.integers(-2, 3, made.nnz).astype(dtype))


def spread(rows: SparseRows, to: Array, features: int) -> SparseRows:
    """The same entries at other, ascending, numbers of a wider side."""
    return SparseRows(rows.starts, to[rows.columns], rows.values, (rows.shape[0], features))


@st.composite
def probes(draw: st.DrawFn, most: int = 7) -> tuple[ActiveProbe, Probe, Edges]:
    """A sparse batch, dy dense or sparse; the same as a dense probe; and edges of the layer."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    batch, rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, most)), draw(st.integers(1, most))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    x = sparse_of(rng, batch, rows, draw(st.integers(0, batch * rows)), dtype)
    dy: Any = sparse_of(rng, batch, columns, draw(st.integers(0, batch * columns)), dtype)
    dense = Probe(x.to_dense(), dy.to_dense())
    if draw(st.booleans()):
        dy = dy.to_dense()
    nnz = draw(st.one_of(st.sampled_from([0, rows * columns]), st.integers(0, rows * columns)))
    edges, _ = Edges.from_coo(*distinct_edges(rng, (rows, columns), nnz), (rows, columns))
    return ActiveProbe(x, dy), dense, edges


def site_of(probe: ActiveProbe, edges: Edges, values: Any = None) -> Site:
    """A layer with these edges that has just seen this batch."""
    values = np.linspace(-1, 1, edges.nnz) if values is None else values
    weights = Weights(edges, np.asarray(values, dtype=probe.x.dtype))
    return Site("w", weights, gradient_of(probe, edges))


def gradient_of(probe: ActiveProbe, edges: Edges) -> ActiveGradient:
    return MovedGradient(probe.x, probe.dy, edges)

"""Layers for grow rules: drawn by hypothesis, with a gradient; and what came as a list of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.sampling import distinct_edges
from gbnn.semirings import EdgeGradient
from gbnn.topology import Site
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
Pairs = list[tuple[int, int]]
patient = settings(deadline=None, max_examples=40)  # other work may keep the cores busy
NONE = np.empty(0, dtype=np.int64)


def rng_of(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def pairs(sources: Array, targets: Array) -> Pairs:
    assert sources.dtype == targets.dtype == np.int64
    assert sources.ndim == targets.ndim == 1
    return list(zip(sources.tolist(), targets.tolist(), strict=True))


def random_edges(shape: tuple[int, int], nnz: int, seed: int = 0) -> Edges:
    return Edges.from_coo(*distinct_edges(rng_of(seed), shape, nnz), shape)[0]


def activations(shape: tuple[int, int], batch: int = 3, seed: int = 0, dtype: Any = np.float64) -> Any:
    """Small integers, so that gradients are exact and tie; some neurons are silent."""
    rng = rng_of(seed)
    return tuple(np.asfortranarray(rng.integers(-2, 3, (batch, n)), dtype=dtype) for n in shape)


def site_of(edges: Edges, x: Array | None = None, dy: Array | None = None, values: Any = None) -> Site:
    """A layer with these edges and, where given, these activations."""
    if x is None or dy is None:
        x, dy = activations(edges.shape) if max(edges.shape) < 10**6 else (None, None)
    gradient = None if x is None or dy is None else EdgeGradient(x, dy, edges)
    if values is None:
        values = np.linspace(-1, 1, edges.nnz)
    return Site("w", Weights(edges, np.asarray(values, dtype=np.float64)), gradient)


@st.composite
def layers(draw: st.DrawFn, block: tuple[int, int] = (1, 1)) -> tuple[Edges, Array]:
    """Edges of a small layer and positions dropped, both in full blocks: none, one, all, or any number."""
    high, wide = block
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    places = shape[0] * shape[1]
    nnz = draw(st.one_of(st.sampled_from([0, 1, places, places - 1]), st.integers(0, places)))
    units = random_edges(shape, nnz, draw(st.integers(0, 2**32)))
    gone = draw(st.one_of(st.just(set()), st.sets(st.integers(0, nnz - 1)))) if nnz else set()
    if block == (1, 1):
        return units, np.array(sorted(gone), dtype=np.int64)
    full = np.zeros((shape[0] * high, shape[1] * wide), dtype=bool)
    lost = full.copy()
    for k, (i, j) in enumerate(pairs(units.sources, units.targets)):
        full[i * high : (i + 1) * high, j * wide : (j + 1) * wide] = True
        lost[i * high : (i + 1) * high, j * wide : (j + 1) * wide] = k in gone
    edges, _ = Edges.from_coo(*np.nonzero(full), full.shape)
    return edges, np.flatnonzero(lost[edges.sources, edges.targets])


def empty_of(edges: Edges) -> int:
    return edges.shape[0] * edges.shape[1] - edges.nnz

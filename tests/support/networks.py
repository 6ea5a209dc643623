"""Layers as rewiring sees them, drawn by hypothesis, and tables of what is known of every edge."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.sampling import distinct_edges
from gbnn.semirings import EdgeGradient
from gbnn.topology import Memory, Site
from gbnn.weights import Weights

Edge = tuple[int, int]
Table = dict[Edge, tuple[float, ...]]


def edges_of(weights: Weights, positions: Any = slice(None)) -> list[Edge]:
    """Return edges as pairs."""
    return list(zip(weights.sources[positions].tolist(), weights.targets[positions].tolist(), strict=True))


def table_of(site: Site) -> Table:
    """Return each edge with its weight, all its slots and what memory has of it."""
    held = [site.slots[name] for name in sorted(site.slots)]
    held += [site.memory.edges[name] for name in sorted(site.memory.edges)]
    columns = [site.weights.values.tolist(), *(array.tolist() for array in held)]
    return dict(zip(edges_of(site.weights), zip(*columns, strict=True), strict=True))


def random_site(
    rng: np.random.Generator, shape: tuple[int, int], nnz: int, *, index: int, count: int, dtype: Any
) -> Site:
    """Make a layer with small integers everywhere, so that there are ties; each slot a number of its own."""
    edges, _ = Edges.from_coo(*distinct_edges(rng, shape, nnz), shape)
    values = (rng.integers(-8, 9, nnz) / 4).astype(dtype)
    slots = {"momentum": np.arange(1, nnz + 1, dtype=dtype), "square": np.arange(2, nnz + 2, dtype=dtype)}
    memory = Memory(edges={"age": np.arange(1, nnz + 1)})
    before = f"{index - 1}.weights" if index else None
    site = Site(f"{index}.weights", Weights(edges, values), None, slots, index, count, memory, before)
    new_batch(site, rng)
    return site


def new_batch(site: Site, rng: np.random.Generator) -> None:
    """Give the layer another gradient."""
    x, dy = (np.asfortranarray(rng.integers(-2, 3, (3, n)), site.weights.dtype) for n in site.weights.shape)
    site.gradient = EdgeGradient(x, dy, site.weights.edges)


@st.composite
def networks(draw: st.DrawFn, most: int = 6) -> list[Site]:
    """Draw a network of up to three layers, each with no edges, one, all or any number."""
    count, dtype = draw(st.integers(1, 3)), draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    widths = draw(st.lists(st.integers(1, most), min_size=count + 1, max_size=count + 1))
    result = []
    for index in range(count):
        shape = widths[index], widths[index + 1]
        places = shape[0] * shape[1]
        nnz = draw(st.one_of(st.sampled_from([0, 1, places, places - 1]), st.integers(0, places)))
        result.append(random_site(rng, shape, nnz, index=index, count=count, dtype=dtype))
    return result

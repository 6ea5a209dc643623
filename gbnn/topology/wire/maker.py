"""What a graph maker is, and what all of them share: checked counts, balanced degrees, a given graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.edges import Edges, shape_of
from gbnn.errors import ArgumentError, KindError, check_int
from gbnn.sampling import MAX_EDGES, distinct_edges

__all__ = ["Wiring", "balanced", "check_count", "check_only", "fixed", "within"]

Array = np.ndarray[Any, Any]

Wiring = Callable[[np.random.Generator, tuple[int, int], Any], Edges]
"""A graph maker: ``(rng, shape, nnz) -> Edges`` with exactly `nnz` edges.

A maker of one size only takes ``nnz=None``, too: the number of edges that its family has in that shape.
"""


def check_count(shape: Any, nnz: Any) -> tuple[tuple[int, int], int]:
    """Return shape and number of edges as ints, or raise if they are none or there are too few places."""
    rows, columns = shape_of(shape)
    count = check_int("nnz", nnz, 0)
    if count > rows * columns:
        limit = f"at most {rows * columns}, the places of a {rows} x {columns} layer"
        raise ArgumentError("nnz", limit, count)
    if count > MAX_EDGES:
        raise ArgumentError("nnz", f"at most {MAX_EDGES} edges", count)
    return (rows, columns), count


def check_only(nnz: Any, only: int, why: str) -> None:
    """Raise unless `nnz` is None or the one number of edges that a family has."""
    if nnz is not None and check_int("nnz", nnz, 0) != only:
        raise ArgumentError("nnz", f"None or {only}, {why}", nnz)
    if only > MAX_EDGES:
        raise ArgumentError("nnz", f"at most {MAX_EDGES} edges", f"{only}, {why}")


def fixed(edges: Edges) -> Wiring:
    """Return a maker that gives these edges, whatever the generator.

    Parameters
    ----------
    edges : Edges

    Returns
    -------
    callable
        ``(rng, shape, nnz=None) -> Edges``; raises ArgumentError if shape or nnz are not those of `edges`.

    Raises
    ------
    KindError
        If `edges` are no Edges.

    Examples
    --------
    >>> from gbnn import models
    >>> from gbnn.topology import wire
    >>> first, second = wire.radix_net([2, 3])
    >>> models.mlp([6, 6, 6], wiring=[wire.fixed(first), wire.fixed(second)]).nnz
    30
    """
    if not isinstance(edges, Edges):
        raise KindError("edges", "gbnn Edges", type(edges).__name__)

    def make(rng: np.random.Generator, shape: tuple[int, int], nnz: int | None = None) -> Edges:
        if shape_of(shape) != edges.shape:
            rows, columns = edges.shape
            raise ArgumentError("shape", f"{rows} x {columns}, that of the given edges", shape)
        check_only(nnz, edges.nnz, "the number of the given edges")
        return edges

    return make


def balanced(rng: np.random.Generator, neurons: int, total: int) -> tuple[Array, Array]:
    """Divide `total` edges among neurons, floor or ceil(total / neurons) each; who gets more is drawn.

    Returns the neurons that get any, ascending, and how many each: int64, in O(total) for any `neurons`.
    """
    each, more = divmod(total, neurons)
    extra = distinct_edges(rng, (1, neurons), more)[1]
    if each == 0:
        return np.sort(extra), np.ones(more, dtype=np.int64)
    counts = np.full(neurons, each, dtype=np.int64)
    counts[extra] += 1
    return np.arange(neurons), counts


def within(counts: Array) -> Array:
    """Return 0, 1, ... counts[0] - 1, 0, 1, ... counts[1] - 1, ...: the place of each edge in its group."""
    before: Array = np.cumsum(counts) - counts
    place: Array = np.arange(counts.sum()) - np.repeat(before, counts)
    return place

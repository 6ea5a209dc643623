"""The gradient of a sparse batch by the edges of active neurons, under small numbers or after a rewiring."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.rows import SparseRows
from gbnn.semirings import ActiveGradient, ActiveProbe, Probe

__all__ = ["MovedGradient", "among", "at_edges", "edges_out_of", "ranks_in"]

Array = np.ndarray[Any, Any]


def ranks_in(ids: Array, numbers: Array) -> Array:
    """Return where each number stands in ascending ids, or -1 where it does not.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology.moved import ranks_in
    >>> ranks_in(np.array([2, 2**59]), np.array([2**59, 3]))
    array([ 1, -1])
    """
    if not ids.size:
        return np.full(numbers.shape, -1)
    at = np.minimum(np.searchsorted(ids, numbers), ids.size - 1)
    return np.where(ids[at] == numbers, at, -1)


def edges_out_of(edges: Edges, sources: Array) -> tuple[Array, Array]:
    """Return the edges that leave some neurons, in canonical order: in time of these neurons and edges alone.

    Parameters
    ----------
    edges : Edges
    sources : ndarray of int64, ascending

    Returns
    -------
    positions : ndarray of int64
    owners : ndarray of int64
        Which of `sources` each leaves.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Edges
    >>> from gbnn.topology.moved import edges_out_of
    >>> edges, _ = Edges.from_coo([0, 7, 7], [1, 0, 5], (8, 6))
    >>> edges_out_of(edges, np.array([3, 7]))
    (array([1, 2]), array([1, 1]))
    """
    ids, starts, _ = edges.by_source
    rows = ranks_in(ids, sources)
    known = np.flatnonzero(rows >= 0)
    first, sizes = starts[rows[known]], np.diff(starts)[rows[known]]
    total = int(sizes.sum())
    positions = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(total)
    return positions, np.repeat(known, sizes)


def among(edges: Edges, sources: Array, targets: Array) -> tuple[Edges, Array]:
    """Return the edges between some neurons, under their ranks, and the position each had.

    Parameters
    ----------
    edges : Edges
    sources, targets : ndarray of int64, ascending, at least one of each

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Edges
    >>> from gbnn.topology.moved import among
    >>> edges, _ = Edges.from_coo([0, 7, 7], [1, 0, 5], (2**60, 2**60))
    >>> some, positions = among(edges, np.array([3, 7]), np.array([0, 1]))
    >>> some.sources, some.targets, some.shape, positions
    (array([1]), array([0]), (2, 2), array([1]))
    """
    positions, owners = edges_out_of(edges, sources)
    ranks = ranks_in(targets, edges.targets[positions])
    inside = np.flatnonzero(ranks >= 0)
    return Edges(owners[inside], ranks[inside], (sources.size, targets.size)), positions[inside]


def at_edges(probe: Probe | ActiveProbe, sources: Array, targets: Array) -> Array:
    """Return the derivatives by given edges, shape (k,): 0 where a neuron takes no part in a sparse batch.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.rows import SparseRows
    >>> from gbnn.semirings import ActiveProbe
    >>> from gbnn.topology.moved import at_edges
    >>> probe = ActiveProbe(SparseRows.from_dense([[0.0, 2.0]]), np.array([[3.0, 5.0]]))
    >>> at_edges(probe, np.array([0, 1]), np.array([1, 1]))
    array([ 0., 10.])
    """
    if isinstance(probe, Probe):
        return probe.at(sources, targets)
    small, ids, others = probe.compact()
    i, j = ranks_in(ids, sources), ranks_in(others, targets)
    inside = np.flatnonzero((i >= 0) & (j >= 0))
    result = np.zeros(len(sources), dtype=small.x.dtype)
    result[inside] = small.at(i[inside], j[inside])
    return result


class MovedGradient(ActiveGradient):
    """The gradient of a sparse batch by edges that came after it, computed when it is asked for.

    Parameters
    ----------
    x : SparseRows, shape (batch, in)
    dy : ndarray or SparseRows, shape (batch, out)
    edges : Edges

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Edges
    >>> from gbnn.rows import SparseRows
    >>> from gbnn.topology.moved import MovedGradient
    >>> edges, _ = Edges.from_coo([0, 1], [0, 1], (2, 2))
    >>> np.asarray(MovedGradient(SparseRows.from_dense([[0.0, 2.0]]), np.array([[3.0, 5.0]]), edges))
    array([ 0., 10.])
    """

    def __init__(self, x: SparseRows, dy: Array | SparseRows, edges: Edges) -> None:
        super().__init__(np.empty(0, dtype=np.int64), np.empty(0, dtype=x.dtype), edges.nnz, x, dy)
        self._edges = edges

    @cached_property
    def _touched(self) -> tuple[Array, Array]:
        if not self.probe.x.nnz:  # a compact probe has a neuron all the same
            return super().positions, super().values
        small, sources, targets = self.probe.compact()
        some, positions = among(self._edges, sources, targets)
        return positions, small.at(some.sources, some.targets)

    @property
    def positions(self) -> Array:
        """The touched edges, int64, shape (t,), ascending."""
        return self._touched[0]

    @property
    def values(self) -> Array:
        """The gradients of the touched edges, shape (t,)."""
        return self._touched[1]

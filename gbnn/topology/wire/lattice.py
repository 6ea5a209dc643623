"""`small_world`: every target near its sources on a ring, but for a share of edges that go anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import check_float
from gbnn.sampling import distinct_edges
from gbnn.topology.wire.maker import Wiring, balanced, check_count, within

__all__ = ["small_world"]

Array = np.ndarray[Any, Any]


def small_world(rewire_probability: float) -> Wiring:
    """Return a maker of bipartite small worlds: local edges, and shortcuts.

    Sources and targets lie evenly spaced on one ring, in the order of their indices. Every target takes its
    nearest sources, floor or ceil(nnz / out) of them. Then each edge is taken out with probability
    `rewire_probability`, and as many are put uniformly among the places that remain: 0 gives a lattice, 1
    nearly `random`, small numbers few steps between any two neurons but dense neighbourhoods.

    Parameters
    ----------
    rewire_probability : float
        From 0 to 1; β in the papers.

    Returns
    -------
    callable
        ``(rng, shape, nnz) -> Edges``, as `random`; O(nnz) for any shape.

    Raises
    ------
    ArgumentError, KindError
        If `rewire_probability` is none.

    Notes
    -----
    After Watts and Strogatz, "Collective dynamics of 'small-world' networks", Nature 393, 1998, as turned to
    layers by the BSW (bipartite small world) initialisation of Cannistraci-Hebb training (Zhang et al.,
    "Epitopological learning and Cannistraci-Hebb network shape intelligence brain-inspired theory for
    ultra-sparse advantage in deep learning", ICLR 2024). There, too, an edge that is rewired may go to any
    free place (Watts and Strogatz keep one end). There neurons of both sides choose neighbours, each half of
    the edges, and the lattice's number of edges is inexact; here targets choose, which gives the same band.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import wire
    >>> lattice = wire.small_world(0.0)(np.random.default_rng(0), (6, 3), 9)
    >>> lattice.by_target.others.reshape(3, 3)
    array([[0, 1, 2],
           [2, 3, 4],
           [0, 4, 5]])
    """
    probability = check_float("rewire_probability", rewire_probability, 0, 1)

    def make(rng: np.random.Generator, shape: tuple[int, int], nnz: int) -> Edges:
        size, count = check_count(shape, nnz)
        sources, targets = _nearest(rng, size, count)
        stay = rng.random(count) >= probability
        kept, _ = Edges.from_coo(sources[stay], targets[stay], size)
        if kept.nnz == count:
            return kept
        more = distinct_edges(rng, size, count - kept.nnz, exclude=kept)
        return Edges.from_coo(np.append(kept.sources, more[0]), np.append(kept.targets, more[1]), size)[0]

    return make


def _nearest(rng: np.random.Generator, shape: tuple[int, int], count: int) -> tuple[Array, Array]:
    """Return `count` edges from every target to its nearest sources; source i lies at (i + 1/2) / in."""
    rows, columns = shape
    targets, fan_in = balanced(rng, columns, count)
    if 4 * rows * columns < 2**63:
        first = ((2 * targets + 1) * rows - (fan_in - 1) * columns) // (2 * columns)
    else:  # a float's rounding moves the window by less than 2**-50 of the ring
        first = ((targets + 0.5) * (rows / columns) - (fan_in - 1) / 2).astype(np.int64)
    return (np.repeat(first, fan_in) + within(fan_in)) % rows, np.repeat(targets, fan_in)

"""Distinct random edges, drawn without anything of size in x out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gbnn.edges import Edges, canonical_order, shape_of
from gbnn.errors import ArgumentError, check_int

__all__ = ["MAX_EDGES", "distinct_edges"]

Array = np.ndarray[Any, Any]

MAX_EDGES = 2**40
"""So many edges no memory holds: more are refused before any is taken."""


def distinct_edges(
    rng: np.random.Generator,
    shape: tuple[int, int],
    count: int,
    exclude: Edges | None = None,
    *,
    ordered: bool = False,
) -> tuple[Array, Array]:
    """Draw `count` different edges uniformly from all places, or from those not in `exclude`.

    Parameters
    ----------
    rng : numpy.random.Generator
    shape : (int, int)
        in_features, out_features, each up to 2**60.
    count : int
    exclude : Edges, optional
        Edges that may not be drawn.
    ordered : bool
        Return them in canonical order, for who sorts them next anyway; else their order is random, too.

    Returns
    -------
    sources, targets : ndarray of int64, shape (count,)

    Raises
    ------
    ArgumentError
        If there are fewer free places than `count`, `count` is more than 2**40, or `exclude` is of another
        shape.

    Notes
    -----
    Memory is O(count + exclude.nnz), and time but for the sort: by rejection while most places are free, by
    listing the free places once fewer than three times `count` are.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.sampling import distinct_edges
    >>> sources, targets = distinct_edges(np.random.default_rng(0), (2, 3), 6)
    >>> sorted(zip(sources.tolist(), targets.tolist()))
    [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    """
    rows, columns = shape_of(shape)
    if exclude is not None and exclude.shape != (rows, columns):
        raise ArgumentError("exclude", f"edges of a {rows} x {columns} layer", f"shape {exclude.shape}")
    places = rows * columns
    free = places - (exclude.nnz if exclude is not None else 0)
    count = check_int("nnz", count, 0)
    if count > free:
        what = "places" if exclude is None else "free places"
        raise ArgumentError("nnz", f"at most {free}, the {what} of a {rows} x {columns} layer", count)
    if count > MAX_EDGES:
        raise ArgumentError("nnz", f"at most {MAX_EDGES} edges", count)
    if free <= 3 * count:
        keys = np.arange(places)
        if exclude is not None:
            keys = np.delete(keys, exclude.sources * columns + exclude.targets)
        drawn = divmod(keys[_subset(rng, keys.size, count)], columns)
    else:
        drawn = _by_rejection(rng, (rows, columns), count, free, exclude)
    if ordered:
        return drawn
    order = rng.permutation(count)
    return drawn[0][order], drawn[1][order]


def _by_rejection(
    rng: np.random.Generator, shape: tuple[int, int], count: int, free: int, exclude: Edges | None
) -> tuple[Array, Array]:
    """Draw until there are `count` different free places, and give back what is too much; in order.

    No free place is more likely than another to be among those that have come, nor among those given back.
    """
    rows, columns = shape
    places = rows * columns
    sources, targets = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    while sources.size < count:
        # Some draws will hit excluded places or come twice: as many as leave enough on average, and four
        # deviations more. As three times `count` are free, that is O(count + exclude.nnz).
        draws = -places * math.log1p(-(count - sources.size) / (free - sources.size))
        new = _draw(rng, shape, int(draws + 4 * math.sqrt(draws)) + 1)
        if exclude is not None:
            away = np.flatnonzero(exclude.find(*new) < 0)
            new = new[0][away], new[1][away]
        if sources.size:
            new = np.append(sources, new[0]), np.append(targets, new[1])
            new = _sorted(*new, shape)
        sources, targets = _each_once(*new)
    if sources.size > count:
        chosen = _subset(rng, sources.size, count)
        sources, targets = sources[chosen], targets[chosen]
    return sources, targets


def _draw(rng: np.random.Generator, shape: tuple[int, int], count: int) -> tuple[Array, Array]:
    """Draw places, in order; some may come twice."""
    rows, columns = shape
    if rows * columns < 2**63:
        return divmod(np.sort(rng.integers(rows * columns, size=count)), columns)
    return _sorted(rng.integers(rows, size=count), rng.integers(columns, size=count), shape)


def _sorted(sources: Array, targets: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    order = canonical_order(sources, targets, shape)
    return sources[order], targets[order]


def _each_once(sources: Array, targets: Array) -> tuple[Array, Array]:
    """Leave out repetitions from sorted edges."""
    first = np.ones(sources.size, dtype=bool)
    first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    if first.all():
        return sources, targets
    return sources[first], targets[first]


def _subset(rng: np.random.Generator, size: int, count: int) -> Array:
    """Return `count` of the positions 0 to size - 1, ascending, each subset as likely as any other."""
    less = min(count, size - count)
    chosen = np.full(size, less != count)
    chosen[rng.choice(size, less, replace=False, shuffle=False)] = less == count
    return np.flatnonzero(chosen)

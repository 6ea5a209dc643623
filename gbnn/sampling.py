"""Distinct random edges, drawn without anything of size in x out."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.edges import Edges, shape_of
from gbnn.errors import ArgumentError, check_int

__all__ = ["distinct_edges"]

Array = np.ndarray[Any, Any]


def distinct_edges(
    rng: np.random.Generator, shape: tuple[int, int], count: int, exclude: Edges | None = None
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

    Returns
    -------
    sources, targets : ndarray of int64, shape (count,), in the order drawn

    Raises
    ------
    ArgumentError
        If there are fewer free places than `count`, or `exclude` is of another shape.

    Notes
    -----
    Time and memory are O(count + exclude.nnz): by rejection while most places are free, by listing the free
    places once fewer than three times `count` are.

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
    if free <= 3 * count:
        keys = np.arange(places)
        if exclude is not None:
            keys = np.delete(keys, exclude.sources * columns + exclude.targets)
        keys = rng.permutation(keys)[:count]
        return keys // columns, keys % columns
    sources, targets = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    while sources.size < count:
        # Some draws hit excluded places or collide: ask for more than missing, keep the first of each in the
        # order drawn. As three times `count` are free, places / free asks for exclude.nnz / 3 more at most.
        missing = count - sources.size
        more = missing * places // free + missing // 8 + 16
        new_sources, new_targets = rng.integers(rows, size=more), rng.integers(columns, size=more)
        if exclude is not None:
            new = exclude.find(new_sources, new_targets) < 0
            new_sources, new_targets = new_sources[new], new_targets[new]
        sources, targets = np.append(sources, new_sources), np.append(targets, new_targets)
        first = _first_of_each(sources, targets, places, columns)
        sources, targets = sources[first], targets[first]
    return sources[:count], targets[:count]


def _first_of_each(sources: Array, targets: Array, places: int, columns: int) -> Array:
    """Return the positions, ascending, at which an edge occurs for the first time."""
    if places < 2**63:
        order = np.argsort(sources * columns + targets, kind="stable")
    else:
        order = np.lexsort((targets, sources))  # stable, too
    s, t = sources[order], targets[order]
    again = np.zeros(order.size, dtype=bool)
    again[1:] = (s[1:] == s[:-1]) & (t[1:] == t[:-1])
    return np.sort(order[~again])

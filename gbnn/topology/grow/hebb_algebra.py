"""`hebb_scores`: Cannistraci-Hebb link prediction written in the algebra of GraphBLAS."""

from __future__ import annotations

from typing import Any

import graphblas as gb
import numpy as np
from graphblas import binary, semiring, unary

from gbnn.edges import Edges, check_indices
from gbnn.topology.grow.hebb_search import check_flag, fixed_point

__all__ = ["hebb_scores"]


def hebb_scores(edges: Edges, *, internal: bool = False, sources: Any = None) -> gb.Matrix:
    """Return the scores of absent edges, S = Φ(A·Aᵀ)·A + A·Φ(Aᵀ·A)ᵀ where A has no entry.

    A is the graph as a matrix of ones, and Φ(D)_ij = (1 + D_ij) / (d_j - D_ij), or 1 / (d_j - D_ij) for CH3,
    on the entries of D, d_j the number of links of j. `gbnn.topology.cannistraci_hebb` says what it means and
    grows edges by it, without any of these matrices; this is for looking at scores, and what it is tested by.

    Parameters
    ----------
    edges : Edges
    internal : bool
        CH2-L3 (True) or CH3-L3 (False).
    sources : array_like of int, optional
        Only the scores of edges out of these.

    Returns
    -------
    graphblas.Matrix
        FP64, shape (in, out); an entry for each absent edge whose ends a path of length 3 joins.

    Notes
    -----
    Time and memory are those of the sparse products, up to in·fan³ for fans everywhere alike.

    Examples
    --------
    >>> from gbnn.edges import Edges
    >>> from gbnn.topology.grow.hebb_algebra import hebb_scores
    >>> edges, _ = Edges.from_coo([0, 1, 1, 2], [0, 0, 1, 1], (3, 3))
    >>> scores = hebb_scores(edges)
    >>> [array.tolist() for array in scores.to_coo()]
    [[0, 2], [1, 0], [2.0, 2.0]]
    """
    scale = fixed_point(edges, check_flag("internal", internal))
    rows, columns = edges.shape
    a = _ones(edges.sources, edges.targets, edges.shape)
    b = _ones(edges.targets, edges.sources, (columns, rows))
    some = a
    if sources is not None:
        chosen = np.isin(edges.sources, check_indices("sources", sources, rows))
        some = _ones(edges.sources[chosen], edges.targets[chosen], edges.shape)
    scores = gb.Matrix(gb.dtypes.FP64, rows, columns)
    # Sources much like this one, and what they are linked to ...
    scores(~some.S) << semiring.plus_times(_share(some, a, internal, scale) @ a)
    # ... and targets much like those this one is linked to.
    scores(~some.S, accum=binary.plus) << semiring.plus_times(some @ _share(b, b, internal, scale).T)
    return scores.apply(binary.times, right=1 / scale).new()


def _ones(rows: Any, columns: Any, shape: tuple[int, int]) -> gb.Matrix:
    return gb.Matrix.from_coo(rows, columns, 1.0, nrows=shape[0], ncols=shape[1], dtype=gb.dtypes.FP64)


def _share(some: gb.Matrix, a: gb.Matrix, internal: bool, scale: float) -> gb.Matrix:
    """Return scale·Φ(some·aᵀ), rounded down, at least 1."""
    common = semiring.plus_pair["FP64"](some @ a.T).new()
    degree = a.reduce_rowwise("plus").new()
    outside = semiring.any_second(common @ degree.diag()).new()
    outside(binary.minus) << common
    outside << outside.apply(binary.max, right=1.0)
    inside = (common.apply(binary.plus, right=1.0) if internal else common.apply(unary.one)).new()
    inside << inside.apply(binary.times, right=scale)
    whole = unary.floor(binary.truediv(inside & outside).new()).new()
    return whole.apply(binary.max, right=1.0).new()

"""Products with sparse rows as they are defined, active edge by active edge."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.rows import SparseRows

Array = np.ndarray[Any, Any]


def rows_of(present: Array, values: Array) -> SparseRows:
    """Make rows of the entries that are `present`, whatever their values are."""
    rows, columns = np.nonzero(present)
    starts = np.searchsorted(rows, np.arange(present.shape[0] + 1))
    return SparseRows(starts, columns.astype(np.int64), values[rows, columns], present.shape)


def defined_product(semiring, x: SparseRows, weights, bias=None) -> dict[tuple[int, int], float]:
    """Return (row, output) -> value where an active edge leads; a bias is the edge of every output."""
    add, multiply = semiring.add.py_func, semiring.multiply.py_func
    y: dict[tuple[int, int], float] = {}
    if bias is not None:
        y = {(b, j): bias[j] for b in range(x.shape[0]) for j in range(weights.out_features)}
    for b, i, value in zip(x.rows.tolist(), x.columns.tolist(), x.values, strict=True):
        for source, j, w in zip(*weights.to_coo(), strict=True):
            if source == i:
                term = multiply(value, w)
                y[b, int(j)] = x.dtype.type(add(y.get((b, int(j)), semiring.identity), term))
    return y


def defined_adjoint(semiring, x: SparseRows, weights, bias, y, dy) -> tuple[Array, Array, Array | None]:
    """Return dx of each entry, dw and the bias's gradient; `y` and `dy` map (row, output) to a number."""
    multiply, partials = semiring.multiply.py_func, semiring.partials.py_func
    dx, dw = np.zeros(x.nnz), np.zeros(weights.nnz)
    dbias = None if bias is None else np.zeros(bias.size)
    edges = [(int(i), int(j), w) for i, j, w in zip(*weights.to_coo(), strict=True)]
    entries = list(zip(x.rows.tolist(), x.columns.tolist(), x.values, strict=True))
    for (b, j), out in y.items():
        if np.isinf(semiring.identity) and np.isinf(out):
            continue
        into = [
            (p, e)
            for p, (r, i, _) in enumerate(entries)
            if r == b
            for e, (s, t, _) in enumerate(edges)
            if (s, t) == (i, j)
        ]
        chosen = bias is not None
        ties = 1
        if semiring.selective:
            into = [(p, e) for p, e in into if x.dtype.type(multiply(entries[p][2], edges[e][2])) == out]
            chosen = bias is not None and bias[j] == out
            ties = max(len(into) + chosen, 1)
        share = dy.get((b, j), 0.0) / ties
        for p, e in into:
            by_x, by_w = partials(entries[p][2], edges[e][2], out)
            dx[p] += share * by_x
            dw[e] += share * by_w
        if dbias is not None and chosen:
            dbias[j] += share * partials(semiring.one, bias[j], out)[1]
    return dx, dw, dbias

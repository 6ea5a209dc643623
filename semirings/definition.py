"""The product and its adjoint as they are defined, edge by edge in plain NumPy: slow, and the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.semirings.semiring import Semiring
from gbnn.weights import Weights

__all__ = ["adjoint", "product"]

Array = np.ndarray[Any, Any]


def _over_batch(function: Any) -> Callable[..., Any]:
    over: Callable[..., Any] = np.frompyfunc(function.py_func, 2, 1)
    return over


def product(semiring: Semiring, x: Array, weights: Weights, bias: Array | None = None) -> Array:
    """Return y, shape (batch, out): start from the bias or the identity, then ⊕ every edge's x ⊗ w.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import semirings
    >>> from gbnn.semirings import definition
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 0], [1.0, 2.0], shape=(2, 2))
    >>> definition.product(semirings.max_plus, np.array([[5.0, 1.0]]), w)
    array([[  6., -inf]])
    """
    add, multiply = _over_batch(semiring.add), _over_batch(semiring.multiply)
    y = np.full((x.shape[0], weights.out_features), semiring.identity, dtype=x.dtype)
    if bias is not None:
        y[...] = bias
    for i, j, w in zip(*weights.to_coo(), strict=True):
        y[:, j] = add(y[:, j], multiply(x[:, i], w)).astype(x.dtype)
    return y


def adjoint(
    semiring: Semiring, x: Array, weights: Weights, bias: Array | None, y: Array, dy: Array
) -> tuple[Array, Array, Array | None]:
    """Return dx, dw and the bias's gradient, from the partials of every edge; ties share equally."""
    assert semiring.partials is not None  # noqa: S101 (an oracle for differentiable semirings)
    partials = semiring.partials.py_func  # type: ignore[attr-defined]
    multiply = semiring.multiply.py_func  # type: ignore[attr-defined]

    def term(x: float, w: float) -> Any:
        return y.dtype.type(multiply(x, w))  # as y holds it

    sources, targets, values = weights.to_coo()
    dx, dw = np.zeros_like(x), np.zeros_like(values)
    dbias = None if bias is None else np.zeros_like(bias)
    for b in range(x.shape[0]):
        for j in range(weights.out_features):
            if np.isinf(semiring.identity) and np.isinf(y[b, j]):
                continue
            into: Any = np.flatnonzero(targets == j)
            ties, chosen = 1, True
            if semiring.selective:
                into = [e for e in into if term(x[b, sources[e]], values[e]) == y[b, j]]
                chosen = bias is not None and bool(bias[j] == y[b, j])
                ties = len(into) + chosen
            share = dy[b, j] / max(ties, 1)
            for e in into:
                by_x, by_w = partials(x[b, sources[e]], values[e], y[b, j])
                dx[b, sources[e]] += share * by_x
                dw[e] += share * by_w
            if dbias is not None and bias is not None and chosen:
                dbias[j] += share * partials(semiring.one, bias[j], y[b, j])[1]
    return dx, dw, dbias

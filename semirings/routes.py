"""The ways to compute a product and its adjoint that semirings choose from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from graphblas import binary, semiring

from gbnn import storage
from gbnn.semirings import kernels
from gbnn.semirings.kernels import by_neuron
from gbnn.weights import Weights

if TYPE_CHECKING:
    from gbnn.semirings.semiring import Semiring

Array = np.ndarray[Any, Any]


def into_full(operator: Any, accumulate: Any, x: Array, w: Any, fill: Any = 0) -> Array:
    """Return C after C ⊕= X ⊕.⊗ W, where C is full and holds `fill` (a bias, or the identity) at first.

    `w` is a lent matrix of x's dtype, shape (x's columns, columns of C). With a built-in ("factory") operator
    and ⊕ as the accumulator this runs in place, in SuiteSparse's full-times-sparse kernel (saxpy5).
    """
    out = storage.Output(x.shape[0], w.ncols, x.dtype, fill)
    if w.nvals:
        out.matrix(accumulate) << operator(storage.lend_full(x) @ w)
    return out.take()


def by_graphblas(operator: Any, accumulate: Any) -> Callable[..., Array]:
    """Return the route by a GraphBLAS semiring, into a full matrix that holds the bias already."""

    def forward(s: Semiring, x: Array, weights: Weights, bias: Array | None) -> Array:
        fill = s.identity if bias is None else bias
        return into_full(operator, accumulate, x, weights.by_target, fill)

    return forward


def by_kernel(s: Semiring, x: Array, weights: Weights, bias: Array | None) -> Array:
    """Compute the product by the compiled loop over edges."""
    y = np.empty((x.shape[0], weights.out_features), dtype=x.dtype, order="F")
    y[...] = s.identity if bias is None else bias
    values = weights.values_by_target
    kernels.product(s.add, s.multiply, by_neuron(x), *weights.edges.by_target, values, y.T)
    return y


def adjoint_by_kernel(
    s: Semiring, x: Array, weights: Weights, bias: Array | None, y: Array, dy: Array, inputs: bool
) -> tuple[Array | None, Array, Array | None]:
    """Compute the adjoint of any semiring from its scalar partials."""
    if np.isinf(s.identity):
        dy = np.where(np.isinf(y), dy.dtype.type(0), dy)  # nothing came in, or nothing finite
    if s.selective:
        count = np.zeros(y.shape, dtype=dy.dtype, order="F")
        if bias is not None:
            count += y == bias
        values = weights.values_by_target
        kernels.count_ties(s.multiply, by_neuron(x), *weights.edges.by_target, values, by_neuron(y), count.T)
        dy = dy / np.maximum(count, 1)
    dx = np.zeros(x.shape, dtype=x.dtype, order="F")
    dw = np.empty(weights.nnz, dtype=x.dtype)
    edges = (*weights.edges.by_source, weights.values)
    x_t, y_t, dy_t = by_neuron(x), by_neuron(y), by_neuron(np.asfortranarray(dy))
    kernels.adjoint(s.multiply, s.partials, s.selective, x_t, *edges, y_t, dy_t, dx.T, dw, inputs)
    dbias = None
    if bias is not None:
        dbias = np.empty(bias.shape, dtype=x.dtype)
        kernels.bias_adjoint(s.partials, s.selective, x.dtype.type(s.one), bias, y_t, dy_t, dbias)
    return (dx if inputs else None), dw, dbias


def times_transposed(dy: Array, weights: Weights) -> Array:
    """Return dY @ Wᵀ over plus_times, by GraphBLAS's in-place kernel on the view by source."""
    return into_full(semiring.plus_times, binary.plus, dy, weights.by_source)

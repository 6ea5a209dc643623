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


# Up to here the compiled kernel is about 1.5 times as fast as the GraphBLAS call or more: 3 times in the
# median, 4.6 near no edges, 1.3 to 1.7 at 25,000 edges and batch 32, with 1 thread and with 2. A call costs
# about 115 µs before it computes anything, the kernel about 20; beyond, what an edge or a neuron costs
# counts, and there SuiteSparse is as good (docs/measurements.md; `python benchmarks/routes.py --bound`).
# Only shapes decide, so that the same network gives the same bits.
_FEW_EDGES, _FEW_EDGES_OF_LARGE_BATCH, _LARGE_BATCH = 8_000, 25_000, 32
_FEW_ACTIVATIONS = 130_000


def is_small(x: Array, weights: Weights) -> bool:
    """Return whether a product of plus_times is mostly the overhead of its call; x may as well be dY."""
    batch = x.shape[0]
    few = _FEW_EDGES if batch < _LARGE_BATCH else _FEW_EDGES_OF_LARGE_BATCH
    return weights.nnz <= few and batch * (weights.in_features + weights.out_features) <= _FEW_ACTIVATIONS


def plus_times_by_kernel(s: Semiring, x: Array, weights: Weights, bias: Array | None) -> Array:
    """Compute the product of plus_times by its own compiled kernel."""
    y = np.empty((x.shape[0], weights.out_features), dtype=x.dtype, order="F")
    y[...] = 0 if bias is None else bias
    values = weights.values_by_target.view()
    values.flags.writeable = False  # as those by source are: numba compiles once for both
    kernels.plus_times(by_neuron(x), *weights.edges.by_target, values, y.T)
    return y


def times_transposed(dy: Array, weights: Weights) -> Array:
    """Return dY @ Wᵀ over plus_times, from the view by source: by the kernel if small, else by GraphBLAS."""
    if not is_small(dy, weights):
        return into_full(semiring.plus_times, binary.plus, dy, weights.by_source)
    dx = np.zeros((dy.shape[0], weights.in_features), dtype=dy.dtype, order="F")
    kernels.plus_times(by_neuron(dy), *weights.edges.by_source, weights.values, dx.T)
    return dx

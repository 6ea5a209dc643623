"""log_plus, (log(exp a + exp b), +): the smooth form of max_plus; sums of probabilities, as logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from graphblas import binary, semiring

from gbnn import storage
from gbnn.semirings.gradients import EdgeGradient
from gbnn.semirings.routes import adjoint_by_kernel, by_kernel, into_full
from gbnn.semirings.scalars import scalar
from gbnn.semirings.semiring import Route, Semiring
from gbnn.semirings.tropical import add_costs
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]


@scalar
def log_add(a: float, b: float) -> float:
    """Return log(exp(a) + exp(b)), exact at ±∞ and without overflow; NaN stays visible."""
    if a == b and math.isinf(a):
        return a
    if a < b:
        return b + math.log1p(math.exp(a - b))
    return a + math.log1p(math.exp(b - a))


@scalar
def _log_plus_partials(x: float, w: float, y: float) -> tuple[float, float]:
    share = math.exp(x + w - y)
    return share, share


# exp(-70) is about 4e-31: a product of two such scaled exponentials, summed, stays a normal float32 number.
_SPREAD = {np.dtype(np.float32): 70.0, np.dtype(np.float64): 600.0}


def _spread(array: Array) -> float:
    """Largest minus smallest of the numbers above -∞; infinite where a number is +∞ or NaN."""
    high = float(array.max(initial=-math.inf))
    if high == -math.inf:
        return 0.0
    low = float(array.min(where=array != -math.inf, initial=math.inf))
    return high - low if math.isfinite(high) and math.isfinite(low) else math.inf


def _fits_exponentials(x: Array, weights: Weights) -> bool:
    """Whether no scaled exponential can underflow, so that the isomorphism loses nothing."""
    return _spread(x) + _spread(weights.values) <= _SPREAD[x.dtype]


def _top(array: Array) -> float:
    """Return the largest entry, to scale exponentials by; 0 where there is none above -∞."""
    high = float(array.max(initial=-math.inf))
    return high if math.isfinite(high) else 0.0


def _by_plus_times(s: Semiring, x: Array, weights: Weights, bias: Array | None) -> Array:
    """log_plus(X, W) = log plus_times(exp(X - a), exp(W - c)) + a + c, by GraphBLAS's fastest kernel."""
    a, c = _top(x), _top(weights.values)
    scaled = np.exp(weights.values_by_target - c)
    lent = storage.lend_columns(*weights.edges.by_target, scaled, weights.shape)
    y = into_full(semiring.plus_times, binary.plus, np.exp(x - a), lent)
    np.log(y, out=y)  # of an empty sum: the identity, -∞
    y += a + c
    return y if bias is None else np.logaddexp(y, bias)


def _adjoint(
    s: Semiring, x: Array, weights: Weights, bias: Array | None, y: Array, dy: Array, inputs: bool
) -> tuple[Array | None, Any, Array | None]:
    """Both gradients from exp(x + w - y) = exp(x - a)·exp(w - c)·exp(a + c - y): products and one SDDMM."""
    a, c = _top(x), _top(weights.values)
    shift = a + c - y
    # Where y is far above every term exp(shift) may underflow, and so do the true shares. It is far below
    # only where the terms are all -∞ and y is a low bias: then exp(shift) could overflow.
    highest = float(shift.max(where=np.isfinite(y), initial=0))
    if not _fits_exponentials(x, weights) or highest > _SPREAD[x.dtype]:
        return adjoint_by_kernel(s, x, weights, bias, y, dy, inputs)
    g = np.where(np.isinf(y), dy.dtype.type(0), dy * np.exp(shift))
    g = np.asfortranarray(g)
    ex, ew = np.exp(x - a), np.exp(weights.values - c)
    dx = None
    if inputs:
        shape = (weights.out_features, weights.in_features)
        lent = storage.lend_columns(*weights.edges.by_source, ew, shape)
        dx = into_full(semiring.plus_times, binary.plus, g, lent)
        dx *= ex
    dbias = None
    if bias is not None:
        dbias = np.where(np.isinf(y), dy.dtype.type(0), dy * np.exp(bias - y)).sum(axis=0)
    return dx, EdgeGradient(ex, g, weights.edges, ew), dbias


log_plus = Semiring(
    name="log_plus",
    add=log_add,
    identity=-math.inf,
    multiply=add_costs,
    partials=_log_plus_partials,
    one=0.0,
    routes=(
        Route("isomorphism", _by_plus_times, _fits_exponentials),
        Route("kernel", by_kernel),
    ),
    adjoint=_adjoint,
    span=(-1.0, 1.0),
)
"""(logaddexp, +). By plus_times of exponentials where none can underflow, else by the compiled kernel."""

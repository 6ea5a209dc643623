"""Semirings whose ⊗ is the ordinary product: plus_times, max_times, min_times."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from graphblas import monoid, semiring

from gbnn.semirings.gradients import EdgeGradient
from gbnn.semirings.routes import by_graphblas, by_kernel, is_small, plus_times_by_kernel, times_transposed
from gbnn.semirings.scalars import scalar
from gbnn.semirings.semiring import Route, Semiring
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]


@scalar
def plus(a: float, b: float) -> float:
    """⊕ of the ordinary network."""
    return a + b


@scalar
def maximum(a: float, b: float) -> float:
    """Return the larger; NaN stays visible."""
    return a if a > b or a != a else b


@scalar
def minimum(a: float, b: float) -> float:
    """Return the smaller; NaN stays visible."""
    return a if a < b or a != a else b


@scalar
def times(x: float, w: float) -> float:
    """⊗ of the ordinary network."""
    return x * w


@scalar
def _times_partials(x: float, w: float, y: float) -> tuple[float, float]:
    return w, x


def _plus_times_adjoint(
    s: Semiring, x: Array, weights: Weights, bias: Array | None, y: Array, dy: Array, inputs: bool
) -> tuple[Array | None, EdgeGradient, Array | None]:
    dx = times_transposed(dy, weights) if inputs else None
    return dx, EdgeGradient(x, dy, weights.edges), None if bias is None else dy.sum(axis=0)


plus_times = Semiring(
    name="plus_times",
    add=plus,
    identity=0.0,
    multiply=times,
    partials=_times_partials,
    one=1.0,
    routes=(
        Route("small", plus_times_by_kernel, is_small),
        Route("graphblas", by_graphblas(semiring.plus_times, monoid.plus)),
        Route("kernel", by_kernel),
    ),
    adjoint=_plus_times_adjoint,
    ordinary=True,
)
"""(+, ×): the ordinary network. Forward and input gradient by GraphBLAS, or by a kernel of its own where
they are small; weight gradient lazily by kernel."""

max_times = Semiring(
    name="max_times",
    add=maximum,
    identity=0.0,
    multiply=times,
    partials=_times_partials,
    one=1.0,
    selective=True,
    routes=(
        Route("kernel", by_kernel),
        Route("graphblas", by_graphblas(semiring.max_times, monoid.max)),
    ),
    span=(0.0, 1.0),
    domain=(0.0, math.inf),
)
"""(max, ×) on numbers from 0 up: the most probable path. A negative product loses against the identity 0."""

min_times = Semiring(
    name="min_times",
    add=minimum,
    identity=math.inf,
    multiply=times,
    partials=_times_partials,
    one=1.0,
    selective=True,
    routes=(
        Route("kernel", by_kernel),
        Route("graphblas", by_graphblas(semiring.min_times, monoid.min)),
    ),
    span=(0.5, 1.5),
    domain=(0.0, math.inf),
)
"""(min, ×) on positive numbers: the cheapest product of costs. 0 ⊗ ∞ is not defined (it gives NaN)."""

"""Tropical semirings, whose ⊗ is addition: min_plus (shortest paths), max_plus (morphology, Viterbi)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from graphblas import monoid, semiring

from gbnn import storage
from gbnn.semirings.real import maximum, minimum
from gbnn.semirings.routes import by_graphblas, by_kernel, into_full
from gbnn.semirings.scalars import scalar
from gbnn.semirings.semiring import Route, Semiring
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]


@scalar
def add_costs(x: float, w: float) -> float:
    """⊗ of the tropical semirings."""
    return x + w


@scalar
def _add_costs_partials(x: float, w: float, y: float) -> tuple[float, float]:
    return 1.0, 1.0


def _max_plus_by_min_plus(s: Semiring, x: Array, weights: Weights, bias: Array | None) -> Array:
    """max_plus(X, W) = -min_plus(-X, -W): GraphBLAS has a built-in kernel for min_plus only.

    Negation is exact, so the result equals the definition bit by bit.
    """
    fill = -s.identity if bias is None else -bias
    negated = storage.lend_columns(*weights.edges.by_target, -weights.values_by_target, weights.shape)
    y = into_full(semiring.min_plus, monoid.min, -x, negated, fill)
    return np.negative(y, out=y)


min_plus = Semiring(
    name="min_plus",
    add=minimum,
    identity=math.inf,
    multiply=add_costs,
    partials=_add_costs_partials,
    one=0.0,
    selective=True,
    routes=(
        Route("kernel", by_kernel),
        Route("graphblas", by_graphblas(semiring.min_plus, monoid.min)),
    ),
    span=(-1.0, 1.0),
)
"""(min, +): shortest paths. An output no edge reaches is +∞."""

max_plus = Semiring(
    name="max_plus",
    add=maximum,
    identity=-math.inf,
    multiply=add_costs,
    partials=_add_costs_partials,
    one=0.0,
    selective=True,
    routes=(
        Route("kernel", by_kernel),
        Route("isomorphism", _max_plus_by_min_plus),
        Route("graphblas", by_graphblas(semiring.max_plus, monoid.max)),
    ),
    span=(-1.0, 1.0),
)
"""(max, +): dilation in morphology, Viterbi. An output no edge reaches is -∞."""

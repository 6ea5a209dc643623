"""Forward-only semirings for questions about connection: lor_land, any_pair, plus_pair."""

from __future__ import annotations

from typing import Any

import numpy as np
from graphblas import binary, monoid, semiring

from gbnn import storage
from gbnn.semirings.real import plus
from gbnn.semirings.routes import by_graphblas, into_full
from gbnn.semirings.scalars import scalar
from gbnn.semirings.semiring import Route, Semiring
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]


@scalar
def _either(a: float, b: float) -> float:
    return 1.0 if a != 0 or b != 0 else 0.0


@scalar
def _both(x: float, w: float) -> float:
    return 1.0 if x != 0 and w != 0 else 0.0


@scalar
def _pair(x: float, w: float) -> float:
    return 1.0


def _by_booleans(s: Semiring, x: Array, weights: Weights, bias: Array | None) -> Array:
    """Run GraphBLAS's Boolean kernel on x != 0 and W != 0; True comes back as 1 of x's dtype."""
    fill = False if bias is None else bias != 0
    lent = storage.lend_columns(*weights.edges.by_target, weights.values_by_target != 0, weights.shape)
    return into_full(semiring.lor_land, monoid.lor, x != 0, lent, fill).astype(x.dtype)


lor_land = Semiring(
    name="lor_land",
    add=_either,
    identity=0.0,
    multiply=_both,
    partials=None,
    one=1.0,
    routes=(Route("graphblas", _by_booleans),),
    span=(1.0, 1.0),
    domain=(0.0, 1.0),
)
"""(or, and): what is connected at all. Nonzero is true; the output is 0 or 1."""

any_pair = Semiring(
    name="any_pair",
    add=_either,
    identity=0.0,
    multiply=_pair,
    partials=None,
    routes=(Route("graphblas", by_graphblas(semiring.any_pair, binary.max)),),
    span=(1.0, 1.0),
    domain=(0.0, 1.0),
)
"""Structure only: 1 where an output has an edge from an input. Every entry of a dense x is present."""

plus_pair = Semiring(
    name="plus_pair",
    add=plus,
    identity=0.0,
    multiply=_pair,
    partials=None,
    routes=(Route("graphblas", by_graphblas(semiring.plus_pair, monoid.plus)),),
    span=(1.0, 1.0),
)
"""Structure only: how many edges from inputs an output has. Every entry of a dense x is present."""

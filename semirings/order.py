"""Semirings made of minimum and maximum: max_min (bottlenecks), min_max, and plus_min (overlap)."""

from __future__ import annotations

import math

from graphblas import monoid, semiring

from gbnn.semirings.real import maximum, minimum, plus
from gbnn.semirings.routes import by_graphblas, by_kernel
from gbnn.semirings.scalars import scalar
from gbnn.semirings.semiring import Route, Semiring


@scalar
def _min_partials(x: float, w: float, y: float) -> tuple[float, float]:
    """Return the derivatives of min(x, w); equal arguments share."""
    if x < w:
        return 1.0, 0.0
    if x > w:
        return 0.0, 1.0
    return 0.5, 0.5


@scalar
def _max_partials(x: float, w: float, y: float) -> tuple[float, float]:
    """Return the derivatives of max(x, w); equal arguments share."""
    if x > w:
        return 1.0, 0.0
    if x < w:
        return 0.0, 1.0
    return 0.5, 0.5


max_min = Semiring(
    name="max_min",
    add=maximum,
    identity=-math.inf,
    multiply=minimum,
    partials=_min_partials,
    one=math.inf,
    selective=True,
    routes=(
        Route("kernel", by_kernel),
        Route("graphblas", by_graphblas(semiring.max_min, monoid.max)),
    ),
    span=(0.0, 1.0),
)
"""(max, min): the widest bottleneck; fuzzy relations. An output no edge reaches is -∞."""

min_max = Semiring(
    name="min_max",
    add=minimum,
    identity=math.inf,
    multiply=maximum,
    partials=_max_partials,
    one=-math.inf,
    selective=True,
    routes=(
        Route("kernel", by_kernel),
        Route("graphblas", by_graphblas(semiring.min_max, monoid.min)),
    ),
    span=(0.0, 1.0),
)
"""(min, max): the path whose highest point is lowest. An output no edge reaches is +∞."""

plus_min = Semiring(
    name="plus_min",
    add=plus,
    identity=0.0,
    multiply=minimum,
    partials=_min_partials,
    one=math.inf,
    routes=(
        Route("kernel", by_kernel),
        Route("graphblas", by_graphblas(semiring.plus_min, monoid.plus)),
    ),
    span=(0.0, 1.0),
    domain=(0.0, math.inf),
)
"""(+, min): overlap of histograms. Not a semiring in the strict sense: min does not distribute over +."""

"""How many edges each layer gets: functions (shapes, total) -> edges per layer, exact to the edge.

A shape is (in, out), or has more dimensions where a layer has a kernel: (out, in, height, width).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gbnn.edges import MAX_FEATURES, shape_of
from gbnn.errors import ArgumentError, KindError, check_bool, check_float, check_int
from gbnn.topology.divide import divide

__all__ = [
    "Allocation",
    "by_epsilon",
    "by_fan_in",
    "by_layer_fan_in",
    "erdos_renyi",
    "erk",
    "keep_dense",
    "proportional",
    "uniform",
]

Shapes = Sequence[tuple[int, ...]]
Allocation = Callable[[Shapes, int], list[int]]


def uniform(shapes: Shapes, total: int) -> list[int]:
    """Give every layer the same density.

    Parameters
    ----------
    shapes : sequence of tuples of int
        (in_features, out_features), or more dimensions.
    total : int
        Edges of all layers together.

    Returns
    -------
    list of int
        Edges of each layer; they sum to `total`, and no layer has more than its places.

    Raises
    ------
    ArgumentError, KindError
        If `total` is negative or more than there are places, or a shape is none.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.uniform([(10, 10), (10, 30)], 40)
    [10, 30]
    """
    places = _places(shapes)
    return divide(total, places, places)


def erdos_renyi(shapes: Shapes, total: int) -> list[int]:
    """Give layer l edges in proportion to in + out: density ε·(in + out)/(in·out), at most 1.

    ε is solved for so that the sum is exact; a layer that would be denser than full is made full and the
    rest solved again. Mocanu et al., 2018 (SET). A kernel does not count: the density of (out, in, 3, 3) is
    that of (out, in); see `erk`. Parameters, result and errors are those of `uniform`.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.erdos_renyi([(784, 1000), (1000, 1000), (1000, 10)], 89_700)
    [37575, 42125, 10000]
    """
    sizes = _sizes(shapes)
    shares = [(size[0] + size[1]) * math.prod(size[2:]) for size in sizes]
    return divide(total, shares, [math.prod(size) for size in sizes])


def erk(shapes: Shapes, total: int, *, scale: float = 1.0) -> list[int]:
    """Divide by Erdos-Renyi-Kernel: density ε·(sum of the shape / product of the shape)^scale, at most 1.

    Evci et al., 2020, "Rigging the lottery". At `scale` 1 it is `erdos_renyi` for layers of two dimensions; a
    smaller scale is nearer to `uniform`, which it is at 0. Result and errors are those of `uniform`.

    Parameters
    ----------
    shapes, total
        As for `uniform`.
    scale : float
        Not negative.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.erk([(64, 3, 3, 3), (128, 64, 3, 3), (10, 128)], 7000)
    [1541, 4179, 1280]
    """
    sizes = _sizes(shapes)
    places = [math.prod(size) for size in sizes]
    densities = [Fraction(sum(size), math.prod(size)) for size in sizes]
    power = check_float("scale", scale, 0)
    if power != 1:  # else exact
        # Of the largest: a power of numbers up to 1 cannot overflow. One too small for a float counts as 0.
        largest = max(densities, default=Fraction(1))
        densities = [Fraction(float(d / largest) ** power) for d in densities]
    shares = [n * d for n, d in zip(places, densities, strict=True)]
    return divide(total, shares, places)


def by_fan_in(shapes: Shapes, total: int) -> list[int]:
    """Give every neuron of every layer the same fan-in: edges in proportion to out_features.

    A layer with fewer inputs than that is full, and the others share the rest. Layers are (in, out);
    otherwise parameters, result and errors are those of `uniform`.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.by_fan_in([(784, 300), (300, 100), (100, 10)], 8200)  # 20 for each of 410 neurons
    [6000, 2000, 200]
    """
    sizes = [shape_of(shape) for shape in _listed(shapes)]
    return divide(total, [out for _, out in sizes], [math.prod(size) for size in sizes])


def by_layer_fan_in(shapes: Shapes, total: int) -> list[int]:
    """Give every layer edges in proportion to its own fan-in, in_features: the same fan-out everywhere.

    Read from input to output this is `by_fan_in` read from output to input. Parameters, result and errors
    are those of `by_fan_in`.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.by_layer_fan_in([(784, 300), (300, 100), (100, 10)], 11_840)  # 10 from each of 1184 neurons
    [7840, 3000, 1000]
    """
    sizes = [shape_of(shape) for shape in _listed(shapes)]
    return divide(total, [rows for rows, _ in sizes], [math.prod(size) for size in sizes])


def proportional(scores: Sequence[float]) -> Allocation:
    """Return an allocation in proportion to a score for each layer, up to its places.

    What layers of a positive score cannot hold goes to the others at equal density. Scores of single edges
    (SNIP, GraSP, SynFlow) are turned into edges per layer by `at_init.counts`.

    Parameters
    ----------
    scores : sequence of float, or ndarray
        One a layer: finite and not negative.

    Raises
    ------
    ArgumentError, KindError
        If a score is negative, not finite or no number; by the allocation also if there are more or fewer
        layers than scores.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.proportional([3.0, 1.0])([(10, 10), (10, 30)], 40)
    [30, 10]
    """
    if isinstance(scores, str | bytes) or not isinstance(scores, Sequence | np.ndarray):
        raise KindError("scores", "a list of numbers, one a layer", type(scores).__name__)
    shares = [Fraction(check_float(f"scores[{k}]", score, 0)) for k, score in enumerate(scores)]

    def allocation(shapes: Shapes, total: int) -> list[int]:
        places = _places(shapes)
        if len(places) != len(shares):
            raise ArgumentError("shapes", f"{len(shares)} layers, one a score", len(places))
        return divide(total, shares, places)

    return allocation


def keep_dense(allocation: Allocation = uniform, *, first: bool = True, last: bool = False) -> Allocation:
    """Return an allocation that makes the first and/or last layer full and divides the rest by another.

    Evci et al., 2020 (RigL), keep the first dense where the others are uniform; many papers keep the last.

    Parameters
    ----------
    allocation : callable
        ``(shapes, total) -> edges per layer``, for the layers between.
    first, last : bool
        Which layers are full.

    Raises
    ------
    ArgumentError
        By the allocation, if there are fewer edges than the full layers take.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.keep_dense(allocate.uniform, first=False, last=True)([(50, 20), (20, 30), (30, 2)], 220)
    [100, 60, 60]
    """
    if not callable(allocation):
        raise KindError("allocation", "a function (shapes, total) -> edges per layer", repr(allocation))
    first, last = check_bool("first", first), check_bool("last", last)

    def with_dense(shapes: Shapes, total: int) -> list[int]:
        places = _places(shapes)
        size = len(places)
        full = {k for k, kept in ((0, first), (size - 1, last)) if kept and 0 <= k < size}
        held = sum(places[k] for k in full)
        if check_int("nnz", total, 0) < held:
            raise ArgumentError("nnz", f"at least {held}, the places of the layers that stay full", total)
        between = [k for k in range(size) if k not in full]
        # Where nothing is between, too: an allocation of no layers refuses any edge.
        shared = iter(allocation([shapes[k] for k in between], int(total) - held))
        return [places[k] if k in full else next(shared) for k in range(size)]

    return with_dense


def by_epsilon(shapes: Shapes, epsilon: float = 20.0) -> list[int]:
    """Return ε·(in + out) edges for each layer, to the nearest edge, at most its places (SET's own setting).

    The total follows from ε, so this is no allocation of a total, but ``mlp(nnz=by_epsilon(shapes))`` takes
    it, and its sum given to `erdos_renyi` leads to the same counts within an edge. Mocanu et al., 2018.

    Parameters
    ----------
    shapes : sequence of tuples of int
    epsilon : float
        Not negative; the paper's default is 20.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.by_epsilon([(3072, 4000), (4000, 1000), (1000, 10)], 20)
    [141440, 100000, 10000]
    """
    factor = Fraction(check_float("epsilon", epsilon, 0))
    counts = []
    for size in _sizes(shapes):
        nearest = math.floor(factor * (size[0] + size[1]) * math.prod(size[2:]) + Fraction(1, 2))
        counts.append(min(nearest, math.prod(size)))
    return counts


def _places(shapes: Shapes) -> list[int]:
    return [math.prod(size) for size in _sizes(shapes)]


def _sizes(shapes: Shapes) -> list[tuple[int, ...]]:
    """Return shapes as tuples of at least two Python ints, or raise."""
    sizes = []
    for shape in _listed(shapes):
        if isinstance(shape, str | bytes) or not isinstance(shape, Sequence | np.ndarray) or len(shape) < 2:
            raise ArgumentError("shape", "two or more integers, as (in_features, out_features)", repr(shape))
        sizes.append(tuple(check_int("shape", size, 1, MAX_FEATURES) for size in shape))
    return sizes


def _listed(shapes: Any) -> list[Any]:
    if isinstance(shapes, str | bytes) or not isinstance(shapes, Sequence | np.ndarray):
        raise KindError("shapes", "a list of shapes", type(shapes).__name__)
    return list(shapes)

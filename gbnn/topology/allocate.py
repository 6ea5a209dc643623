"""How many edges each layer gets: functions (shapes, total) -> edges per layer, exact to the edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gbnn.edges import check_shape
from gbnn.errors import ArgumentError, check_int

__all__ = ["Allocation", "erdos_renyi", "uniform"]

Array = np.ndarray[Any, Any]
Shapes = Sequence[tuple[int, int]]
Allocation = Callable[[Shapes, int], list[int]]


def uniform(shapes: Shapes, total: int) -> list[int]:
    """Give every layer the same density.

    Parameters
    ----------
    shapes : sequence of (in_features, out_features)
    total : int
        Edges of all layers together.

    Returns
    -------
    list of int
        Edges of each layer; they sum to `total`.

    Raises
    ------
    ArgumentError
        If `total` is negative or more than there are places.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.uniform([(10, 10), (10, 30)], 40)
    [10, 30]
    """
    return _exact(shapes, total, [float(i) * o for i, o in shapes])


def erdos_renyi(shapes: Shapes, total: int) -> list[int]:
    """Give layer l edges in proportion to in + out: density ε·(in + out)/(in·out), at most 1.

    ε is solved for so that the sum is exact; a layer that would be denser than full is made full and the
    rest solved again. Mocanu et al., 2018 (SET); for fully connected layers ERK (Evci et al., 2020) is the
    same. Parameters, result and errors are those of `uniform`.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.erdos_renyi([(784, 1000), (1000, 1000), (1000, 10)], 89_700)
    [37575, 42125, 10000]
    """
    return _exact(shapes, total, [float(i) + o for i, o in shapes])


def _exact(shapes: Shapes, total: int, shares: Sequence[float]) -> list[int]:
    """Divide `total` in proportion to `shares`, no layer beyond its places, by largest remainders."""
    places = [rows * columns for rows, columns in (check_shape(*shape) for shape in shapes)]
    check_int("nnz", total, 0)
    if total > sum(places):
        raise ArgumentError("nnz", f"at most {sum(places)}, the places of all layers", total)
    counts = [0] * len(places)
    open_layers = list(range(len(places)))
    left = total
    while open_layers:
        epsilon = left / sum(shares[k] for k in open_layers)
        full = [k for k in open_layers if epsilon * shares[k] >= places[k]]
        if not full:
            break
        for k in full:
            counts[k] = places[k]
            left -= places[k]
        open_layers = [k for k in open_layers if k not in full]
    wanted = {k: left * shares[k] / sum(shares[m] for m in open_layers) for k in open_layers}
    for k in open_layers:
        counts[k] = int(wanted[k])
    # What rounding down left over goes to the largest remainders, the earlier layer first at a tie.
    missing = total - sum(counts)
    by_remainder = sorted(open_layers, key=lambda k: counts[k] - wanted[k])
    for k in by_remainder[:missing]:
        counts[k] += 1
    return counts

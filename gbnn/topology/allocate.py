"""How many edges each layer gets: functions (shapes, total) -> edges per layer, exact to the edge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gbnn.edges import shape_of
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
    ArgumentError, KindError
        If `total` is negative or more than there are places, or a shape is none.

    Examples
    --------
    >>> from gbnn.topology import allocate
    >>> allocate.uniform([(10, 10), (10, 30)], 40)
    [10, 30]
    """
    sizes = [shape_of(shape) for shape in shapes]
    return _exact(sizes, total, [rows * columns for rows, columns in sizes])


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
    sizes = [shape_of(shape) for shape in shapes]
    return _exact(sizes, total, [rows + columns for rows, columns in sizes])


def _exact(sizes: Shapes, total: int, shares: Sequence[int]) -> list[int]:
    """Divide `total` in proportion to `shares`, no layer beyond its places, by largest remainders.

    In Python's integers: exact also beyond 2**53, where floating point loses edges.
    """
    places = [rows * columns for rows, columns in sizes]
    left = check_int("nnz", total, 0)
    if left > sum(places):
        raise ArgumentError("nnz", f"at most {sum(places)}, the places of all layers", total)
    counts = [0] * len(places)
    open_layers = list(range(len(places)))
    while True:
        whole = sum(shares[k] for k in open_layers)
        full = [k for k in open_layers if left * shares[k] >= places[k] * whole]
        if not full:
            break
        for k in full:
            counts[k] = places[k]
            left -= places[k]
        open_layers = [k for k in open_layers if k not in full]
    for k in open_layers:
        counts[k] = left * shares[k] // whole
    # What rounding down left over goes to the largest remainders, the earlier layer first at a tie.
    missing = left - sum(counts[k] for k in open_layers)
    for k in sorted(open_layers, key=lambda k: -(left * shares[k] % whole))[:missing]:
        counts[k] += 1
    return counts

"""`divide`: whole numbers in proportion to shares, with limits, exact to the last one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from gbnn.errors import ArgumentError, check_int

__all__ = ["divide"]


def divide(total: int, shares: Sequence[int | Fraction], places: Sequence[int]) -> list[int]:
    """Divide `total` in proportion to `shares`, nowhere more than `places`, by largest remainders.

    Exact, also beyond 2**53, where floating point loses edges.

    Parameters
    ----------
    total : int
    shares : sequence of int or Fraction
        Not negative. What those of 0 get, once the others are full, is in proportion to their places.
    places : sequence of int
        At most so many each.

    Returns
    -------
    list of int
        The earlier one gets more at a tie.

    Raises
    ------
    ArgumentError, KindError
        If `total` is no integer, negative, or more than there are places.

    Examples
    --------
    >>> from gbnn.topology.divide import divide
    >>> divide(10, [1, 1, 2], [1, 9, 9])
    [1, 3, 6]
    """
    left = check_int("nnz", total, 0)
    if left > sum(places):
        raise ArgumentError("nnz", f"at most {sum(places)}, the places of all layers", total)
    counts = [0] * len(places)
    served = [k for k, share in enumerate(shares) if share]
    left -= _fill(counts, left, served, shares, places)
    _fill(counts, left, [k for k, share in enumerate(shares) if not share], places, places)
    return counts


def _fill(
    counts: list[int], left: int, layers: list[int], shares: Sequence[int | Fraction], places: Sequence[int]
) -> int:
    """Give these layers up to `left` edges by positive shares, into `counts`; return how many they took."""
    before = left
    while True:
        whole = sum(shares[k] for k in layers)
        full = {k for k in layers if left * shares[k] >= places[k] * whole}
        if not full:
            break
        for k in full:
            counts[k] = places[k]
            left -= places[k]
        layers = [k for k in layers if k not in full]
    if not layers:
        return before - left
    for k in layers:
        counts[k] = int(left * shares[k] // whole)
    # What rounding down left over goes to the largest remainders, the earlier layer first at a tie.
    missing = left - sum(counts[k] for k in layers)
    for k in sorted(layers, key=lambda k: -(left * shares[k] % whole))[:missing]:
        counts[k] += 1
    return before

"""`TouchedGradient`: the gradient of a layer's edges where only some have any."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import ArgumentError

__all__ = ["TouchedGradient"]

Array = np.ndarray[Any, Any]


class TouchedGradient:
    """A gradient that is zero but at some edges: what a batch with sparse activations gives.

    An optimizer that is lazy reads `positions` and `values`; anything else asks for the array,
    `np.asarray(gradient)`, which takes O(nnz).

    Parameters
    ----------
    positions : ndarray of int64, shape (t,)
        The touched edges, ascending, in canonical order.
    values : ndarray, shape (t,)
        Their gradients.
    size : int
        Number of edges, nnz.
    settled : (int, int), optional
        `Weights.stamp` when the edges were brought up to date (`Weights.settle`), by a pullback that made the
        gradient and answers for the positions. As long as it is the stamp, they are still up to date, and an
        optimizer need not look.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.semirings import TouchedGradient
    >>> np.asarray(TouchedGradient(np.array([1, 3]), np.array([0.5, -1.0]), 5))
    array([ 0. ,  0.5,  0. , -1. ,  0. ])
    """

    def __init__(
        self, positions: Array, values: Array, size: int, *, settled: tuple[int, int] | None = None
    ) -> None:
        self._positions, self._values, self._size, self.settled = positions, values, size, settled

    @property
    def shape(self) -> tuple[int]:
        """(nnz,)."""
        return (self._size,)

    @property
    def positions(self) -> Array:
        """The touched edges, int64, shape (t,), ascending."""
        return self._positions

    @property
    def values(self) -> Array:
        """The gradients of the touched edges, shape (t,)."""
        return self._values

    def array(self) -> Array:
        """Return the gradient of all edges, shape (nnz,); a new array each time."""
        out = np.zeros(self._size, dtype=self.values.dtype)
        out[self.positions] = self.values
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ArgumentError("copy", "True or None: the array is made when asked for", copy)
        array = self.array()
        return array if dtype is None else array.astype(dtype, copy=False)

"""`Change`, what a rewiring did to the edges of a layer; all that is kept per edge follows by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError

__all__ = ["Change"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Change:
    """What a rewiring did to a layer: which old edges went where, and which edges are new.

    Parameters
    ----------
    origin : ndarray of int64, shape (new nnz,)
        The old position of each edge, in the new canonical order; -1 for an edge that is new.
    before : int
        Number of edges before.
    regrown : int
        How many edges were dropped and added in the same rewiring. Where they have an origin, they count
        neither as dropped nor as grown.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Change
    >>> change = Change(np.array([0, -1, 2]), before=3)
    >>> change.carry(np.array([10.0, 11.0, 12.0]))
    array([10.,  0., 12.])
    >>> change.dropped, change.grown
    (1, 1)
    """

    origin: Array
    before: int
    regrown: int = 0

    @property
    def grown(self) -> int:
        """Number of edges that are new."""
        return int(np.count_nonzero(self.origin < 0))

    @property
    def dropped(self) -> int:
        """Number of old edges that are gone."""
        return self.before - (self.origin.size - self.grown)

    @property
    def new(self) -> Array:
        """Positions of the new edges in the new order, int64."""
        return np.flatnonzero(self.origin < 0)

    def carry(self, array: Array, fill: Any = 0) -> Array:
        """Move a per-edge array to the new order.

        Parameters
        ----------
        array : ndarray, shape (old nnz, ...)
        fill : scalar, or array of shape (grown, ...)
            What new edges get, in the new order.

        Returns
        -------
        ndarray, shape (new nnz, ...)

        Raises
        ------
        ArgumentError
            If the array is not per edge, or `fill` not per new edge.
        """
        if array.ndim < 1 or array.shape[0] != self.before:
            raise ArgumentError("array", f"one entry for each of {self.before} edges", array.shape)
        # One more entry, which index -1 finds: what new edges get.
        longer = np.empty((self.before + 1, *array.shape[1:]), dtype=array.dtype)
        longer[:-1] = array
        longer[-1] = 0 if np.ndim(fill) else fill
        result: Array = longer[self.origin]
        if np.ndim(fill):
            try:
                result[self.new] = fill
            except ValueError:
                each = f"a scalar or one entry for each of {self.grown} new edges"
                raise ArgumentError("fill", each, f"shape {np.shape(fill)}") from None
        return result

"""`Threshold`: only entries above a number stay active."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import check_float
from gbnn.layers.layer import Array
from gbnn.layers.selection import Selection
from gbnn.rows import SparseRows

__all__ = ["Threshold"]


class Threshold(Selection):
    """``y = x`` where ``x > above``; every other entry becomes absent. The output is sparse.

    With `above` 0 it is the rectifier with sparse output. The gradient passes straight through where the
    entry did. NaN passes, so that it shows.

    Parameters
    ----------
    above : float
        At least 0: an absent entry, which is 0, stays absent.

    Raises
    ------
    ArgumentError, KindError
        If it is negative or no number.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> y, pullback = layers.Threshold(0.5).forward(np.array([[0.2, 3.0, -4.0, 0.6]]))
    >>> y
    SparseRows(1 x 4, nnz=2, float64)
    >>> y.columns, y.values
    (array([1, 3]), array([3. , 0.6]))
    >>> pullback(np.ones((1, 4)))[0].to_dense()
    array([[0., 1., 0., 1.]])
    """

    def __init__(self, above: float = 0.0) -> None:
        self.above = check_float("Threshold above", above, 0)

    def config(self) -> dict[str, Any]:
        """Return {"above": ...}."""
        return {"above": self.above}

    def places(self, x: Array, training: bool) -> tuple[Array, Array, Array]:
        """Return where entries are above; see `Selection.places`."""
        rows, columns = np.nonzero(~(x <= self.above))
        starts = np.searchsorted(rows, np.arange(x.shape[0] + 1)).astype(np.int64)
        return starts, rows, columns

    def chosen(self, x: SparseRows, training: bool) -> Array:
        """Return whether each active entry is above."""
        above: Array = ~(x.values <= self.above)
        return above

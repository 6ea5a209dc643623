"""What the pullback of a product with sparse rows returns for edges, and its probe of absent edges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gbnn.errors import ArgumentError
from gbnn.rows import SparseRows
from gbnn.semirings.gradients import Probe
from gbnn.semirings.touched import TouchedGradient

__all__ = ["ActiveGradient", "ActiveProbe", "Compact"]

Array = np.ndarray[Any, Any]


class Compact(NamedTuple):
    """A probe of the neurons that take part in a batch only, under other numbers.

    Attributes
    ----------
    probe : Probe
        Dense; its source i is neuron `sources[i]`, its target j neuron `targets[j]`.
    sources, targets : ndarray of int64
        Ascending.
    """

    probe: Probe
    sources: Array
    targets: Array


class ActiveProbe:
    """The derivative by any edge, present or absent, of a layer whose last input was sparse.

    Parameters
    ----------
    x : SparseRows, shape (batch, in)
    dy : ndarray or SparseRows, shape (batch, out)
        What is absent is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.rows import SparseRows
    >>> from gbnn.semirings import ActiveProbe
    >>> x, dy = SparseRows.from_dense([[0.0, 2.0, 0.0]]), np.array([[3.0, 5.0]])
    >>> compact = ActiveProbe(x, dy).compact()
    >>> compact.sources, compact.targets, compact.probe.block(0, 2)
    (array([1]), array([0, 1]), array([[ 6., 10.]]))
    """

    __slots__ = ("dy", "x")

    def __init__(self, x: SparseRows, dy: Array | SparseRows) -> None:
        self.x, self.dy = x, dy

    @property
    def shape(self) -> tuple[int, int]:
        """in_features, out_features."""
        return self.x.shape[1], self.dy.shape[1]

    def compact(self) -> Compact:
        """Return the probe of the active neurons alone: of size batch x (active sources + targets)."""
        sources, x = _used(self.x)
        if isinstance(self.dy, SparseRows):
            targets, dy = _used(self.dy)
        else:
            targets, dy = np.arange(self.dy.shape[1]), self.dy
        return Compact(Probe(x, dy), sources, targets)


class ActiveGradient(TouchedGradient):
    """The gradient of a layer's edges in a batch of sparse rows: zero but at edges of active sources.

    Parameters
    ----------
    positions, values, size, settled
        See `TouchedGradient`.
    x, dy : see `ActiveProbe`; None where an absent edge is not one of weight 0.
    """

    def __init__(
        self,
        positions: Array,
        values: Array,
        size: int,
        x: SparseRows | None = None,
        dy: Array | SparseRows | None = None,
        *,
        settled: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(positions, values, size, settled=settled)
        self._x, self._dy = x, dy

    @property
    def probe(self) -> ActiveProbe:
        """The derivatives of absent edges; ArgumentError where the semiring has none."""
        if self._x is None or self._dy is None:
            only = "a plus_times layer: only there is an absent edge one of weight 0"
            raise ArgumentError("probe", only, "another semiring")
        return ActiveProbe(self._x, self._dy)


def _used(rows: SparseRows) -> tuple[Array, Array]:
    """Return the columns that have entries, and the rows over these alone as a dense array."""
    columns, places = np.unique(rows.columns, return_inverse=True)
    if columns.size == 0:  # a probe has at least one neuron of each side
        columns = np.zeros(1, dtype=np.int64)
    small = SparseRows(rows.starts, places, rows.values, (rows.shape[0], columns.size))
    return columns, small.to_dense()

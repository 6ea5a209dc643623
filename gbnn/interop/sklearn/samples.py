"""Samples as the estimators hold them: rows that are sparse stay sparse; epochs of row numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.layers.layer import Activations
from gbnn.rows import SparseRows, is_sparse

__all__ = ["Epochs", "as_rows", "energy", "entries", "occurring", "readable", "take"]

Array = np.ndarray[Any, Any]


SMALL = 1e-130
"""Neither the square of this nor that of its reciprocal, summed, leaves float64."""
FEW = 0.1
"""Rows of an array of which a smaller share is not 0 are made sparse: it is the faster way."""


def readable(x: Any) -> Any:
    """Return samples in a form that scikit-learn knows: SciPy's instead of ours or GraphBLAS's."""
    if is_sparse(x) and not sp.issparse(x):
        return SparseRows.of(x, where="X").to_scipy()
    return x


def as_rows(x: Any, dtype: Any) -> Activations:
    """Return what scikit-learn has validated as `SparseRows` or an array, in this dtype."""
    if sp.issparse(x):
        return SparseRows.of(x, dtype=dtype, where="X")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and training says so
        rows = np.asarray(x, dtype=dtype)
    return SparseRows.from_dense(rows) if np.count_nonzero(rows) < FEW * rows.size else rows


def take(x: Activations, rows: Any) -> Activations:
    """Return some rows, a slice or an array of row numbers."""
    return x.take(rows) if isinstance(x, SparseRows) else x[rows]


def occurring(x: Activations) -> tuple[Array, Array]:
    """Return the features that are not 0 in every row, ascending, and in how many rows: int64."""
    if isinstance(x, SparseRows):
        columns = np.sort(x.columns[x.values != 0])  # np.unique hashes, which takes ten times as long
        first = np.flatnonzero(np.diff(columns, prepend=-1))
        return columns[first], np.diff(first, append=columns.size)
    counts = np.count_nonzero(x, axis=0)
    columns = np.flatnonzero(counts)
    return columns, counts[columns]


def entries(x: Activations) -> float:
    """Return how many features of a row are not 0, on average."""
    return int(np.count_nonzero(x.values if isinstance(x, SparseRows) else x)) / len(x)


def energy(x: Activations, weights: Array | None) -> float:
    """Return the root of the mean squared length of a row; 1 where all are 0, infinity beyond float64."""
    values = x.values if isinstance(x, SparseRows) else x
    largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    if largest == 0:
        return 1.0
    unit = 1.0
    if not SMALL < largest < 1 / SMALL:  # squares would be 0 or infinite; else no copy is made
        unit = 2.0 ** math.frexp(largest)[1] if largest < 1 else 2.0 ** (math.frexp(largest)[1] - 1)
        values = values / unit
    if isinstance(x, SparseRows):
        squares = np.bincount(x.rows, np.square(values, dtype=np.float64), len(x))
    else:
        squares = np.einsum("ij,ij->i", values, values, dtype=np.float64)
    if weights is not None:
        weights = weights / weights.max()  # so that no product overflows
    return float(np.sqrt(np.average(squares, weights=weights))) * unit


class Epochs:
    """Batches of rows with their row numbers as targets: a `RowLoss` looks up what belongs to them."""

    def __init__(self, x: Activations, batch_size: int, rng: np.random.Generator, shuffle: bool) -> None:
        self.x, self.batch_size, self.rng, self.shuffle = x, batch_size, rng, shuffle

    def __len__(self) -> int:
        return -(-len(self.x) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Activations, Array]]:
        size = len(self.x)
        order = self.rng.permutation(size) if self.shuffle else np.arange(size)
        for start in range(0, size, self.batch_size):
            rows = order[start : start + self.batch_size]
            yield take(self.x, rows), rows

"""Weights in other forms: the dtypes they may have; edges from and to SciPy, arrays and GraphBLAS."""

from __future__ import annotations

from typing import Any, NamedTuple

import graphblas as gb
import numpy as np
import scipy.sparse as sp
from graphblas.core.matrix import TransposedMatrix

from gbnn.edges import Edges, shape_of
from gbnn.errors import ArgumentError, KindError, check_finite, check_float, check_real

__all__ = [
    "Coordinates",
    "cast",
    "of_dense",
    "of_graphblas",
    "of_scipy",
    "real_dtype",
    "to_dense",
    "to_graphblas",
    "to_scipy",
]

Array = np.ndarray[Any, Any]

DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class Coordinates(NamedTuple):
    """Edges in any order with their values, not checked yet, and the shape (in, out)."""

    sources: Array
    targets: Array
    values: Array
    shape: Any

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """What the values become if nobody asks for a dtype: float64 stays, anything else is float32."""
        return _usual(self.values.dtype)


def real_dtype(where: str, dtype: Any) -> np.dtype[Any]:
    """Return float32 or float64, or raise KindError."""
    try:
        kind: np.dtype[Any] = np.dtype(object if dtype is None else dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in DTYPES:
        raise KindError(where, "float32 or float64", dtype)
    return kind


def cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return a copy in this dtype; what overflows becomes infinite, and is to be reported as such."""
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def of_scipy(matrix: Any) -> Coordinates:
    """Return the stored entries of a 2-D SciPy matrix or array of any format."""
    if not sp.issparse(matrix) or matrix.ndim != 2:
        raise KindError("matrix", "a 2-D SciPy sparse matrix or array", type(matrix).__name__)
    try:
        if hasattr(matrix, "check_format"):  # compressed formats: SciPy's own code trusts the pointers
            matrix.check_format(full_check=True)
        coo = matrix.tocoo()
    except (ValueError, IndexError, TypeError) as error:
        raise ArgumentError("matrix", "a SciPy matrix whose arrays fit together", str(error)) from None
    return Coordinates(coo.row, coo.col, coo.data, coo.shape)


def of_dense(array: Any, threshold: float, dtype: Any) -> Coordinates:
    """Return the entries of a 2-D array that are larger than `threshold`, in this dtype (None: the usual)."""
    dense = check_real("array", array)
    threshold = check_float("threshold", threshold)
    if dense.ndim != 2:
        raise ArgumentError("array", "2 dimensions (in, out)", f"shape {dense.shape}")
    dense = cast(dense, real_dtype("dtype", _usual(dense.dtype) if dtype is None else dtype))
    shape_of(dense.shape)
    check_finite("array", dense)
    rows, columns = np.nonzero(np.abs(dense) > threshold)
    return Coordinates(rows, columns, dense[rows, columns], dense.shape)


def of_graphblas(matrix: Any) -> Coordinates:
    """Return the stored entries of a `graphblas.Matrix`, or of its `.T`."""
    if not isinstance(matrix, (gb.Matrix, TransposedMatrix)):
        raise KindError("matrix", "a graphblas.Matrix", type(matrix).__name__)
    rows, columns, values = matrix.to_coo()
    return Coordinates(rows, columns, values, matrix.shape)


def to_scipy(edges: Edges, values: Array) -> Any:
    """Return a `scipy.sparse.csr_array` with memory of its own."""
    rows = edges.shape[0]
    if rows > 2**31:
        limit = "at most 2**31 inputs, for a row pointer each (to_coo has no such limit)"
        raise ArgumentError("to_scipy", limit, rows)
    ids, starts, _ = edges.by_source
    counts = np.zeros(rows + 1, dtype=np.int64)
    counts[ids + 1] = np.diff(starts)
    parts = (values.copy(), edges.targets.copy(), np.cumsum(counts, out=counts))
    return sp.csr_array(parts, shape=edges.shape)


def to_dense(edges: Edges, values: Array) -> Array:
    """Return a 2-D array, zero where there is no edge."""
    rows, columns = edges.shape
    if rows * columns > 2**31:
        raise ArgumentError("to_dense", "at most 2**31 entries", f"{rows} x {columns}")
    dense = np.zeros(edges.shape, dtype=values.dtype)
    dense[edges.sources, edges.targets] = values
    return dense


def to_graphblas(edges: Edges, values: Array) -> gb.Matrix:
    """Return a `graphblas.Matrix` with memory of its own."""
    rows, columns = edges.shape
    return gb.Matrix.from_coo(edges.sources, edges.targets.copy(), values.copy(), nrows=rows, ncols=columns)


def _usual(dtype: Any) -> type[np.floating[Any]]:
    return np.float64 if dtype == np.float64 else np.float32

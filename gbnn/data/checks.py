"""What batches and files both check of arrays and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.errors import ArgumentError, KindError, NonFiniteError, check_finite, check_real

__all__ = ["canonical_csr", "check_csr", "check_values", "is_sparse", "real_array", "real_csr"]

Array = np.ndarray[Any, Any]


def real_array(where: str, values: Any) -> Array:
    """Return `values` as an array of real numbers in this machine's byte order, without a copy if possible.

    Raises
    ------
    KindError
        If it is not rectangular, or holds anything but booleans, integers and floats.
    """
    array: Array = check_real(where, values, "a rectangular array of real numbers")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def check_values(where: str, array: Array, dtype: np.dtype[Any]) -> None:
    """Raise unless every number of a real `array` is finite, also as `dtype` (float32 or float64).

    Raises
    ------
    NonFiniteError
        Naming the first NaN or infinite entry.
    ArgumentError
        If a finite number is too large for `dtype`.
    """
    if array.dtype.kind != "f" or array.size == 0:
        return
    check_finite(where, array)
    limit = np.finfo(dtype).max
    if np.finfo(array.dtype).max > limit:
        # Two passes without a temporary, where np.abs would copy the whole array.
        largest = max(-array.min(), array.max())
        if largest > limit:
            raise ArgumentError(where, f"numbers that fit in {dtype}", f"one of size {largest}")


def check_csr(where: str, matrix: Any, dtype: np.dtype[Any]) -> None:
    """Raise as `check_values` does over the stored entries of a CSR matrix, naming row and column."""
    try:
        check_values(where, matrix.data, dtype)
    except NonFiniteError:
        at = int(np.argmin(np.isfinite(matrix.data)))
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        place = f"{matrix.data[at]} at [{row}, {matrix.indices[at]}]"
        raise NonFiniteError(where, "finite numbers", place) from None


def real_csr(where: str, matrix: Any) -> Any:
    """Return a SciPy sparse matrix or array as CSR of real numbers whose indices are safe to follow.

    Raises
    ------
    ArgumentError
        If it is not 2-D, or its indices point outside its shape.
    KindError
        If it holds anything but booleans, integers and floats.
    """
    if matrix.ndim != 2:
        raise ArgumentError(where, "2 dimensions", f"shape {matrix.shape}")
    if matrix.dtype.kind not in "fiub":
        raise KindError(where, "real numbers", f"dtype {matrix.dtype}")
    rows = matrix.tocsr()
    try:
        # SciPy's compiled loops trust the indices: what points outside would write outside.
        rows.check_format(full_check=True)
    except ValueError as error:
        raise ArgumentError(where, "indices within the shape, rows in order", error) from None
    # SciPy has no loops for half floats and foreign byte orders.
    if rows.dtype == np.float16:
        return rows.astype(np.float32)
    return rows if rows.dtype.isnative else rows.astype(rows.dtype.newbyteorder("="))


def canonical_csr(where: str, matrix: Any, dtype: np.dtype[Any]) -> Any:
    """Return what `real_csr` does with the columns of each row ascending and no column twice.

    `matrix` stays as it is: where it is not in that order it is copied once, as `dtype`, and duplicates are
    added up. Its numbers are checked as by `check_csr`.
    """
    rows = real_csr(where, matrix)
    # A new matrix around the same arrays: the other may remember an order it had before it was changed.
    rows = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    if not rows.has_canonical_format:
        check_csr(where, rows, dtype)
        # Added up as numbers: bool and int8 would not hold the sum.
        with np.errstate(over="ignore"):
            rows = rows.astype(dtype, copy=True)
            rows.sum_duplicates()
    check_csr(where, rows, dtype)
    return rows


def is_sparse(values: Any) -> bool:
    """Whether `values` is a SciPy sparse matrix or array of any format."""
    return bool(sp.issparse(values))

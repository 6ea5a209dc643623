"""Lending: `lend_full`, `lend_columns`, and `swap_values` for a matrix that is lent already."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_int
from gbnn.storage.loan import ColumnsLoan, FullLoan, lent

__all__ = ["lend_columns", "lend_full", "swap_values"]

Array = np.ndarray[Any, Any]


def lend_full(array: Array) -> Any:
    """Lend a 2-D array in Fortran order to GraphBLAS as a full matrix, without a copy.

    Parameters
    ----------
    array : ndarray, shape (rows, columns), float32, float64 or bool, Fortran-contiguous
        It must not be resized while the matrix lives; new values written into it are seen.

    Returns
    -------
    graphblas.core.matrix.TransposedMatrix
        Shape (rows, columns); it can be read as any matrix, and not be written to.

    Raises
    ------
    ArgumentError, KindError
        If the array is not 2-D, not in Fortran order, empty, not aligned, or of another dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import storage
    >>> x = np.asfortranarray(np.ones((2, 3), dtype=np.float32))
    >>> matrix = storage.lend_full(x)
    >>> x[0, 0] = 5.0
    >>> float(matrix[0, 0].value), float(matrix.reduce_scalar().value)
    (5.0, 10.0)
    """
    _check_array("array", array)
    if array.ndim != 2 or not array.flags.f_contiguous or array.size == 0:
        raise ArgumentError("array", "a non-empty 2-D array in Fortran order", f"shape {array.shape}")
    return lent(FullLoan, (array,), array.shape)


def lend_columns(columns: Array, starts: Array, rows: Array, values: Array, shape: tuple[int, int]) -> Any:
    """Lend a sparse matrix in compressed columns (hypersparse) to GraphBLAS, without a copy.

    GraphBLAS trusts the order and the range of the indices, so they come from an `Edges`, which has checked
    them; here only sizes and ends are.

    Parameters
    ----------
    columns : ndarray of int64, shape (c,)
        The columns that have entries, ascending.
    starts : ndarray of int64, shape (c + 1,)
        Column `columns[k]` has entries `starts[k]` up to `starts[k + 1]`.
    rows : ndarray of int64, shape (nnz,)
        Ascending within each column.
    values : ndarray, shape (nnz,), float32, float64 or bool
    shape : (int, int)
        Rows and columns of the matrix, each up to 2**60.

    Returns
    -------
    graphblas.core.matrix.TransposedMatrix
        It can be read as any matrix, and not be written to. New values written into `values` are seen by it;
        `swap_values` exchanges the array.

    Raises
    ------
    ArgumentError, KindError
        If the arrays do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import storage
    >>> c, s, r = (np.array(a, dtype=np.int64) for a in ([4], [0, 2], [0, 2]))
    >>> storage.lend_columns(c, s, r, np.array([1.0, 2.0]), (3, 2**60)).reduce_scalar().value
    3.0
    """
    for name, array in (("columns", columns), ("starts", starts), ("rows", rows), ("values", values)):
        _check_array(name, array)
        if array.ndim != 1 or not array.flags.c_contiguous:
            raise ArgumentError(name, "a contiguous 1-D array", f"shape {array.shape}")
        if array.dtype != np.int64 and name != "values":
            raise ArgumentError(name, "int64", array.dtype)
    size = (check_int("rows of the shape", shape[0], 1, 2**60), check_int("columns", shape[1], 1, 2**60))
    if (
        starts.size != columns.size + 1
        or values.size != rows.size
        or (starts[0], starts[-1]) != (0, rows.size)
        or (columns.size > 0) != (rows.size > 0)
    ):
        sizes = f"{columns.size} columns, {starts.size} starts, {rows.size} rows, {values.size} values"
        raise ArgumentError("lend_columns", "arrays that fit together", sizes)
    if columns.size and (columns[0] < 0 or columns[-1] >= size[1]):
        raise ArgumentError("columns", f"indices from 0 to {size[1] - 1}", f"{columns[0]} to {columns[-1]}")
    return lent(ColumnsLoan, (columns, starts, rows, values), size)


def swap_values(matrix: Any, values: Array) -> None:
    """Give a lent sparse matrix another array of values; its indices stay where they are.

    Nobody else may be reading the matrix meanwhile.

    Parameters
    ----------
    matrix : graphblas.core.matrix.TransposedMatrix
        From `lend_columns`.
    values : ndarray, shape (nnz,)
        Of the same dtype, contiguous.

    Raises
    ------
    ArgumentError, KindError
        If `matrix` is not such a loan or the values do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import storage
    >>> i = np.array([0, 1], dtype=np.int64)
    >>> m = storage.lend_columns(i[:1], i, i[:1], np.array([1.0]), (1, 1))
    >>> storage.swap_values(m, np.array([7.0]))
    >>> m[0, 0].value
    7.0
    """
    loan = getattr(getattr(matrix, "_matrix", None), "_parent", None)
    if not isinstance(loan, ColumnsLoan):
        raise ArgumentError("matrix", "a matrix from lend_columns", type(matrix).__name__)
    _check_array("values", values)
    old = loan.arrays[-1]
    if values.shape != old.shape or values.dtype != old.dtype or not values.flags.c_contiguous:
        raise ArgumentError(
            "values", f"a contiguous {old.dtype} array of shape {old.shape}", f"{values.dtype} {values.shape}"
        )
    loan.take_back()
    loan.arrays = (*loan.arrays[:-1], values)
    loan.pack()


def _check_array(where: str, array: Any) -> None:
    if not isinstance(array, np.ndarray):
        raise KindError(where, "a NumPy array", type(array).__name__)
    if not array.flags.aligned:
        raise ArgumentError(where, "an aligned array", "one at an odd address")

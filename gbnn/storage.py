"""Memory between NumPy and GraphBLAS: loans without copies, thread counts, the kernel report.

This is the only module that hands a pointer from one to the other. Two kinds of hand-over exist.

* **Lent** (inputs). NumPy keeps the memory and GraphBLAS reads it: `lend_full`, `lend_columns`. The matrix
  that comes back holds its loan, and the loan holds the arrays, so the memory lives as long as anyone can
  reach the matrix, whatever exception passes by. When the last reference goes, GraphBLAS gives the pointers
  back before it frees its own header. Several threads may read one lent matrix at once.
* **Given** (outputs). GraphBLAS owns the memory and may replace it: `Output`. NumPy gets it, as an array of
  its own, from `Output.take`. No array of it exists before.

A lent matrix is read-only by contract: writing into it would have GraphBLAS free memory of NumPy's.
"""

from __future__ import annotations

import sys
from typing import Any

import graphblas as gb
import numpy as np
from graphblas.core import ffi, lib
from graphblas.exceptions import check_status_carg
from suitesparse_graphblas.utils import unclaim_buffer

from gbnn.engine import KernelReport, kernel_report, set_threads, threads
from gbnn.errors import ArgumentError, GbnnError

__all__ = [
    "KernelReport",
    "Output",
    "kernel_report",
    "lend_columns",
    "lend_full",
    "set_threads",
    "swap_values",
    "threads",
]

Array = np.ndarray[Any, Any]

# python-graphblas starts the library when the first object is made; dtypes touched here do it.
_GRB_TYPES = {
    np.dtype(np.float32): gb.dtypes.FP32,
    np.dtype(np.float64): gb.dtypes.FP64,
    np.dtype(np.bool_): gb.dtypes.BOOL,
}


def _grb_type(dtype: np.dtype[Any], where: str) -> Any:
    try:
        return _GRB_TYPES[dtype]
    except KeyError:
        raise ArgumentError(where, "float32, float64 or bool", dtype) from None


def _pointer(array: Array) -> Any:
    return ffi.new("void**", ffi.cast("void*", array.ctypes.data))


def _indices(array: Array) -> Any:
    return ffi.new("GrB_Index**", ffi.cast("GrB_Index*", array.ctypes.data))


class _Loan:
    """The arrays a lent matrix reads; a matrix's parent, so that it lives as long as the matrix does.

    python-graphblas leaves the freeing of a matrix that has a parent to the parent. That is what makes the
    order safe: pointers are taken back first, the header is freed second, the arrays go last.
    """

    __slots__ = ("arrays", "handle", "shape")

    def __init__(self, handle: Any, arrays: tuple[Array, ...], shape: tuple[int, int]) -> None:
        self.handle = handle
        self.arrays = arrays
        self.shape = shape

    def pack(self) -> None:
        raise NotImplementedError

    def unpack(self) -> list[int]:
        """Take the pointers back from GraphBLAS and return them as addresses."""
        raise NotImplementedError

    def take_back(self) -> None:
        came = self.unpack()
        for array, address in zip(self.arrays, came, strict=True):
            if array.size and array.ctypes.data != address:
                # Somebody wrote into a lent matrix: GraphBLAS has freed the array's memory already.
                unclaim_buffer(array)
                raise GbnnError(
                    "storage", "a lent matrix to be left as it was", "one written to by GraphBLAS"
                )

    def __del__(self) -> None:
        if lib is None or sys.is_finalizing():  # the process ends: its memory goes with it
            return
        try:
            self.take_back()
        finally:
            lib.GrB_Matrix_free(self.handle)

    def _repr_html_(self, **_: Any) -> str:
        return f"<p>gbnn loan, {self.shape[0]} x {self.shape[1]}</p>"

    @property
    def _name_html(self) -> str:
        return "gbnn loan"


class _FullLoan(_Loan):
    __slots__ = ()

    def pack(self) -> None:
        (values,) = self.arrays
        check_status_carg(
            lib.GxB_Matrix_pack_FullC(self.handle[0], _pointer(values), values.nbytes, False, ffi.NULL),
            "Matrix",
            self.handle[0],
        )

    def unpack(self) -> list[int]:
        pointer, size, iso = ffi.new("void**"), ffi.new("GrB_Index*"), ffi.new("bool*")
        check_status_carg(
            lib.GxB_Matrix_unpack_FullC(self.handle[0], pointer, size, iso, ffi.NULL),
            "Matrix",
            self.handle[0],
        )
        return [int(ffi.cast("uintptr_t", pointer[0]))]


class _ColumnsLoan(_Loan):
    __slots__ = ()

    def pack(self) -> None:
        columns, starts, rows, values = self.arrays
        check_status_carg(
            lib.GxB_Matrix_pack_HyperCSC(
                self.handle[0],
                _indices(starts),
                _indices(columns),
                _indices(rows),
                _pointer(values),
                starts.nbytes,
                columns.nbytes,
                rows.nbytes,
                values.nbytes,
                False,
                columns.size,
                False,
                ffi.NULL,
            ),
            "Matrix",
            self.handle[0],
        )

    def unpack(self) -> list[int]:
        starts, columns, rows = (ffi.new("GrB_Index**") for _ in range(3))
        values = ffi.new("void**")
        sizes = [ffi.new("GrB_Index*") for _ in range(5)]
        iso, jumbled = ffi.new("bool*"), ffi.new("bool*")
        check_status_carg(
            lib.GxB_Matrix_unpack_HyperCSC(
                self.handle[0],
                starts,
                columns,
                rows,
                values,
                *sizes[:4],
                iso,
                sizes[4],
                jumbled,
                ffi.NULL,
            ),
            "Matrix",
            self.handle[0],
        )
        return [int(ffi.cast("uintptr_t", p[0])) for p in (columns, starts, rows, values)]


def _lent(kind: type[_Loan], arrays: tuple[Array, ...], shape: tuple[int, int], sparsity: str) -> gb.Matrix:
    dtype = _grb_type(arrays[-1].dtype, "values")
    handle = ffi.new("GrB_Matrix*")
    check_status_carg(lib.GrB_Matrix_new(handle, dtype._carg, *shape), "Matrix", handle[0])
    loan = kind(handle, arrays, shape)
    matrix = gb.Matrix._from_obj(handle, dtype, *shape, parent=loan)
    # Pinned, so that no operation ever finds a reason to convert (and so to free) what it only reads.
    matrix.ss.config["sparsity_control"] = sparsity
    matrix.ss.config["format"] = "by_col"
    loan.pack()
    return matrix


def lend_full(array: Array) -> gb.Matrix:
    """Lend a 2-D array in Fortran order to GraphBLAS as a full matrix by column, without a copy.

    Parameters
    ----------
    array : ndarray, shape (rows, columns), float32, float64 or bool, Fortran-contiguous
        It must not be resized while the matrix lives; new values written into it are seen.

    Returns
    -------
    graphblas.Matrix
        Read-only, shape (rows, columns).

    Raises
    ------
    ArgumentError
        If the array is not 2-D, not in Fortran order, empty, or of another dtype.

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
    if array.ndim != 2 or not array.flags.f_contiguous or array.size == 0:
        raise ArgumentError("array", "a non-empty 2-D array in Fortran order", f"shape {array.shape}")
    return _lent(_FullLoan, (array,), array.shape, "full")


def lend_columns(
    columns: Array, starts: Array, rows: Array, values: Array, shape: tuple[int, int]
) -> gb.Matrix:
    """Lend a sparse matrix in compressed columns (hypersparse) to GraphBLAS, without a copy.

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
    graphblas.Matrix
        Read-only. New values written into `values` are seen by it; `swap_values` exchanges the array.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import storage
    >>> c, s, r = (np.array(a, dtype=np.int64) for a in ([4], [0, 2], [0, 2]))
    >>> storage.lend_columns(c, s, r, np.array([1.0, 2.0]), (3, 2**60)).reduce_scalar().value
    3.0
    """
    if values.size == 0:  # nothing to lend, and GraphBLAS takes no null pointers
        return gb.Matrix(_grb_type(values.dtype, "values"), *shape)
    for name, array in (("columns", columns), ("starts", starts), ("rows", rows)):
        if array.dtype != np.int64 or array.ndim != 1 or not array.flags.c_contiguous:
            raise ArgumentError(name, "a contiguous 1-D int64 array", f"{array.dtype} {array.shape}")
    if (
        starts.size != columns.size + 1
        or values.shape != rows.shape
        or starts[-1] != rows.size
        or not values.flags.c_contiguous
    ):
        sizes = f"{columns.size} columns, {starts.size} starts, {rows.size} rows, {values.shape} values"
        raise ArgumentError("lend_columns", "arrays that fit together", sizes)
    return _lent(_ColumnsLoan, (columns, starts, rows, values), shape, "hypersparse")


def swap_values(matrix: gb.Matrix, values: Array) -> None:
    """Give a lent sparse matrix another array of values; its indices stay where they are.

    Parameters
    ----------
    matrix : graphblas.Matrix
        From `lend_columns`.
    values : ndarray, shape (nnz,)
        Of the same dtype, contiguous.

    Raises
    ------
    ArgumentError
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
    loan = matrix._parent
    if not isinstance(loan, _ColumnsLoan):
        raise ArgumentError("matrix", "a matrix from lend_columns", matrix.name)
    old = loan.arrays[-1]
    if values.shape != old.shape or values.dtype != old.dtype or not values.flags.c_contiguous:
        raise ArgumentError(
            "values", f"a contiguous {old.dtype} array of shape {old.shape}", f"{values.dtype} {values.shape}"
        )
    loan.take_back()
    loan.arrays = (*loan.arrays[:-1], values)
    loan.pack()


class Output:
    """A full matrix by column that a GraphBLAS operation fills, and the array it becomes.

    Parameters
    ----------
    rows, columns : int
        Shape.
    dtype : dtype
        float32, float64 or bool.
    fill : scalar or ndarray of shape (columns,)
        The values to begin with, column by column: a bias costs nothing this way.

    Examples
    --------
    >>> import numpy as np
    >>> from graphblas import monoid
    >>> from gbnn import storage
    >>> out = storage.Output(2, 3, np.float32, np.array([1, 2, 3]))
    >>> out.matrix(monoid.plus) << out.matrix.apply("+", 10)
    >>> out.take()
    array([[12., 14., 16.],
           [12., 14., 16.]], dtype=float32)
    """

    __slots__ = ("matrix",)

    def __init__(self, rows: int, columns: int, dtype: Any, fill: Any = 0) -> None:
        kind = np.dtype(dtype)
        _grb_type(kind, "dtype")
        array = np.empty((rows, columns), dtype=kind, order="F")
        array[...] = fill
        # The array's memory is GraphBLAS's from here on; this name is the only one and ends with this call.
        self.matrix = gb.Matrix.ss.import_fullc(values=array, nrows=rows, ncols=columns, take_ownership=True)
        self.matrix.ss.config["sparsity_control"] = "full"

    def take(self) -> Array:
        """Return the values as an array in Fortran order that owns its memory; the matrix is empty after."""
        parts = self.matrix.ss.unpack("fullc")
        values: Array = parts["values"]
        if parts.get("is_iso"):
            values = np.full(self.matrix.shape, values.reshape(-1)[0], order="F")
        return values

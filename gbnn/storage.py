"""Memory between NumPy and GraphBLAS: loans without copies, thread counts, the kernel report.

This is the only module that hands a pointer from one to the other. Two kinds of hand-over exist.

* **Lent** (inputs). NumPy keeps the memory and GraphBLAS reads it: `lend_full`, `lend_columns`. The matrix
  that comes back holds its loan, and the loan holds the arrays, so the memory lives as long as anyone can
  reach the matrix, whatever exception passes by. When the last reference goes, GraphBLAS gives the pointers
  back before it frees its own header.
* **Given** (outputs). GraphBLAS owns the memory and may replace it: `Output`. NumPy gets it, as an array of
  its own, from `Output.take`. Nobody can reach an array of it before.

A lent matrix is read-only: writing into it would have GraphBLAS free NumPy's memory. So it comes as a
`graphblas` TransposedMatrix, which has nothing that writes, of a matrix by row, which is the same memory and
refuses. What remains is to go round that on purpose (`lent.T.ss`, `gb_obj`): the loan finds out when it ends
(GbnnError, no double free), but until then the arrays dangle.

Several threads may read one lent matrix at once, but for products of a *sparse* operand with a matrix from
`lend_columns` call its `wait()` once before. There GraphBLAS makes an index of the columns; without, the
first such product does, and two threads that do it at once crash. (Products with a full operand need no
index, and it takes time and memory: so it is not made always.)
"""

from __future__ import annotations

import sys
from typing import Any

import graphblas as gb
import numpy as np
from graphblas.core import ffi, lib
from graphblas.exceptions import GraphblasException, check_status_carg
from suitesparse_graphblas.utils import unclaim_buffer

from gbnn.engine import KernelReport, kernel_report, set_threads, threads
from gbnn.errors import ArgumentError, GbnnError, KindError, check_int, check_real

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


def _grb_type(dtype: Any, where: str) -> Any:
    try:
        return _GRB_TYPES[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise ArgumentError(where, "float32, float64 or bool", dtype) from None


def _check_array(where: str, array: Any) -> None:
    if not isinstance(array, np.ndarray):
        raise KindError(where, "a NumPy array", type(array).__name__)
    if not array.flags.aligned:
        raise ArgumentError(where, "an aligned array", "one at an odd address")


def _pointer(array: Array) -> Any:
    return ffi.new("void**", ffi.cast("void*", array.ctypes.data))


def _indices(array: Array) -> Any:
    return ffi.new("GrB_Index**", ffi.cast("GrB_Index*", array.ctypes.data))


def _disown(array: Array) -> None:
    """Have NumPy no longer free memory that GraphBLAS has freed."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    if array.flags.owndata:
        unclaim_buffer(array)


class _Bare(gb.Matrix):  # type: ignore[misc]
    """The matrix by row under a lent one: an operand of nothing, and its methods that write refuse."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise KindError("lent matrix", "only reading", "an attempt to write to it")

    __call__ = __delitem__ = __lshift__ = __setitem__ = _refuse
    _update = build = clear = resize = setdiag = update = _refuse

    # Made when asked for. Kept, as in any other matrix, it would be a circle of references: the loan, and the
    # arrays with it, would live on until Python looks for circles, many training steps later.
    @property
    def ss(self) -> Any:
        return gb.core.ss.matrix.ss(self)

    @ss.setter
    def ss(self, value: Any) -> None:
        pass

    # These two need an operand.
    def diag(self, *args: Any, **kwargs: Any) -> gb.Vector:
        return self.T.new().T.new().diag(*args, **kwargs)

    def to_dense(self, *args: Any, **kwargs: Any) -> Array:
        dense: Array = self.T.new().to_dense(*args, **kwargs)
        return dense.T

    def __repr__(self, *_: Any, **__: Any) -> str:
        return f"{self.name}, a lent matrix by row: {self.T!r}"


class _Loan:
    """The arrays a lent matrix reads; a matrix's parent, so that it lives as long as the matrix does.

    python-graphblas leaves the freeing of a matrix that has a parent to the parent. That is what makes the
    order safe: pointers are taken back first, the header is freed second, the arrays go last.
    """

    __slots__ = ("arrays", "handle", "packed")

    def __init__(self, handle: Any, arrays: tuple[Array, ...]) -> None:
        self.handle = handle
        self.arrays = arrays
        self.packed = False

    def pack(self) -> None:
        """Give GraphBLAS the pointers; none where there are no entries, for it takes no null pointers."""
        if self.arrays[-1].size:
            check_status_carg(self._pack(), "Matrix", self.handle[0])
            self.packed = True

    def take_back(self) -> None:
        """Take the pointers back from GraphBLAS; GbnnError if it has written to the matrix."""
        if not self.packed:
            return
        self.packed = False
        try:
            came = self._unpack()
        except GraphblasException:  # no longer of its format
            came = [0] * len(self.arrays)
        lost = [a for a, address in zip(self.arrays, came, strict=True) if a.ctypes.data != address]
        for array in lost:
            _disown(array)
        if lost:
            raise GbnnError("storage", "a lent matrix to be left as it was", "one written to by GraphBLAS")

    def __del__(self) -> None:
        if lib is None or sys.is_finalizing():  # the process ends: its memory goes with it
            return
        try:
            self.take_back()
        finally:
            lib.GrB_Matrix_free(self.handle)

    def _pack(self) -> Any:
        raise NotImplementedError

    def _unpack(self) -> list[int]:
        """Take the pointers back and return them as addresses, in the order of `arrays`."""
        raise NotImplementedError

    # python-graphblas asks a matrix's parent for these, to show it in a notebook.
    _name_html = "gbnn loan"

    def _repr_html_(self, **_: Any) -> str:
        return "<p>gbnn loan</p>"


class _FullLoan(_Loan):
    __slots__ = ()

    def _pack(self) -> Any:
        (values,) = self.arrays
        return lib.GxB_Matrix_pack_FullR(self.handle[0], _pointer(values), values.nbytes, False, ffi.NULL)

    def _unpack(self) -> list[int]:
        pointer, size, iso = ffi.new("void**"), ffi.new("GrB_Index*"), ffi.new("bool*")
        status = lib.GxB_Matrix_unpack_FullR(self.handle[0], pointer, size, iso, ffi.NULL)
        check_status_carg(status, "Matrix", self.handle[0])
        return [int(ffi.cast("uintptr_t", pointer[0]))]


class _ColumnsLoan(_Loan):
    __slots__ = ()

    def _pack(self) -> Any:
        columns, starts, rows, values = self.arrays
        parts = (_indices(starts), _indices(columns), _indices(rows), _pointer(values))
        sizes = (starts.nbytes, columns.nbytes, rows.nbytes, values.nbytes)
        more = (False, columns.size, False, ffi.NULL)  # not iso, not jumbled
        return lib.GxB_Matrix_pack_HyperCSR(self.handle[0], *parts, *sizes, *more)

    def _unpack(self) -> list[int]:
        starts, columns, rows = (ffi.new("GrB_Index**") for _ in range(3))
        values, iso, jumbled = ffi.new("void**"), ffi.new("bool*"), ffi.new("bool*")
        *sizes, count = (ffi.new("GrB_Index*") for _ in range(5))
        parts, more = (starts, columns, rows, values), (iso, count, jumbled, ffi.NULL)
        status = lib.GxB_Matrix_unpack_HyperCSR(self.handle[0], *parts, *sizes, *more)
        check_status_carg(status, "Matrix", self.handle[0])
        return [int(ffi.cast("uintptr_t", p[0])) for p in (columns, starts, rows, values)]


def _lent(kind: type[_Loan], arrays: tuple[Array, ...], shape: tuple[int, int]) -> Any:
    dtype = _grb_type(arrays[-1].dtype, "values")
    rows, columns = shape
    handle = ffi.new("GrB_Matrix*")
    check_status_carg(lib.GrB_Matrix_new(handle, dtype._carg, columns, rows), "Matrix", handle[0])
    loan = kind(handle, arrays)
    bare = _Bare._from_obj(handle, dtype, columns, rows, parent=loan)
    # No options are set. GraphBLAS converts what it writes, never what it reads; but setting an option may
    # convert (and so free) at once: a hypersparse matrix of one column to a sparse one.
    loan.pack()
    return bare.T


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
    return _lent(_FullLoan, (array,), array.shape)


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
    return _lent(_ColumnsLoan, (columns, starts, rows, values), size)


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
    if not isinstance(loan, _ColumnsLoan):
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

    __slots__ = ("_array", "matrix")

    def __init__(self, rows: int, columns: int, dtype: Any, fill: Any = 0) -> None:
        kind = _grb_type(dtype, "dtype")
        shape = (check_int("rows", rows, 0), check_int("columns", columns, 0))
        begin = check_real("fill", fill)
        if begin.shape not in ((), (columns,)):
            raise ArgumentError("fill", f"a number or {columns} numbers", f"shape {begin.shape}")
        # GraphBLAS gets the memory of this array, which nobody sees before it is known to have come back.
        self._array: Array | None = np.empty(shape, dtype=dtype, order="F")
        self._array[...] = begin
        self.matrix = gb.Matrix(kind, rows, columns)
        if self._array.size:
            pointer, handle = _pointer(self._array), self.matrix.gb_obj[0]
            status = lib.GxB_Matrix_pack_FullC(handle, pointer, self._array.nbytes, False, ffi.NULL)
            check_status_carg(status, "Matrix", handle)
            self.matrix.ss.config["sparsity_control"] = "full"

    def take(self) -> Array:
        """Return the values as an array in Fortran order that owns its memory; the matrix is empty after.

        Raises GbnnError if the matrix is no longer full: taken already, or made sparse by an operation.
        """
        array = self._array
        if array is None:
            raise GbnnError("output", "a full matrix, taken once", "one taken already")
        if array.size == 0:
            self._array = None
            return array
        try:
            parts = self.matrix.ss.unpack("fullc")
        except GraphblasException:
            raise GbnnError(
                "output", "a full matrix", f"one with {self.matrix.nvals} of {array.size} entries"
            ) from None
        values: Array = parts["values"]
        self._array = None
        if parts.get("is_iso"):
            _disown(array)
            return np.full(array.shape, values.reshape(-1)[0], order="F")
        if values.ctypes.data != array.ctypes.data:
            _disown(array)
            return values
        # The array that NumPy allocated frees, and is counted by tracemalloc, as any other; the one that
        # python-graphblas made of the pointer would not be.
        unclaim_buffer(values)
        return array

    def __del__(self) -> None:
        array = getattr(self, "_array", None)
        if array is not None and array.size:  # never taken: the memory stays with the matrix
            _disown(array)

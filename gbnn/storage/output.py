"""`Output`: a matrix that GraphBLAS fills, and the NumPy array it becomes."""

from __future__ import annotations

from typing import Any

import graphblas as gb
import numpy as np
from graphblas.core import ffi, lib
from graphblas.exceptions import GraphblasException, check_status_carg
from suitesparse_graphblas.utils import unclaim_buffer

from gbnn.errors import ArgumentError, GbnnError, check_int, check_real
from gbnn.storage.memory import disown, grb_type, pointer_to

__all__ = ["Output"]

Array = np.ndarray[Any, Any]


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
        kind = grb_type(dtype, "dtype")
        shape = (check_int("rows", rows, 0), check_int("columns", columns, 0))
        begin = check_real("fill", fill)
        if begin.shape not in ((), (columns,)):
            raise ArgumentError("fill", f"a number or {columns} numbers", f"shape {begin.shape}")
        # GraphBLAS gets the memory of this array, which nobody sees before it is known to have come back.
        self._array: Array | None = np.empty(shape, dtype=dtype, order="F")
        self._array[...] = begin
        self.matrix = gb.Matrix(kind, rows, columns)
        if self._array.size:
            pointer, handle = pointer_to(self._array), self.matrix.gb_obj[0]
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
            disown(array)
            return np.full(array.shape, values.reshape(-1)[0], order="F")
        if values.ctypes.data != array.ctypes.data:
            disown(array)
            return values
        # The array that NumPy allocated frees, and is counted by tracemalloc, as any other; the one that
        # python-graphblas made of the pointer would not be.
        unclaim_buffer(values)
        return array

    def __del__(self) -> None:
        array = getattr(self, "_array", None)
        if array is not None and array.size:  # never taken: the memory stays with the matrix
            disown(array)

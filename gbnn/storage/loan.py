"""What a lent matrix is made of: a matrix that refuses writing, and the loan that keeps its arrays."""

from __future__ import annotations

import sys
from typing import Any

import graphblas as gb
import numpy as np
from graphblas.core import ffi, lib
from graphblas.exceptions import GraphblasException, check_status_carg

from gbnn.errors import GbnnError, KindError
from gbnn.storage.memory import disown, grb_type, indices_of, pointer_to

__all__ = ["ColumnsLoan", "FullLoan", "lent"]

Array = np.ndarray[Any, Any]


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
            disown(array)
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


class FullLoan(_Loan):
    """A loan of one full array in Fortran order."""

    __slots__ = ()

    def _pack(self) -> Any:
        (values,) = self.arrays
        return lib.GxB_Matrix_pack_FullR(self.handle[0], pointer_to(values), values.nbytes, False, ffi.NULL)

    def _unpack(self) -> list[int]:
        pointer, size, iso = ffi.new("void**"), ffi.new("GrB_Index*"), ffi.new("bool*")
        status = lib.GxB_Matrix_unpack_FullR(self.handle[0], pointer, size, iso, ffi.NULL)
        check_status_carg(status, "Matrix", self.handle[0])
        return [int(ffi.cast("uintptr_t", pointer[0]))]


class ColumnsLoan(_Loan):
    """A loan of compressed columns: the arrays are columns, starts, rows, values."""

    __slots__ = ()

    def _pack(self) -> Any:
        columns, starts, rows, values = self.arrays
        parts = (indices_of(starts), indices_of(columns), indices_of(rows), pointer_to(values))
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


def lent(kind: type[_Loan], arrays: tuple[Array, ...], shape: tuple[int, int]) -> Any:
    """Lend the arrays, whose last holds the values, as a matrix of this shape (rows, columns)."""
    dtype = grb_type(arrays[-1].dtype, "values")
    rows, columns = shape
    handle = ffi.new("GrB_Matrix*")
    check_status_carg(lib.GrB_Matrix_new(handle, dtype._carg, columns, rows), "Matrix", handle[0])
    loan = kind(handle, arrays)
    bare = _Bare._from_obj(handle, dtype, columns, rows, parent=loan)
    # No options are set. GraphBLAS converts what it writes, never what it reads; but setting an option may
    # convert (and so free) at once: a hypersparse matrix of one column to a sparse one.
    loan.pack()
    return bare.T

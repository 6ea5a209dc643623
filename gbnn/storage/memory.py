"""Pointers and dtypes as GraphBLAS wants them, and memory that NumPy is to free no more."""

from __future__ import annotations

from typing import Any

import graphblas as gb
import numpy as np
from graphblas.core import ffi
from suitesparse_graphblas.utils import unclaim_buffer

from gbnn.errors import ArgumentError

__all__ = ["disown", "grb_type", "indices_of", "pointer_to"]

Array = np.ndarray[Any, Any]

# python-graphblas starts the library when the first object is made; dtypes touched here do it.
_GRB_TYPES = {
    np.dtype(np.float32): gb.dtypes.FP32,
    np.dtype(np.float64): gb.dtypes.FP64,
    np.dtype(np.bool_): gb.dtypes.BOOL,
}


def grb_type(dtype: Any, where: str) -> Any:
    """Return GraphBLAS's own float32, float64 or bool, or raise."""
    try:
        return _GRB_TYPES[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise ArgumentError(where, "float32, float64 or bool", dtype) from None


def pointer_to(array: Array) -> Any:
    """Return the address of the values of an array, as C takes it."""
    return ffi.new("void**", ffi.cast("void*", array.ctypes.data))


def indices_of(array: Array) -> Any:
    """Return the address of the indices in an array of int64, as C takes it."""
    return ffi.new("GrB_Index**", ffi.cast("GrB_Index*", array.ctypes.data))


def disown(array: Array) -> None:
    """Have NumPy no longer free memory that GraphBLAS has freed."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    if array.flags.owndata:
        unclaim_buffer(array)

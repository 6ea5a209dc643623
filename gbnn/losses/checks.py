"""Reading what the model gave and what it should have given: as arrays, or an error that says where."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gbnn.errors import ArgumentError, KindError, check_array
from gbnn.layers.layer import Activations, as_activations
from gbnn.layers.scores import Scores

__all__ = ["array_of", "csr_of", "first_of", "matrix_of", "outputs_of"]

Array = np.ndarray[Any, Any]


def outputs_of(y: Any) -> Activations | Scores:
    """Return the outputs of a model, dense, sparse or lazy, of at least one column, or raise."""
    if isinstance(y, Scores):
        return y
    batch = as_activations("y", y)
    if batch.shape[1] == 0:
        raise ArgumentError("y", "at least one output", f"shape {batch.shape}")
    return batch


def array_of(where: str, values: Any, kinds: str, wanted: str) -> Array:
    """Return a dense array of one of these kinds of dtype, or raise a KindError that says what was wanted."""
    if sp.issparse(values):
        raise KindError(where, wanted, f"a sparse {type(values).__name__}")
    return check_array(where, values, kinds, wanted)


def csr_of(target: Any) -> Any:
    """Return a SciPy CSR target, well-formed and each place once, or raise."""
    if target.format != "csr" or target.dtype.kind not in "biuf":
        got = f"{type(target).__name__} of dtype {target.dtype}"
        raise KindError("target", "an array, or SciPy CSR (see .tocsr()), of numbers", got)
    try:
        target.check_format(full_check=True)
    except ValueError as error:
        raise ArgumentError("target", "a well-formed CSR matrix", error) from None
    if not target.has_canonical_format:
        target = target.copy()  # the caller's own stays as it is
        target.sum_duplicates()
    return target


def matrix_of(array: Any, rows: int | None, outputs: int | None) -> Any:
    """Check the shape (rows, outputs) of an array or sparse matrix; a dense (rows,) stands for (rows, 1)."""
    flat = array.ndim == 1 and not sp.issparse(array)
    shape = (*array.shape, 1) if flat else array.shape
    if len(shape) != 2 or 0 in shape or rows not in (None, shape[0]) or outputs not in (None, shape[1]):
        wanted = f"({'rows' if rows is None else rows}, {'outputs' if outputs is None else outputs})"
        raise ArgumentError("target", f"shape {wanted}", f"shape {array.shape}")
    return array.reshape(shape) if flat else array


def first_of(array: Any, bad: Array) -> str:
    """Describe the first entry that is `bad`: of an array, or of what a CSR matrix has stored."""
    k = int(np.argmax(bad))
    if sp.issparse(array):
        coo = array.tocoo()
        return f"{coo.data[k]} at [{coo.row[k]}, {coo.col[k]}]"
    place = np.unravel_index(k, bad.shape)
    return f"{array[place]} at [{', '.join(str(int(i)) for i in place)}]"

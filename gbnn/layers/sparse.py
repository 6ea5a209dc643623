"""What layers share where activations are sparse: gradients by pattern, and the way through a dense array."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import ArgumentError
from gbnn.layers.layer import (
    Activations,
    Array,
    Gradients,
    Layer,
    Pullback,
    as_output_gradient,
    values_of_gradient,
)
from gbnn.rows import SparseRows, is_sparse

__all__ = ["MOST_DENSE", "at_entries", "checked_gradient", "spread", "through_dense"]

MOST_DENSE = 2**31
"""Entries a sparse batch may have as an array, where a layer needs one."""


def at_entries(activations: Activations, rows: Array, columns: Array) -> Array:
    """Return the numbers of a batch, dense or sparse, at these places; of sparse ones, all their entries."""
    if isinstance(activations, SparseRows):
        return activations.values
    at: Array = activations[rows, columns]
    return at


def spread(values: Array, keep: Array) -> Array:
    """Return an array that holds `values` where `keep`, bool, is true, and 0 elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.sparse import spread
    >>> spread(np.array([5.0, 6.0]), np.array([True, False, True]))
    array([5., 0., 6.])
    """
    result = np.zeros(keep.shape, dtype=values.dtype)
    result[keep] = values
    return result


def checked_gradient(
    where: str, dy: Any, shape: tuple[int, int], dtype: Any, pattern: SparseRows | None = None
) -> Activations:
    """Return `dy` as a gradient of an output: of its shape and dtype, sparse where it can stay so.

    Parameters
    ----------
    where : str
        Named in errors.
    dy : array_like or anything sparse
    shape : (int, int)
    dtype : dtype
        Those of the output.
    pattern : SparseRows, optional
        The output, where that is sparse: the gradient then has its pattern.

    Raises
    ------
    ArgumentError, KindError
        If `dy` is of another shape, or not of real numbers.
    """
    if pattern is not None:
        return pattern.with_values(values_of_gradient(where, dy, pattern))
    if not is_sparse(dy):
        return as_output_gradient(where, dy, shape, dtype)
    rows = SparseRows.of(dy, dtype=dtype, where=where)
    if rows.shape != shape:
        raise ArgumentError(where, f"the shape of the output, {shape}", rows.shape)
    return rows


def through_dense(
    layer: Layer, where: str, x: SparseRows, *, training: bool, why: str
) -> tuple[Activations, Pullback]:
    """Compute a layer that has no sparse form: `x` as an array in, dx at the active entries of `x` out.

    Raises ArgumentError where the array would have more than `MOST_DENSE` entries; `why` ends its message.
    """
    batch, features = x.shape
    if batch * features > MOST_DENSE:
        most = f"at most {MOST_DENSE} places in a sparse batch, as {why}"
        raise ArgumentError(where, most, f"{batch} x {features}")
    y, inner = layer.forward(x.to_dense(), training=training)

    def pullback(dy: Any, *, inputs: bool = True) -> tuple[SparseRows | None, Gradients]:
        dx, gradients = inner(dy, inputs=inputs)
        if not inputs:
            return None, gradients
        if isinstance(dx, SparseRows):
            return x.with_values(dx.onto(x)), gradients
        return x.with_values(dx[x.rows, x.columns]), gradients

    return y, pullback

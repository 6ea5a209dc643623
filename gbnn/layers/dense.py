"""`Dense`: an ordinary full layer, for small heads where every edge exists anyway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from gbnn.errors import ArgumentError, KindError, check_finite, check_int, generator
from gbnn.layers.init import Initializer, drawn, he
from gbnn.layers.layer import (
    Activations,
    Gradients,
    Layer,
    Parameter,
    Pullback,
    as_activations,
    as_output_gradient,
)
from gbnn.rows import SparseRows
from gbnn.semirings.semiring import fit
from gbnn.weights import real_dtype

__all__ = ["Dense"]

Array = np.ndarray[Any, Any]


class Dense(Layer):
    """``y = x W + bias`` with a full array W: the interface of `Linear`, computed by BLAS.

    Of a sparse batch only the active entries are read, at O(active entries x out); y is dense.

    Parameters
    ----------
    weights : ndarray, shape (in, out), float32 or float64
    bias : ndarray, shape (out,), optional

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> head = layers.Dense.random(100, 10, seed=0)
    >>> head.nnz, head.forward(np.ones((4, 100)))[0].shape
    (1000, (4, 10))
    """

    def __init__(self, weights: Array, bias: Any = None) -> None:
        try:
            self.weights: Array = np.array(weights)
        except (RuntimeError, TypeError, ValueError):
            raise KindError("weights", "an array of numbers", type(weights).__name__) from None
        if self.weights.ndim != 2 or 0 in self.weights.shape:
            raise ArgumentError("weights", "shape (in, out)", f"shape {self.weights.shape}")
        dtype = real_dtype("weights", self.weights.dtype)
        check_finite("weights", self.weights)
        self.in_features, self.out_features = self.weights.shape
        self.bias: Array | None = None
        if bias is not None:
            self.bias = fit("bias", bias, (self.out_features,), dtype).copy()
            check_finite("bias", self.bias)

    @classmethod
    def random(
        cls,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        init: Initializer = he,
        dtype: Any = np.float32,
        seed: int | np.random.Generator = 0,
    ) -> Self:
        """Make a layer with random weights (`init` as in `Linear.random`) and a bias of zeros."""
        if not isinstance(bias, (bool, np.bool_)):
            raise KindError("bias", "True or False", repr(bias))
        limit = 2**31
        rows = check_int("in_features", in_features, 1, limit)
        columns = check_int("out_features", out_features, 1, limit // rows)
        fans = np.broadcast_to(rows, rows * columns), np.broadcast_to(columns, rows * columns)
        values = drawn(init, generator("seed", seed), *fans, real_dtype("dtype", dtype))
        return cls(values.reshape(rows, columns), np.zeros(columns) if bias else None)

    @property
    def own_nnz(self) -> int:
        """Every place holds a weight."""
        return int(self.weights.size)

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Compute ``x W + bias``; see `Layer.forward`."""
        x = as_activations("Dense.forward x", x, self.in_features, self.weights.dtype)
        sparse = isinstance(x, SparseRows)
        by_row = _product_form(x) if isinstance(x, SparseRows) else x
        with np.errstate(all="ignore"):  # training itself looks for what is not finite
            # Transposed twice: BLAS then writes the Fortran order that every activation has.
            y = np.asfortranarray(by_row @ self.weights) if sparse else (self.weights.T @ x.T).T
            if self.bias is not None:
                y += self.bias
        shape, dtype = y.shape, y.dtype

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[Activations | None, Gradients]:
            dy = as_output_gradient("Dense.pullback dy", dy, shape, dtype)
            with np.errstate(all="ignore"):
                gradients = {"weights": by_row.T @ dy}
                if self.bias is not None:
                    gradients["bias"] = dy.sum(axis=0)
                if not inputs:
                    return None, gradients
                if isinstance(x, SparseRows):
                    return x.with_values(_row_products(dy, self.weights, x)), gradients
                return (self.weights @ dy.T).T, gradients

        return y, pullback

    def own_parameters(self) -> dict[str, Parameter]:
        """Return weights, and bias where there is one."""
        own: dict[str, Parameter] = {"weights": self.weights}
        return own if self.bias is None else own | {"bias": self.bias}

    @classmethod
    def restore(
        cls, config: dict[str, Any], arrays: Mapping[str, Parameter], children: dict[str, Layer]
    ) -> Self:
        """Make the layer again; see `Layer.restore`."""
        weights = arrays.get("weights")
        if not isinstance(weights, np.ndarray) or not set(arrays) <= {"weights", "bias"}:
            raise ArgumentError("Dense", "an array of weights and perhaps a bias", sorted(arrays))
        return cls(weights, arrays.get("bias"))

    @property
    def kind(self) -> str:
        """Name in tables."""
        return "Dense"

    def __repr__(self) -> str:
        return f"Dense({self.in_features} x {self.out_features}{'' if self.bias is None else ', bias'})"


def _product_form(x: SparseRows) -> Any:
    """Return the batch as SciPy multiplies it, on the same memory."""
    return sp.csr_array((x.values, x.columns, x.starts), shape=x.shape)


def _row_products(dy: Array, weights: Array, x: SparseRows) -> Array:
    """Return ``dy Wᵀ`` at the active entries of `x`, in blocks that stay in cache."""
    dx: Array = np.empty(x.nnz, dtype=dy.dtype)
    rows, by_row = x.rows, np.ascontiguousarray(dy)
    step = max(1, 2**16 // weights.shape[1])
    for low in range(0, x.nnz, step):
        part = slice(low, low + step)
        np.einsum("eo,eo->e", by_row[rows[part]], weights[x.columns[part]], out=dx[part])
    return dx

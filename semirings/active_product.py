"""``y = x ⊕.⊗ W (⊕ bias)`` of a batch of sparse rows, and its pullback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gbnn.errors import ArgumentError
from gbnn.rows import SparseRows
from gbnn.semirings import kernels
from gbnn.semirings.active import LARGEST, Active, Form, dense_or_sparse
from gbnn.semirings.active_gradient import ActiveGradient
from gbnn.semirings.touched import TouchedGradient
from gbnn.weights import Weights

if TYPE_CHECKING:
    from gbnn.semirings.semiring import Semiring

__all__ = ["product_of_rows"]

Array = np.ndarray[Any, Any]


def product_of_rows(
    s: Semiring,
    x: SparseRows,
    weights: Weights,
    bias: Array | None = None,
    form: Form = "auto",
    bias_on: str = "all",
) -> tuple[Array | SparseRows, Any]:
    """Compute the product over active edges only.

    Parameters
    ----------
    s : Semiring
    x : SparseRows, shape (batch, in), of the weights' dtype
        What is absent is the identity of ⊕, and so has no part in any output.
    weights : Weights, shape (in, out)
    bias : ndarray, shape (out,), optional
        A copy that nobody changes.
    form : {"auto", "dense", "sparse"}
        Of y. A sparse y has an entry where an active edge leads, and the identity of ⊕ elsewhere.
    bias_on : {"all", "active"}
        Whether the bias goes to every output, which makes y dense, or (plus_times only) to those that an
        active edge reaches.

    Returns
    -------
    y : ndarray, Fortran order, or SparseRows, shape (batch, out)
    pullback : callable
        ``pullback(dy, inputs=True) -> (dx, gradients)``: dy an array or `SparseRows`; dx has the pattern of
        x, and the gradient of the weights is a `TouchedGradient`.
    """
    active = Active(x, weights)
    stamp, batch, out = weights.stamp, x.shape[0], weights.out_features
    everywhere = bias is not None and bias_on == "all"
    forward = _Forward(s, active, bias, everywhere, stamp)
    if dense_or_sparse(form, active, bias=everywhere) == "sparse":
        if everywhere:
            wanted = "none or one on active outputs (bias_on) where the output is sparse"
            raise ArgumentError("bias", wanted, "one on all")
        y: Array | SparseRows = forward.sparse()
    else:
        if batch * out > LARGEST:
            few = f"at most {LARGEST} outputs in a dense batch (a bias on all of them makes it dense)"
            raise ArgumentError("weights", few, f"{batch} x {out}")
        y = forward.dense()

    def pullback(dy: Any, *, inputs: bool = True) -> tuple[SparseRows | None, dict[str, Any]]:
        if s.partials is None:
            raise ArgumentError(f"semiring {s.name}", "one with derivatives", "a forward-only one")
        if weights.stamp != stamp:
            raise ArgumentError("pullback", "the weights as they were at the forward pass", "changed ones")
        return forward.pulled(y, dy, inputs)

    return y, pullback


@dataclass
class _Forward:
    s: Semiring
    active: Active
    bias: Array | None
    everywhere: bool
    stamp: tuple[int, int]
    ranks: Array | None = None

    def sparse(self) -> SparseRows:
        y, self.ranks = self.active.into_rows(self.s)
        return y if self.bias is None else y.with_values(y.values + self.bias[y.columns])

    def dense(self) -> Array:
        shape = self.active.x.shape[0], self.active.out
        y: Array = np.full(shape, self.s.identity, dtype=self.active.dtype, order="F")
        if self.bias is not None and not self.everywhere:
            reached = self.sparse()
            y[reached.rows, reached.columns] = reached.values
            self.reached = reached
            return y
        if self.bias is not None:
            y[...] = self.bias
        self.active.into_dense(self.s, y)
        return y

    def pulled(
        self, y: Array | SparseRows, dy: Array | SparseRows, inputs: bool
    ) -> tuple[SparseRows | None, dict[str, Any]]:
        s, active = self.s, self.active
        if not isinstance(y, SparseRows) and self.ranks is not None:  # a bias on active outputs, made dense
            y = self.reached
        if isinstance(y, SparseRows):  # from elsewhere nothing can come
            dy = y.with_values(dy.onto(y)) if isinstance(dy, SparseRows) else self._at(y, dy)
        elif isinstance(dy, SparseRows) and not s.ordinary:
            dy = dy.to_dense()
        if np.isinf(s.identity):  # nothing came in, or nothing finite
            dy = _finite(y, dy)
        gradients = {}
        share = dy
        if s.selective:
            share = active.shared(s, y, dy, self.ranks, self.bias)
        dw, dx = active.pull(s, y, share, self.ranks, inputs)
        positions = active.positions
        if isinstance(dy, SparseRows):  # most targets have no dy
            some = np.flatnonzero(dw)
            positions, dw = positions[some], dw[some]
        probed = (active.x, dy) if s.ordinary else ()
        gradients["weights"] = ActiveGradient(positions, dw, active.nnz, *probed, settled=self.stamp)
        if self.bias is not None:
            gradients["bias"] = self._bias_gradient(y, share)
        return (active.x.with_values(dx) if inputs else None), gradients

    def _at(self, y: SparseRows, dy: Array) -> SparseRows:
        return y.with_values(dy[y.rows, y.columns])

    def _bias_gradient(self, y: Array | SparseRows, dy: Array | SparseRows) -> Any:
        bias = self.bias
        assert bias is not None  # noqa: S101 (asked only where there is one)
        if isinstance(dy, SparseRows):
            touched, places = np.unique(dy.columns, return_inverse=True)
            sums = np.bincount(places, dy.values, minlength=touched.size).astype(bias.dtype)
            return TouchedGradient(touched, sums, bias.size)
        if self.s.ordinary:
            return dy.sum(axis=0)
        made = np.empty_like(bias)
        one = bias.dtype.type(self.s.one)
        given = one, bias, kernels.by_neuron(np.asarray(y)), kernels.by_neuron(np.asfortranarray(dy)), made
        kernels.bias_adjoint(self.s.partials, self.s.selective, *given)
        return made


def _finite(y: Array | SparseRows, dy: Any) -> Any:
    """Return dy with 0 where y is infinite."""
    if isinstance(y, SparseRows):
        return dy.with_values(np.where(np.isinf(y.values), dy.dtype.type(0), dy.values))
    return np.where(np.isinf(y), dy.dtype.type(0), dy)

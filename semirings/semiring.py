"""`Semiring`: the record of what a layer computes in, its product and the pullback of that product."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gbnn.errors import ArgumentError, check_real
from gbnn.rows import SparseRows, is_sparse
from gbnn.semirings.active import Form
from gbnn.semirings.active_loops import Loops, loops_of
from gbnn.semirings.active_product import product_of_rows
from gbnn.semirings.routes import adjoint_by_kernel, by_kernel
from gbnn.weights import Weights

__all__ = ["Adjoint", "Route", "Semiring"]

Array = np.ndarray[Any, Any]
Forward = Callable[["Semiring", Array, Weights, Array | None], Array]
Adjoint = Callable[
    ["Semiring", Array, Weights, Array | None, Array, Array, bool], tuple[Array | None, Any, Array | None]
]
"""(semiring, x, weights, bias, y, dy, inputs) -> (dx, gradient of the weights, gradient of the bias)."""


def _always(x: Array, weights: Weights) -> bool:
    return True


class Route(NamedTuple):
    """One way to compute a product: tried in order, the first that applies serves."""

    name: str
    forward: Forward
    applies: Callable[[Array, Weights], bool] = _always


@dataclass(frozen=True, eq=False, repr=False)
class Semiring:
    """A pair (⊕, ⊗) and how to compute and differentiate ``y = x ⊕.⊗ W (⊕ bias)`` with it.

    Attributes
    ----------
    name : str
        Its name in files and reports.
    add, multiply : callable
        Compiled scalar functions ⊕ and ⊗ of two floats.
    identity : float
        The identity of ⊕: what an output with no incoming edge gives.
    one : float or None
        The identity of ⊗: a bias is the edge from a constant input of this value. None: no bias.
    partials : callable or None
        Compiled ``partials(x, w, y) -> (∂y/∂x, ∂y/∂w)`` of one edge, y being the whole output; None for a
        semiring that only computes forward. Of a selective ⊕ it is asked only where the term is the output.
    selective : bool
        Whether ⊕ returns one of its arguments (min, max). Then the edges (and the bias) whose terms are all
        equal to the output share its derivative equally: the mean of the one-sided choices.
    routes : tuple of Route
        Ways to compute the product, fastest first (measured: ``benchmarks/routes.py``).
    adjoint : callable
        How the pullback is computed.
    span : (float, float) or None
        Range from which initial weights are drawn; None: scaled by each neuron's fan-in (He).
    domain : (float, float)
        Values for which the laws of a semiring hold.
    ordinary : bool
        Whether it is plus_times, which has loops of its own over active edges, and absent edges of weight 0.

    Notes
    -----
    An output equal to an infinite ⊕ identity (nothing came in) passes no gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import semirings
    >>> from gbnn.weights import Weights
    >>> roads = Weights.from_coo([0, 1], [0, 0], [2.0, 5.0], shape=(2, 2), dtype=np.float64)
    >>> x = np.asfortranarray([[1.0, 1.0]])
    >>> y, pullback = semirings.min_plus.product(x, roads)
    >>> y
    array([[ 3., inf]])
    >>> dx, gradients = pullback(np.asfortranarray([[1.0, 1.0]]))
    >>> dx, np.asarray(gradients["weights"])
    (array([[1., 0.]]), array([1., 0.]))
    """

    name: str
    add: Callable[..., Any]
    identity: float
    multiply: Callable[..., Any]
    partials: Callable[..., Any] | None
    one: float | None = None
    selective: bool = False
    routes: tuple[Route, ...] = (Route("kernel", by_kernel),)
    adjoint: Adjoint = adjoint_by_kernel
    span: tuple[float, float] | None = field(default=None)
    domain: tuple[float, float] = (-math.inf, math.inf)
    ordinary: bool = False

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def loops(self) -> Loops:
        """The compiled loops over active edges of sparse rows."""
        return loops_of(self.add, self.identity, self.multiply, self.partials, self.selective)

    # Nothing of it changes, so a copy is the semiring itself; a built-in one is pickled by its name.
    def __copy__(self) -> Semiring:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Semiring:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_built_in, (self.name,)) if _built_in(self.name) is self else super().__reduce_ex__(protocol)

    def product(
        self,
        x: Any,
        weights: Weights,
        bias: Array | None = None,
        *,
        route: str | None = None,
        form: Form = "auto",
        bias_on: str = "all",
    ) -> tuple[Any, Callable[..., tuple[Any, dict[str, Any]]]]:
        """Compute ``y = x ⊕.⊗ W (⊕ bias)``.

        Parameters
        ----------
        x : ndarray or SparseRows, shape (batch, in)
            Of an array Fortran order and the weights' dtype save a copy. What sparse rows leave out is the
            identity of ⊕, and the product costs what the active edges cost.
        weights : Weights, shape (in, out)
        bias : ndarray, shape (out,), optional
        route : str, optional
            Force the route of this name (for tests and benchmarks), of a dense x.
        form : {"auto", "dense", "sparse"}
            Of y, for sparse x; "auto" takes the faster one. A sparse y has an entry where an active edge
            leads, and the identity of ⊕ elsewhere.
        bias_on : {"all", "active"}
            Whether the bias goes to every output, which makes y dense, or, for sparse x in plus_times, only
            to those that an active edge reaches.

        Returns
        -------
        y : ndarray, Fortran order, or SparseRows, shape (batch, out)
        pullback : callable
            ``pullback(dy, inputs=True) -> (dx, {"weights": ..., "bias": ...})``. For sparse x, dx has its
            pattern and the gradient of the weights is a `TouchedGradient`.

        Raises
        ------
        ArgumentError, KindError
            If shapes or dtypes do not fit, or `pullback` is called on a forward-only semiring or after the
            weights changed.
        """
        rows = is_sparse(x)
        if rows:
            x = SparseRows.of(x, dtype=weights.dtype, where="x")
            if x.shape[1] != weights.in_features:
                raise ArgumentError("x", f"shape (batch, {weights.in_features})", f"shape {x.shape}")
        else:
            x = fit("x", x, (None, weights.in_features), weights.dtype)
        if bias is not None:
            if self.one is None:
                none = f"None: {self.name} has no identity of ⊗ to carry one"
                raise ArgumentError("bias", none, "a bias")
            # A copy, because training changes it in place and the pullback reads it.
            bias = fit("bias", bias, (weights.out_features,), weights.dtype).copy()
        if rows:
            with np.errstate(all="ignore"):
                y, pull = product_of_rows(self, x, weights, bias, form, bias_on)

            def pullback_of_rows(dy: Any, *, inputs: bool = True) -> tuple[Any, dict[str, Any]]:
                if is_sparse(dy):
                    dy = SparseRows.of(dy, dtype=y.dtype, where="dy")
                    if dy.shape != y.shape:
                        raise ArgumentError("dy", f"shape {y.shape}", f"shape {dy.shape}")
                else:
                    dy = fit("dy", dy, y.shape, y.dtype)
                with np.errstate(all="ignore"):
                    dx, gradients = pull(dy, inputs=inputs)
                return dx, gradients

            return y, pullback_of_rows
        if weights.out_features * x.shape[0] > 2**40:
            few = "at most 2**40 dense outputs in a batch"
            raise ArgumentError("weights", few, f"{x.shape[0]} x {weights.out_features}")
        for way in self.routes:
            if route == way.name or (route is None and way.applies(x, weights)):
                with np.errstate(all="ignore"):  # training itself looks for what is not finite
                    y = way.forward(self, x, weights, bias)
                break
        else:
            raise ArgumentError("route", f"one of {[r.name for r in self.routes]}", route)
        stamp = weights.stamp

        def pullback(dy: Array, *, inputs: bool = True) -> tuple[Array | None, dict[str, Any]]:
            if self.partials is None:
                raise ArgumentError(f"semiring {self.name}", "one with derivatives", "a forward-only one")
            if weights.stamp != stamp:
                before = "the weights as they were at the forward pass"
                raise ArgumentError("pullback", before, "changed ones")
            if is_sparse(dy):
                dy = SparseRows.of(dy, where="dy").to_dense()
            dy = fit("dy", dy, y.shape, y.dtype)
            with np.errstate(all="ignore"):
                dx, dw, dbias = self.adjoint(self, x, weights, bias, y, dy, inputs)
            return dx, {"weights": dw} if bias is None else {"weights": dw, "bias": dbias}

        return y, pullback


def _built_in(name: str) -> Any:
    return getattr(importlib.import_module("gbnn.semirings"), name, None)


def fit(where: str, array: Any, shape: tuple[int | None, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array of this shape (None: any number but 0) and dtype, Fortran order, aligned; or raise."""
    came = check_real(where, array, "a rectangular array of real numbers")
    if came.ndim != len(shape) or any(
        size == 0 if n is None else size != n for n, size in zip(shape, came.shape, strict=True)
    ):
        wanted = ", ".join("batch" if n is None else str(n) for n in shape)
        raise ArgumentError(where, f"shape ({wanted}{',' * (len(shape) == 1)})", f"shape {came.shape}")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and shows
        return np.require(came, dtype, ["F", "A"])

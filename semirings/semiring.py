"""`Semiring`: the record of what a layer computes in, its product and the pullback of that product."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numba
import numpy as np

from gbnn.errors import ArgumentError, KindError
from gbnn.semirings.routes import adjoint_by_kernel, by_kernel
from gbnn.weights import Weights

__all__ = ["Adjoint", "Route", "Semiring", "define"]

Array = np.ndarray[Any, Any]
Forward = Callable[["Semiring", Array, Weights, Array | None], Array]
Adjoint = Callable[
    ["Semiring", Array, Weights, Array | None, Array, Array, bool], tuple[Array | None, Any, Array | None]
]
"""(semiring, x, weights, bias, y, dy, inputs) -> (dx, gradient of the weights, gradient of the bias)."""


class Route(NamedTuple):
    """One way to compute a product: tried in order, the first that applies serves."""

    name: str
    forward: Forward
    applies: Callable[[Array, Weights], bool] = lambda x, weights: True


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
        semiring that only computes forward.
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

    def __repr__(self) -> str:
        return self.name

    def product(
        self, x: Array, weights: Weights, bias: Array | None = None, *, route: str | None = None
    ) -> tuple[Array, Callable[..., tuple[Array | None, dict[str, Any]]]]:
        """Compute ``y = x ⊕.⊗ W (⊕ bias)``.

        Parameters
        ----------
        x : ndarray, shape (batch, in), Fortran order, of the weights' dtype
        weights : Weights, shape (in, out)
        bias : ndarray, shape (out,), optional
        route : str, optional
            Force the route of this name (for tests and benchmarks).

        Returns
        -------
        y : ndarray, shape (batch, out), Fortran order
        pullback : callable
            ``pullback(dy, inputs=True) -> (dx, {"weights": ..., "bias": ...})``.

        Raises
        ------
        ArgumentError
            If shapes do not fit, or `pullback` is called on a forward-only semiring or after the weights
            changed.
        """
        if x.shape[1] != weights.in_features:
            raise ArgumentError("x", f"{weights.in_features} columns", x.shape[1])
        if weights.out_features * x.shape[0] > 2**40:
            few = "at most 2**40 dense outputs in a batch"
            raise ArgumentError("weights", few, f"{x.shape[0]} x {weights.out_features}")
        if bias is not None and self.one is None:
            raise ArgumentError("bias", f"None: {self.name} has no identity of ⊗ to carry one", "a bias")
        for way in self.routes:
            if route == way.name or (route is None and way.applies(x, weights)):
                y = way.forward(self, x, weights, bias)
                break
        else:
            raise ArgumentError("route", f"one of {[r.name for r in self.routes]}", route)
        stamp = weights.stamp

        def pullback(dy: Array, *, inputs: bool = True) -> tuple[Array | None, dict[str, Any]]:
            if self.partials is None:
                raise ArgumentError(f"semiring {self.name}", "one with derivatives", "a forward-only one")
            if weights.stamp != stamp:
                raise ArgumentError("pullback", "the weights as they were at the forward pass", "changed ones")
            dy = np.asfortranarray(dy, dtype=y.dtype)
            if dy.shape != y.shape:
                raise ArgumentError("dy", f"shape {y.shape}", f"shape {dy.shape}")
            dx, dw, dbias = self.adjoint(self, x, weights, bias, y, dy, inputs)
            return dx, {"weights": dw} if bias is None else {"weights": dw, "bias": dbias}

        return y, pullback


def scalar(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a scalar function for use inside the kernels (once: a compiled one is returned as it is)."""
    return function if hasattr(function, "py_func") else numba.njit(function)


def define(
    name: str,
    add: Callable[[float, float], float],
    identity: float,
    multiply: Callable[[float, float], float],
    partials: Callable[[float, float, float], tuple[float, float]] | None = None,
    *,
    one: float | None = None,
    selective: bool = False,
    span: tuple[float, float] | None = None,
) -> Semiring:
    """Make a semiring from scalar functions; it trains like the built-in ones.

    Parameters
    ----------
    name : str
        Its name in files and reports.
    add, multiply : callable
        ⊕ and ⊗ of two floats, written so that numba can compile them.
    identity : float
        ``add(identity, a) == a``.
    partials : callable, optional
        ``partials(x, w, y) -> (∂y/∂x, ∂y/∂w)`` of one edge whose layer output is y. For a selective ⊕ return
        the derivative of the term where it equals y and zeros elsewhere. None: forward only.
    one : float, optional
        ``multiply(one, w) == w``; needed for a bias.
    selective : bool
        ⊕ returns one of its arguments; ties then share the derivative equally.
    span : (float, float), optional
        Range of initial weights; None scales them by fan-in.

    Raises
    ------
    ArgumentError, KindError
        If a function does not compile, or the identities are none.

    Examples
    --------
    A smooth maximum: ⊕ is the 4-norm of positive numbers, ⊗ the product.

    >>> import numpy as np
    >>> from gbnn import semirings
    >>> from gbnn.weights import Weights
    >>> norm4 = semirings.define(
    ...     "norm4_times",
    ...     add=lambda a, b: (a**4 + b**4) ** 0.25,
    ...     identity=0.0,
    ...     multiply=lambda x, w: x * w,
    ...     partials=lambda x, w, y: ((x * w / y) ** 3 * w, (x * w / y) ** 3 * x),
    ... )
    >>> w = Weights.from_dense(np.ones((2, 1)))
    >>> y, pullback = norm4.product(np.asfortranarray([[1.0, 1.0]]), w)
    >>> round(float(y[0, 0]), 4)
    1.1892
    """
    for label, function in (("add", add), ("multiply", multiply), ("partials", partials)):
        if not (callable(function) or (label == "partials" and function is None)):
            raise KindError(label, "a function", type(function).__name__)
    made = Semiring(
        name=str(name),
        add=scalar(add),
        identity=float(identity),
        multiply=scalar(multiply),
        partials=None if partials is None else scalar(partials),
        one=None if one is None else float(one),
        selective=bool(selective),
        span=span,
    )
    _try_out(made)
    return made


def _try_out(semiring: Semiring) -> None:
    """Run the scalar functions once, so that a mistake in them shows here and not in a layer."""
    a = 0.75
    tries: list[tuple[str, Callable[[], Any], Callable[[Any], bool], str]] = [
        ("identity", lambda: semiring.add(semiring.identity, a), lambda r: r == a, "add(identity, a) == a"),
        ("multiply", lambda: semiring.multiply(a, a), lambda r: np.ndim(r) == 0, "a number from multiply(a, a)"),
    ]
    if semiring.one is not None:
        one = semiring.one
        tries.append(("one", lambda: semiring.multiply(one, a), lambda r: r == a, "multiply(one, a) == a"))
    if semiring.partials is not None:
        partials = semiring.partials
        y = 1.25
        tries.append(("partials", lambda: partials(a, a, y), lambda r: len(r) == 2, "two numbers from partials"))
    for label, run, holds, wanted in tries:
        try:
            result = run()
            good = holds(result)
        except numba.core.errors.NumbaError as error:
            raise ArgumentError(label, "a scalar function numba can compile", str(error).splitlines()[0]) from None
        except (TypeError, ArithmeticError) as error:
            raise ArgumentError(label, wanted, f"{type(error).__name__}: {error}") from None
        if not good:
            raise ArgumentError(label, wanted, result)

"""Scalar functions compiled for the kernels, and `define`, which makes a semiring of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core.registry import CPUDispatcher

from gbnn.errors import ArgumentError, KindError, check_float
from gbnn.semirings.semiring import Semiring

__all__ = ["define", "scalar"]

Scalar = Callable[..., Any]


def scalar(function: Scalar) -> Scalar:
    """Compile a scalar function for use inside the kernels (once: one compiled here is returned as it is).

    Division by zero gives an infinity or NaN, as in NumPy: an exception cannot leave a parallel kernel.
    """
    options: dict[str, Any] = {}
    if isinstance(function, CPUDispatcher):
        options = {k: v for k, v in function.targetoptions.items() if k != "nopython"}
        if options.get("error_model") == "numpy":
            return function
        function = function.py_func
    compiled: Scalar = numba.njit(**{**options, "error_model": "numpy"})(function)
    return compiled


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
    surrogate: bool = False,
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
        ``partials(x, w, y) -> (∂y/∂x, ∂y/∂w)`` of one edge whose layer output is y. For a selective ⊕ these
        are the derivatives of ``multiply(x, w)``: only edges whose term is the output are asked. None:
        forward only.
    one : float, optional
        ``multiply(one, w) == w``; needed for a bias.
    selective : bool
        ⊕ returns one of its arguments; ties then share the derivative equally.
    span : (float, float), optional
        Range of initial weights; None scales them by fan-in.
    surrogate : bool
        `partials` is not the derivative, on purpose (straight-through gradients of a step, say).

    Raises
    ------
    ArgumentError, KindError
        If a function does not compile, the identities are none, or `partials` is not the derivative where
        it is tried.

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
    if not isinstance(name, str) or not name:
        raise KindError("name", "a string", repr(name))
    made = Semiring(
        name=name,
        add=_compiled("add", add),
        identity=_number("identity", identity),
        multiply=_compiled("multiply", multiply),
        partials=None if partials is None else _compiled("partials", partials),
        one=None if one is None else _number("one", one),
        selective=bool(selective),
        span=None if span is None else _span(span),
    )
    _try_out(made)
    if made.partials is not None and not surrogate:
        _compare_partials(made, made.partials)
    return made


def _compiled(where: str, function: Any) -> Scalar:
    if not callable(function):
        raise KindError(where, "a function", type(function).__name__)
    try:
        return scalar(function)
    except TypeError:  # a built-in, a class or an instance
        raise KindError(where, "a function written in Python", type(function).__name__) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating))


def _number(where: str, value: Any) -> float:
    if not _is_number(value) or isinstance(value, bool):
        raise KindError(where, "a number", repr(value))
    if math.isnan(value):
        raise ArgumentError(where, "a number", value)
    return float(value)


def _span(span: Any) -> tuple[float, float]:
    try:
        low, high = span
    except (TypeError, ValueError):
        raise KindError("span", "two numbers, the lowest and highest initial weight", repr(span)) from None
    low = check_float("span", low)
    return low, check_float("span", high, low)


def _try_out(semiring: Semiring) -> None:
    """Run the scalar functions once, so that a mistake in them shows here and not in a layer."""
    a, b = 0.75, 1.25
    add, multiply, partials = semiring.add, semiring.multiply, semiring.partials
    identity, one = semiring.identity, semiring.one

    def equals_a(result: Any) -> bool:
        return _is_number(result) and math.isclose(result, a, rel_tol=1e-9)

    def is_pair(result: Any) -> bool:
        return isinstance(result, tuple) and len(result) == 2 and all(map(_is_number, result))

    _expect("add", lambda: add(a, b), _is_number, f"a number from add({a}, {b})")
    _expect("multiply", lambda: multiply(a, b), _is_number, f"a number from multiply({a}, {b})")
    _expect("identity", lambda: add(identity, a), equals_a, f"add(identity, {a}) == {a}")
    _expect("identity", lambda: add(a, identity), equals_a, f"add({a}, identity) == {a}")
    if semiring.selective:
        _expect("selective", lambda: add(a, b), lambda r: r in (a, b), f"add({a}, {b}) to be one of the two")
    if one is not None:
        _expect("one", lambda: multiply(one, a), equals_a, f"multiply(one, {a}) == {a}")
    if partials is not None:
        _expect("partials", lambda: partials(a, a, b), is_pair, "two numbers from partials(x, w, y)")


# Three places of both signs and sizes, away from where common functions have kinks.
_PLACES = ((0.31, 0.72), (0.83, 0.44), (0.57, 0.91))


def _compare_partials(semiring: Semiring, partials: Scalar) -> None:
    """Compare `partials` with central differences; a mistake in them trains silently on wrong gradients."""
    add, multiply = semiring.add, semiring.multiply

    def output(x: float, w: float) -> float:
        # Beside another term; of a selective ⊕, the derivative of the term itself is wanted.
        term = multiply(x, w)
        return float(term if semiring.selective else add(term, 0.62))

    step = 1e-6
    wrong = []
    for x, w in _PLACES:
        try:
            expected = (
                (output(x + step, w) - output(x - step, w)) / (2 * step),
                (output(x, w + step) - output(x, w - step)) / (2 * step),
            )
            came = partials(x, w, output(x, w))
        except Exception:  # noqa: S112 (the functions are not defined here: nothing to compare)
            continue
        # In places where a function has no derivative a difference means nothing: one such is let pass.
        if np.isfinite(expected).all() and not np.allclose(came, expected, rtol=1e-4, atol=1e-6):
            wrong.append(f"{came} at x={x}, w={w}, where differences give {expected}")
    if len(wrong) > 1:
        wanted = "the derivatives of the output (or surrogate=True)"
        raise ArgumentError("partials", wanted, wrong[0])


def _expect(where: str, run: Callable[[], Any], holds: Callable[[Any], bool], wanted: str) -> None:
    try:
        result = run()
    except numba.core.errors.NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ArgumentError(where, "a scalar function numba can compile", " ".join(lines[:2])) from None
    except Exception as error:  # whatever the user's function raises
        raise ArgumentError(where, wanted, f"{type(error).__name__}: {error}") from None
    if not holds(result):
        raise ArgumentError(where, wanted, result)

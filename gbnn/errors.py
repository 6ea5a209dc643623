"""The errors of gbnn: each names where it happened, what was expected and what came."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["ArgumentError", "FileError", "GbnnError", "KindError", "MissingError", "NonFiniteError"]


class GbnnError(Exception):
    """Base of every error gbnn raises on purpose.

    Parameters
    ----------
    where : str
        The argument, file or layer at fault, as the caller knows it.
    expected : str
        What would have been right.
    got : object
        What came instead; shown as text.

    Examples
    --------
    >>> from gbnn.errors import ArgumentError
    >>> print(ArgumentError("density", "a number in (0, 1]", 1.5))
    density: expected a number in (0, 1], got 1.5
    """

    def __init__(self, where: str, expected: str, got: object) -> None:
        super().__init__(where, expected, got)
        self.where = where
        self.expected = expected
        self.got = got

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, got {self.got}"


class ArgumentError(GbnnError, ValueError):
    """An argument has a value, shape or range that makes no sense."""


class KindError(GbnnError, TypeError):
    """An argument is of a type or dtype that cannot be used."""


class FileError(GbnnError, ValueError):
    """A file cannot be read or written, or does not hold what it should."""


class NonFiniteError(GbnnError, ArithmeticError):
    """NaN or infinity where only finite numbers make sense: in data, a gradient or a loss."""


class MissingError(GbnnError, ImportError):
    """An optional package is needed and not installed."""


def check_int(where: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int within [low, high], or raise a gbnn error that names `where`."""
    # NumPy integers count; bool does not, because True as a size is nearly always a mistake.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise KindError(where, "an integer", f"{value!r} of type {type(value).__name__}")
    number = int(value)
    if number < low or (high is not None and number > high):
        span = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ArgumentError(where, f"an integer {span}", number)
    return number


def check_float(
    where: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False
) -> float:
    """Return `value` as a finite float within [low, high] (or (low, high]), or raise."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise KindError(where, "a number", f"{value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # an int beyond float's range
        number = math.inf if value > 0 else -math.inf
    bad = not math.isfinite(number) or number < low or number > high or (open_low and number == low)
    if bad:
        left = "(" if open_low or low == -math.inf else "["
        right = ")" if high == math.inf else "]"
        raise ArgumentError(where, f"a finite number in {left}{low:g}, {high:g}{right}", number)
    return number


def check_finite(where: str, array: np.ndarray[Any, Any]) -> None:
    """Raise NonFiniteError naming the first entry of `array` that is NaN or infinite."""
    # One sum is several times cheaper than isfinite over everything, and any NaN or infinity shows in it
    # (a finite array whose sum overflows is looked at entry by entry and passes).
    with np.errstate(over="ignore", invalid="ignore"):
        if array.size == 0 or math.isfinite(float(array.sum(dtype=np.float64))):
            return
    finite = np.isfinite(array)
    if not finite.all():
        place = np.unravel_index(int(np.argmin(finite)), array.shape)
        index = ", ".join(str(int(i)) for i in place)
        count = int(array.size - np.count_nonzero(finite))
        raise NonFiniteError(
            where, "finite numbers", f"{array[place]} at [{index}] ({count} such of {array.size})"
        )


def check_array(where: str, values: Any, kinds: str, expected: str) -> np.ndarray[Any, Any]:
    """Return `values` as an array if its dtype is of one of these kinds (NumPy's letters), or raise."""
    try:
        array = np.asarray(values)
    except (RuntimeError, TypeError, ValueError):  # such as a list of lists of different lengths
        raise KindError(where, expected, type(values).__name__) from None
    if array.dtype.kind not in kinds:
        raise KindError(where, expected, f"{type(values).__name__} of dtype {array.dtype}")
    return array


def check_real(where: str, values: Any, expected: str = "real numbers") -> np.ndarray[Any, Any]:
    """Return `values` as an array if they are real numbers (integers and bool count), or raise KindError."""
    return check_array(where, values, "fiub", expected)


def generator(where: str, seed: int | np.random.Generator) -> np.random.Generator:
    """Return the Generator itself, or a new one from an int seed; raise KindError for anything else."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(check_int(where, seed, 0))


def check_bool(where: str, value: Any) -> bool:
    """Return `value` as a bool if it is one, NumPy's included, or raise KindError."""
    if not isinstance(value, bool | np.bool_):
        raise KindError(where, "True or False", f"{value!r} of type {type(value).__name__}")
    return bool(value)


def check_list(where: str, values: Any, expected: str) -> list[Any]:
    """Return what can be iterated over as a list, or raise KindError."""
    try:
        return list(values)
    except TypeError:  # an array of no dimensions, too
        raise KindError(where, expected, f"{values!r} of type {type(values).__name__}") from None


def check_function(where: str, part: Any) -> None:
    """Raise KindError unless `part` can be called."""
    if not callable(part):
        raise KindError(where, "a function", f"{part!r} of type {type(part).__name__}")

"""How much, over time: functions of the `Clock`, for the share that moves or the density to have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gbnn.errors import ArgumentError, check_float, check_list
from gbnn.topology.clock import Clock, check_until

__all__ = [
    "Fraction",
    "constant",
    "cosine",
    "cubic",
    "inverse_power",
    "linear",
    "piecewise",
    "sigmoid",
]

Fraction = Callable[[Clock], float]
"""``(clock) -> share`` in [0, 1]."""


def constant(fraction: float) -> Fraction:
    """Return the same share each time.

    Examples
    --------
    >>> from gbnn.topology import Clock, constant
    >>> constant(0.3)(Clock(step=5))
    0.3
    """
    share = check_float("fraction", fraction, 0, 1)
    return lambda clock: share


def cosine(fraction: float, until: float | int = 0.75, *, low: float = 0.0) -> Fraction:
    """Fall from `fraction` to `low` along half a cosine: low + (fraction - low)/2·(1 + cos(π·t/T)) (RigL).

    Examples
    --------
    >>> from gbnn.topology import Clock, cosine
    >>> share = cosine(0.3, until=1000)
    >>> [round(share(Clock(step=s)), 3) for s in (0, 500, 1000, 2000)]
    [0.3, 0.15, 0.0, 0.0]
    """
    return _between(fraction, low, until, 0, lambda t: (1 + math.cos(math.pi * t)) / 2)


def linear(fraction: float, until: float | int = 0.75, *, low: float = 0.0) -> Fraction:
    """Go from `fraction` to `low` in a straight line.

    Examples
    --------
    >>> from gbnn.topology import Clock, linear
    >>> [round(linear(0.4, until=100)(Clock(step=s)), 3) for s in (0, 50, 200)]
    [0.4, 0.2, 0.0]
    """
    return _between(fraction, low, until, 0, lambda t: 1 - t)


def inverse_power(fraction: float, until: float | int = 0.75, *, power: float = 3.0) -> Fraction:
    """Fall from `fraction` to 0 as (1 - t/T)^power (Evci et al., 2020, appendix; power 1 is `linear`).

    Examples
    --------
    >>> from gbnn.topology import Clock, inverse_power
    >>> inverse_power(0.8, until=100)(Clock(step=50))
    0.1
    """
    k = check_float("power", power, 0, open_low=True)
    return _between(fraction, 0.0, until, 0, lambda t: (1 - t) ** k)


def cubic(initial: float, final: float, *, begin: float | int = 0.0, end: float | int = 0.75) -> Fraction:
    """Go from a density `initial` to `final`, fast at first: final + (initial - final)·(1 - t)³.

    Gradual magnitude pruning (Zhu & Gupta, 2017, arXiv:1710.01878). t goes from 0 at `begin` to 1 at `end`,
    steps or shares of all steps.

    Examples
    --------
    >>> from gbnn.topology import Clock, cubic
    >>> density = cubic(1.0, 0.2, end=100)
    >>> [round(density(Clock(step=s)), 3) for s in (0, 50, 100)]
    [1.0, 0.3, 0.2]
    """
    return _between(initial, final, end, begin, lambda t: (1 - t) ** 3, "end")


def sigmoid(
    initial: float, final: float, *, begin: float | int = 0.0, end: float | int = 0.75, steepness: float = 6.0
) -> Fraction:
    """Go from a density `initial` to `final` along a sigmoid, slow at both ends (CHTss).

    final + (initial - final)·s(t), where s is 1/(1 + exp(2k(t - ½))), scaled to go from 1 to 0 exactly, and
    k the steepness (Zhang et al., 2025, arXiv:2501.19107: 6).

    Examples
    --------
    >>> from gbnn.topology import Clock, sigmoid
    >>> density = sigmoid(0.5, 0.1, end=100)
    >>> [round(density(Clock(step=s)), 3) for s in (0, 50, 100)]
    [0.5, 0.3, 0.1]
    """
    k = check_float("steepness", steepness, 0, open_low=True)
    edge = 1 / (1 + math.exp(-k))
    return _between(
        initial,
        final,
        end,
        begin,
        lambda t: (1 / (1 + math.exp(2 * k * (t - 0.5))) - (1 - edge)) / (2 * edge - 1),
        "end",
    )


def piecewise(values: Sequence[float], steps: Sequence[float | int]) -> Fraction:
    """Return the first value, and the next one from each of `steps` on (shares of all steps if floats).

    Examples
    --------
    >>> from gbnn.topology import Clock, piecewise
    >>> share = piecewise([0.2, 0.1, 0.0], [0.5, 0.75])
    >>> [share(Clock(step=s, total_steps=100)) for s in (0, 49, 50, 75)]
    [0.2, 0.2, 0.1, 0.0]
    """
    listed = check_list("values", values, "a list of numbers")
    shares = [check_float(f"values[{k}]", value, 0, 1) for k, value in enumerate(listed)]
    begins = check_list("steps", steps, "a list of numbers")
    marks = [check_until(step, f"steps[{k}]", zero=True) for k, step in enumerate(begins)]
    if len(shares) != len(marks) + 1:
        raise ArgumentError("values", f"{len(marks) + 1} values, one more than steps", len(shares))
    return lambda clock: shares[sum(clock.step >= clock.end(mark) for mark in marks)]


def _between(
    high: float,
    low: float,
    end: float | int,
    begin: float | int,
    shape: Callable[[float], float],
    name: str = "until",
) -> Fraction:
    """Go from `high` to `low` as `shape` goes from 1 to 0 over t in [0, 1]."""
    high, low = check_float("fraction", high, 0, 1), check_float("low", low, 0, 1)
    end, begin = check_until(end, name), check_until(begin, "begin", zero=True)

    def share(clock: Clock) -> float:
        first, last = clock.end(begin), clock.end(end)
        t = 1.0 if last <= first else min(1.0, max(0.0, (clock.step - first) / (last - first)))
        # At the ends exactly: 0.2 + 0.8 * shape(0) may be a little less than 1.
        return high if t == 0 else low if t == 1 else low + (high - low) * shape(t)

    return share

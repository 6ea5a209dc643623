"""Schedules: functions from the step (0, 1, ...) to a value, for learning rates and whatever else changes.

A schedule is any callable ``int -> float``; a lambda will do. Those here validate their arguments when made,
hold no state, and stay at their last value after their last step, so that training may go on longer.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

from gbnn.errors import ArgumentError, check_float, check_int

__all__ = [
    "Schedule",
    "as_schedule",
    "constant",
    "cosine",
    "linear",
    "one_cycle",
    "piecewise",
    "step_decay",
    "warm_up",
]

Schedule = Callable[[int], float]
"""Maps the step, counted from 0, to a value."""


def as_schedule(where: str, value: float | Schedule, low: float = -math.inf) -> Schedule:
    """Turn a number or a schedule into a schedule whose values are checked Python floats.

    Every function that takes a learning rate calls this once. A NumPy float64 from a user's schedule
    would turn float32 arithmetic into float64; a Python float does not.

    Parameters
    ----------
    where : str
        The argument, named in errors.
    value : float or Schedule
    low : float
        The least value allowed.

    Returns
    -------
    Schedule

    Raises
    ------
    ArgumentError, KindError
        If a value is not a finite number from `low`: at once for a number, at its step for a schedule.

    Examples
    --------
    >>> from gbnn.training.schedules import as_schedule
    >>> as_schedule("learning_rate", 0.1)(7), as_schedule("learning_rate", lambda step: 1 / (1 + step))(1)
    (0.1, 0.5)
    """
    if callable(value):
        schedule = value
        return lambda step: check_float(f"{where} at step {step}", schedule(step), low)
    return constant(check_float(where, value, low))


def constant(value: float) -> Schedule:
    """Return the schedule that is `value` at every step.

    Raises
    ------
    ArgumentError, KindError
        If `value` is not a finite number.

    Examples
    --------
    >>> from gbnn.training.schedules import constant
    >>> constant(0.1)(1000)
    0.1
    """
    number = check_float("value", value)
    return lambda step: number


def step_decay(value: float, every: int, factor: float = 0.1) -> Schedule:
    """Return ``value * factor ** (step // every)``: torch's StepLR.

    Parameters
    ----------
    value : float
        The value of the first `every` steps.
    every : int
        Steps between two reductions.
    factor : float
        In (0, 1].

    Raises
    ------
    ArgumentError, KindError
        On arguments out of range.

    Examples
    --------
    >>> from gbnn.training.schedules import step_decay
    >>> [step_decay(8.0, every=2, factor=0.5)(step) for step in range(5)]
    [8.0, 8.0, 4.0, 4.0, 2.0]
    """
    first = check_float("value", value)
    period = check_int("every", every, 1)
    ratio = check_float("factor", factor, 0.0, 1.0, open_low=True)
    return lambda step: first * ratio ** (step // period)


def piecewise(values: Sequence[float], boundaries: Sequence[int]) -> Schedule:
    """Return the schedule that is ``values[k]`` once k of the `boundaries` have been reached.

    Parameters
    ----------
    values : sequence of float
        One more than `boundaries`.
    boundaries : sequence of int
        The steps at which the next value begins, ascending, from 1.

    Raises
    ------
    ArgumentError, KindError
        If the lengths do not fit or the boundaries do not ascend.

    Examples
    --------
    >>> from gbnn.training.schedules import piecewise
    >>> [piecewise([1.0, 0.1, 0.01], [2, 3])(step) for step in range(5)]
    [1.0, 1.0, 0.1, 0.01, 0.01]
    """
    levels = [check_float("values", value) for value in values]
    starts = [check_int("boundaries", start, 1) for start in boundaries]
    if len(levels) != len(starts) + 1:
        raise ArgumentError("values", f"{len(starts) + 1} values for {len(starts)} boundaries", len(levels))
    if any(a >= b for a, b in pairwise(starts)):
        raise ArgumentError("boundaries", "ascending steps", starts)
    return lambda step: levels[bisect_right(starts, step)]


def linear(start: float, end: float, steps: int) -> Schedule:
    """Return the straight line from `start` at step 0 to `end` at step `steps`, and `end` from there on.

    Raises
    ------
    ArgumentError, KindError
        If `start` or `end` is not a finite number, or `steps` not an integer from 1.

    Examples
    --------
    >>> from gbnn.training.schedules import linear
    >>> [linear(1.0, 0.0, steps=4)(step) for step in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """
    first, last = check_float("start", start), check_float("end", end)
    count = check_int("steps", steps, 1)

    def at(step: int) -> float:
        share = min(step / count, 1.0)
        return first * (1.0 - share) + last * share  # exact at both ends

    return at


def cosine(value: float, steps: int, final: float = 0.0) -> Schedule:
    """Return half a cosine from `value` at step 0 down to `final` at step `steps`, and `final` from there on.

    Up to step `steps` this is torch's CosineAnnealingLR (which would rise again after it).

    Raises
    ------
    ArgumentError, KindError
        If `value` or `final` is not a finite number, or `steps` not an integer from 1.

    References
    ----------
    I. Loshchilov, F. Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017, arXiv:1608.03983.

    Examples
    --------
    >>> from gbnn.training.schedules import cosine
    >>> [round(cosine(1.0, steps=4)(step), 3) for step in (0, 1, 2, 4, 9)]
    [1.0, 0.854, 0.5, 0.0, 0.0]
    """
    first, last = check_float("value", value), check_float("final", final)
    count = check_int("steps", steps, 1)
    return lambda step: _anneal(first, last, min(step / count, 1.0))


def warm_up(steps: int, then: float | Schedule) -> Schedule:
    """Rise in equal parts to the first value of `then` in `steps` steps, then follow it from its start.

    Step k < steps has the value ``then(0) * (k + 1) / (steps + 1)``: the first step is not wasted on a rate
    of 0, and the value at step `steps` is ``then(0)``.

    Parameters
    ----------
    steps : int
        0 leaves `then` as it is.
    then : float or Schedule
        Its step 0 is our step `steps`.

    Raises
    ------
    ArgumentError, KindError
        If `steps` is not an integer from 0, or `then` has a value that is not a finite number.

    References
    ----------
    P. Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", 2017, arXiv:1706.02677.

    Examples
    --------
    >>> from gbnn.training.schedules import cosine, warm_up
    >>> schedule = warm_up(3, cosine(1.0, steps=2))
    >>> [round(schedule(step), 3) for step in range(7)]
    [0.25, 0.5, 0.75, 1.0, 0.5, 0.0, 0.0]
    """
    count = check_int("steps", steps, 0)
    after = as_schedule("then", then)
    return lambda step: after(0) * (step + 1) / (count + 1) if step < count else after(step - count)


def one_cycle(
    peak: float, steps: int, rise: float = 0.3, start_divisor: float = 25.0, final_divisor: float = 1e4
) -> Schedule:
    """Rise to `peak` and fall far below the start, each by half a cosine: torch's OneCycleLR, two phases.

    Parameters
    ----------
    peak : float
        The largest value.
    steps : int
        Steps of the whole cycle; the value of the last one, step ``steps - 1``, stays from there on.
    rise : float
        The share of the steps that rise, in [0, 1].
    start_divisor : float
        The first value is ``peak / start_divisor``.
    final_divisor : float
        The last value is the first one divided by this.

    Raises
    ------
    ArgumentError, KindError
        On arguments out of range; the divisors are positive.

    References
    ----------
    L. N. Smith, N. Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning
    Rates", 2018, arXiv:1708.07120.

    Examples
    --------
    >>> from gbnn.training.schedules import one_cycle
    >>> schedule = one_cycle(1.0, steps=10)
    >>> [round(schedule(step), 3) for step in (0, 1, 2, 5, 9)]
    [0.04, 0.52, 1.0, 0.611, 0.0]
    """
    top = check_float("peak", peak)
    last = check_int("steps", steps, 1) - 1
    # The turn need not be a whole step, and lies before step 0 if less than one step rises: as in torch.
    turn = check_float("rise", rise, 0.0, 1.0) * (last + 1) - 1
    first = top / check_float("start_divisor", start_divisor, 0.0, open_low=True)
    final = first / check_float("final_divisor", final_divisor, 0.0, open_low=True)

    def at(step: int) -> float:
        if step < turn:
            return _anneal(first, top, step / turn)
        return _anneal(top, final, (min(step, last) - turn) / (last - turn)) if turn < last else top

    return at


def _anneal(start: float, end: float, share: float) -> float:
    """Half a cosine from start to end; exact at both ends, never beyond them."""
    weight = (1.0 + math.cos(math.pi * share)) / 2.0
    return start * weight + end * (1.0 - weight)

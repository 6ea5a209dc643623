"""`Clock`, and when to rewire: plain functions of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral

from gbnn.errors import ArgumentError, check_bool, check_float, check_int, check_list

__all__ = ["Clock", "When", "always", "doubling", "every_epoch", "every_steps", "never", "once"]


@dataclass(frozen=True)
class Clock:
    """Where training stands at one batch.

    Attributes
    ----------
    step : int
        Batches done before this one, over all epochs.
    epoch, epochs : int
        This epoch, from 0, and how many there are.
    last_in_epoch : bool
        Whether this is the epoch's last batch.
    total_steps : int or None
        Batches in all epochs; None where the batches have no length.

    Examples
    --------
    >>> from gbnn.topology import Clock
    >>> Clock(step=5, total_steps=200).end(0.75)
    150.0
    """

    step: int
    epoch: int = 0
    epochs: int = 1
    last_in_epoch: bool = False
    total_steps: int | None = None

    def end(self, until: float | int) -> float:
        """Return the step at which something ends: an int as it is, a float as a share of all steps."""
        if isinstance(until, Integral):  # NumPy's integers, too
            return int(until)
        if until == 0:
            return 0
        if self.total_steps is None:
            known = "a number of steps, because the batches have no length to take a share of"
            raise ArgumentError("until", known, until)
        return until * self.total_steps


When = Callable[[Clock], bool]


def check_until(until: float | int, where: str = "until", *, zero: bool = False) -> float | int:
    """Return `until` if it is a positive int or a share in (0, 1]; or 0, where `zero` allows it."""
    if isinstance(until, Integral):
        return check_int(where, until, 0 if zero else 1)
    return check_float(where, until, 0, 1, open_low=not zero)


def every_steps(n: int, until: float | int = 0.75, *, begin: float | int = 0, closing: bool = False) -> When:
    """Every `n` steps from `begin` on, not at step 0, before `until` (shares of all steps if floats).

    `closing` adds the first of them at or after `until`.

    Examples
    --------
    >>> from gbnn.topology import Clock, every_steps
    >>> when = every_steps(100, until=0.75)
    >>> [s for s in range(0, 1000, 50) if when(Clock(step=s, total_steps=1000))]
    [100, 200, 300, 400, 500, 600, 700]
    """
    check_int("n", n, 1)
    closing = check_bool("closing", closing)
    until, begin = check_until(until), check_until(begin, "begin", zero=True)

    def when(clock: Clock) -> bool:
        # The end comes first: where it is not known, that shows at the first step, not at step n.
        step, end = clock.step, clock.end(until) + (n if closing else 0)
        return max(clock.end(begin), 1) <= step < end and step % n == 0

    return when


def every_epoch(n: int = 1, *, skip_last: bool = True, until: float | int | None = None) -> When:
    """At the end of every `n`-th epoch, before `until` (see `every_steps`) if given.

    `skip_last` spares the last epoch, whose new edges would never be trained.

    Examples
    --------
    >>> from gbnn.topology import Clock, every_epoch
    >>> when = every_epoch()
    >>> [when(Clock(step=9, epoch=e, epochs=3, last_in_epoch=True)) for e in range(3)]
    [True, True, False]
    """
    check_int("n", n, 1)
    skip_last = check_bool("skip_last", skip_last)
    until = None if until is None else check_until(until)

    def when(clock: Clock) -> bool:
        early = until is None or clock.step < clock.end(until)
        last = skip_last and clock.epoch == clock.epochs - 1
        return early and clock.last_in_epoch and (clock.epoch + 1) % n == 0 and not last

    return when


def once(step: float | int) -> When:
    """At one step only (a share of all steps if a float).

    Examples
    --------
    >>> from gbnn.topology import Clock, once
    >>> [s for s in range(10) if once(0.5)(Clock(step=s, total_steps=10))]
    [5]
    """
    at = check_until(step, "step", zero=True)
    return lambda clock: clock.step == int(clock.end(at))


def doubling(first: int, steps: tuple[float | int, ...], until: float | int = 1.0) -> When:
    """Every `first` steps, and after each of `steps` (shares of all steps if floats) half as often.

    DSR's rewiring goes from 100 to 800 iterations apart so (Mostafa & Wang, 2019, arXiv:1902.05967).

    Examples
    --------
    >>> from gbnn.topology import Clock, doubling
    >>> when = doubling(10, (40,), until=100)
    >>> [s for s in range(120) if when(Clock(step=s))]
    [10, 20, 30, 40, 60, 80]
    """
    check_int("first", first, 1)
    listed = check_list("steps", steps, "a list of numbers")
    until, marks = check_until(until), [check_until(step, "steps", zero=True) for step in listed]

    def when(clock: Clock) -> bool:
        interval = first * 2 ** sum(clock.step >= clock.end(mark) for mark in marks)
        return 0 < clock.step < clock.end(until) and clock.step % interval == 0

    return when


def always(clock: Clock) -> bool:
    """At every step (DEEP-R).

    Examples
    --------
    >>> from gbnn.topology import Clock, always
    >>> always(Clock(step=0))
    True
    """
    return True


def never(clock: Clock) -> bool:
    """At no step: a static graph.

    Examples
    --------
    >>> from gbnn.topology import Clock, never
    >>> never(Clock(step=100))
    False
    """
    return False

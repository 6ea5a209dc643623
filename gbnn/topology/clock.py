"""When to rewire and how much: plain functions of the `Clock`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral

from gbnn.errors import ArgumentError, check_float, check_int

__all__ = ["Clock", "Fraction", "When", "constant", "cosine", "every_epoch", "every_steps"]


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
        if self.total_steps is None:
            known = "a number of steps, because the batches have no length to take a share of"
            raise ArgumentError("until", known, until)
        return until * self.total_steps


When = Callable[[Clock], bool]
Fraction = Callable[[Clock], float]


def check_until(until: float | int) -> float | int:
    """Return `until` if it is a positive int or a share in (0, 1]."""
    if isinstance(until, Integral):
        return check_int("until", until, 1)
    return check_float("until", until, 0, 1, open_low=True)


def every_steps(n: int, until: float | int = 0.75) -> When:
    """Every `n` steps, not at step 0, before the step `until` (a share of all steps if a float).

    Examples
    --------
    >>> from gbnn.topology import Clock, every_steps
    >>> when = every_steps(100, until=0.75)
    >>> [s for s in range(0, 1000, 50) if when(Clock(step=s, total_steps=1000))]
    [100, 200, 300, 400, 500, 600, 700]
    """
    check_int("n", n, 1)
    until = check_until(until)
    # The end comes first: where it is not known, that shows at the first step, not at step n.
    return lambda clock: clock.step < clock.end(until) and clock.step > 0 and clock.step % n == 0


def every_epoch(*, skip_last: bool = True) -> When:
    """At the end of every epoch; `skip_last` spares the last, whose new edges would never be trained.

    Examples
    --------
    >>> from gbnn.topology import Clock, every_epoch
    >>> when = every_epoch()
    >>> [when(Clock(step=9, epoch=e, epochs=3, last_in_epoch=True)) for e in range(3)]
    [True, True, False]
    """
    return lambda clock: clock.last_in_epoch and not (skip_last and clock.epoch == clock.epochs - 1)


def constant(fraction: float) -> Fraction:
    """Return the same share of edges each time.

    Examples
    --------
    >>> from gbnn.topology import Clock, constant
    >>> constant(0.3)(Clock(step=5))
    0.3
    """
    share = check_float("fraction", fraction, 0, 1)
    return lambda clock: share


def cosine(fraction: float, until: float | int = 0.75) -> Fraction:
    """Fall from `fraction` to 0 along half a cosine, f(t) = fraction/2·(1 + cos(π·t/T)) (RigL).

    Examples
    --------
    >>> from gbnn.topology import Clock, cosine
    >>> share = cosine(0.3, until=1000)
    >>> [round(share(Clock(step=s)), 3) for s in (0, 500, 1000, 2000)]
    [0.3, 0.15, 0.0, 0.0]
    """
    share, until = check_float("fraction", fraction, 0, 1), check_until(until)
    return lambda clock: share / 2 * (1 + math.cos(math.pi * min(1.0, clock.step / clock.end(until))))

"""`Idle`: what a step of an optimizer does to a value whose gradient is zero, which decides how to be lazy.

A batch with sparse activations touches few edges. An optimizer that is lazy leaves the others alone and
catches up with what it owes an edge when somebody looks at it. How depends on what the missed steps would
have done:

==================================  ======================================================================
nothing (`still`)                   nothing is owed: sgd, adagrad
a linear map (`linear`)             one matrix for all missed steps: sgd with momentum, decay; rmsprop
its own closed form (`closed`)      adam without decay, adamw
something by value                  the missed steps are made again: adam, rmsprop, adagrad with decay
something over all values           it cannot be lazy: `clip_by_norm` after momentum or decay
==================================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

__all__ = ["Idle", "Table", "of_chain"]

Array = np.ndarray[Any, Any]


class Table(Protocol):
    """What the steps since all edges were last up to date do to an edge that had none of them, or some.

    Attributes
    ----------
    span : int
        How many steps it holds.
    """

    span: int

    def note(self, step: int) -> None:
        """Take in one more step, which has just been done."""

    def clear(self) -> None:
        """Forget all steps: every edge has had them."""

    def catch_up(
        self, values: Array, slots: Mapping[str, Array], positions: Array | None, seen: Array, count: int
    ) -> None:
        """Give the edges at `positions`, all for None, the steps they missed, in place.

        Edge e has had ``seen[e]`` of the `count` steps; afterwards all.
        """


@dataclass(frozen=True)
class Idle:
    """What a step does to a value whose gradient is zero.

    Attributes
    ----------
    still : bool
        Nothing: value and slots stay what they are.
    quiet : bool
        The update is zero, whatever becomes of the slots.
    linear : bool
        Value and slots become linear functions of value and slots.
    by_value : bool
        A value's step depends on nothing but its own gradient, value and slots; otherwise only zero gradients
        may come in.
    linear_in_gradient : bool
        With a gradient, too: linear functions of it, value and slots.
    closed : callable, optional
        ``closed(prefix) -> Table``: a closed form of its own, for slots whose names have this prefix.

    Examples
    --------
    >>> from gbnn.training import adagrad, sgd
    >>> adagrad(0.1).idle("w").still, sgd(0.1, momentum=0.9).idle("w").still
    (True, False)
    """

    still: bool = False
    quiet: bool = False
    linear: bool = False
    by_value: bool = True
    linear_in_gradient: bool = False
    closed: Callable[[str], Table] | None = None


def of_chain(parts: Sequence[Idle | None]) -> Idle | None:
    """Return what a chain of transforms does to a value whose gradient is zero; None if it cannot be lazy."""
    silent, linear = True, True
    closed: Callable[[str], Table] | None = None
    for i, part in enumerate(parts):
        if part is None:
            return None
        if silent:  # the gradient that comes in is still zero
            linear &= part.linear
            silent = part.quiet
            if part.closed is not None and i == len(parts) - 1 and all(p and p.still for p in parts[:i]):
                closed = _prefixed(part.closed, f"{i}.")
        else:
            if not part.by_value:
                return None
            linear &= part.linear_in_gradient
    known = [part for part in parts if part is not None]
    return Idle(
        still=all(part.still for part in known),
        quiet=silent,
        linear=linear,
        by_value=all(part.by_value for part in known),
        linear_in_gradient=all(part.linear_in_gradient for part in known),
        closed=closed,
    )


def _prefixed(closed: Callable[[str], Table], own: str) -> Callable[[str], Table]:
    return lambda prefix: closed(prefix + own)

"""Which layers take part: the choices recipes offer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gbnn.errors import KindError
from gbnn.topology.rewiring import not_full
from gbnn.topology.schedules import Fraction, constant
from gbnn.topology.site import Site

__all__ = ["by_place", "over_time", "those"]


def by_place(rewire_output: bool) -> Callable[[Site], bool]:
    """Let every layer with edges take part, full ones too, but perhaps the last."""
    _check(rewire_output)
    return lambda site: rewire_output or site.index < site.count - 1


def but_output(site: Site) -> bool:
    """Let all but full layers and the last take part."""
    return not_full(site) and site.index < site.count - 1


def those(rewire_output: bool) -> Callable[[Site], bool]:
    """Return `not_full` or, without the output layer, `but_output`."""
    _check(rewire_output)
    return not_full if rewire_output else but_output


def _check(rewire_output: bool) -> None:
    if not isinstance(rewire_output, bool | np.bool_):
        raise KindError("rewire_output", "True or False", repr(rewire_output))


def over_time(fraction: float | Fraction, schedule: Callable[[float], Fraction] = constant) -> Fraction:
    """Return a function of the clock as it is, and make one of a number."""
    return fraction if callable(fraction) else schedule(fraction)

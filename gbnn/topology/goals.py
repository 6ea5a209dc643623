"""How many edges the layers have together after a rewiring: functions (sites, clock) -> edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gbnn.errors import check_float, check_function
from gbnn.topology.clock import Clock
from gbnn.topology.schedules import Fraction
from gbnn.topology.site import Site

__all__ = ["Goal", "at_start", "from_start", "never_more", "relative", "to_density"]

Goal = Callable[[Sequence[Site], Clock], int]
START = "edges at the start"


def at_start(site: Site) -> int:
    """Return how many edges a layer had when this was first asked; `Memory.layer` keeps it.

    Examples
    --------
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.goals import at_start
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0, 1], [0, 1], 1.0, shape=(10, 10)))
    >>> first = at_start(site)
    >>> change = site.rewire([0], [], [])
    >>> first, at_start(site)
    (2, 2)
    """
    return int(site.memory.layer.setdefault(START, np.array(site.weights.nnz)))


def to_density(density: Fraction) -> Goal:
    """Go by a density over time: that share of all places of the layers taking part.

    Examples
    --------
    >>> from gbnn.topology import Clock, Site, constant, to_density
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(10, 10)))
    >>> to_density(constant(0.25))([site], Clock(step=0))
    25
    """
    check_function("density", density)

    def goal(sites: Sequence[Site], clock: Clock) -> int:
        return round(check_float("density", density(clock), 0, 1) * sum(site.places for site in sites))

    return goal


def from_start(density: float, along: Fraction) -> Goal:
    """Go from the edges of the start to a density, as `along` goes from 1 to 0.

    Fewer edges or more: dense to sparse, or sparse to denser.

    Parameters
    ----------
    density : float
        At the end, in [0, 1]: a share of all places of the layers taking part.
    along : callable
        ``(clock) -> share`` of the way that is left: ``cubic(1.0, 0.0)``, ``linear(1.0)``.

    Examples
    --------
    >>> from gbnn.topology import Clock, Site, cubic, from_start
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo(range(10), range(10), 1.0, shape=(10, 10)))
    >>> goal = from_start(0.02, cubic(1.0, 0.0, end=100))
    >>> [goal([site], Clock(step=s)) for s in (0, 50, 100)]
    [10, 3, 2]
    """
    check_float("density", density, 0, 1)
    check_function("along", along)

    def goal(sites: Sequence[Site], clock: Clock) -> int:
        first, last = sum(map(at_start, sites)), density * sum(site.places for site in sites)
        return round(last + (first - last) * check_float("along", along(clock), 0, 1))

    return goal


def never_more(goal: Goal) -> Goal:
    """Follow a goal downwards only: where it asks for more edges than there are, nothing grows.

    So pruning goes on as it should where training is resumed over more steps, and the schedule stands earlier
    than it did; and a model sparser than the goal is left alone.

    Examples
    --------
    >>> from gbnn.topology import Clock, Site, constant, to_density
    >>> from gbnn.topology.goals import never_more
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(10, 10)))
    >>> never_more(to_density(constant(0.25)))([site], Clock(step=0))
    1
    """
    return lambda sites, clock: min(goal(sites, clock), sum(site.weights.nnz for site in sites))


def relative(factor: Callable[[Clock], float]) -> Goal:
    """Have a multiple of the edges of the start, at most as many as there are places.

    Examples
    --------
    >>> from gbnn.topology import Clock, Site, relative
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo(range(10), range(10), 1.0, shape=(10, 10)))
    >>> relative(lambda clock: 1.2)([site], Clock(step=0))
    12
    """
    check_function("factor", factor)

    def goal(sites: Sequence[Site], clock: Clock) -> int:
        wanted = check_float("factor", factor(clock), 0) * sum(map(at_start, sites))
        return min(round(wanted), sum(site.places for site in sites))

    return goal

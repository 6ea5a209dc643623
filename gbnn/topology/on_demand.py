"""`OnDemand`: a layer that begins with no edges and gets them from what appears in data, up to a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.edges import Change, Edges
from gbnn.errors import ArgumentError, check_float, check_function, check_int
from gbnn.layers import Initializer, zeros
from gbnn.sampling import MAX_EDGES
from gbnn.semirings import ActiveGradient
from gbnn.topology import rewired
from gbnn.topology.clock import Clock, When
from gbnn.topology.grow.offers import Offer
from gbnn.topology.prune.rules import Prune, count_of, smallest
from gbnn.topology.rewired import Rewired
from gbnn.topology.rewiring import started
from gbnn.topology.schedules import Fraction
from gbnn.topology.scores import Score, checked, size
from gbnn.topology.site import EachStep, Site
from gbnn.topology.use import times_touched

__all__ = ["OnDemand", "sparse_inputs"]

Array = np.ndarray[Any, Any]


def sparse_inputs(site: Site) -> bool:
    """Whether a layer has got a sparse batch from outside the network, not from a layer before it."""
    return site.follows is None and isinstance(site.gradient, ActiveGradient)


@dataclass(frozen=True)
class OnDemand:
    """Give layers edges where data ask for them, never more than a budget; and drop those out of use.

    Each rewiring of a layer, in this order: what `idle` says goes. What `offer` offers comes, up to the
    budget, and at most a share `pace` of it. Where the budget is full, offers take the place of edges of
    lowest `score`, but only of those that had their chance, at most a share `exchange` of the budget.

    Attributes
    ----------
    budget : int or callable
        Edges that a layer may have; or ``(site) -> edges``.
    offer : callable
        ``(site, count, rng) -> (sources, targets)``, at most `count` absent edges, the best first.
    when : callable
        ``(clock) -> bool``.
    idle : callable
        A prune rule, ``(site, fraction, rng) -> positions``; called with a fraction of 0.
    pace, exchange : callable
        ``(clock) -> share`` of the budget, in [0, 1].
    score : callable
        ``(site) -> score of each edge``. Where there are more edges than the budget, the lowest go, too.
    trial : int
        Batches that must have touched an edge before another may take its place: at 0 a new one, of weight
        0, would be the first to go. More than 0 needs `track_use` in `each_step`.
    start : callable
        Values of new edges.
    layers : callable
        ``(site) -> bool``: which take part. Default: those that get sparse batches from outside.
    each_step : sequence of callable
        What is noted at every step, each ``(site, clock, rng)``.

    Notes
    -----
    Time of a rewiring is O(nnz + active), that of a step O(active), whatever the width. `grow_on_demand`
    makes one.

    Raises
    ------
    ArgumentError, KindError
        If a part is none. When rewiring, if no layer takes part, or a rule does not keep to what is said of
        it here; nothing has moved then.
    """

    budget: int | Callable[[Site], int]
    offer: Offer
    when: When
    idle: Prune
    pace: Fraction
    exchange: Fraction
    score: Score = size
    trial: int = 0
    start: Initializer = zeros
    layers: Callable[[Site], bool] = sparse_inputs
    each_step: Sequence[EachStep] = ()

    def __post_init__(self) -> None:
        if not callable(self.budget):
            check_int("budget", self.budget, 0, MAX_EDGES)
        for part in ("offer", "when", "idle", "pace", "exchange", "score", "start", "layers"):
            check_function(part, getattr(self, part))
        check_int("trial", self.trial, 0)
        for k, rule in enumerate(self.each_step):
            check_function(f"each_step[{k}]", rule)

    @property
    def watches(self) -> bool:
        """Whether something is noted at every step."""
        return bool(self.each_step)

    def due(self, clock: Clock) -> bool:
        """Return whether to rewire at this step."""
        return self.when(clock)

    def skips_update(self, clock: Clock) -> bool:
        """Return False: weights are updated at every step."""
        return False

    def watch(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> None:
        """Note what each layer that takes part has seen."""
        for site in places:
            if self.layers(site):
                for note in self.each_step:
                    note(site, clock, rng)

    def apply(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> list[Rewired]:
        """Rewire now, in place; see `Rewiring.apply`."""
        chosen = [site for site in places if self.layers(site)]
        if not chosen:
            wanted = "a layer that gets sparse batches (or `layers` of your own)"
            raise ArgumentError("grow_on_demand", wanted, [site.name for site in places])
        pace, exchange = (
            check_float(name, getattr(self, name)(clock), 0, 1) for name in ("pace", "exchange")
        )
        moves = [self._move(site, pace, exchange, rng) for site in chosen]
        result = []
        for site, (edges, change, values, gone) in zip(chosen, moves, strict=True):
            rewired.start_exploring(site)
            site.move(edges, change, values)
            result.append(rewired.record(site, change, gone))
        return result

    def _move(
        self, site: Site, pace: float, exchange: float, rng: np.random.Generator
    ) -> tuple[Edges, Change, Any, int]:
        """Return a layer's edges as they will be, what changes, values of new ones, and how many go."""
        site.check()
        nnz, places = site.weights.nnz, site.places
        budget = self.budget(site) if callable(self.budget) else self.budget
        budget = min(check_int("budget", budget, 0, MAX_EDGES), places)
        goes = np.zeros(nnz, dtype=bool)
        goes[self.idle(site, 0.0, rng)] = True
        left = nnz - int(np.count_nonzero(goes))
        self._go(site, goes, left - budget, 0)
        left = min(left, budget)
        room = budget - left
        may_come = max(min(room, count_of(pace, budget)), count_of(exchange, budget))
        sources, targets = self._offered(site, min(may_come, site.free), rng)
        # What finds no room comes for an edge that goes.
        left -= self._go(site, goes, min(sources.size - room, count_of(exchange, budget)), self.trial)
        come = min(sources.size, budget - left)
        edges = site.weights.edges
        gone = np.flatnonzero(goes)
        try:
            after, change, _ = edges.rewired(gone, sources[:come], targets[:come])
        except ArgumentError as error:
            raise ArgumentError(f"offer, {site.name}", "absent edges, each once", error.got) from None
        return after, change, started(self.start, site, after, change.new, rng), gone.size

    def _go(self, site: Site, goes: Array, count: int, trial: int) -> int:
        """Mark at most `count` more edges, those of lowest score that had their chance; return how many."""
        if count <= 0:
            return 0
        may = np.flatnonzero(~goes if trial == 0 else ~goes & (times_touched(site) >= trial))
        weak = may[smallest(checked(self.score, site)[may], count)]
        goes[weak] = True
        return weak.size

    def _offered(self, site: Site, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        if not count:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        sources, targets = self.offer(site, count, rng)
        if sources.shape != targets.shape or sources.size > count:
            raise ArgumentError(f"offer, {site.name}", f"at most {count} edges", sources.size)
        if (site.weights.edges.find(sources, targets) >= 0).any():
            raise ArgumentError(f"offer, {site.name}", "absent edges", "one that is there")
        return sources, targets

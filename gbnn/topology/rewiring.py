"""`Rewiring`: prune x grow x when x fraction x allocate, over all layers of a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gbnn.edges import Change, Edges, check_indices
from gbnn.errors import ArgumentError, GbnnError, KindError, check_float, check_int
from gbnn.layers import Initializer, zeros
from gbnn.layers.init import drawn
from gbnn.topology import rewired
from gbnn.topology.clock import Clock, When
from gbnn.topology.goals import Goal
from gbnn.topology.grow.rules import Grow
from gbnn.topology.prune.rules import Prune
from gbnn.topology.rates import Rates, equal
from gbnn.topology.redistribute import Allocate, same
from gbnn.topology.rewired import Rewired
from gbnn.topology.schedules import Fraction
from gbnn.topology.site import EachStep, Site

__all__ = ["Rewiring", "not_full"]

Array = np.ndarray[Any, Any]
AlsoDrop = Callable[[Sequence[Site], Sequence[Array]], list[Array]]


PARTS = {
    "prune": ("site", "fraction", "rng"),
    "grow": ("site", "dropped", "count", "rng"),
    "when": ("clock",),
    "fraction": ("clock",),
    "rates": ("sites", "fraction"),
    "also_drop": ("sites", "dropped"),
    "goal": ("sites", "clock"),
    "allocate": ("sites", "dropped", "total"),
    "start": ("rng", "fan_in", "fan_out"),
    "layers": ("site",),
    "each_step": ("site", "clock", "rng"),
}
"""What each function of a `Rewiring` is called with."""


def not_full(site: Site) -> bool:
    """Whether a layer has absent edges to choose from, or had when this was first asked.

    A layer that is made full is left alone; one that has filled up by rewiring goes on taking part.
    """
    return not site.memory.layer.setdefault("full at the start", np.array(site.free == 0))


@dataclass(frozen=True, repr=False)
class Rewiring:
    """How and when a network's edges move. Recipes (`set_`, `rigl`, ...) are ready-made ones.

    Attributes
    ----------
    prune : callable
        ``(site, fraction, rng) -> positions`` of edges that go.
    grow : callable
        ``(site, dropped, count, rng) -> (sources, targets)`` of edges that come.
    when : callable
        ``(clock) -> bool``.
    fraction : callable
        ``(clock) -> share`` of the edges that go, in [0, 1].
    rates : callable
        ``(sites, fraction) -> a fraction for each layer``: which layers drop how much.
    also_drop : callable, optional
        ``(sites, dropped) -> dropped``, positions a layer: more edges that go with those that prune chose
        (percolation).
    goal : callable, optional
        ``(sites, clock) -> edges`` that these layers have together afterwards (see `to_density`). None: as
        many as before. Where that is less than `fraction` leaves, more are dropped.
    allocate : callable
        ``(sites, dropped, total) -> grown counts``; their sum is `total`.
    start : callable
        Values of new edges, ``(rng, fan_in, fan_out) -> values`` as for a new layer.
    replaces_update : bool
        Whether a step that rewires leaves out its weight update (RigL).
    keep_regrown : bool
        Whether an edge dropped and grown again at once keeps its weight and state, or starts anew.
    layers : callable
        ``(site) -> bool``: which layers take part.
    each_step : callable, optional
        ``(site, clock, rng)``, called for every layer that takes part at every step, after the weights'
        update: to remember gradients in `Site.memory`, or to add noise to weights.

    Raises
    ------
    KindError
        If a part that must be a function is none.

    Examples
    --------
    >>> from gbnn import topology
    >>> rewiring = topology.Rewiring(
    ...     prune=topology.magnitude,
    ...     grow=topology.random,
    ...     when=topology.every_steps(100),
    ...     fraction=topology.constant(0.2),
    ... )
    >>> rewiring
    Rewiring(prune=magnitude, grow=random, when=every_steps, fraction=constant)
    """

    prune: Prune
    grow: Grow
    when: When
    fraction: Fraction
    rates: Rates = equal
    also_drop: AlsoDrop | None = None
    goal: Goal | None = None
    allocate: Allocate = same
    start: Initializer = zeros
    replaces_update: bool = False
    keep_regrown: bool = True
    layers: Callable[[Site], bool] = not_full
    each_step: EachStep | None = None

    def __post_init__(self) -> None:
        for part, takes in PARTS.items():
            rule = getattr(self, part)
            optional = part in ("also_drop", "goal", "each_step")
            if rule is None and optional:
                continue
            if not callable(rule):
                wanted = "a function or None" if optional else "a function"
                raise KindError(part, wanted, repr(rule))
            try:
                inspect.signature(rule).bind(*takes)
            except TypeError:
                name = getattr(rule, "__name__", repr(rule))
                wanted = f"a function ({', '.join(takes)}); one that makes one is called first"
                raise KindError(part, wanted, name) from None
            except ValueError:  # a function of C that does not say what it takes
                pass

    def __repr__(self) -> str:
        # Each function by the name of what made it, and only what is not the default.
        said = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        return f"Rewiring({', '.join(f'{name}={_named(part)}' for name, part in said)})"

    def due(self, clock: Clock) -> bool:
        """Return whether to rewire at this step."""
        return self.when(clock)

    def skips_update(self, clock: Clock) -> bool:
        """Return whether it rewires at this step instead of the weight update."""
        return self.replaces_update and self.when(clock)

    @property
    def watches(self) -> bool:
        """Whether there is something to do at every step."""
        return self.each_step is not None

    def watch(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> None:
        """Do what `each_step` does, layer by layer."""
        if self.each_step is not None:
            for site in places:
                if _yes(self.layers(site)):
                    self.each_step(site, clock, rng)

    def apply(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> list[Rewired]:
        """Rewire the layers now; their weights, optimizer slots and memory change in place.

        Parameters
        ----------
        places : sequence of Site
            From `sites`.
        clock : Clock
        rng : numpy.random.Generator

        Returns
        -------
        list of Rewired
            One for each layer that takes part. The number of their edges is `goal`, or what it was.

        Raises
        ------
        ArgumentError
            If a rule does not keep to what is said of it above: a share outside [0, 1], counts of another
            sum, more edges than are free, an edge that is kept or comes twice.
        """
        for site in places:
            if site.name.rsplit(".", 1)[-1] == "reserve":
                wanted = "layers without a reserve (top_kast rewires those that have one)"
                raise ArgumentError("rewiring", wanted, site.name)
        chosen = [site for site in places if _yes(self.layers(site))]
        fraction = check_float("fraction", self.fraction(clock), 0, 1)
        now = sum(site.weights.nnz for site in chosen)
        room = sum(site.places for site in chosen)
        goal = now if self.goal is None else check_int("goal", self.goal(chosen, clock), 0, room)
        dropped = self._dropped(chosen, fraction, now, goal, rng)
        total = goal - now + sum(gone.size for gone in dropped)
        free = [site.free + gone.size for site, gone in zip(chosen, dropped, strict=True)]
        counts = _counts(self.allocate(chosen, dropped, total), free, total)
        grown = [
            _ends(site, count, self.grow(site, gone, count, rng))
            for site, gone, count in zip(chosen, dropped, counts, strict=True)
        ]
        # All layers are found to be right before the first one moves.
        moves = [
            self._moved(site, gone, *new, rng) for site, gone, new in zip(chosen, dropped, grown, strict=True)
        ]
        result = []
        for site, (edges, change, values), gone in zip(chosen, moves, dropped, strict=True):
            rewired.start_exploring(site)
            site.move(edges, change, values)
            result.append(rewired.record(site, change, gone.size))
        return result

    def _dropped(
        self, chosen: Sequence[Site], fraction: float, now: int, goal: int, rng: np.random.Generator
    ) -> list[Array]:
        """Return the positions that go: what `fraction` says, and enough to come down to `goal`."""
        if goal < now:
            fraction = max(fraction, (now - goal) / now)
        rates = self.rates(chosen, fraction)
        if not isinstance(rates, Sequence | np.ndarray):
            raise KindError("rates", f"{len(chosen)} fractions, one a layer", type(rates).__name__)
        if len(rates) != len(chosen):
            raise ArgumentError("rates", f"{len(chosen)} fractions, one a layer", len(rates))
        rates = [check_float(f"rates[{k}]", rate, 0, 1) for k, rate in enumerate(rates)]
        dropped = [
            _positions(site, self.prune(site, rate, rng)) for site, rate in zip(chosen, rates, strict=True)
        ]
        if self.also_drop is not None:
            more = self.also_drop(chosen, dropped)
            if not isinstance(more, Sequence) or len(more) != len(chosen):
                raise ArgumentError("also_drop", f"{len(chosen)} arrays of positions", more)
            dropped = [_positions(site, gone) for site, gone in zip(chosen, more, strict=True)]
        # Shares are rounded down in every layer, so a few edges too many may be left: they go one by one,
        # the next in the layers that have most.
        over = now - sum(gone.size for gone in dropped) - goal
        left = [site.weights.nnz - gone.size for site, gone in zip(chosen, dropped, strict=True)]
        for k in sorted(range(len(chosen)), key=lambda k: -left[k]):
            if over > 0 and left[k] > 0:
                nnz, size = chosen[k].weights.nnz, dropped[k].size
                dropped[k] = _positions(chosen[k], self.prune(chosen[k], (size + 1) / nnz, rng))
                over -= dropped[k].size - size
        if over > 0:
            raise ArgumentError("prune", f"rules that drop at least {now - goal} edges", now - goal - over)
        return dropped

    def _moved(
        self, site: Site, dropped: Array, sources: Array, targets: Array, rng: np.random.Generator
    ) -> tuple[Edges, Change, Any]:
        """Return a layer's edges as they will be, what changes, and the values of new edges."""
        site.check()
        try:
            edges = site.weights.edges
            after, change, _ = edges.rewired(dropped, sources, targets, keep_regrown=self.keep_regrown)
        except ArgumentError as error:
            wanted = "each edge once, and none that is kept"
            raise ArgumentError(f"grow, {site.name}", wanted, error.got) from None
        return after, change, started(self.start, site, after, change.new, rng)


def started(start: Initializer, site: Site, edges: Edges, new: Array, rng: np.random.Generator) -> Any:
    """Return the values of a layer's new edges, at positions `new` of `edges`; or raise, naming the layer."""
    if start is zeros or not new.size:
        return 0.0
    fan_in, fan_out = edges.fans()
    try:
        return drawn(start, rng, fan_in[new], fan_out[new], site.weights.dtype)
    except GbnnError as error:
        raise type(error)(f"start, {site.name}", error.expected, error.got) from None


def _named(part: Any) -> str:
    return str(getattr(part, "__qualname__", repr(part))).split(".<locals>")[0]


def _yes(answer: Any) -> bool:
    """Return what `layers` says of a layer, or raise."""
    if not isinstance(answer, bool | np.bool_):
        raise KindError("layers", "True or False", type(answer).__name__)
    return bool(answer)


def _positions(site: Site, gone: Any) -> Array:
    """Return what a prune rule gave as distinct positions, or raise."""
    where = f"prune, {site.name}"
    positions = check_indices(where, gone, site.weights.nnz)
    seen = np.zeros(site.weights.nnz, dtype=bool)
    seen[positions] = True
    if np.count_nonzero(seen) < positions.size:
        raise ArgumentError(where, "each position once", f"{positions.size} positions, some twice")
    return positions


def _counts(counts: Any, free: list[int], total: int) -> list[int]:
    """Return what an allocation gave as numbers of edges that sum to `total` and find room, or raise."""
    if not isinstance(counts, Sequence | np.ndarray):
        raise KindError("allocate", "a list of counts", type(counts).__name__)
    each = [check_int("allocate", count, 0) for count in counts]
    if len(each) != len(free) or sum(each) != total:
        raise ArgumentError("allocate", f"{len(free)} counts, {total} edges in all", each)
    for k, (count, room) in enumerate(zip(each, free, strict=True)):
        check_int(f"allocate[{k}]", count, 0, room)
    return each


def _ends(site: Site, count: int, grown: Any) -> tuple[Array, Array]:
    """Return what a grow rule gave as the sources and targets of `count` edges, or raise."""
    where = f"grow, {site.name}"
    if not isinstance(grown, tuple | list) or len(grown) != 2:
        raise KindError(where, "a pair (sources, targets)", type(grown).__name__)
    ends = []
    for side, came, size in zip(("sources", "targets"), grown, site.weights.shape, strict=True):
        ends.append(check_indices(f"{where}, {side}", came, size))
        if ends[-1].size != count:
            raise ArgumentError(f"{where}, {side}", f"{count} edges", ends[-1].size)
    return ends[0], ends[1]

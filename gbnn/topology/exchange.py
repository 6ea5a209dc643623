"""Top-KAST's rewiring: the strongest edges of two sets are used, the others trained in reserve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_float
from gbnn.layers import Initializer, zeros
from gbnn.sampling import distinct_edges
from gbnn.topology import rewired
from gbnn.topology.clock import Clock, When
from gbnn.topology.prune.rules import count_of, smallest
from gbnn.topology.rewired import Rewired
from gbnn.topology.rewiring import started
from gbnn.topology.schedules import Fraction
from gbnn.topology.scores import checked
from gbnn.topology.scores import size as of_weights
from gbnn.topology.site import Site

__all__ = ["Exchange"]

Array = np.ndarray[Any, Any]
WEIGHTS, RESERVE = "weights", "reserve"


@dataclass(frozen=True)
class Exchange:
    """Of a layer's weights and reserve (`layers.ReserveLinear`) the strongest become the weights.

    Both keep their numbers of edges. An edge that changes sides takes its value, its optimizer state and its
    `Memory` along. Then the `fraction` of the reserve that is weakest, those that have just come included, is
    drawn anew at random, where neither set had an edge.

    Attributes
    ----------
    when : callable
        ``(clock) -> bool``.
    fraction : callable
        ``(clock) -> share`` of the reserve that is drawn anew.
    start : callable
        Values of those, as for a new layer.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> layer = layers.ReserveLinear.of(layers.Linear.from_dense([[0.1, 0.0], [0.0, 3.0]]), 1, seed=0)
    >>> layer.reserve.assign(2.0)
    >>> exchange = topology.Exchange(topology.every_steps(1), topology.constant(0.0))
    >>> done = exchange.apply(topology.sites(layer.parameters()), topology.Clock(1), np.random.default_rng(0))
    >>> layer.weights.values, layer.reserve.values
    (array([2., 3.]), array([0.1]))
    """

    when: When
    fraction: Fraction
    start: Initializer = zeros
    watches: bool = False

    def __post_init__(self) -> None:
        for part in ("when", "fraction", "start"):
            if not callable(getattr(self, part)):
                raise KindError(part, "a function", repr(getattr(self, part)))

    def due(self, clock: Clock) -> bool:
        """Return whether to exchange at this step."""
        return self.when(clock)

    def skips_update(self, clock: Clock) -> bool:
        """Return False: weights are updated at every step."""
        return False

    def watch(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> None:
        """Do nothing: it does not watch."""

    def apply(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> list[Rewired]:
        """Exchange edges now, in place; see `Rewiring.apply`.

        Raises
        ------
        ArgumentError
            If no layer has edges in reserve.
        """
        share = check_float("fraction", self.fraction(clock), 0, 1)
        by_name = {site.name: site for site in places}
        pairs = [(by_name[_beside(name)], site) for name, site in by_name.items() if _is(RESERVE, name)]
        if not pairs:
            wanted = "layers with edges in reserve (layers.ReserveLinear)"
            raise ArgumentError("top_kast", wanted, f"only {list(by_name)}")
        return [done for first, second in pairs for done in self._exchange(first, second, share, rng)]

    def _exchange(self, first: Site, second: Site, share: float, rng: np.random.Generator) -> list[Rewired]:
        size = np.concatenate([checked(of_weights, site) for site in (first, second)])
        used, many = first.weights.nnz, second.weights.nnz
        weak = smallest(size, many)  # the reserve as it will be, before its weakest go
        used_stay, many_stay = np.ones(used, dtype=bool), np.zeros(many, dtype=bool)
        used_stay[weak[weak < used]] = False
        many_stay[weak[weak >= used] - used] = True
        taken, _, _ = first.weights.edges.rewired([], second.weights.sources, second.weights.targets)
        # No more than there are places where neither had an edge.
        gone = weak[smallest(size[weak], min(count_of(share, many), first.places - taken.nnz))]
        anew = distinct_edges(rng, taken.shape, gone.size, taken)
        down, up = np.flatnonzero(~used_stay), np.flatnonzero(~many_stay)
        from_first, from_second = _state(first, np.setdiff1d(down, gone)), _state(second, up)
        lost = np.setdiff1d(gone, down) - used
        first.check()
        second.check()
        moves = [
            _planned(first, down, from_second, (anew[0][:0], anew[1][:0]), self.start, rng),
            _planned(second, np.append(up, lost), from_first, anew, self.start, rng),
        ]
        return [move() for move in moves]  # only once all is known to be right


Arrays = dict[str, Array]


@dataclass(frozen=True)
class _Edges:
    """Edges that change sides, with all that is known of them."""

    sources: Array
    targets: Array
    values: Array
    slots: Arrays
    memory: Arrays


def _state(site: Site, at: Array) -> _Edges:
    """Return the edges at these positions."""
    weights = site.weights
    slots, memory = ({name: a[at] for name, a in held.items()} for held in (site.slots, site.memory.edges))
    return _Edges(weights.sources[at], weights.targets[at], weights.values[at], slots, memory)


def _planned(
    site: Site,
    dropped: Array,
    came: _Edges,
    anew: tuple[Array, Array],
    start: Initializer,
    rng: np.random.Generator,
) -> Callable[[], Rewired]:
    """Return what rewires one of the two sets; what comes from the other one brings its state along."""
    sources, targets = np.append(came.sources, anew[0]), np.append(came.targets, anew[1])
    edges, change, _ = site.weights.edges.rewired(dropped, sources, targets)
    new, at = change.new, edges.find(came.sources, came.targets)
    values = np.zeros(edges.nnz, dtype=site.weights.dtype)
    fresh = edges.find(*anew)
    values[fresh] = started(start, site, edges, fresh, rng)
    values[at] = came.values

    def move() -> Rewired:
        rewired.start_exploring(site)
        site.move(edges, change, values[new])
        for held, brought in ((site.slots, came.slots), (site.memory.edges, came.memory)):
            for name, array in held.items():
                if name in brought:
                    array[at] = brought[name]
        return rewired.record(site, change, dropped.size)

    return move


def _is(part: str, name: str) -> bool:
    return name.rsplit(".", 1)[-1] == part


def _beside(name: str) -> str:
    return f"{name[: -len(RESERVE)]}{WEIGHTS}"

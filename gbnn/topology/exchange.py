"""Top-KAST's rewiring: the strongest edges of two sets are used, the others trained in reserve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_float
from gbnn.layers import Initializer, zeros
from gbnn.layers.init import drawn
from gbnn.sampling import distinct_edges
from gbnn.topology import rewired
from gbnn.topology.clock import Clock, When
from gbnn.topology.prune.rules import count_of, smallest
from gbnn.topology.rewired import Rewired
from gbnn.topology.schedules import Fraction
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
        size = np.abs(np.concatenate([first.weights.values, second.weights.values]))
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
        return [
            _moved(first, down, *from_second, rng, self.start),
            _moved(second, np.append(up, lost), *from_first, rng, self.start, anew),
        ]


Arrays = dict[str, Array]


def _state(site: Site, at: Array) -> tuple[Array, Array, Array, Arrays, Arrays]:
    """Return ends, values, slots and memory of the edges at these positions."""
    weights = site.weights
    kept = [{name: array[at] for name, array in held.items()} for held in (site.slots, site.memory.edges)]
    return weights.sources[at], weights.targets[at], weights.values[at], kept[0], kept[1]


def _moved(
    site: Site,
    dropped: Array,
    sources: Array,
    targets: Array,
    values: Array,
    slots: Arrays,
    memory: Arrays,
    rng: np.random.Generator,
    start: Callable[..., Array],
    anew: tuple[Array, Array] | None = None,
) -> Rewired:
    """Rewire one of the two sets: what comes from the other one brings its state along."""
    more = anew or (sources[:0], targets[:0])
    rewired.start_exploring(site)
    change = site.rewire(dropped, np.append(sources, more[0]), np.append(targets, more[1]))
    edges, all_values = site.weights.edges, site.weights.values.copy()
    came, fresh = edges.find(sources, targets), edges.find(*more)
    all_values[came] = values
    if fresh.size:
        fan_in, fan_out = edges.fans()
        all_values[fresh] = drawn(start, rng, fan_in[fresh], fan_out[fresh], all_values.dtype)
    site.weights.assign(all_values)
    for held, brought in ((site.slots, slots), (site.memory.edges, memory)):
        for name, array in held.items():
            if name in brought:
                array[came] = brought[name]
    return rewired.record(site, change, dropped.size)


def _is(part: str, name: str) -> bool:
    return name.rsplit(".", 1)[-1] == part


def _beside(name: str) -> str:
    return f"{name[: -len(RESERVE)]}{WEIGHTS}"

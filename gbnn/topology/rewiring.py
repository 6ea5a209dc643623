"""`Rewiring`: prune x grow x when x fraction x allocate, over all layers of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.edges import Change
from gbnn.layers import Initializer, zeros
from gbnn.topology.clock import Clock, Fraction, When
from gbnn.topology.grow import Grow
from gbnn.topology.prune import Prune
from gbnn.topology.site import Site
from gbnn.weights import Weights

__all__ = ["Rewired", "Rewiring", "same", "sites"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rewired:
    """What a rewiring did to one layer.

    Attributes
    ----------
    name : str
        The parameter's name in the model.
    change : Change
        Where every edge went.
    regrown : int
        Edges that were dropped and grown again in the same rewiring (they are none of `change.dropped`).
    """

    name: str
    change: Change
    regrown: int


def same(sites: Sequence[Site], dropped: Sequence[int]) -> list[int]:
    """Let every layer grow as many edges as it dropped."""
    return list(dropped)


def not_full(site: Site) -> bool:
    """Whether a layer has absent edges to choose from."""
    return site.weights.nnz < site.weights.in_features * site.weights.out_features


@dataclass(frozen=True)
class Rewiring:
    """How and when a network's edges move. Recipes (`set_`, `rigl`) are ready-made ones.

    Attributes
    ----------
    prune : callable
        ``(site, fraction, rng) -> positions`` of edges that go.
    grow : callable
        ``(site, dropped, count, rng) -> (sources, targets)`` of edges that come.
    when : callable
        ``(clock) -> bool``.
    fraction : callable
        ``(clock) -> share`` of the edges.
    allocate : callable
        ``(sites, dropped counts) -> grown counts``; their sum is the number of dropped edges.
    start : callable
        Values of new edges, ``(rng, fan_in, fan_out) -> values`` as for a new layer.
    replaces_update : bool
        Whether a step that rewires leaves out its weight update (RigL).
    keep_regrown : bool
        Whether an edge dropped and grown again at once keeps its weight and state, or starts anew.
    layers : callable
        ``(site) -> bool``: which layers take part.

    Examples
    --------
    >>> from gbnn import topology
    >>> rewiring = topology.Rewiring(
    ...     prune=topology.magnitude,
    ...     grow=topology.random,
    ...     when=topology.every_steps(100),
    ...     fraction=topology.constant(0.2),
    ... )
    """

    prune: Prune
    grow: Grow
    when: When
    fraction: Fraction
    allocate: Callable[[Sequence[Site], Sequence[int]], list[int]] = same
    start: Initializer = zeros
    replaces_update: bool = False
    keep_regrown: bool = True
    layers: Callable[[Site], bool] = not_full

    def apply(self, places: Sequence[Site], clock: Clock, rng: np.random.Generator) -> list[Rewired]:
        """Rewire the layers now; their weights and optimizer slots change in place.

        Parameters
        ----------
        places : sequence of Site
            From `sites`.
        clock : Clock
        rng : numpy.random.Generator

        Returns
        -------
        list of Rewired
            One for each layer that takes part. The number of edges of the model is what it was.
        """
        chosen = [site for site in places if self.layers(site)]
        fraction = self.fraction(clock)
        dropped = [self.prune(site, fraction, rng) for site in chosen]
        counts = self.allocate(chosen, [d.size for d in dropped])
        grown = [
            self.grow(site, gone, count, rng)
            for site, gone, count in zip(chosen, dropped, counts, strict=True)
        ]
        return [
            self._change(site, gone, *new, rng) for site, gone, new in zip(chosen, dropped, grown, strict=True)
        ]

    def _change(
        self, site: Site, dropped: Array, sources: Array, targets: Array, rng: np.random.Generator
    ) -> Rewired:
        position = site.weights.edges.find(sources, targets)
        again = position[position >= 0]
        if self.keep_regrown and again.size:
            # Dropped and grown again: the edge simply stays, with its weight and all its state.
            dropped = np.setdiff1d(dropped, again, assume_unique=True)
            sources, targets = sources[position < 0], targets[position < 0]
        change = site.weights.rewire(dropped, sources, targets)
        new = change.new
        if new.size and self.start is not zeros:
            fan_in, fan_out = site.weights.edges.fans()
            values = site.weights.values.copy()
            values[new] = self.start(rng, fan_in[new], fan_out[new])
            site.weights.assign(values)
        for name, slot in site.slots.items():
            site.slots[name] = change.carry(slot)
        return Rewired(site.name, change, int(again.size))


def sites(
    parameters: Mapping[str, Any],
    gradients: Mapping[str, Any] | None = None,
    slots: Mapping[str, dict[str, Array]] | None = None,
) -> list[Site]:
    """Return the layers of a model that have edges, with what is known of each.

    Parameters
    ----------
    parameters : mapping
        ``model.parameters()``.
    gradients : mapping, optional
        What the pullback returned.
    slots : mapping, optional
        The optimizer's slots by parameter; the inner dictionaries are updated when edges move.

    Examples
    --------
    >>> from gbnn import layers, topology
    >>> model = layers.Chain(layers.Linear.random(8, 4, nnz=6, seed=0), layers.Dense.random(4, 2))
    >>> [site.name for site in topology.sites(model.parameters())]
    ['0.weights']
    """
    edged = {name: p for name, p in parameters.items() if isinstance(p, Weights)}
    return [
        Site(
            name,
            weights,
            None if gradients is None else gradients[name],
            {} if slots is None else slots[name],
            index,
            len(edged),
        )
        for index, (name, weights) in enumerate(edged.items())
    ]

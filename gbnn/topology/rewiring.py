"""`Rewiring`: prune x grow x when x fraction x allocate, over all layers of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.edges import Change, check_indices
from gbnn.errors import ArgumentError, KindError, check_float, check_int
from gbnn.layers import Initializer, zeros
from gbnn.layers.init import drawn
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
        Edges that were dropped and grown again in the same rewiring. Where they keep their weight
        (`Rewiring.keep_regrown`), `change` counts them neither as dropped nor as grown.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> model = layers.Linear.random(10, 10, nnz=16, seed=0)
    >>> always = lambda clock: True
    >>> half = topology.Rewiring(topology.magnitude, topology.random, always, topology.constant(0.5))
    >>> (done,) = half.apply(topology.sites(model.parameters()), topology.Clock(0), np.random.default_rng(0))
    >>> done.name, done.change.dropped, done.change.grown, done.regrown, model.nnz
    ('weights', 8, 8, 0, 16)
    """

    name: str
    change: Change
    regrown: int


def same(sites: Sequence[Site], dropped: Sequence[int]) -> list[int]:
    """Let every layer grow as many edges as it dropped.

    Examples
    --------
    >>> from gbnn import topology
    >>> topology.same([], [3, 5])
    [3, 5]
    """
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
        ``(clock) -> share`` of the edges, in [0, 1].
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

    def __post_init__(self) -> None:
        for part in ("prune", "grow", "when", "fraction", "allocate", "start", "layers"):
            if not callable(getattr(self, part)):
                raise KindError(part, "a function", repr(getattr(self, part)))

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

        Raises
        ------
        ArgumentError
            If a rule does not keep to what is said of it above: a share outside [0, 1], counts of another
            sum, more edges than are free, an edge that is kept or comes twice.
        """
        chosen = [site for site in places if self.layers(site)]
        fraction = check_float("fraction", self.fraction(clock), 0, 1)
        dropped = [_positions(site, self.prune(site, fraction, rng)) for site in chosen]
        before = [gone.size for gone in dropped]
        counts = _counts(self.allocate(chosen, before), len(chosen), sum(before))
        grown = [
            _ends(site, count, self.grow(site, gone, count, rng))
            for site, gone, count in zip(chosen, dropped, counts, strict=True)
        ]
        return [
            self._change(site, gone, *new, rng)
            for site, gone, new in zip(chosen, dropped, grown, strict=True)
        ]

    def _change(
        self, site: Site, dropped: Array, sources: Array, targets: Array, rng: np.random.Generator
    ) -> Rewired:
        position = site.weights.edges.find(sources, targets)
        again = position[position >= 0]
        if self.keep_regrown and again.size:
            # Dropped and grown again: the edge simply stays, with its weight and all its state.
            gone = np.setdiff1d(dropped, again)
            if gone.size != dropped.size - again.size:
                raise ArgumentError(f"grow, {site.name}", "each edge once, and none that is kept", "others")
            dropped, sources, targets = gone, sources[position < 0], targets[position < 0]
        change = site.weights.rewire(dropped, sources, targets)
        for name, slot in site.slots.items():  # at once, whatever comes of the values
            site.slots[name] = change.carry(slot)
        new = change.new
        if new.size and self.start is not zeros:
            fan_in, fan_out = site.weights.edges.fans()
            values = site.weights.values.copy()
            values[new] = drawn(self.start, rng, fan_in[new], fan_out[new], values.dtype)
            site.weights.assign(values)
        return Rewired(site.name, change, int(again.size))


def _positions(site: Site, gone: Any) -> Array:
    """Return what a prune rule gave as distinct positions, or raise."""
    where = f"prune, {site.name}"
    positions = check_indices(where, gone, site.weights.nnz)
    if np.unique(positions).size < positions.size:
        raise ArgumentError(where, "each position once", f"{positions.size} positions, some twice")
    return positions


def _counts(counts: Any, layers: int, total: int) -> list[int]:
    """Return what an allocation gave as numbers of edges that sum to `total`, or raise."""
    if not isinstance(counts, Sequence | np.ndarray):
        raise KindError("allocate", "a list of counts", type(counts).__name__)
    each = [check_int("allocate", count, 0) for count in counts]
    if len(each) != layers or sum(each) != total:
        raise ArgumentError("allocate", f"{layers} counts, {total} edges in all", each)
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


def sites(
    parameters: Mapping[str, Any],
    gradients: Mapping[str, Any] | None = None,
    slots: Mapping[str, dict[str, Array]] | None = None,
) -> list[Site]:
    """Return the layers of a model that have edges, with what is known of each.

    Their places (`Site.index`) are counted among all layers that have weights: parameters of edges, or arrays
    of two dimensions (those of `Dense`).

    Parameters
    ----------
    parameters : mapping
        ``model.parameters()``.
    gradients : mapping, optional
        What the pullback returned.
    slots : mapping, optional
        The optimizer's slots by parameter; the inner dictionaries are updated when edges move.

    Raises
    ------
    ArgumentError
        If two layers share their edges: they cannot move for one and stay for the other.

    Examples
    --------
    >>> from gbnn import layers, topology
    >>> model = layers.Chain(layers.Linear.random(8, 4, nnz=6, seed=0), layers.Dense.random(4, 2))
    >>> [site.name for site in topology.sites(model.parameters())]
    ['0.weights']
    """
    weighted = [name for name, p in parameters.items() if isinstance(p, Weights) or p.ndim > 1]
    edged = {name: p for name, p in parameters.items() if isinstance(p, Weights)}
    if len({id(p) for p in edged.values()}) < len(edged):
        raise ArgumentError("rewiring", "layers that share no weights", f"some of {list(edged)} do")
    return [
        Site(
            name,
            weights,
            None if gradients is None else gradients[name],
            {} if slots is None else slots[name],
            weighted.index(name),
            len(weighted),
        )
        for name, weights in edged.items()
    ]

"""SRigL's rules: constant fan-in, with ablation of the neurons that few salient edges enter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.errors import check_float, check_function
from gbnn.topology.clock import Clock
from gbnn.topology.grow.strongest import strongest_absent
from gbnn.topology.grow.strongest_into import strongest_into
from gbnn.topology.prune.rules import count_of, smallest
from gbnn.topology.schedules import Fraction
from gbnn.topology.scores import checked, size
from gbnn.topology.site import Site

__all__ = ["ConstantFanIn", "strongest_into"]

Array = np.ndarray[Any, Any]
PLANNED, GO, NEED = "planned", "srigl drop", "srigl need"


@dataclass(frozen=True)
class ConstantFanIn:
    """The four rules of SRigL, which have to agree: `goal`, `prune`, `allocate`, `grow` of a `Rewiring`.

    The salient edges of a layer are those of largest |w|, all but `fraction` of them, and as many absent ones
    as that fraction, of largest |gradient|. A neuron that fewer than max(1, ⌊ablation·k⌋) of them enter, k
    being its layer's fan-in, is ablated: no edge enters it any more. The others share the layer's edges:
    each gets k' = ⌊edges / neurons left⌋, first the strongest of its kept edges, then absent ones of largest
    |gradient|. So a layer has k'·(neurons left) edges, a few less than were planned. Lasby et al., 2024,
    arXiv:2305.02299.

    Parameters
    ----------
    fraction : callable
        ``(clock) -> share`` of the edges that may go.
    ablation : float
        γ, in [0, 1]; 0 ablates only neurons without any salient edge.

    Raises
    ------
    ArgumentError, KindError
        If `fraction` is no function or `ablation` out of range.
    NonFiniteError
        When rewiring, if a weight or a derivative is NaN or infinite.

    Examples
    --------
    >>> from gbnn import topology
    >>> rules = topology.ConstantFanIn(topology.cosine(0.3), 0.3)
    >>> rewiring = topology.Rewiring(
    ...     rules.prune,
    ...     rules.grow,
    ...     topology.every_steps(100),
    ...     rules.fraction,
    ...     goal=rules.goal,
    ...     allocate=rules.allocate,
    ...     replaces_update=True,
    ... )
    """

    fraction: Fraction
    ablation: float = 0.3

    def __post_init__(self) -> None:
        check_function("fraction", self.fraction)
        check_float("ablation", self.ablation, 0, 1)

    def goal(self, sites: Sequence[Site], clock: Clock) -> int:
        """Decide which edges go and how many each neuron needs; return how many there will be."""
        share = check_float("fraction", self.fraction(clock), 0, 1)
        return sum(self._plan(site, share) for site in sites)

    def _plan(self, site: Site, share: float) -> int:
        memory, edges = site.memory.layer, site.weights.edges
        (rows, columns), targets = edges.shape, edges.targets
        planned = int(memory.setdefault(PLANNED, np.array(edges.nnz)))
        ids = edges.by_target.ids
        strength = checked(size, site)
        entered_at_first = int(memory.setdefault("planned neurons", np.array(ids.size)))
        fan_in = planned // max(1, entered_at_first)
        weak = smallest(strength, count_of(share, edges.nnz))
        kept = np.ones(edges.nnz, dtype=bool)
        kept[weak] = False
        _, by_gradient = strongest_absent(site.probe, site.kept(weak), weak.size)
        entered = np.bincount(np.append(targets[kept], by_gradient), minlength=columns)
        last = site.index == site.count - 1
        active = np.flatnonzero(entered >= (1 if last else max(1, int(self.ablation * fan_in))))
        # The planned edges must find room: no neuron takes more than `rows`.
        least = -(-planned // rows)
        if active.size < least:
            neurons = np.flatnonzero(entered)
            active = np.sort(neurons[np.argsort(-entered[neurons], kind="stable")][:least])
        if last:
            active = np.union1d(active, ids)
        each = min(rows, planned // active.size) if active.size else 0
        stays = np.zeros(columns, dtype=bool)
        stays[active] = True
        kept &= stays[targets]
        held = np.bincount(targets[kept], minlength=columns)
        # Into a neuron that has more than it gets the strongest stay. Few have: only their edges are sorted.
        crowded = np.flatnonzero(kept & (held > each)[targets])
        crowded = crowded[np.lexsort((crowded, -strength[crowded], targets[crowded]))]
        rank = np.arange(crowded.size) - np.searchsorted(targets[crowded], targets[crowded])
        kept[crowded[rank >= each]] = False
        memory[GO] = np.flatnonzero(~kept)
        memory[NEED] = np.stack([active, each - np.minimum(held[active], each)])
        return each * active.size

    def prune(self, site: Site, fraction: float, rng: np.random.Generator) -> Array:
        """Return what was decided to go."""
        return site.memory.layer[GO]

    def allocate(self, sites: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
        """Return how many edges each layer needs."""
        return [int(site.memory.layer[NEED][1].sum()) for site in sites]

    def grow(self, site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Grow into each neuron what it needs, by the largest |gradient|."""
        del site.memory.layer[GO]
        return strongest_into(site.dense_probe, site.kept(dropped), *site.memory.layer.pop(NEED))

"""SRigL's rules: constant fan-in, with ablation of the neurons that few salient edges enter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import NonFiniteError, check_float
from gbnn.semirings import Probe
from gbnn.topology.clock import Clock
from gbnn.topology.prune import count_of, smallest
from gbnn.topology.schedules import Fraction
from gbnn.topology.site import Site
from gbnn.topology.strongest import strongest_absent

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
        check_float("ablation", self.ablation, 0, 1)

    def goal(self, sites: Sequence[Site], clock: Clock) -> int:
        """Decide which edges go and how many each neuron needs; return how many there will be."""
        share = check_float("fraction", self.fraction(clock), 0, 1)
        return sum(self._plan(site, share) for site in sites)

    def _plan(self, site: Site, share: float) -> int:
        memory, edges = site.memory.layer, site.weights.edges
        rows = edges.shape[0]
        planned = int(memory.setdefault(PLANNED, np.array(edges.nnz)))
        ids = edges.by_target.ids
        size = np.abs(site.weights.values)
        fan_in = planned // max(1, ids.size)
        weak = smallest(size, count_of(share, edges.nnz))
        kept = np.ones(edges.nnz, dtype=bool)
        kept[weak] = False
        _, by_gradient = strongest_absent(site.probe, site.kept(weak), weak.size)
        neurons, entered = np.unique(np.append(edges.targets[kept], by_gradient), return_counts=True)
        last = site.index == site.count - 1
        active = neurons if last else neurons[entered >= max(1, int(self.ablation * fan_in))]
        # The planned edges must find room: no neuron takes more than `rows`.
        least = -(-planned // rows)
        if active.size < least:
            active = np.sort(neurons[np.argsort(-entered, kind="stable")][:least])
        if last:
            active = np.union1d(active, ids)
        each = min(rows, planned // active.size) if active.size else 0
        # Of the kept edges into a neuron that stays the strongest `each`, by target, then by strength.
        position = np.flatnonzero(kept)
        position = position[np.isin(edges.targets[position], active)]
        order = np.lexsort((position, -size[position], edges.targets[position]))
        position, target = position[order], edges.targets[position][order]
        rank = np.arange(target.size) - np.searchsorted(target, target)
        position = position[rank < each]
        go = np.ones(edges.nnz, dtype=bool)
        go[position] = False
        held = np.bincount(np.searchsorted(active, edges.targets[position]), minlength=active.size)
        memory[GO] = np.flatnonzero(go)
        memory[NEED] = np.stack([active, each - held])
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
        return strongest_into(site.probe, site.kept(dropped), *site.memory.layer.pop(NEED))


_BLOCK = 2**20


def strongest_into(probe: Probe, present: Edges, targets: Array, counts: Array) -> tuple[Array, Array]:
    """Return for each of some targets the absent edges into it of largest |Σ_b x[b, i]·dy[b, j]|.

    At a tie the smaller source wins. Blocks of targets go through BLAS: memory O(nnz + grown + block).

    Parameters
    ----------
    probe : Probe
    present : Edges
        Edges that cannot be grown.
    targets : ndarray of int64, ascending
    counts : ndarray of int64
        How many edges each gets: no more than are absent.

    Returns
    -------
    sources, targets : ndarray of int64, shape (sum of counts,)

    Raises
    ------
    NonFiniteError
        If a derivative is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Edges
    >>> from gbnn.semirings import Probe
    >>> from gbnn.topology import strongest_into
    >>> probe = Probe(np.asfortranarray([[1.0, 2.0, 3.0]]), np.asfortranarray([[1.0, -1.0]]))
    >>> present, _ = Edges.from_coo([2], [1], (3, 2))
    >>> strongest_into(probe, present, np.array([0, 1]), np.array([1, 1]))
    (array([2, 1]), array([0, 1]))
    """
    rows = present.shape[0]
    wanted = np.flatnonzero(counts)
    targets, counts = targets[wanted], counts[wanted]
    ids, starts, sources = present.by_target
    grown = [np.empty((2, 0), dtype=np.int64)]
    width = max(1, _BLOCK // rows)
    for start in range(0, targets.size, width):
        block, need = targets[start : start + width], counts[start : start + width]
        with np.errstate(all="ignore"):
            size = np.abs(probe.x.T @ probe.dy[:, block])
        if not np.isfinite(size.max()):
            where = f"targets {block[0]} to {block[-1]}"
            raise NonFiniteError(
                "gradient growth", "finite derivatives by absent edges", f"others at {where}"
            )
        for k, target in enumerate(block):
            group = int(np.searchsorted(ids, target))
            if group < ids.size and ids[group] == target:
                size[sources[starts[group] : starts[group + 1]], k] = -1
        most = int(need.max())
        best = -np.sort(-np.partition(size, rows - most, axis=0)[rows - most :], axis=0)
        limit = best[need - 1, np.arange(block.size)]
        above, equal = size > limit, size == limit
        open_places = need - above.sum(axis=0)
        above |= equal & (np.cumsum(equal, axis=0) <= open_places)
        column, source = np.nonzero(above.T)
        grown.append(np.stack([source, block[column]]))
    both = np.concatenate(grown, axis=1)
    return both[0], both[1]

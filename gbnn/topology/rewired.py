"""`Rewired`, what a rewiring did to one layer, and how many edges a layer has explored so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.edges import Change, Edges
from gbnn.topology.site import Site

__all__ = ["Rewired", "record", "start_exploring"]

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
    explored : int
        Different edges the layer has had since the first rewiring, those of now included. As a share of all
        places it is the in-time over-parameterization rate (ITOP; Liu et al., 2021, arXiv:2102.02887).
    places : int
        in x out.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> model = layers.Linear.random(10, 10, nnz=16, seed=0)
    >>> always = lambda clock: True
    >>> half = topology.Rewiring(topology.magnitude, topology.random, always, topology.constant(0.5))
    >>> (done,) = half.apply(topology.sites(model.parameters()), topology.Clock(0), np.random.default_rng(0))
    >>> done.name, done.change.dropped, done.change.grown, done.regrown, model.nnz, done.explored
    ('weights', 8, 8, 0, 16, 24)
    """

    name: str
    change: Change
    regrown: int
    explored: int
    places: int

    def row(self) -> dict[str, Any]:
        """Return the numbers as a row of a table."""
        return {
            "layer": self.name,
            "nnz": int(self.change.origin.size),
            "dropped": self.change.dropped,
            "grown": self.change.grown,
            "regrown": self.regrown,
            "explored": self.explored,
            "places": self.places,
        }


EXPLORED, LATELY = "explored", "explored lately"


def start_exploring(site: Site) -> None:
    """Remember the edges the layer has before its first rewiring."""
    if EXPLORED not in site.memory.layer:
        site.memory.layer[EXPLORED] = _keys(site.weights.edges, slice(None))
        site.memory.layer[LATELY] = site.memory.layer[EXPLORED][:0]


def record(site: Site, change: Change, removed: int) -> Rewired:
    """Return what happened to a layer, and remember of it what later rewirings ask for.

    `Memory.layer` gets "overlap", the share of the `removed` edges that were regrown, and all different edges
    so far: "explored", and those not in it yet, "explored lately", which join it when they have become many.
    Both are sorted keys source·out + target, or rows of source and target where these exceed 64 bits.
    """
    memory = site.memory.layer
    memory["overlap"] = np.array(change.regrown / max(removed, 1))
    known, lately = memory[EXPLORED], memory[LATELY]
    new = _keys(site.weights.edges, change.new)
    if known.ndim == 1:
        new = new[_absent(known, new)]
        fresh = _absent(lately, new)
        lately = np.insert(lately, np.searchsorted(lately, new[fresh]), new[fresh])
        if lately.size > known.size // 4:
            known, lately = np.insert(known, np.searchsorted(known, lately), lately), lately[:0]
    else:
        known = np.unique(np.concatenate([known, new]), axis=0)
    memory[EXPLORED], memory[LATELY] = known, lately
    return Rewired(site.name, change, change.regrown, len(known) + len(lately), site.places)


def _absent(known: Array, keys: Array) -> Array:
    """Say which keys are not among the `known`, both sorted."""
    missing: Array = np.append(known, -1)[np.searchsorted(known, keys)] != keys
    return missing


def _keys(edges: Edges, which: Any) -> Array:
    """Return edges as sorted keys, or as rows of two where keys are too large."""
    sources, targets = edges.sources[which], edges.targets[which]
    if edges.shape[0] * edges.shape[1] < 2**63:
        keys: Array = sources * edges.shape[1] + targets
        return keys
    return np.stack([sources, targets], axis=1)

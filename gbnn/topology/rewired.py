"""`Rewired`, what a rewiring did to one layer, and how many edges a layer has explored so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.edges import Change, Edges
from gbnn.topology.site import Memory, Site

__all__ = ["Rewired", "explored", "record", "start_exploring"]

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

    def row(self) -> dict[str, Any]:
        """Return the numbers as a row of a table."""
        return {
            "layer": self.name,
            "nnz": int(self.change.origin.size),
            "dropped": self.change.dropped,
            "grown": self.change.grown,
            "regrown": self.regrown,
        }


EXPLORED, LATELY = "explored", "explored lately"


def start_exploring(site: Site) -> None:
    """Remember the edges the layer has before its first rewiring."""
    if EXPLORED not in site.memory.layer:
        site.memory.layer[EXPLORED] = _keys(site.weights.edges, slice(None))
        site.memory.layer[LATELY] = site.memory.layer[EXPLORED][:0]


def record(site: Site, change: Change, removed: int) -> Rewired:
    """Return what happened to a layer, and remember of it what later rewirings ask for.

    `Memory.layer` gets "overlap", the share of the `removed` edges that were regrown; and every edge there
    has been: "explored", each once and in order, and "explored lately", as they came. They are keys
    source·out + target, or rows of source and target where these exceed 64 bits.
    """
    memory = site.memory.layer
    memory["overlap"] = np.array(change.regrown / max(removed, 1))
    lately = np.concatenate([memory[LATELY], _keys(site.weights.edges, change.new)])
    memory[LATELY] = lately
    if len(lately) > max(len(memory[EXPLORED]), 2**16):  # seldom: sorting them is most of the work
        explored(site.memory)
    return Rewired(site.name, change, change.regrown)


def explored(memory: Memory) -> int:
    """Return how many different edges a layer has had, from before its first rewiring to now.

    As a share of all places it is the in-time over-parameterization rate (ITOP; Liu et al., 2021,
    arXiv:2102.02887). Takes O(edges explored); 0 where nothing has been rewired.

    Parameters
    ----------
    memory : Memory
        That of the layer: ``Site.memory``, or of ``State.memory``.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> model = layers.Linear.random(10, 10, nnz=16, seed=0)
    >>> half = topology.Rewiring(topology.magnitude, topology.random, topology.always, topology.constant(0.5))
    >>> (site,) = topology.sites(model.parameters())
    >>> done = half.apply([site], topology.Clock(0), np.random.default_rng(0))
    >>> topology.explored(site.memory)
    24
    """
    if EXPLORED not in memory.layer:
        return 0
    keys = np.concatenate([memory.layer[EXPLORED], memory.layer[LATELY]])
    if keys.ndim == 1:
        keys.sort(kind="stable")  # quick, as most of them are in order
        keys = keys[np.append(True, keys[1:] != keys[:-1])[: keys.size]]
    else:
        keys = np.unique(keys, axis=0)
    memory.layer[EXPLORED], memory.layer[LATELY] = keys, keys[:0]
    return len(keys)


def _keys(edges: Edges, which: Any) -> Array:
    """Return edges as keys, or as rows of two where keys are too large."""
    sources, targets = edges.sources[which], edges.targets[which]
    if edges.shape[0] * edges.shape[1] < 2**63:
        keys: Array = sources * edges.shape[1] + targets
        return keys
    return np.stack([sources, targets], axis=1)

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


EXPLORED, LATELY, HALVED = "explored", "explored lately", "explored halved"

MOST = 2**20
"""Edges of which a layer remembers that they have been there, 8 MiB; of more, a known share."""


def start_exploring(site: Site) -> None:
    """Remember the edges the layer has before its first rewiring."""
    memory = site.memory.layer
    if EXPLORED not in memory:
        memory[HALVED] = np.array(0)
        memory[EXPLORED], memory[LATELY] = np.empty((2, 0), dtype=np.uint64)
        _remember(site.memory, site.weights.edges, slice(None))


def record(site: Site, change: Change, removed: int) -> Rewired:
    """Return what happened to a layer, and remember of it what later rewirings ask for.

    `Memory.layer` gets "overlap", the share of the `removed` edges that were regrown, and, hashed, the edges
    that have been there: "explored", each once and in order, and "explored lately", as they came.
    """
    site.memory.layer["overlap"] = np.array(change.regrown / max(removed, 1))
    _remember(site.memory, site.weights.edges, change.new)
    return Rewired(site.name, change, change.regrown)


def explored(memory: Memory) -> int:
    """Return how many different edges a layer has had, from before its first rewiring to now.

    As a share of all places it is the in-time over-parameterization rate (ITOP; Liu et al., 2021,
    arXiv:2102.02887). Exact up to a million edges (but for hashes of 64 bits that collide), beyond that an
    estimate good to about 0.1 %: memory is bounded. 0 where nothing has been rewired.

    Parameters
    ----------
    memory : Memory
        That of the layer: ``Site.memory``, or of ``State.memory``.

    Notes
    -----
    Adaptive sampling (Flajolet, 1990): once there are too many, only edges whose hash begins with a zero bit
    are remembered, then with two, and so on.

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
    _settle(memory)
    return int(memory.layer[EXPLORED].size) << int(memory.layer[HALVED])


def _remember(memory: Memory, edges: Edges, which: Any) -> None:
    """Add edges to those that have been there."""
    hashes = _mixed(_mixed(edges.sources[which]) + edges.targets[which].astype(np.uint64))
    hashes = hashes[hashes <= _limit(memory)]
    memory.layer[LATELY] = np.concatenate([memory.layer[LATELY], hashes])
    # Seldom, as sorting them is most of the work.
    if memory.layer[LATELY].size > max(memory.layer[EXPLORED].size, 2**16):
        _settle(memory)


def _settle(memory: Memory) -> None:
    """Sort what came lately into the rest, and leave some out if it is too much."""
    hashes = np.concatenate([memory.layer[EXPLORED], np.sort(memory.layer[LATELY])])
    hashes.sort(kind="stable")  # which merges the two
    hashes = hashes[np.append(True, hashes[1:] != hashes[:-1])[: hashes.size]]
    while hashes.size > MOST:
        memory.layer[HALVED] = memory.layer[HALVED] + 1
        hashes = hashes[: np.searchsorted(hashes, _limit(memory), side="right")]
    memory.layer[EXPLORED], memory.layer[LATELY] = hashes.copy(), hashes[:0].copy()


def _limit(memory: Memory) -> np.uint64:
    """Return the largest hash that is remembered."""
    return np.uint64((2**64 - 1) >> int(memory.layer[HALVED]))


def _mixed(numbers: Array) -> Array:
    """Return well spread 64-bit hashes of integers (the finalizer of SplitMix64; Steele et al., 2014)."""
    z = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return z ^ (z >> np.uint64(31))

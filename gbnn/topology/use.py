"""How long ago, and how often, a batch has touched each edge."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import ArgumentError
from gbnn.semirings import TouchedGradient
from gbnn.topology.clock import Clock
from gbnn.topology.site import Site

__all__ = ["LAST", "NOW", "TOUCHES", "last_touched", "times_touched", "touched", "track_use"]

Array = np.ndarray[Any, Any]
LAST, TOUCHES, NOW = "last touched", "touches", "use known until"


def touched(site: Site) -> Array:
    """Return the positions, ascending, of the edges whose gradient this batch may have made other than 0.

    Of a sparse batch in time of these edges alone.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.use import touched
    >>> from gbnn.weights import Weights
    >>> touched(Site("w", Weights.from_coo([0, 1], [0, 0], 1.0, shape=(2, 1)), np.array([0.0, 2.0])))
    array([1])
    """
    if isinstance(site.gradient, TouchedGradient):
        return site.gradient.positions
    return np.flatnonzero(site.edge_gradient)


def track_use(site: Site, clock: Clock, rng: np.random.Generator) -> None:
    """Note which edges this batch touches, in time of these alone: a `Rewiring.each_step`.

    `Memory.edges` gets "last touched", one more than the step at which a batch last touched the edge (0: not
    known yet), and "touches", how many batches have; 8 bytes an edge.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import topology
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 0], 1.0, shape=(2, 1))
    >>> site = topology.Site("w", w, np.array([0.0, 2.0]))
    >>> topology.track_use(site, topology.Clock(step=4), np.random.default_rng(0))
    >>> site.memory.edges
    {'last touched': array([0, 5], dtype=int32), 'touches': array([0, 1], dtype=int32)}
    """
    memory, now = site.memory, clock.step + 1
    if int(memory.layer.get(NOW, 0)) == now:
        return  # another rewiring, in turn with this one, has just noted it
    memory.layer[NOW] = np.array(now)
    for name in (LAST, TOUCHES):
        if name not in memory.edges:
            memory.edges[name] = np.zeros(site.weights.nnz, dtype=np.int32)
    at = touched(site)
    memory.edges[LAST][at] = now
    memory.edges[TOUCHES][at] += 1


def times_touched(site: Site) -> Array:
    """Return how many batches have touched each edge, shape (nnz,); ArgumentError without `track_use`."""
    return _noted(site, TOUCHES)


def last_touched(site: Site) -> Array:
    """Return one more than the step at which each edge was touched last, 0 if not known, shape (nnz,)."""
    return _noted(site, LAST)


def _noted(site: Site, name: str) -> Array:
    if name not in site.memory.edges:
        raise ArgumentError(
            f"rewiring {site.name}", "track_use() as each_step of the rewiring", "no use noted"
        )
    return site.memory.edges[name]

"""How often sources without edges have been active: their numbers and counts, in bounded memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, check_int
from gbnn.rows import SparseRows
from gbnn.topology.clock import Clock
from gbnn.topology.site import EachStep, Site

__all__ = ["count_seen", "seen"]

Array = np.ndarray[Any, Any]
IDS, COUNTS, LATELY, BOUND, STEP = "seen", "seen counts", "seen lately", "seen at most", "seen step"
NONE = np.empty(0, dtype=np.int64)


def count_seen(most: int = 2**20) -> EachStep:
    """Make a `Rewiring.each_step` that counts in how many rows each source without edges has been active.

    Parameters
    ----------
    most : int
        Sources remembered, 16 bytes each. Where there are more, the count of the next one after the `most`
        largest is taken off all, and those left with none are forgotten (Misra & Gries, 1982): what occurs
        in more than 1/`most` of all entries is never lost.

    Notes
    -----
    A step takes time of the active entries alone; what has come is sorted in when `seen` asks, or when it is
    as much as is remembered.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> from gbnn.rows import SparseRows
    >>> from gbnn.topology.seen import count_seen, seen
    >>> model = layers.Linear.random(2**60, 4, nnz=0)
    >>> x = SparseRows(np.array([0, 2, 3]), np.array([5, 2**59, 5]), np.ones(3, np.float32), (2, 2**60))
    >>> y, pullback = model.forward(x)
    >>> (site,) = topology.sites(model.parameters(), pullback(y, inputs=False)[1])
    >>> count_seen()(site, topology.Clock(0), np.random.default_rng(0))
    >>> seen(site)
    (array([                 5, 576460752303423488]), array([2, 1]))
    """
    bound = check_int("most", most, 1, 2**40)

    def each_step(site: Site, clock: Clock, rng: np.random.Generator) -> None:
        memory = site.memory.layer
        if int(memory.get(STEP, -1)) == clock.step:
            return
        memory[STEP], memory[BOUND] = np.array(clock.step), np.array(bound)
        x = site.probe.x
        columns = x.columns if isinstance(x, SparseRows) else np.nonzero(x)[1]
        without = columns[site.weights.edges.source_lookup.find(columns) < 0]
        memory[LATELY] = np.concatenate([memory.get(LATELY, NONE), without])
        if memory[LATELY].size > max(memory.get(IDS, NONE).size, 2**16):
            seen(site)

    return each_step


def seen(site: Site) -> tuple[Array, Array]:
    """Return the sources without edges that have been active, ascending, and in how many rows each was.

    Raises
    ------
    ArgumentError
        If nothing has been counted: `count_seen` must be `each_step` of the rewiring.
    """
    memory = site.memory.layer
    if STEP not in memory:
        raise ArgumentError(f"rewiring {site.name}", "count_seen() as each_step of the rewiring", "no counts")
    ids, lately = memory.get(IDS, NONE), memory.pop(LATELY, NONE)
    every, inverse = np.unique(np.concatenate([ids, lately]), return_inverse=True)
    held = np.concatenate([memory.get(COUNTS, NONE), np.ones(lately.size, dtype=np.int64)])
    counts = np.bincount(inverse, held, every.size).astype(np.int64)
    stay = site.weights.edges.source_lookup.find(every) < 0
    every, counts = every[stay], counts[stay]
    most = int(memory[BOUND])
    if every.size > most:
        counts = counts - np.partition(counts, every.size - most - 1)[every.size - most - 1]
        every, counts = every[counts > 0], counts[counts > 0]
    memory[IDS], memory[COUNTS] = every, counts
    return every, counts

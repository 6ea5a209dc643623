"""Grow rules: which edges a layer gets. Functions (site, dropped, count, rng) -> (sources, targets)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, NonFiniteError, check_int
from gbnn.sampling import distinct_edges
from gbnn.semirings import Probe
from gbnn.topology.site import Site

__all__ = ["Grow", "gradient", "random", "strongest_absent"]

Array = np.ndarray[Any, Any]
Grow = Callable[[Site, Array, int, np.random.Generator], tuple[Array, Array]]


def random(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Grow `count` edges uniformly among the places that were empty before this rewiring (SET).

    An edge just dropped is taken again only where a nearly full layer has too few other places.

    Parameters
    ----------
    site : Site
    dropped : ndarray of int64
        Positions of the edges that go in this rewiring.
    count : int
        At most the free places, those of the dropped edges included.
    rng : numpy.random.Generator

    Returns
    -------
    sources, targets : ndarray of int64, shape (count,)

    Raises
    ------
    ArgumentError
        If `count` is more than that.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site, random
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1], [0, 1], 1.0, shape=(2, 2))
    >>> sources, targets = random(Site("w", w), np.array([0]), 2, np.random.default_rng(0))
    >>> sorted(zip(sources.tolist(), targets.tolist()))
    [(0, 1), (1, 0)]
    """
    edges = site.weights.edges
    empty = edges.shape[0] * edges.shape[1] - edges.nnz
    if count > empty + dropped.size:
        raise ArgumentError("count", f"at most {empty + dropped.size} free places", count)
    elsewhere = min(count, empty)
    sources, targets = distinct_edges(rng, edges.shape, elsewhere, exclude=edges)
    if elsewhere == count:
        return sources, targets
    again = rng.permutation(dropped)[: count - elsewhere]
    return np.append(sources, edges.sources[again]), np.append(targets, edges.targets[again])


def gradient(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Grow the `count` edges of largest |dloss/dw| among all not kept (RigL; Evci et al., 2020).

    Edges just dropped compete like any other. Exact, in blocks: see `strongest_absent`. Parameters and
    result are those of `random`; the layer must be a plus_times one.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers, topology
    >>> model = layers.Linear.from_dense(np.diag([1.0, 2.0]))
    >>> _, pullback = model.forward(np.array([[1.0, 5.0]]))
    >>> _, gradients = pullback(np.array([[1.0, 2.0]]))
    >>> (site,) = topology.sites(model.parameters(), gradients)
    >>> topology.gradient(site, np.array([0]), 1, np.random.default_rng(0))
    (array([1]), array([0]))
    """
    return strongest_absent(site.probe, site.kept(dropped), count)


# Entries of one block of gradients: the search for the strongest holds about 50 bytes for each.
_BLOCK = 2**18


def strongest_absent(probe: Probe, present: Edges, count: int, *, block: int = _BLOCK) -> tuple[Array, Array]:
    """Return the `count` absent edges of largest |Σ_b x[b, i]·dy[b, j]|, exactly.

    Blocks of targets go through BLAS one after the other against the best found so far; at a tie the
    smaller (source, target) wins. Memory is O(nnz + count + block), never in x out.

    Parameters
    ----------
    probe : Probe
        The layer's last x and dy.
    present : Edges
        Edges that cannot be grown.
    count : int
    block : int
        Entries of one block.

    Returns
    -------
    sources, targets : ndarray of int64, shape (count,), strongest first

    Raises
    ------
    ArgumentError
        If there are fewer absent edges than `count`, the layer has more than 2**44 places, or `probe` and
        `present` are of different shapes.
    NonFiniteError
        If a derivative by an absent edge is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Edges
    >>> from gbnn.semirings import Probe
    >>> from gbnn.topology import strongest_absent
    >>> probe = Probe(np.asfortranarray([[1.0, 2.0]]), np.asfortranarray([[3.0, -5.0]]))
    >>> present, _ = Edges.from_coo([1], [1], (2, 2))
    >>> strongest_absent(probe, present, 2)
    (array([1, 0]), array([0, 1]))
    """
    rows, columns = present.shape
    if probe.shape != present.shape:
        raise ArgumentError("probe", f"one of a {rows} x {columns} layer", f"shape {probe.shape}")
    if rows * columns > 2**44:
        raise ArgumentError("gradient growth", "a layer of at most 2**44 places", f"{rows} x {columns}")
    if check_int("count", count, 0) > rows * columns - present.nnz:
        raise ArgumentError("count", f"at most {rows * columns - present.nnz} absent edges", count)
    width = max(1, check_int("block", block, 1) // rows)
    score, key = np.empty(0, dtype=probe.dy.dtype), np.empty(0, dtype=np.int64)
    # What beats the worst found so far: a larger score, or an equal one in a row before that of the last of
    # those (in its own row, what comes now is further right).
    worst, row = -1.0, 0
    ids, starts, sources = present.by_target
    for start in range(0, columns if count else 0, width):
        stop = min(start + width, columns)
        size = np.abs(probe.block(start, stop))
        first, last = np.searchsorted(ids, [start, stop])
        held = slice(starts[first], starts[last])
        inside = np.repeat(ids[first:last], np.diff(starts[first : last + 1])) - start
        size[sources[held], inside] = -1
        if not np.isfinite(size.max()):  # NaN is the largest of any
            wanted = "finite derivatives by absent edges"
            raise NonFiniteError("gradient growth", wanted, f"{size.max()} at targets {start} to {stop - 1}")
        better = size > worst
        better[:row] |= size[:row] == worst
        i, j = np.nonzero(better)
        score, key = np.append(score, size[i, j]), np.append(key, i * columns + j + start)
        if score.size > count:
            score, key = _best(score, key, count)
        if score.size == count:
            worst = score.min()
            row = int(key[score == worst].max()) // columns
    order = np.lexsort((key, -score))
    return key[order] // columns, key[order] % columns


def _best(score: Array, key: Array, count: int) -> tuple[Array, Array]:
    """Return the `count` entries of largest score; at a tie those of smaller key."""
    limit = np.partition(score, score.size - count)[score.size - count]
    above = np.flatnonzero(score > limit)
    equal = np.flatnonzero(score == limit)
    need = count - above.size
    if need < equal.size:
        equal = equal[np.argpartition(key[equal], need - 1)[:need]] if need else equal[:0]
    chosen = np.concatenate([above, equal])
    return score[chosen], key[chosen]

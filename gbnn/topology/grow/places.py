"""Free places of a layer: what the grow rules share, from drawing until there are enough to filling up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gbnn.edges import Edges, canonical_order
from gbnn.errors import ArgumentError, check_int
from gbnn.sampling import distinct_edges
from gbnn.topology.site import Site

__all__ = ["Draw", "check_room", "drawn_until", "filled", "first_of_each", "sorted_distinct"]

Array = np.ndarray[Any, Any]
Pairs = tuple[Array, Array]
Draw = Callable[[int, np.random.Generator], Pairs]

# Rounds of drawing before a rule gives up on its own places: each asks for what is still missing, so even
# where one draw in ten is free and new, this leaves fewer than one edge in a hundred.
_ROUNDS = 50

_NO_POSITION = np.empty(0, dtype=np.int64)


def check_room(site: Site, dropped: Array, count: int) -> int:
    """Return how many places were empty before this rewiring; raise if `count` edges cannot be grown.

    Parameters
    ----------
    site : Site
    dropped : ndarray of int64
        Positions of the edges that go; their places are free, too.
    count : int

    Raises
    ------
    ArgumentError, KindError
        If `count` is no integer from 0 to the number of free places.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology.grow.places import check_room
    >>> from gbnn.topology.site import Site
    >>> from gbnn.weights import Weights
    >>> check_room(Site("w", Weights.from_coo([0], [1], 1.0, shape=(2, 3))), np.array([0]), 6)
    5
    """
    edges = site.weights.edges
    empty = edges.shape[0] * edges.shape[1] - edges.nnz
    free = empty + len(dropped)
    if check_int("count", count, 0) > free:
        raise ArgumentError("count", f"at most {free} free places", count)
    return empty


def sorted_distinct(sources: Array, targets: Array, shape: tuple[int, int]) -> Pairs:
    """Return the edges in canonical order, each once.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology.grow.places import sorted_distinct
    >>> sorted_distinct(np.array([1, 0, 1]), np.array([0, 2, 0]), (2, 3))
    (array([0, 1]), array([2, 0]))
    """
    rows, columns = shape
    if rows * columns < 2**63:
        # Sorted as bare numbers: ten times faster than numpy.unique, which hashes.
        key = np.sort(sources * columns + targets)
        first = np.ones(key.size, dtype=bool)
        np.not_equal(key[1:], key[:-1], out=first[1:])
        key = key[first]
        return key // columns, key % columns
    order = canonical_order(sources, targets, shape)
    source, target = sources[order], targets[order]
    first = _runs(source, target)
    return source[first], target[first]


def _runs(sources: Array, targets: Array) -> Array:
    """Return where each run of equal edges begins."""
    first = np.ones(sources.size, dtype=bool)
    first[1:] = (sources[1:] != sources[:-1]) | (targets[1:] != targets[:-1])
    return np.flatnonzero(first)


def first_of_each(sources: Array, targets: Array, shape: tuple[int, int]) -> Array:
    """Return the positions, ascending, at which an edge occurs for the first time.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology.grow.places import first_of_each
    >>> first_of_each(np.array([1, 0, 1]), np.array([0, 2, 0]), (2, 3))
    array([0, 1])
    """
    if not sources.size:
        return _NO_POSITION
    order = canonical_order(sources, targets, shape)
    # That sort leaves equal edges in any order: the first of them is found among their positions, which is
    # four times faster than a stable sort.
    return np.sort(np.minimum.reduceat(order, _runs(sources[order], targets[order])))


def drawn_until(draw: Draw, taken: Edges, count: int, rng: np.random.Generator) -> Pairs:
    """Draw edges until `count` different ones have come that are not taken, or for 50 rounds.

    Parameters
    ----------
    draw : callable
        ``(n, rng) -> (sources, targets)`` of about `n` random edges, repetitions and taken ones among them.
    taken : Edges
        Edges that do not count.
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    sources, targets : ndarray of int64, shape (at most count,), in the order drawn
        Fewer than `count` where the rounds end first. Memory is O(count).

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Edges, canonical_order
    >>> from gbnn.topology.grow.places import drawn_until
    >>> anywhere = lambda n, rng: (rng.integers(2, size=n), rng.integers(2, size=n))
    >>> taken, _ = Edges.from_coo([1], [1], (2, 2))
    >>> sources, targets = drawn_until(anywhere, taken, 3, np.random.default_rng(0))
    >>> sorted(zip(sources.tolist(), targets.tolist()))
    [(0, 0), (0, 1), (1, 0)]
    """
    sources, targets = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        missing = count - sources.size
        if not missing:
            break
        new_sources, new_targets = draw(missing + missing // 4 + 16, rng)
        new = taken.find(new_sources, new_targets) < 0
        sources, targets = np.append(sources, new_sources[new]), np.append(targets, new_targets[new])
        # The first of each in the order drawn: that is drawing without replacement.
        first = first_of_each(sources, targets, taken.shape)[:count]
        sources, targets = sources[first], targets[first]
    return sources, targets


def filled(site: Site, dropped: Array, chosen: Pairs, count: int, rng: np.random.Generator) -> Pairs:
    """Add random edges to the chosen ones until there are `count`, as `topology.random` would.

    Uniform among the other places that were empty before this rewiring; an edge just dropped is taken only
    where there are too few of those.

    Parameters
    ----------
    site : Site
    dropped : ndarray of int64
        Positions of the edges that go.
    chosen : (sources, targets)
        At most `count` different edges, none of which the layer had before this rewiring.
    count : int
    rng : numpy.random.Generator

    Returns
    -------
    sources, targets : ndarray of int64, shape (count,)

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology.grow.places import filled
    >>> from gbnn.topology.site import Site
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(1, 3)))
    >>> filled(site, np.array([0]), (np.array([0]), np.array([2])), 3, np.random.default_rng(0))
    (array([0, 0, 0]), array([2, 1, 0]))
    """
    sources, targets = chosen
    missing = count - sources.size
    if not missing:
        return sources, targets
    edges = site.weights.edges
    taken, _, _ = edges.rewired(_NO_POSITION, sources, targets)
    empty = edges.shape[0] * edges.shape[1] - taken.nnz
    new_sources, new_targets = distinct_edges(rng, edges.shape, min(missing, empty), exclude=taken)
    again = rng.permutation(dropped)[: missing - new_sources.size]
    return (
        np.concatenate([sources, new_sources, edges.sources[again]]),
        np.concatenate([targets, new_targets, edges.targets[again]]),
    )

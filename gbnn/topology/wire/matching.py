"""Graphs regular on both sides, by matching stubs: `regular`, and `expander` where degrees are all equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.edges import Edges, shape_of
from gbnn.errors import ArgumentError, check_int
from gbnn.topology.wire.maker import Wiring, balanced, check_count, check_only

__all__ = ["expander", "regular"]

Array = np.ndarray[Any, Any]

ROUNDS = 200
"""Rounds of repair before a matching is given up: far more than any took in our trials."""


def regular(rng: np.random.Generator, shape: tuple[int, int], nnz: int) -> Edges:
    """Make a random graph with balanced degrees on both sides, each the floor or ceil of the mean.

    Parameters
    ----------
    rng : numpy.random.Generator
    shape : (int, int)
        in_features, out_features, each from 1 to 2**60.
    nnz : int

    Returns
    -------
    Edges
        Exactly `nnz`: targets have floor or ceil(nnz / out), sources floor or ceil(nnz / in).

    Raises
    ------
    ArgumentError, KindError
        If shape or nnz make no sense, or there are fewer places.

    Notes
    -----
    The configuration model (Bollobás, "A probabilistic proof of an asymptotic formula for the number of
    labelled regular graphs", European J. Combinatorics 1, 1980), bipartite: every neuron gets as many stubs
    as its degree, the stubs of both sides are matched at random, and each edge that came out twice swaps
    targets with a random other edge until none is left. A graph of more than half of all places is the
    complement of one made so. Should a matching resist repair, a circulant graph with randomly permuted
    neurons takes its place. Time O(nnz log nnz) a round, few rounds where sparse; memory O(nnz).

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import wire
    >>> edges = wire.regular(np.random.default_rng(0), (6, 4), 13)
    >>> sorted(np.bincount(edges.sources).tolist()), sorted(np.bincount(edges.targets).tolist())
    ([2, 2, 2, 2, 2, 3], [3, 3, 3, 4])
    """
    size, count = check_count(shape, nnz)
    places = size[0] * size[1]
    if 2 * count <= places:
        return Edges.from_coo(*_matched(rng, size, count), size)[0]
    sources, targets = _matched(rng, size, places - count)
    keys = np.delete(np.arange(places), sources * size[1] + targets)
    return Edges(*np.divmod(keys, size[1]), size)


def expander(fan_in: int) -> Wiring:
    """Return a maker of random biregular graphs, which are nearly optimal expanders.

    All targets have `fan_in` edges and all sources equally many (in a square layer the union of `fan_in`
    permutations): whatever an input knows spreads to all neurons in a few layers.

    Parameters
    ----------
    fan_in : int
        At least 1.

    Returns
    -------
    callable
        ``(rng, shape, nnz=None) -> Edges``. It raises ArgumentError for another nnz than fan_in x out, and
        if that is no multiple of the number of sources.

    Raises
    ------
    ArgumentError, KindError
        If `fan_in` is no integer of at least 1.

    Notes
    -----
    With high probability the second singular value of the adjacency matrix is at most
    √(fan_in - 1) + √(fan_out - 1) + o(1) (Brito, Dumitriu and Harris, "Spectral gap in random bipartite
    biregular graphs and applications", Combinatorics, Probability and Computing 31, 2022); Ramanujan graphs,
    the best possible, have no o(1). Made as `regular` makes graphs.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import wire
    >>> edges = wire.expander(6)(np.random.default_rng(0), (20, 10), None)
    >>> np.bincount(edges.sources, minlength=20).tolist() == [3] * 20, edges.nnz
    (True, 60)
    """
    fan_in = check_int("fan_in", fan_in, 1)

    def make(rng: np.random.Generator, shape: tuple[int, int], nnz: int | None = None) -> Edges:
        rows, columns = shape_of(shape)
        if fan_in > rows:
            raise ArgumentError(
                "fan_in", f"at most {rows}, the sources of a {rows} x {columns} layer", fan_in
            )
        total = fan_in * columns
        if total % rows:
            equal = f"a number that gives {rows} sources equally many of its {total} edges"
            raise ArgumentError("fan_in", equal, fan_in)
        check_only(nnz, total, f"{fan_in} for each of {columns} targets")
        return regular(rng, (rows, columns), total)

    return make


def _matched(rng: np.random.Generator, shape: tuple[int, int], count: int) -> tuple[Array, Array]:
    """Return the ends of `count` different edges, at most half of all places, with balanced degrees."""
    source_ids, fan_out = balanced(rng, shape[0], count)
    target_ids, fan_in = balanced(rng, shape[1], count)
    # From here on neurons have numbers below `count`, so that an edge fits one key.
    sources = np.repeat(np.arange(source_ids.size), fan_out)
    targets = rng.permutation(np.repeat(np.arange(target_ids.size), fan_in))
    width = target_ids.size
    keys = sources * width + targets
    if not _repaired(rng, keys, width):
        # Dealing targets in turn, source after source, balances both sides and repeats no edge.
        keys = sources * width + rng.permutation(width)[np.arange(count) % width]
    return source_ids[keys // width], target_ids[keys % width]


def _repaired(rng: np.random.Generator, keys: Array, width: int) -> bool:
    """Swap targets of edges, in place, until none occurs twice; return whether that was reached."""
    for _ in range(ROUNDS):
        keys.sort()
        repeated = np.flatnonzero(keys[1:] == keys[:-1]) + 1
        if not repeated.size:
            return True
        # Each repeated edge draws one other edge; every edge takes part in at most one swap.
        partner = rng.integers(keys.size, size=repeated.size)
        uses = np.bincount(np.append(repeated, partner), minlength=keys.size)
        alone = uses[partner] == 1
        mine, other = repeated[alone], partner[alone]
        targets = keys[mine] % width, keys[other] % width
        new = np.stack([keys[mine] - targets[0] + targets[1], keys[other] - targets[1] + targets[0]])
        # A swap stands if its two edges are not there yet. Two that make the same one leave it to repair.
        place = np.minimum(np.searchsorted(keys, new), keys.size - 1)
        good = (keys[place] != new).all(axis=0)
        keys[mine[good]], keys[other[good]] = new[:, good]
    return False

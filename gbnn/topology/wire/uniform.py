"""Uniformly random graphs: over all places, or with the same number of edges for every neuron of one side."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.edges import Edges, canonical_order
from gbnn.sampling import distinct_edges
from gbnn.topology.wire.maker import balanced, check_count

__all__ = ["constant_fan_in", "constant_fan_out", "random"]

Array = np.ndarray[Any, Any]


def random(rng: np.random.Generator, shape: tuple[int, int], nnz: int) -> Edges:
    """Make a graph uniformly among all of `nnz` edges (Erdős and Rényi's G(n, m), bipartite).

    Parameters
    ----------
    rng : numpy.random.Generator
    shape : (int, int)
        in_features, out_features, each from 1 to 2**60.
    nnz : int

    Returns
    -------
    Edges
        Exactly `nnz`. Time and memory are O(nnz), whatever the shape.

    Raises
    ------
    ArgumentError, KindError
        If shape or nnz make no sense, or there are fewer places.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import wire
    >>> wire.random(np.random.default_rng(0), (2**60, 2**60), 1000).nnz
    1000
    """
    size, count = check_count(shape, nnz)
    return Edges.from_coo(*distinct_edges(rng, size, count), size)[0]


def constant_fan_in(rng: np.random.Generator, shape: tuple[int, int], nnz: int) -> Edges:
    """Make a random graph in which all targets have equally many edges: floor or ceil(nnz / out).

    Uniform among all such graphs. Constant fan-in is what SRigL keeps (Lasby et al., "Dynamic sparse
    training with structured sparsity", ICLR 2024). Parameters, result and errors are those of `random`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import wire
    >>> edges = wire.constant_fan_in(np.random.default_rng(0), (100, 4), 30)
    >>> sorted(np.bincount(edges.targets).tolist())
    [7, 7, 8, 8]
    """
    size, count = check_count(shape, nnz)
    targets, sources = _fans(rng, size[1], size[0], count)
    return Edges.from_coo(sources, targets, size)[0]


def constant_fan_out(rng: np.random.Generator, shape: tuple[int, int], nnz: int) -> Edges:
    """Make a random graph in which all sources have equally many edges: floor or ceil(nnz / in).

    Uniform among all such graphs. Parameters, result and errors are those of `random`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import wire
    >>> edges = wire.constant_fan_out(np.random.default_rng(0), (4, 100), 30)
    >>> sorted(np.bincount(edges.sources).tolist())
    [7, 7, 8, 8]
    """
    size, count = check_count(shape, nnz)
    return Edges.from_coo(*_fans(rng, *size, count), size)[0]


def _fans(rng: np.random.Generator, neurons: int, others: int, total: int) -> tuple[Array, Array]:
    """Return the two ends of `total` edges, spread evenly over the neurons; the other ends are random."""
    ids, counts = balanced(rng, neurons, total)
    return np.repeat(ids, counts), _choices(rng, counts, others)


def _choices(rng: np.random.Generator, counts: Array, size: int) -> Array:
    """Draw counts[0] different numbers below `size`, then counts[1] different ones, and so on: O(their sum).

    No count may be 0, and they differ by at most 1.
    """
    groups = counts.size
    if groups == 0:
        return np.empty(0, dtype=np.int64)
    if size <= 4 * counts.min():  # list all and shuffle: at most four times what is kept
        shuffled = rng.permuted(np.broadcast_to(np.arange(size), (groups, size)), axis=1)
        return shuffled[np.arange(size) < counts[:, None]]
    # Else by rejection. At least 3 in 4 draws are new to their group, so the rounds are few.
    group, drawn = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    missing = counts
    while missing.any():
        group = np.append(group, np.repeat(np.arange(groups), missing))
        drawn = np.append(drawn, rng.integers(size, size=int(missing.sum())))
        group, drawn = _distinct(group, drawn, groups, size)
        missing = counts - np.bincount(group, minlength=groups)
    return drawn


def _distinct(majors: Array, minors: Array, rows: int, columns: int) -> tuple[Array, Array]:
    """Return the different pairs, sorted."""
    order = canonical_order(majors, minors, (rows, columns))
    majors, minors = majors[order], minors[order]
    new = (np.diff(majors, prepend=-1) != 0) | (np.diff(minors, prepend=-1) != 0)
    return majors[new], minors[new]

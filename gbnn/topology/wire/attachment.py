"""`scale_free`: hubs on both sides, by preferential attachment."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.sampling import distinct_edges
from gbnn.topology.wire.maker import balanced, check_count

__all__ = ["scale_free"]

Array = np.ndarray[Any, Any]


def scale_free(rng: np.random.Generator, shape: tuple[int, int], nnz: int) -> Edges:
    """Make a graph by preferential attachment: degrees have heavy tails, few neurons are hubs.

    Neurons of both sides arrive in random order, each with its share of the edges, floor or ceil of
    (nnz - 1) / (in + out - 2); each edge goes to a neuron of the other side that is there already, in
    proportion to its degree. So every neuron has an edge if nnz >= in + out - 1, and degrees k of a side
    are about as frequent as k**-γ, γ = 1 + (in + out) / (size of the other side): 3 where both are equal.

    Parameters
    ----------
    rng : numpy.random.Generator
    shape : (int, int)
        in_features, out_features, each from 1 to 2**60.
    nnz : int

    Returns
    -------
    Edges
        Exactly `nnz`. Time O(nnz log nnz), memory O(nnz), whatever the shape.

    Raises
    ------
    ArgumentError, KindError
        If shape or nnz make no sense, or there are fewer places.

    Notes
    -----
    After Barabási and Albert, "Emergence of scaling in random networks", Science 286, 1999. The BSF
    (bipartite scale free) initialisation of Cannistraci-Hebb training (Zhang et al., ICLR 2024) has the same
    aim: it grows one graph of in + out neurons, deals the neurons to two sides and moves the edges inside a
    side across, in O((in + out)**2); here the graph grows bipartite. An edge that comes out twice (one in
    twenty at a density of 1 %, more in denser layers) goes uniformly to a free place instead.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import wire
    >>> edges = wire.scale_free(np.random.default_rng(0), (1000, 1000), 4000)
    >>> fan_out = np.bincount(edges.sources, minlength=1000)
    >>> edges.nnz, bool(fan_out.max() > 10 * fan_out.mean())
    (4000, True)
    """
    size, count = check_count(shape, nnz)
    if count == 0:
        return Edges.from_coo([], [], size)[0]
    # As many neurons take part as edges can reach; both sides in proportion to their sizes.
    taking_part = min(size[0] + size[1], count + 1)
    rows = max(1, taking_part * size[0] // (size[0] + size[1]))
    columns = taking_part - rows
    sources, targets = _grown(rng, rows, columns, count)
    keys = np.sort(sources * columns + targets)
    keys = keys[np.diff(keys, prepend=-1) > 0]
    sources = distinct_edges(rng, (1, size[0]), rows)[1][keys // columns]
    targets = distinct_edges(rng, (1, size[1]), columns)[1][keys % columns]
    edges, _ = Edges.from_coo(sources, targets, size)
    missing = count - edges.nnz
    if not missing:
        return edges
    more = distinct_edges(rng, size, missing, exclude=edges)
    return Edges.from_coo(np.append(sources, more[0]), np.append(targets, more[1]), size)[0]


def _grown(rng: np.random.Generator, rows: int, columns: int, count: int) -> tuple[Array, Array]:
    """Grow a multigraph from one edge between the first two neurons; each brings its edges when it arrives.

    The other end of a new edge is that of an older edge drawn uniformly: so in proportion to degree. That
    end may have been copied from a yet older edge, and so on, back to the edge by which its neuron arrived.
    All copies are followed at once, by pointers that double their reach in every round.
    """
    if rows + columns == 2:
        return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    is_source = rng.permutation(np.arange(rows + columns - 2) < rows - 1)
    brings = balanced(rng, is_source.size, count - 1)[1]  # at least one each
    already = 1 + np.cumsum(brings) - brings
    # Edge 0 brings both its ends; every other edge one, and copies the other end from an older edge.
    number = np.where(is_source, np.cumsum(is_source), np.cumsum(~is_source))
    number = np.append(0, np.repeat(number, brings))
    older = np.append(0, rng.integers(np.repeat(already, brings)))
    new_source = np.append(True, np.repeat(is_source, brings))
    new_target = np.append(True, np.repeat(~is_source, brings))
    itself = np.arange(count)
    return (
        number[_followed(np.where(new_source, itself, older))],
        number[_followed(np.where(new_target, itself, older))],
    )


def _followed(pointers: Array) -> Array:
    """Return where each chain of pointers ends: at one that points to itself."""
    while True:
        further = pointers[pointers]
        if np.array_equal(further, pointers):
            return pointers
        pointers = further

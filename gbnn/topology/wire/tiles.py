"""Structured sparsity: N of every M inputs, and whole blocks."""

from __future__ import annotations

import numpy as np

from gbnn.edges import Edges, shape_of
from gbnn.errors import ArgumentError, check_int
from gbnn.sampling import distinct_edges
from gbnn.topology.wire.maker import Wiring, check_count, check_only

__all__ = ["blocks", "n_of_m"]


def n_of_m(n: int, m: int) -> Wiring:
    """Return a maker of N:M sparse graphs: n edges among every m consecutive sources of each target.

    Parameters
    ----------
    n, m : int
        1 <= n <= m; 2 of 4 is what Ampere and later GPUs compute at twice the speed.

    Returns
    -------
    callable
        ``(rng, shape, nnz=None) -> Edges``, uniform among all such graphs. It raises ArgumentError where in
        is no multiple of m, or nnz is neither None nor in x out x n / m.

    Raises
    ------
    ArgumentError, KindError
        If n or m make no sense.

    Notes
    -----
    Zhou et al., "Learning N:M fine-grained structured sparse neural networks from scratch", ICLR 2021.

    Examples
    --------
    >>> from gbnn import models
    >>> from gbnn.topology import wire
    >>> models.mlp([64, 32, 10], density=[0.5, 1.0], wiring=wire.n_of_m(2, 4)).nnz
    1344
    """
    m = check_int("m", m, 1)
    n = check_int("n", n, 1, m)

    def make(rng: np.random.Generator, shape: tuple[int, int], nnz: int | None = None) -> Edges:
        rows, columns = shape_of(shape)
        if rows % m:
            raise ArgumentError("shape", f"a multiple of {m} inputs", f"{rows} x {columns}")
        groups = rows // m * columns
        check_only(nnz, n * groups, f"{n} for each {m} sources of {columns} targets")
        # A row of the shuffle is one group of one target; its first n are the sources.
        drawn = rng.permuted(np.broadcast_to(np.arange(m), (groups, m)), axis=1)[:, :n]
        group, target = np.divmod(np.arange(groups)[:, None], columns)
        sources = group * m + drawn
        targets = np.broadcast_to(target, sources.shape)
        return Edges.from_coo(sources.ravel(), targets.ravel(), (rows, columns))[0]

    return make


def blocks(size: int) -> Wiring:
    """Return a maker of block-sparse graphs: random blocks of size x size edges, each full or empty.

    Parameters
    ----------
    size : int
        Neurons at each side of a block.

    Returns
    -------
    callable
        ``(rng, shape, nnz) -> Edges``, uniform among all such graphs, for shapes up to 2**60. It raises
        ArgumentError where in, out or nnz are no multiples of size, size and size**2.

    Raises
    ------
    ArgumentError, KindError
        If `size` is no integer of at least 1.

    Notes
    -----
    Blocks lie on a fixed grid, as in Gray, Radford and Kingma, "GPU kernels for block-sparse weights", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import wire
    >>> edges = wire.blocks(2)(np.random.default_rng(1), (4, 6), 8)
    >>> block = edges.sources // 2 * 3 + edges.targets // 2
    >>> np.unique(block, return_counts=True)[1].tolist()
    [4, 4]
    """
    size = check_int("size", size, 1)

    def make(rng: np.random.Generator, shape: tuple[int, int], nnz: int) -> Edges:
        (rows, columns), count = check_count(shape, nnz)
        if rows % size or columns % size:
            raise ArgumentError("shape", f"multiples of {size}", f"{rows} x {columns}")
        if count % size**2:
            below = count - count % size**2
            near = f"a multiple of {size**2}, the edges of a block, such as {below} or {below + size**2}"
            raise ArgumentError("nnz", near, count)
        row, column = distinct_edges(rng, (rows // size, columns // size), count // size**2)
        inside, across = np.divmod(np.arange(size**2), size)
        sources = row[:, None] * size + inside
        targets = column[:, None] * size + across
        return Edges.from_coo(sources.ravel(), targets.ravel(), (rows, columns))[0]

    return make

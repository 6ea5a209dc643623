"""`correlated`: a first layer that joins inputs which go together in the data (CHT's CSTI)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, check_array, check_finite, check_int
from gbnn.sampling import distinct_edges
from gbnn.topology.wire.maker import Wiring, check_count

__all__ = ["correlated"]

Array = np.ndarray[Any, Any]

# Entries of one block: of the inputs, and of their correlations.
_BLOCK = 2**22
# Standardised inputs are rounded to multiples of 2**-26. Their products are multiples of 2**-52 and no sum of
# some is much above 1 (Cauchy-Schwarz): so float64 adds them exactly, in whatever order BLAS does.
_GRID = 2.0**26


def correlated(x: Any, *, block: int = _BLOCK) -> Wiring:
    """Return a maker of first layers: edges where the inputs have the largest absolute Pearson correlation.

    Hidden neuron j stands for input j mod in. Place (i, j) scores the absolute correlation of inputs i and
    j mod in over the rows of `x`, and 0 for an input with itself or with a constant one; the `nnz` largest
    become edges. As in the reference implementation of CHT, which repeats the matrix of correlations side by
    side for a hidden layer of 2·in and cuts it to the layer's shape; here that is done for every width.

    Parameters
    ----------
    x : array_like or SciPy sparse matrix, shape (rows, in)
        Training inputs. Kept, not copied (a sparse one is copied by column).
    block : int
        Numbers held at once, roughly. It changes time and memory, never the edges.

    Returns
    -------
    callable
        ``(rng, shape, nnz) -> Edges``. At a tie the pair of inputs of smaller numbers comes first. If fewer
        than `nnz` places score above 0, the rest are uniform among the others; only that is random.

    Raises
    ------
    ArgumentError, KindError, NonFiniteError
        If `x` is not a matrix of finite real numbers with at least one row; from the maker, if the layer has
        not as many inputs as `x` has columns or fewer places than `nnz`.

    Notes
    -----
    Correlated sparse topological initialisation: Zhang et al., "Epitopological learning and
    Cannistraci-Hebb network shape intelligence", ICLR 2024. Time O(rows·in²/2), memory O(block + rows + nnz)
    beside `x`. Correlations are right to about 1e-8; two nearer than that may change places.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology.wire.correlated import correlated
    >>> x = np.array([[1.0, 2.0, 0.0], [2.0, 4.1, 1.0], [3.0, 6.0, 0.0]])
    >>> edges = correlated(x)(np.random.default_rng(0), (3, 6), 4)
    >>> list(zip(edges.sources.tolist(), edges.targets.tolist()))
    [(0, 1), (0, 4), (1, 0), (1, 3)]
    """
    columns = _Columns(x)
    size = check_int("block", block, 1)

    def make(rng: np.random.Generator, shape: tuple[int, int], nnz: int) -> Edges:
        (rows, hidden), count = check_count(shape, nnz)
        if rows != columns.features:
            raise ArgumentError("shape", f"{columns.features} inputs, as the data has", rows)
        # Input f is that of hidden neurons f, f + in, f + 2·in, ...
        copies = np.clip(-((np.arange(rows) - hidden) // rows), 0, count)
        low, high = _strongest(columns, copies, count, size)
        sources, targets = _places(low, high, copies, rows, count)
        edges, _ = Edges.from_coo(sources, targets, (rows, hidden))
        if edges.nnz == count:
            return edges
        more = distinct_edges(rng, edges.shape, count - edges.nnz, exclude=edges)
        both = np.append(sources, more[0]), np.append(targets, more[1])
        return Edges.from_coo(*both, edges.shape)[0]

    return make


class _Columns:
    """The inputs, a block of standardised features at a time."""

    def __init__(self, x: Any) -> None:
        self.sparse = hasattr(x, "tocsc")
        self.x: Any = x.tocsc() if self.sparse else x
        numbers = check_array("x", self.x.data if self.sparse else x, "fiub", "real numbers")
        if not self.sparse:
            self.x = numbers
        if self.x.ndim != 2 or 0 in self.x.shape:
            raise ArgumentError("x", "a matrix of at least one row and column", f"shape {self.x.shape}")
        check_finite("x", numbers)
        self.rows, self.features = self.x.shape

    def block(self, begin: int, stop: int) -> Array:
        """Return features `begin` to `stop`: mean 0, sum of squares 1 (0 if constant), on the grid."""
        part = self.x[:, begin:stop]
        z = np.array((part.toarray() if self.sparse else part).T, dtype=np.float64, order="C")
        varies = z.max(axis=1) > z.min(axis=1)
        z[~varies] = 0.0
        # By the largest first, so that no square overflows or vanishes.
        for _ in range(2):
            z /= np.maximum(np.abs(z).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
            z -= z.mean(axis=1, keepdims=True)
        z[~varies] = 0.0
        z /= np.maximum(np.sqrt((z * z).sum(axis=1, keepdims=True)), np.finfo(np.float64).tiny)
        return np.rint(z * _GRID, out=z)


def _blocks(features: int, width: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(begin + width, features)) for begin in range(0, features, width))


def _strongest(columns: _Columns, copies: Array, count: int, size: int) -> tuple[Array, Array]:
    """Return pairs of features (low < high), best first: as few as have `count` places in all."""
    width = max(1, min(size // columns.rows, int(size**0.5)))
    size_, low, high = np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    worst = 0.0
    for begin, stop in _blocks(columns.features, width) if count else ():
        left = columns.block(begin, stop)
        for first, last in _blocks(columns.features, width):
            if last <= begin:
                continue
            right = left if first == begin else columns.block(first, last)
            found = np.abs(left @ right.T)
            i, f = np.nonzero((found >= worst) & (found > 0))
            new_low, new_high = i + begin, f + first
            fit = (new_low < new_high) & (copies[new_low] + copies[new_high] > 0)
            size_ = np.append(size_, found[i[fit], f[fit]])
            low, high = np.append(low, new_low[fit]), np.append(high, new_high[fit])
            order = np.lexsort((high, low, -size_))
            places = np.cumsum(copies[low[order]] + copies[high[order]])
            order = order[: int(np.searchsorted(places, count)) + 1]
            size_, low, high = size_[order], low[order], high[order]
            if places.size and places[-1] >= count:
                worst = float(size_[-1])
    return low, high


def _places(low: Array, high: Array, copies: Array, inputs: int, count: int) -> tuple[Array, Array]:
    """Return the first `count` places of the pairs: (low, high + k·in), then (high, low + k·in)."""
    source = np.stack([low, high], axis=1).ravel()
    feature = np.stack([high, low], axis=1).ravel()
    each = copies[feature]
    before = np.cumsum(each) - each
    k = np.arange(int(each.sum())) - np.repeat(before, each)
    targets = np.repeat(feature, each) + k * inputs
    return np.repeat(source, each)[:count], targets[:count]

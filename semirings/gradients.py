"""What a pullback returns for edges: a gradient computed when asked for, and a probe of absent edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError
from gbnn.semirings import kernels

__all__ = ["EdgeGradient", "Probe"]

Array = np.ndarray[Any, Any]


class Probe:
    """A layer's last input and output gradient: the loss's derivative by any edge, present or absent.

    Parameters
    ----------
    x : ndarray, shape (batch, in), Fortran order
    dy : ndarray, shape (batch, out), Fortran order

    Notes
    -----
    The derivative by edge (i, j) is Σ_b x[b, i]·dy[b, j]. It is defined for absent edges where an absent
    edge is one of weight zero: in plus_times.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.semirings import Probe
    >>> probe = Probe(np.asfortranarray([[1.0, 2.0]]), np.asfortranarray([[3.0, 5.0, 7.0]]))
    >>> probe.block(1, 3)
    array([[ 5.,  7.],
           [10., 14.]])
    >>> probe.at(np.array([1]), np.array([0]))
    array([6.])
    >>> probe.exact(np.array([0, 1]), np.array([2, 2]))
    array([ 7., 14.])
    """

    __slots__ = ("dy", "x")

    def __init__(self, x: Array, dy: Array) -> None:
        self.x = x
        self.dy = dy

    @property
    def shape(self) -> tuple[int, int]:
        """in_features, out_features."""
        return self.x.shape[1], self.dy.shape[1]

    def block(self, start: int, stop: int) -> Array:
        """Return the derivatives of all edges into targets `start` to `stop`, shape (in, stop - start)."""
        with np.errstate(all="ignore"):
            result: Array = self.x.T @ self.dy[:, start:stop]
        return result

    def at(self, sources: Array, targets: Array) -> Array:
        """Return the derivatives of the given edges, shape (k,)."""
        out = np.empty(len(sources), dtype=self.x.dtype)
        kernels.sampled_pairs(kernels.by_neuron(self.x), kernels.by_neuron(self.dy), sources, targets, out)
        return out

    def exact(self, sources: Array, targets: Array) -> Array:
        """Return the derivatives of the given edges in float64, summed in order of the samples, shape (k,).

        The same bits for an edge at every call: what to compare edges by where rounding must not decide.
        """
        out = np.empty(len(sources), dtype=np.float64)
        kernels.exact_pairs(kernels.by_neuron(self.x), kernels.by_neuron(self.dy), sources, targets, out)
        return out


class EdgeGradient:
    """The gradient of a layer's edges, shape (nnz,) in canonical order, computed when it is asked for.

    `np.asarray(gradient)` or `gradient.array()` gives the array (once computed, it is kept).

    Parameters
    ----------
    x, dy : ndarray, shapes (batch, in) and (batch, out), Fortran order
        Entry (i, j) is Σ_b x[b, i]·dy[b, j], times `factor` where given.
    edges : Edges
        The edges as they were at the forward pass.
    factor : ndarray, shape (nnz,), optional

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Edges
    >>> from gbnn.semirings import EdgeGradient
    >>> edges, _ = Edges.from_coo([0, 1], [2, 0], (2, 3))
    >>> x, dy = np.asfortranarray([[1.0, 2.0]]), np.asfortranarray([[3.0, 5.0, 7.0]])
    >>> np.asarray(EdgeGradient(x, dy, edges))
    array([7., 6.])
    """

    __slots__ = ("_array", "_dy", "_factor", "_x", "edges")

    def __init__(self, x: Array, dy: Array, edges: Edges, factor: Array | None = None) -> None:
        self._x, self._dy, self.edges, self._factor = x, dy, edges, factor
        self._array: Array | None = None

    @property
    def shape(self) -> tuple[int]:
        """(nnz,)."""
        return (self.edges.nnz,)

    def array(self) -> Array:
        """Return the gradient as an array, shape (nnz,)."""
        if self._array is None:
            out = np.empty(self.edges.nnz, dtype=self._x.dtype)
            x, dy = kernels.by_neuron(self._x), kernels.by_neuron(self._dy)
            ids, starts, targets = self.edges.by_source
            kernels.sampled_product(x, dy, ids, starts, targets, out)
            if self._factor is not None:
                with np.errstate(all="ignore"):
                    out *= self._factor
            self._array = out
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.array()
        if dtype is None or np.dtype(dtype) == array.dtype:
            return array.copy() if copy else array
        if copy is False:
            raise ArgumentError("copy", f"True or None for {np.dtype(dtype)} of {array.dtype}", copy)
        return array.astype(dtype)

    @property
    def probe(self) -> Probe:
        """The derivatives of absent edges; ArgumentError where the semiring has none."""
        if self._factor is not None:
            only = "a plus_times layer: only there is an absent edge one of weight 0"
            raise ArgumentError("probe", only, "log_plus")
        return Probe(self._x, self._dy)

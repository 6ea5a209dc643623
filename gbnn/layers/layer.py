"""What every layer is: `forward` returns the output and its pullback; parameters have names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, Self

import numpy as np

from gbnn.errors import ArgumentError, KindError, check_real
from gbnn.rows import SparseRows, is_sparse
from gbnn.weights import Weights

__all__ = [
    "Activations",
    "Gradients",
    "Layer",
    "Parameter",
    "Pullback",
    "as_activations",
    "as_batch",
    "as_output_gradient",
    "values_of_gradient",
]

Array = np.ndarray[Any, Any]
Activations = Array | SparseRows
"""A batch, dense or sparse."""
Parameter = Weights | Array
Gradients = dict[str, Any]
"""Name of a parameter -> its gradient; those of edges are lazy: `np.asarray(gradient)` gives the array."""


class Pullback(Protocol):
    """The derivative of a layer at the point of its last `forward`; call it before the parameters change."""

    def __call__(self, dy: Any, *, inputs: bool = True) -> tuple[Any, Gradients]:
        """Map dloss/dy, shape (batch, out), to dloss/dx, shape (batch, in), and the gradients by name.

        Either may be sparse: an absent entry is 0. Of sparse y, dy is read at its active entries only; of
        sparse x, dx is known at its active entries only, and has their pattern. With `inputs=False` the
        caller does not want dx (the first layer of a network): it may come as None.
        """
        ...


class Layer(ABC):
    """A differentiable function of a batch, with named parameters.

    A new layer is one class: `forward`, and whichever of `own_parameters`, `own_buffers`, `children` and
    `config` it has. Saving, loading, optimizers and rewiring follow from these.
    """

    in_features: int | None = None
    out_features: int | None = None

    @abstractmethod
    def forward(self, x: Any, *, training: bool = False) -> tuple[Any, Pullback]:
        """Compute the output of a batch.

        Parameters
        ----------
        x : ndarray, graphblas.Matrix, SciPy sparse matrix or SparseRows, shape (batch, in_features)
            Of an array any order and real dtype; Fortran order and the layer's own dtype save a copy.
        training : bool
            Whether layers that behave differently in training (Dropout, BatchNorm) do so.

        Returns
        -------
        y : ndarray, Fortran order, or SparseRows, shape (batch, out_features)
        pullback : Pullback
        """

    def own_parameters(self) -> dict[str, Parameter]:
        """Parameters of this layer itself, by attribute name: `Weights`, or arrays trained in place."""
        return {}

    def own_buffers(self) -> dict[str, Array]:
        """Arrays that are saved but not trained (running statistics), by attribute name."""
        return {}

    def children(self) -> dict[str, Layer]:
        """Return the layers inside this one, by name."""
        return {}

    def config(self) -> dict[str, Any]:
        """Return what the constructor needs beside arrays and children: JSON values, or a Semiring."""
        return {}

    @classmethod
    def restore(
        cls, config: dict[str, Any], arrays: Mapping[str, Parameter], children: dict[str, Layer]
    ) -> Self:
        """Make the layer again from `config()`, its parameters and buffers, and its children."""
        layer = cls(*children.values(), **config)
        own = {**layer.own_parameters(), **layer.own_buffers()}
        if set(own) != set(arrays):
            raise ArgumentError(cls.__name__, f"arrays {sorted(own)}", sorted(arrays))
        for name, array in own.items():
            came = arrays[name]
            same = isinstance(array, np.ndarray) and isinstance(came, np.ndarray)
            if not same or (came.shape, came.dtype) != (array.shape, array.dtype):
                wanted = f"an array of shape {array.shape}, {array.dtype}"
                raise ArgumentError(f"{cls.__name__}.{name}", wanted, f"{came.shape}, {came.dtype}")
            setattr(layer, name, np.array(came))  # its own: training writes into it
        return layer

    def width_after(self, width: int | None) -> int | None:
        """Return how wide the output is for an input of this width, None where that is not known.

        A layer that says no `out_features` keeps the width; one that does not overrides this.
        """
        return width if self.out_features is None else self.out_features

    # -- What follows from the above -------------------------------------------------------------------------

    def walk(self, prefix: str = "") -> Iterator[tuple[str, Layer]]:
        """Yield this layer and all inside it with their names: ``"" , "0", "0.inner"``, depth first."""
        yield prefix, self
        for name, child in self.children().items():
            yield from child.walk(f"{prefix}.{name}" if prefix else name)

    def parameters(self) -> dict[str, Parameter]:
        """Return all parameters, those of inner layers as ``"0.weights"``: `Weights` or arrays."""
        return {
            f"{path}.{name}" if path else name: value
            for path, layer in self.walk()
            for name, value in layer.own_parameters().items()
        }

    def buffers(self) -> dict[str, Array]:
        """Return all buffers, named as `parameters` are."""
        return {
            f"{path}.{name}" if path else name: value
            for path, layer in self.walk()
            for name, value in layer.own_buffers().items()
        }

    @property
    def nnz(self) -> int:
        """Number of weights: edges, and the entries of dense weight matrices; biases do not count."""
        return sum(layer.own_nnz for _, layer in self.walk())

    @property
    def own_nnz(self) -> int:
        """Number of weights of this layer itself."""
        return sum(p.nnz for p in self.own_parameters().values() if isinstance(p, Weights))

    @property
    def nbytes(self) -> int:
        """Bytes of all parameters and buffers, indices included (see `Weights.nbytes`)."""
        held = [*self.parameters().values(), *self.buffers().values()]
        return sum(p.nbytes for p in held)

    @property
    def kind(self) -> str:
        """Name in tables."""
        return repr(self)

    def describe(self) -> str:
        """Return a table of the layers: shapes, nnz, density, bytes."""
        rows = [("layer", "kind", "shape", "nnz", "density", "bytes")]
        for path, layer in self.walk():
            held = (*layer.own_parameters().values(), *layer.own_buffers().values())
            if layer.children() and not held:
                continue
            size = sum(p.nbytes for p in held)
            known = layer.in_features is not None and layer.out_features is not None
            shape = f"{layer.in_features} x {layer.out_features}" if known else "any"
            places = (layer.in_features or 0) * (layer.out_features or 0)
            density = f"{layer.own_nnz / places:.4g}" if layer.own_nnz and places else ""
            nnz = f"{layer.own_nnz:,}" if layer.own_nnz else ""
            rows.append((path or "-", layer.kind, shape, nnz, density, f"{size:,}" if size else ""))
        rows.append(("total", "", "", f"{self.nnz:,}", "", f"{self.nbytes:,}"))
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        aligned = [
            "  ".join(
                c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))
            )
            for r in rows
        ]
        return "\n".join(line.rstrip() for line in aligned)

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v!r}" for k, v in self.config().items())
        return f"{type(self).__name__}({inside})"


def as_batch(where: str, x: Any, features: int | None = None, dtype: np.dtype[Any] | None = None) -> Array:
    """Return `x` as a batch: 2-D, in Fortran order, float32 or float64; a copy only where it must be.

    Parameters
    ----------
    where : str
        Named in errors.
    x : array_like, shape (batch, features)
    features : int, optional
        The number of columns that is expected.
    dtype : dtype, optional
        None keeps float32 and float64 and turns other real dtypes into float32.

    Raises
    ------
    ArgumentError, KindError
        If `x` is not 2-D, has no rows, another number of columns, or is not of real numbers.
    """
    if hasattr(x, "nnz") or hasattr(x, "nvals"):
        raise KindError(where, "a dense array", type(x).__name__)
    x = check_real(where, x, "a rectangular array of real numbers")
    if x.ndim != 2 or x.shape[0] == 0 or (features is not None and x.shape[1] != features):
        wanted = "(batch, features)" if features is None else f"(batch, {features})"
        raise ArgumentError(where, f"a batch of shape {wanted} with at least one row", f"shape {x.shape}")
    if dtype is None:
        dtype = x.dtype if x.dtype in (np.float32, np.float64) else np.dtype(np.float32)
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and shows
        return np.require(x, dtype, ["F", "A"])  # GraphBLAS reads no array at an odd address


def as_activations(
    where: str, x: Any, features: int | None = None, dtype: np.dtype[Any] | None = None
) -> Activations:
    """Return `x` as a batch: `SparseRows` of anything sparse, else an array as `as_batch` makes it.

    Parameters and errors are those of `as_batch`.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from gbnn.layers.layer import as_activations
    >>> as_activations("x", sp.eye_array(3))
    SparseRows(3 x 3, nnz=3, float64)
    >>> as_activations("x", [[1, 2]])
    array([[1., 2.]], dtype=float32)
    """
    if not is_sparse(x):
        return as_batch(where, x, features, dtype)
    rows = SparseRows.of(x, dtype=dtype, where=where)
    if features is not None and rows.shape[1] != features:
        raise ArgumentError(where, f"a batch of shape (batch, {features})", f"shape {rows.shape}")
    return rows


def values_of_gradient(where: str, dy: Any, y: SparseRows) -> Array:
    """Return `dy`, dense or sparse, at the active entries of sparse output y: shape (y.nnz,), its dtype."""
    if is_sparse(dy):
        rows = SparseRows.of(dy, dtype=y.dtype, where=where)
        if rows.shape != y.shape:
            raise ArgumentError(where, f"the shape of the output, {y.shape}", rows.shape)
        return rows.onto(y)
    dense = as_output_gradient(where, dy, y.shape, y.dtype)
    at: Array = dense[y.rows, y.columns]
    return at


def as_output_gradient(where: str, dy: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return `dy` in the shape and dtype of a layer's output, in Fortran order, or raise naming `where`.

    Sparse `dy` is made dense.
    """
    if is_sparse(dy):
        rows = SparseRows.of(dy, dtype=dtype, where=where)
        if rows.shape != shape:
            raise ArgumentError(where, f"the shape of the output, {shape}", rows.shape)
        return rows.to_dense()
    batch: Array = as_batch(where, dy, shape[1], dtype)
    if batch.shape != shape:  # one row would be broadcast silently
        raise ArgumentError(where, f"the shape of the output, {shape}", batch.shape)
    return batch

"""`Linear`: a layer of edges over any semiring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from gbnn.edges import Edges, check_shape
from gbnn.errors import ArgumentError, KindError, check_finite, check_float, check_int, generator
from gbnn.layers.init import Initializer, drawn, he, uniform
from gbnn.layers.layer import Layer, Parameter, Pullback, as_activations
from gbnn.rows import SparseRows
from gbnn.sampling import MAX_EDGES, distinct_edges
from gbnn.semirings import Semiring, plus_times
from gbnn.semirings.active import Form
from gbnn.semirings.semiring import fit
from gbnn.weights import Weights, real_dtype

__all__ = ["Linear"]

Array = np.ndarray[Any, Any]

BIAS_ON = ("all", "active")
FORMS = ("auto", "dense", "sparse")


class Linear(Layer):
    """A truly sparse layer: ``y = x ⊕.⊗ W (⊕ bias)``.

    Parameters
    ----------
    weights : Weights, shape (in, out)
    bias : ndarray, shape (out,), optional
        One more edge, from a constant input whose value is the identity of ⊗: the ordinary bias in
        plus_times, a constant candidate of the minimum in min_plus.
    semiring : Semiring
        Default plus_times, the ordinary network.
    bias_on : {"all", "active"}
        Of a sparse batch: whether every output gets the bias, which makes the output dense, or only those
        that an edge from an active input reaches (plus_times; as in the GraphChallenge). With "active" a
        dense batch is read as its entries that are not 0.
    output : {"auto", "dense", "sparse"}
        Form of the output of a sparse batch. "auto": dense where a bias fills it, where the layer is small,
        or where about a tenth of the outputs or more are reached; else sparse.

    Notes
    -----
    An output with no incoming edge gives the bias, or the identity of ⊕ (0 in plus_times, +∞ in min_plus).
    A sparse batch costs what the edges from its active inputs cost, forward and back, whatever the widths.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> layer = layers.Linear.random(1000, 500, nnz=2000, seed=0)
    >>> layer
    Linear(1000 x 500, nnz=2000, density=0.004, plus_times, bias)
    >>> y, pullback = layer.forward(np.ones((8, 1000)))
    >>> dx, gradients = pullback(np.ones_like(y))
    >>> y.shape, dx.shape, np.asarray(gradients["weights"]).shape, gradients["bias"].shape
    ((8, 500), (8, 1000), (2000,), (500,))
    """

    def __init__(
        self,
        weights: Weights,
        bias: Any = None,
        semiring: Semiring = plus_times,
        *,
        bias_on: str = "all",
        output: Form = "auto",
    ) -> None:
        if not isinstance(weights, Weights):
            raise KindError("weights", "a gbnn Weights", type(weights).__name__)
        if not isinstance(semiring, Semiring):
            raise KindError("semiring", "a gbnn Semiring", type(semiring).__name__)
        for name, option, known in (("bias_on", bias_on, BIAS_ON), ("output", output, FORMS)):
            if option not in known:
                raise ArgumentError(name, f"one of {', '.join(known)}", repr(option))
        if bias_on == "active" and semiring is not plus_times:
            raise ArgumentError("bias_on", f"'all' in {semiring}", repr(bias_on))
        self.weights = weights
        self.semiring = semiring
        self.bias_on, self.output = bias_on, output
        self.bias: Array | None = None
        if bias is not None:
            if semiring.one is None:
                raise ArgumentError("bias", f"None: {semiring} has no identity of ⊗ to carry one", "a bias")
            self.bias = fit("bias", bias, (weights.out_features,), weights.dtype).copy()
            if np.isfinite(semiring.identity) or np.isnan(self.bias).any():  # else ±∞ means no bias there
                check_finite("bias", self.bias)

    @property
    def in_features(self) -> int:  # type: ignore[override]
        """Number of inputs."""
        return self.weights.in_features

    @property
    def out_features(self) -> int:  # type: ignore[override]
        """Number of outputs."""
        return self.weights.out_features

    @classmethod
    def random(
        cls,
        in_features: int,
        out_features: int,
        *,
        nnz: int | None = None,
        density: float | None = None,
        semiring: Semiring = plus_times,
        bias: bool = True,
        init: Initializer | None = None,
        dtype: Any = np.float32,
        seed: int | np.random.Generator = 0,
        bias_on: str = "all",
        output: Form = "auto",
    ) -> Self:
        """Make a layer with exactly `nnz` random edges.

        Parameters
        ----------
        in_features, out_features : int
            From 1 to 2**60.
        nnz : int, optional
            Number of edges; or give `density`, their share of all in x out places, in (0, 1].
        semiring : Semiring
        bias : bool
            It starts at 0 where initial weights are centred on it, else in the weights' own range.
        init : callable, optional
            ``init(rng, fan_in, fan_out) -> values``; default `he` by each neuron's own fan-in, or the
            semiring's own range.
        dtype : dtype
            float32 or float64.
        seed : int or numpy.random.Generator
        bias_on, output
            See `Linear`.

        Raises
        ------
        ArgumentError, KindError
            If the sizes make no sense, or more edges are asked for than there are places.

        Examples
        --------
        >>> from gbnn import layers
        >>> layers.Linear.random(2**60, 2**60, nnz=1000, bias=False, seed=0).nbytes < 100_000
        True
        """
        shape = check_shape(in_features, out_features)
        rng = generator("seed", seed)
        edges, _ = Edges.from_coo(*distinct_edges(rng, shape, _edge_count(shape, nnz, density)), shape)
        options: dict[str, Any] = {"bias": bias, "bias_on": bias_on, "output": output}
        return cls.from_edges(edges, semiring=semiring, init=init, dtype=dtype, seed=rng, **options)

    @classmethod
    def from_edges(
        cls,
        edges: Edges,
        *,
        semiring: Semiring = plus_times,
        bias: bool = True,
        init: Initializer | None = None,
        dtype: Any = np.float32,
        seed: int | np.random.Generator = 0,
        bias_on: str = "all",
        output: Form = "auto",
    ) -> Self:
        """Make a layer on a given graph; its values are drawn as those of `random`.

        Parameters
        ----------
        edges : Edges
            Such as a maker of `gbnn.topology.wire` gives.
        semiring, bias, init, dtype, seed, bias_on, output
            As for `random`.

        Raises
        ------
        ArgumentError, KindError
            If `edges` are no Edges, or an option makes no sense.

        Examples
        --------
        >>> import numpy as np
        >>> from gbnn import layers
        >>> from gbnn.topology import wire
        >>> edges = wire.regular(np.random.default_rng(0), (100, 50), 1000)
        >>> layers.Linear.from_edges(edges, seed=0)
        Linear(100 x 50, nnz=1000, density=0.2, plus_times, bias)
        """
        if not isinstance(edges, Edges):
            raise KindError("edges", "gbnn Edges", type(edges).__name__)
        rng = generator("seed", seed)
        kind = real_dtype("dtype", dtype)
        if not isinstance(semiring, Semiring):
            raise KindError("semiring", "a gbnn Semiring", type(semiring).__name__)
        if not isinstance(bias, (bool, np.bool_)):
            raise KindError("bias", "True or False", repr(bias))
        out_features = edges.shape[1]
        if bias and out_features > 2**31:
            raise ArgumentError("bias", "False for more than 2**31 outputs (a bias is dense)", bias)
        if init is None:
            init = he if semiring.span is None else uniform(*semiring.span)
        values = drawn(init, rng, *edges.fans(), kind)
        start = None
        if bias and semiring.span is None:
            start = np.zeros(out_features)
        elif bias and semiring.span is not None:
            start = rng.uniform(*semiring.span, out_features)
        options: dict[str, Any] = {}
        if (bias_on, output) != ("all", "auto"):  # layers made of this one may not have these
            options = {"bias_on": bias_on, "output": output}
        return cls(Weights(edges, values), start, semiring, **options)

    @classmethod
    def from_scipy(cls, matrix: Any, bias: Any = None, semiring: Semiring = plus_times) -> Self:
        """Make a layer of a SciPy sparse matrix of shape (in, out); its stored entries are the edges."""
        return cls(Weights.from_scipy(matrix), bias, semiring)

    @classmethod
    def from_dense(
        cls, array: Any, bias: Any = None, semiring: Semiring = plus_times, *, threshold: float = 0.0
    ) -> Self:
        """Make a layer of an array of shape (in, out): entries beyond `threshold` in size are the edges."""
        return cls(Weights.from_dense(array, threshold=threshold), bias, semiring)

    def forward(self, x: Any, *, training: bool = False) -> tuple[Any, Pullback]:
        """Compute ``x ⊕.⊗ W (⊕ bias)``; see `Layer.forward`.

        Cost: O(batch x nnz) of a dense batch, O(active edges) of a sparse one.
        """
        x = as_activations("Linear.forward x", x, self.in_features, self.weights.dtype)
        if self.bias_on == "active" and self.bias is not None and not isinstance(x, SparseRows):
            y, pullback = self.forward(SparseRows.from_dense(x), training=training)
            return y, _into_dense(pullback)
        form, on = self.output, self.bias_on
        return self.semiring.product(x, self.weights, self.bias, form=form, bias_on=on)

    def own_parameters(self) -> dict[str, Parameter]:
        """Return weights, and bias where there is one."""
        own: dict[str, Parameter] = {"weights": self.weights}
        return own if self.bias is None else own | {"bias": self.bias}

    def config(self) -> dict[str, Any]:
        """Return the semiring, and the options that are not the usual ones."""
        usual = {"bias_on": "all", "output": "auto"}
        return {"semiring": self.semiring} | {
            name: own for name, value in usual.items() if (own := getattr(self, name)) != value
        }

    @classmethod
    def restore(
        cls, config: dict[str, Any], arrays: Mapping[str, Parameter], children: dict[str, Layer]
    ) -> Self:
        """Make the layer again; see `Layer.restore`."""
        weights = arrays.get("weights")
        if not isinstance(weights, Weights) or not set(arrays) <= {"weights", "bias"}:
            raise ArgumentError("Linear", "weights and perhaps a bias", sorted(arrays))
        if "semiring" not in config or not set(config) <= {"semiring", "bias_on", "output"}:
            raise ArgumentError("Linear", "a semiring, and perhaps bias_on and output", sorted(config))
        return cls(weights, arrays.get("bias"), **config)

    @property
    def kind(self) -> str:
        """Name in tables."""
        return f"Linear {self.semiring}"

    def __repr__(self) -> str:
        inside = repr(self.weights)[len("Weights(") :].rsplit(", ", 1)[0]
        return f"Linear({inside}, {self.semiring}{'' if self.bias is None else ', bias'})"


def _into_dense(pullback: Pullback) -> Pullback:
    """Return the pullback of a dense batch that was read as its entries that are not 0."""

    def back(dy: Any, *, inputs: bool = True) -> tuple[Any, Any]:
        dx, gradients = pullback(dy, inputs=inputs)
        return (dx.to_dense() if inputs else None), gradients

    return back


def _edge_count(shape: tuple[int, int], nnz: int | None, density: float | None) -> int:
    if (nnz is None) == (density is None):
        raise ArgumentError("nnz, density", "exactly one of them", "both" if nnz is not None else "neither")
    if nnz is not None:
        return check_int("nnz", nnz, 0, MAX_EDGES)
    count = round(check_float("density", density, 0, 1, open_low=True) * shape[0] * shape[1])
    if count > MAX_EDGES:
        raise ArgumentError("density", f"at most {MAX_EDGES} edges", f"{count} of {shape[0]} x {shape[1]}")
    return count

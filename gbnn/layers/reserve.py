"""`ReserveLinear`: a sparse layer with edges in reserve, trained but not used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, KindError, check_float, check_int, generator
from gbnn.layers.init import drawn, he
from gbnn.layers.layer import (
    Activations,
    Gradients,
    Parameter,
    Pullback,
    as_activations,
    as_output_gradient,
)
from gbnn.layers.linear import Linear
from gbnn.layers.sparse import through_dense
from gbnn.rows import SparseRows
from gbnn.sampling import distinct_edges
from gbnn.semirings import EdgeGradient, plus_times
from gbnn.weights import Weights

__all__ = ["ReserveLinear"]

Array = np.ndarray[Any, Any]


class ReserveLinear(Linear):
    """``y = x W + bias``, and edges in reserve, which have weights and gradients but are not in W (Top-KAST).

    The edges of W are the forward set, these and the reserve the backward set (Jayakumar et al., 2020,
    arXiv:2106.03517). `topology.top_kast` exchanges the weak of the one for the strong of the other.

    Parameters
    ----------
    weights : Weights, shape (in, out)
    reserve : Weights, shape (in, out)
        Other edges than those of `weights`, of the same dtype.
    bias : ndarray, shape (out,), optional
    penalty : float
        λ of the exploration loss, λ/2·(Σ w² + Σ r²/D) over the weights w and the reserve r, D being the
        density of W: its gradient is added to the edges' own, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> layer = layers.ReserveLinear.of(layers.Linear.random(100, 50, nnz=200, seed=0), 100, seed=1)
    >>> y, pullback = layer.forward(np.ones((8, 100)))
    >>> dx, gradients = pullback(np.ones_like(y))
    >>> np.asarray(gradients["weights"]).shape, np.asarray(gradients["reserve"]).shape, layer.nnz
    ((200,), (100,), 200)
    """

    def __init__(self, weights: Weights, reserve: Weights, bias: Any = None, penalty: float = 0.0) -> None:
        super().__init__(weights, bias, plus_times)
        if not isinstance(reserve, Weights):
            raise KindError("reserve", "a gbnn Weights", type(reserve).__name__)
        if (reserve.shape, reserve.dtype) != (weights.shape, weights.dtype):
            wanted = f"{weights.in_features} x {weights.out_features}, {weights.dtype}, as the weights"
            raise ArgumentError("reserve", wanted, repr(reserve))
        if (weights.edges.find(reserve.sources, reserve.targets) >= 0).any():
            raise ArgumentError("reserve", "other edges than those of the weights", "some of them")
        self.reserve = reserve
        self.penalty = check_float("penalty", penalty, 0)

    @classmethod
    def of(
        cls, layer: Linear, reserve: int, *, penalty: float = 0.0, seed: int | np.random.Generator = 0
    ) -> Self:
        """Make one of a plus_times `Linear`, whose parameters it takes, with `reserve` random edges more.

        Raises
        ------
        ArgumentError, KindError
            If the layer is none, of another semiring, or has too few places without an edge.
        """
        if not isinstance(layer, Linear):
            raise KindError("layer", "a Linear", type(layer).__name__)
        if layer.semiring is not plus_times:
            raise ArgumentError("layer", "one of plus_times: there an absent edge has a gradient", layer)
        rng, weights = generator("seed", seed), layer.weights
        count = check_int("reserve", reserve, 0)
        edges, _ = Edges.from_coo(*distinct_edges(rng, weights.shape, count, weights.edges), weights.shape)
        values = drawn(he, rng, *edges.fans(), weights.dtype)
        return cls(weights, Weights(edges, values), layer.bias, penalty)

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Compute ``x W + bias`` by the forward set alone; the pullback has gradients of both sets.

        A sparse `x` is made dense: at most 2**31 places.
        """
        where = "ReserveLinear.forward x"
        x = as_activations(where, x, self.in_features, self.weights.dtype)
        if isinstance(x, SparseRows):
            why = "the gradient of the reserve reads it as an array"
            return through_dense(self, where, x, training=training, why=why)
        y, inner = self.semiring.product(x, self.weights, self.bias)
        shape, reserve = y.shape, self.reserve.edges

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[Array | None, Gradients]:
            dy = as_output_gradient("ReserveLinear.pullback dy", dy, shape, x.dtype)
            dx, gradients = inner(dy, inputs=inputs)
            gradients["reserve"] = EdgeGradient(x, dy, reserve)
            if self.penalty:
                for name, weights, share in (
                    ("weights", self.weights, self.penalty),
                    ("reserve", self.reserve, self.penalty / max(self.weights.density, 1e-300)),
                ):
                    gradients[name] = np.asarray(gradients[name]) + weights.dtype.type(share) * weights.values
            return dx, gradients

        return y, pullback

    @property
    def own_nnz(self) -> int:
        """Number of edges of the forward set."""
        return self.weights.nnz

    def own_parameters(self) -> dict[str, Parameter]:
        """Return weights, reserve, and bias where there is one."""
        own = super().own_parameters()
        return {"weights": own.pop("weights"), "reserve": self.reserve, **own}

    def config(self) -> dict[str, Any]:
        """Return the penalty."""
        return {"penalty": self.penalty}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: Mapping[str, Parameter], children: Any) -> Self:
        """Make the layer again; see `Layer.restore`."""
        weights, reserve = arrays.get("weights"), arrays.get("reserve")
        known = set(arrays) <= {"weights", "reserve", "bias"} and set(config) == {"penalty"}
        if not (isinstance(weights, Weights) and isinstance(reserve, Weights) and known):
            raise ArgumentError(
                "ReserveLinear", "weights, reserve, a penalty, perhaps a bias", sorted(arrays)
            )
        return cls(weights, reserve, arrays.get("bias"), config["penalty"])

    @property
    def kind(self) -> str:
        """Name in tables."""
        return f"ReserveLinear, {self.reserve.nnz} in reserve"

    def __repr__(self) -> str:
        return f"Reserve{super().__repr__()[:-1]}, {self.reserve.nnz} in reserve)"

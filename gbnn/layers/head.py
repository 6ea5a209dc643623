"""`ManyLabels`: a last layer for up to millions of labels, which scores only those that are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from gbnn.errors import ArgumentError
from gbnn.layers.layer import (
    Gradients,
    Layer,
    Parameter,
    Pullback,
    as_activations,
    as_output_gradient,
)
from gbnn.layers.linear import Linear
from gbnn.layers.scores import Scores
from gbnn.rows import SparseRows, is_sparse
from gbnn.semirings import Semiring, plus_times
from gbnn.weights import Weights

__all__ = ["ManyLabels"]

Array = np.ndarray[Any, Any]


class ManyLabels(Linear):
    """``h W + bias`` as `Linear` of plus_times, but lazy: `forward` gives `Scores`, not an array.

    The layer to end a network with where labels are many. A loss over candidates (`losses.Sampled`) computes
    the scores of these alone, at the cost of their edges, and the gradient touches those edges only; any
    other loss asks for all scores. `training.ranking.top_k` predicts without a row of scores.

    With as many edges into each label (`topology.wire.constant_fan_in`) a label costs fan_in edges however
    many labels there are: the fixed fan-in output layer of Schultheis and Babbar, "Towards memory-efficient
    training for extremely large output spaces", ECML PKDD 2023, and, with edges that move, of Ullah,
    Schultheis, Lasby, Ioannou and Babbar, "Navigating extremes: dynamic sparsity in large output spaces",
    NeurIPS 2024.

    Parameters
    ----------
    weights : Weights, shape (hidden, labels)
        Up to 2**31 labels.
    bias : ndarray, shape (labels,), optional
    semiring : Semiring
        plus_times; no other.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.head import ManyLabels
    >>> from gbnn.topology import wire
    >>> edges = wire.constant_fan_in(np.random.default_rng(0), (64, 1000), 1000 * 8)
    >>> head = ManyLabels.from_edges(edges, seed=0)
    >>> head
    ManyLabels(64 x 1000, nnz=8000, density=0.125, bias)
    >>> scores, pullback = head.forward(np.ones((2, 64)), training=True)
    >>> some = scores.at(([0, 2, 3], [5, 7, 999]))
    >>> dh, gradients = pullback(some.with_values(np.ones(3)))
    >>> dh.shape, gradients["weights"].positions.size, gradients["bias"].positions
    ((2, 64), 24, array([  5,   7, 999]))
    """

    def __init__(self, weights: Weights, bias: Any = None, semiring: Semiring = plus_times) -> None:
        super().__init__(weights, bias, semiring)
        if semiring is not plus_times:
            raise ArgumentError("semiring", "plus_times", semiring)
        if weights.out_features > 2**31:
            raise ArgumentError("weights", "at most 2**31 labels", weights.out_features)

    def forward(self, x: Any, *, training: bool = False) -> tuple[Any, Pullback]:
        """Return the `Scores` of a batch, and their pullback.

        Parameters
        ----------
        x : ndarray or anything sparse, shape (batch, in_features)
        training : bool
            Makes no difference.

        Returns
        -------
        scores : Scores, shape (batch, labels)
        pullback : Pullback
            Of sparse `dy`, on the candidates' pattern, the gradients are `TouchedGradient` of the edges into
            these labels and of their biases. Of an array `dy`, they are those of `Linear`.
        """
        x = as_activations("ManyLabels.forward x", x, self.in_features, self.weights.dtype)
        scores = Scores(x, self.weights, self.bias)
        stamp = self.weights.stamp

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[Any, Gradients]:
            if self.weights.stamp != stamp:
                raise ArgumentError("ManyLabels.pullback", "the weights of the forward pass", "others since")
            where = "ManyLabels.pullback dy"
            if not is_sparse(dy):
                return scores.pull_dense(as_output_gradient(where, dy, scores.shape, scores.dtype), inputs)
            rows = SparseRows.of(dy, dtype=scores.dtype, where=where)
            if rows.shape != scores.shape:
                raise ArgumentError(where, f"the shape of the output, {scores.shape}", rows.shape)
            with np.errstate(all="ignore"):
                dh, by_edge, by_label = scores.pull(rows, inputs)
            gradients: Gradients = {"weights": by_edge}
            return dh, gradients if self.bias is None else gradients | {"bias": by_label}

        return scores, pullback

    def config(self) -> dict[str, Any]:
        """Return nothing: there are no options."""
        return {}

    @classmethod
    def restore(
        cls, config: dict[str, Any], arrays: Mapping[str, Parameter], children: dict[str, Layer]
    ) -> Self:
        """Make the layer again; see `Layer.restore`."""
        weights = arrays.get("weights")
        if config or not isinstance(weights, Weights) or not set(arrays) <= {"weights", "bias"}:
            raise ArgumentError("ManyLabels", "weights and perhaps a bias", sorted(arrays))
        return cls(weights, arrays.get("bias"))

    @property
    def kind(self) -> str:
        """Name in tables."""
        return "ManyLabels"

    def __repr__(self) -> str:
        return f"ManyLabels{super().__repr__()[len('Linear') :]}".replace(", plus_times", "")

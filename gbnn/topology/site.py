"""`Site`: one layer at the moment of its rewiring, as prune and grow rules see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gbnn.edges import Edges
from gbnn.errors import ArgumentError
from gbnn.semirings import EdgeGradient, Probe
from gbnn.weights import Weights

__all__ = ["Site"]

Array = np.ndarray[Any, Any]


@dataclass
class Site:
    """One layer's edges and what is known of them.

    Attributes
    ----------
    name : str
        The parameter's name in the model, ``"0.weights"``.
    weights : Weights
    gradient : array-like or None
        The gradient of this batch; `numpy.asarray` of it has shape (nnz,).
    slots : dict of str to ndarray
        The optimizer's per-edge arrays; they follow their edges.
    index, count : int
        This layer's place among the layers with weights, full ones (`Dense`) included, from the input, and
        how many there are.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0, 1, 2], [0, 0, 1], 1.0, shape=(3, 2)))
    >>> site.kept(np.array([1])).sources
    array([0, 2])
    """

    name: str
    weights: Weights
    gradient: Any = None
    slots: dict[str, Array] = field(default_factory=dict)
    index: int = 0
    count: int = 1

    @property
    def probe(self) -> Probe:
        """The derivatives by absent edges; ArgumentError where there is no such gradient."""
        if not isinstance(self.gradient, EdgeGradient):
            wanted = "the gradient of a plus_times layer, to grow edges by"
            raise ArgumentError(f"rewiring {self.name}", wanted, type(self.gradient).__name__)
        try:
            return self.gradient.probe
        except ArgumentError as error:
            raise ArgumentError(f"rewiring {self.name}", error.expected, error.got) from None

    def kept(self, dropped: Array) -> Edges:
        """Return the edges without those at the positions `dropped`."""
        keep = np.ones(self.weights.nnz, dtype=bool)
        keep[dropped] = False
        edges = self.weights.edges
        return Edges(edges.sources[keep], edges.targets[keep], edges.shape)

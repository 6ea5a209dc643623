"""`Site`: one layer at its rewiring, as the rules see it, and `Memory`, what they keep of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gbnn.edges import Change, Edges
from gbnn.errors import ArgumentError, KindError
from gbnn.layers import Chain, Concatenate, Layer, Parallel, Residual
from gbnn.semirings import ActiveGradient, ActiveProbe, EdgeGradient, Probe
from gbnn.topology.clock import Clock
from gbnn.topology.moved import MovedGradient
from gbnn.weights import Weights

__all__ = ["EachStep", "Memory", "Site", "sites"]

Array = np.ndarray[Any, Any]
EachStep = Callable[["Site", Clock, np.random.Generator], None]
"""What a rewiring does for a layer at every step.

There slots are not up to date where the optimizer is lazy, unless ``site.weights.settle()`` is called first.
"""


@dataclass
class Memory:
    """What rules remember of one layer from one step to the next. It is saved with the training state.

    Attributes
    ----------
    edges : dict of str to ndarray
        Arrays of one entry an edge, shape (nnz,): they follow their edges, and new edges get 0.
    layer : dict of str to ndarray
        Anything else, as arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.edges import Change
    >>> from gbnn.topology import Memory
    >>> memory = Memory(edges={"age": np.array([3, 5])})
    >>> memory.follow(Change(np.array([-1, 1]), before=2))
    >>> memory.edges["age"]
    array([0, 5])
    """

    edges: dict[str, Array] = field(default_factory=dict)
    layer: dict[str, Array] = field(default_factory=dict)

    def follow(self, change: Change) -> None:
        """Move the arrays of edges to where their edges have gone."""
        moved = {name: change.carry(array) for name, array in self.edges.items()}
        self.edges.update(moved)


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
    memory : Memory
        What rules keep between rewirings.
    follows : str or None
        The name of the layer whose outputs, one by one, are this layer's only inputs; None where there is no
        such layer, or it has no edges.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.weights import Weights
    >>> site = Site("w", Weights.from_coo([0, 1, 2], [0, 0, 1], 1.0, shape=(3, 2)))
    >>> site.kept(np.array([1])).sources
    array([0, 2])
    >>> site.places, site.free
    (6, 3)
    """

    name: str
    weights: Weights
    gradient: Any = None
    slots: dict[str, Array] = field(default_factory=dict)
    index: int = 0
    count: int = 1
    memory: Memory = field(default_factory=Memory)
    follows: str | None = None

    @property
    def places(self) -> int:
        """How many edges the layer could have: in x out."""
        return self.weights.in_features * self.weights.out_features

    @property
    def free(self) -> int:
        """Places without an edge."""
        return self.places - self.weights.nnz

    @property
    def edge_gradient(self) -> Array:
        """The gradient of this batch as an array, shape (nnz,); ArgumentError where there is none."""
        if self.gradient is None:
            raise ArgumentError(f"rewiring {self.name}", "the gradient of a batch", "none")
        return np.asarray(self.gradient)

    @property
    def probe(self) -> Probe | ActiveProbe:
        """The derivatives by absent edges; ArgumentError where there is no such gradient.

        An `ActiveProbe` where the batch was sparse: rules that work by neurons of all numbers ask for
        `dense_probe`.
        """
        if not isinstance(self.gradient, EdgeGradient | ActiveGradient):
            wanted = "the gradient of a plus_times layer, to grow edges by"
            raise ArgumentError(f"rewiring {self.name}", wanted, type(self.gradient).__name__)
        try:
            return self.gradient.probe
        except ArgumentError as error:
            raise ArgumentError(f"rewiring {self.name}", error.expected, error.got) from None

    @property
    def dense_probe(self) -> Probe:
        """The derivatives by absent edges, as `probe`; ArgumentError also where the batch was sparse."""
        probe = self.probe
        if isinstance(probe, ActiveProbe):
            wanted = (
                "a dense batch: this rule looks at all neurons (topology.gradient takes sparse ones, too)"
            )
            raise ArgumentError(f"rewiring {self.name}", wanted, "sparse activations")
        return probe

    def kept(self, dropped: Array) -> Edges:
        """Return the edges without those at the positions `dropped`."""
        return self.weights.edges.without(dropped)

    def check(self) -> None:
        """Raise KindError or ArgumentError unless all that is kept of edges has one entry an edge."""
        for kind, held in (("slot", self.slots), ("memory", self.memory.edges)):
            for name, array in held.items():
                where = f"{kind} {name!r} of {self.name}"
                if not isinstance(array, np.ndarray):
                    raise KindError(where, "a NumPy array", type(array).__name__)
                if array.shape[:1] != (self.weights.nnz,):
                    raise ArgumentError(where, f"one entry for each of {self.weights.nnz} edges", array.shape)

    def rewire(self, dropped: Array, sources: Array, targets: Array) -> Change:
        """Drop and add edges, the new ones of weight 0; all that is known of each edge follows it."""
        edges, change, _ = self.weights.edges.rewired(dropped, sources, targets)
        self.move(edges, change)
        return change

    def move(self, edges: Edges, change: Change, values: Any = 0.0) -> None:
        """Take the edges that `Edges.rewired` has made; all that is known of each edge follows it."""
        self.weights.move(edges, change, values)
        for name, slot in self.slots.items():
            self.slots[name] = change.carry(slot)
        self.memory.follow(change)
        try:
            probe = self.probe
            if isinstance(probe, ActiveProbe):
                self.gradient = MovedGradient(probe.x, probe.dy, self.weights.edges)
            else:
                self.gradient = EdgeGradient(probe.x, probe.dy, self.weights.edges)
        except ArgumentError:  # nothing is known of absent edges: new ones have gradient 0
            if self.gradient is not None:
                self.gradient = change.carry(np.asarray(self.gradient))


def sites(
    parameters: Mapping[str, Any],
    gradients: Mapping[str, Any] | None = None,
    slots: Mapping[str, dict[str, Array]] | None = None,
    memory: dict[str, Memory] | None = None,
    model: Layer | None = None,
) -> list[Site]:
    """Return the layers of a model that have edges, with what is known of each.

    Their places (`Site.index`) are counted among all layers that have weights: parameters of edges, or arrays
    of two dimensions (those of `Dense`).

    Parameters
    ----------
    parameters : mapping
        ``model.parameters()``.
    gradients : mapping, optional
        What the pullback returned.
    slots : mapping, optional
        The optimizer's slots by parameter; the inner dictionaries are updated when edges move.
    memory : dict, optional
        What rules remember by parameter; layers that are not in it yet are added.
    model : Layer, optional
        Whose parameters these are: tells which layer follows which (`Site.follows`).

    Raises
    ------
    ArgumentError
        If two layers share their edges: they cannot move for one and stay for the other.

    Examples
    --------
    >>> from gbnn import layers, topology
    >>> model = layers.Chain(layers.Linear.random(8, 4, nnz=6, seed=0), layers.Dense.random(4, 2))
    >>> [site.name for site in topology.sites(model.parameters())]
    ['0.weights']
    """
    weighted = [name for name, p in parameters.items() if isinstance(p, Weights) or p.ndim > 1]
    edged = {name: p for name, p in parameters.items() if isinstance(p, Weights)}
    if len({id(p) for p in edged.values()}) < len(edged):
        raise ArgumentError("rewiring", "layers that share no weights", f"some of {list(edged)} do")
    memory = {} if memory is None else memory
    follows: dict[str, str] = {}
    if model is not None:
        _link(model, "", None, follows)
    return [
        Site(
            name,
            weights,
            None if gradients is None else gradients[name],
            {} if slots is None else slots[name],
            weighted.index(name),
            len(weighted),
            memory.setdefault(name, Memory()),
            follows.get(name),
        )
        for name, weights in edged.items()
    ]


def _link(layer: Layer, path: str, before: str | None, follows: dict[str, str]) -> str | None:
    """Note which layers of edges follow `before`; return whose outputs leave `layer`, if one's alone."""
    children = {f"{path}.{name}" if path else name: child for name, child in layer.children().items()}
    if isinstance(layer, Chain):
        for name, child in children.items():
            before = _link(child, name, before, follows)
        return before
    for name, child in children.items():  # branches, which meet others behind and share what comes before
        _link(child, name, None, follows)
    own = layer.own_parameters()
    if isinstance(own.get("weights"), Weights):
        name = f"{path}.weights" if path else "weights"
        if before is not None:
            follows[name] = before
        return name
    mixes = children or isinstance(layer, Residual | Parallel | Concatenate)
    mixes = mixes or any(not isinstance(p, Weights) and p.ndim > 1 for p in own.values())
    return None if mixes or (layer.out_features is None and layer.width_after(7) != 7) else before

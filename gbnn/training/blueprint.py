"""A model's architecture as JSON: kinds of layers, their settings, what is inside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn import layers, semirings
from gbnn.errors import ArgumentError, KindError
from gbnn.layers import BatchNorm, Layer, LayerNorm
from gbnn.semirings import Semiring
from gbnn.weights import Weights

__all__ = ["Blueprint", "array_names", "describe", "known_things", "rebuild"]

Array = np.ndarray[Any, Any]


def describe(model: Layer) -> dict[str, Any]:
    """Return a model's architecture in JSON values: kind, config and children of every layer.

    Examples
    --------
    >>> from gbnn import layers
    >>> from gbnn.training.blueprint import describe
    >>> describe(layers.LeakyRelu(0.2))
    {'kind': 'LeakyRelu', 'config': {'slope': 0.2}, 'arrays': [], 'children': {}}
    """
    config = {
        key: {"semiring": _name(value)} if isinstance(value, Semiring) else value
        for key, value in model.config().items()
    }
    return {
        "kind": type(model).__name__,
        "config": config,
        "arrays": [*model.own_parameters(), *model.own_buffers()],
        "children": {name: describe(child) for name, child in model.children().items()},
    }


def _name(semiring: Semiring) -> str:
    """Return a semiring's name, unless gbnn would take it for one of its own when the file is read."""
    own = getattr(semirings, semiring.name, semiring)
    if isinstance(own, Semiring) and own is not semiring:
        raise ArgumentError("semiring", "a name that is not one of gbnn's own", semiring.name)
    return semiring.name


def known_things(known: Any) -> list[Any]:
    """Return the user's own layer classes and semirings as a list, or raise KindError."""
    things = list(known) if isinstance(known, Iterable) else [known]
    for i, thing in enumerate(things):
        if not (isinstance(thing, Semiring) or (isinstance(thing, type) and issubclass(thing, Layer))):
            raise KindError(f"known[{i}]", "a Layer class or a Semiring", repr(thing))
    return things


@dataclass
class Blueprint:
    """An architecture read back: the classes are found, nothing is made yet."""

    kind: type[Layer]
    config: dict[str, Any]
    arrays: list[str]
    children: dict[str, Blueprint]

    @classmethod
    def parse(cls, tree: Any, known: Iterable[Any] = ()) -> Blueprint:
        """Find the classes and semirings of a description: gbnn's public ones, and those in `known`."""
        public = [getattr(room, name) for room in (layers, semirings) for name in room.__all__]
        # The later one wins: what the user passes goes before what gbnn has of the same name.
        kinds: dict[str, type[Layer]] = {}
        rings: dict[str, Semiring] = {}
        for thing in [*public, *known]:
            if isinstance(thing, Semiring):
                rings[thing.name] = thing
            elif isinstance(thing, type) and issubclass(thing, Layer):
                kinds[thing.__name__] = thing
        return cls._parse(tree, kinds, rings)

    @classmethod
    def _parse(cls, tree: Any, kinds: dict[str, type[Layer]], rings: dict[str, Semiring]) -> Blueprint:
        if not isinstance(tree, dict) or tree.get("kind") not in kinds:
            kind = tree.get("kind") if isinstance(tree, dict) else tree
            raise ArgumentError("layer", "a kind of gbnn.layers, or one passed as known=[...]", kind)
        config = dict(tree["config"])
        for key, value in config.items():
            if isinstance(value, dict) and set(value) == {"semiring"}:
                if value["semiring"] not in rings:
                    wanted = "a semiring of gbnn.semirings, or one passed as known=[...]"
                    raise ArgumentError("semiring", wanted, value["semiring"])
                config[key] = rings[value["semiring"]]
        if not all(isinstance(name, str) for name in tree["arrays"]):
            raise KindError("arrays", "names", tree["arrays"])
        children = {name: cls._parse(child, kinds, rings) for name, child in tree["children"].items()}
        return cls(kinds[tree["kind"]], config, list(tree["arrays"]), children)

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of all arrays, as `Layer.parameters` and `buffers` have them."""
        own = [f"{prefix}{name}" for name in self.arrays]
        return own + [n for key, child in self.children.items() for n in child.names(f"{prefix}{key}.")]


def array_names(blueprint: Blueprint, tensors: Mapping[str, Array]) -> list[str]:
    """Return the names of all arrays of a blueprint; ArgumentError if `tensors` lacks one."""
    for name in blueprint.names():
        if f"model/{name}" not in tensors and f"model/{name}/values" not in tensors:
            raise ArgumentError(name, "its array in the file", "none")
    return blueprint.names()


def rebuild(blueprint: Blueprint, arrays: Mapping[str, Weights | Array], prefix: str = "") -> Layer:
    """Make the model of a blueprint from its arrays; ArgumentError if they do not make one."""
    own = {name: arrays[f"{prefix}{name}"] for name in blueprint.arrays}
    if issubclass(blueprint.kind, (BatchNorm, LayerNorm)):
        # These make arrays of that size before they look at what came.
        features = blueprint.config.get("features")
        if not own or any(array.shape != (features,) for array in own.values()):
            raise ArgumentError(f"{prefix}features", "the size of the layer's arrays", features)
    children = {
        name: rebuild(child, arrays, f"{prefix}{name}.") for name, child in blueprint.children.items()
    }
    layer = blueprint.kind.restore(blueprint.config, own, children)
    # What a constructor takes silently: children in another order, arrays it converts.
    where = f"{prefix}{type(layer).__name__}"
    if list(layer.children()) != list(children):
        raise ArgumentError(where, f"the children {list(layer.children())}", list(children))
    for name, array in (layer.own_parameters() | layer.own_buffers()).items():
        if (array.shape, array.dtype) != (own[name].shape, own[name].dtype):
            wanted = f"{array.dtype} of shape {array.shape}"
            raise ArgumentError(f"{where}, {name}", wanted, f"{own[name].dtype} of {own[name].shape}")
    return layer

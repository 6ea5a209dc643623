"""Layers made of layers: `Chain`, `Residual`, `Parallel` (outputs added), `Concatenate` (side by side)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, KindError
from gbnn.layers.layer import Gradients, Layer, Pullback, as_batch

__all__ = ["Chain", "Concatenate", "Parallel", "Residual"]

Array = np.ndarray[Any, Any]


def _named(prefix: str, gradients: Gradients) -> Gradients:
    return {f"{prefix}.{name}": gradient for name, gradient in gradients.items()}


class _Container(Layer):
    """Layers by number."""

    def __init__(self, *layers: Layer) -> None:
        if not layers:
            raise ArgumentError(type(self).__name__, "at least one layer", "none")
        for i, layer in enumerate(layers):
            if not isinstance(layer, Layer):
                raise KindError(f"{type(self).__name__} layer {i}", "a gbnn Layer", type(layer).__name__)
        self.layers = layers

    def children(self) -> dict[str, Layer]:
        """Return the layers by number."""
        return {str(i): layer for i, layer in enumerate(self.layers)}

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> Layer:
        return self.layers[index]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.layers))})"

    def _agreed(self, side: str) -> int | None:
        """Return the one number of features all branches share, or raise."""
        known = [getattr(layer, side) for layer in self.layers if getattr(layer, side) is not None]
        if len(set(known)) > 1:
            raise ArgumentError(type(self).__name__, f"branches of equal {side}", known)
        return known[0] if known else None


class Chain(_Container):
    """Layers one after the other.

    Parameters
    ----------
    *layers : Layer
        Where a layer says its width, the next must take it.

    Examples
    --------
    >>> from gbnn import layers
    >>> net = layers.Chain(
    ...     layers.Linear.random(64, 100, nnz=640, seed=0), layers.Relu(), layers.Dense.random(100, 10, seed=1)
    ... )
    >>> list(net.parameters())
    ['0.weights', '0.bias', '2.weights', '2.bias']
    >>> print(net.describe())  # doctest: +SKIP
    """

    def __init__(self, *layers: Layer) -> None:
        super().__init__(*layers)
        width: int | None = None
        for i, layer in enumerate(layers):
            if width is not None and layer.in_features is not None and layer.in_features != width:
                raise ArgumentError(f"Chain layer {i}", f"{width} inputs, the width before it", layer.in_features)
            width = layer.out_features if layer.out_features is not None else width
        self.out_features = width
        self.in_features = next((layer.in_features for layer in layers if layer.in_features is not None), None)

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Pullback]:
        """Compute the layers in turn; see `Layer.forward`."""
        pullbacks: list[Pullback] = []
        for layer in self.layers:
            x, pullback = layer.forward(x, training=training)
            pullbacks.append(pullback)

        def back(dy: Array, *, inputs: bool = True) -> tuple[Array | None, Gradients]:
            gradients: Gradients = {}
            for i in reversed(range(len(pullbacks))):
                dy, own = pullbacks[i](dy, inputs=inputs or i > 0)
                gradients = _named(str(i), own) | gradients
            return dy, gradients

        return x, back


class Residual(_Container):
    """``y = x + inner(x)`` (He et al., 2016).

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> layers.Residual(layers.Relu()).forward(np.array([[-1.0, 2.0]]))[0]
    array([[-1.,  4.]])
    """

    def __init__(self, inner: Layer) -> None:
        super().__init__(inner)
        if inner.in_features != inner.out_features:
            widths = f"{inner.in_features} and {inner.out_features}"
            raise ArgumentError("Residual", "a layer as wide at its output as at its input", widths)
        self.in_features = self.out_features = inner.in_features

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Pullback]:
        """Compute ``x + inner(x)``; see `Layer.forward`."""
        x = as_batch("Residual.forward x", x, self.in_features)
        y, pullback = self.layers[0].forward(x, training=training)

        def back(dy: Array, *, inputs: bool = True) -> tuple[Array | None, Gradients]:
            dx, gradients = pullback(dy, inputs=inputs)
            return (dx + dy if inputs else None), _named("0", gradients)

        return x + y, back


class _Branches(_Container):
    """Layers side by side on one input."""

    def __init__(self, *layers: Layer) -> None:
        super().__init__(*layers)
        self.in_features = self._agreed("in_features")

    def _run(self, x: Array, training: bool) -> tuple[list[Array], list[Pullback]]:
        x = as_batch(f"{type(self).__name__}.forward x", x, self.in_features)
        both = [layer.forward(x, training=training) for layer in self.layers]
        return [y for y, _ in both], [pullback for _, pullback in both]


def _gather(
    pullbacks: list[Pullback], parts: list[Array], inputs: bool
) -> tuple[Array | None, Gradients]:
    """Pull each branch's part of dy back and add up what reaches the shared input."""
    dx: Array | None = None
    gradients: Gradients = {}
    for i, (pullback, part) in enumerate(zip(pullbacks, parts, strict=True)):
        one, own = pullback(part, inputs=inputs)
        gradients |= _named(str(i), own)
        if inputs:
            dx = one if dx is None else dx + one
    return dx, gradients


class Parallel(_Branches):
    """Branches on one input whose outputs are added.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> layers.Parallel(layers.Relu(), layers.Identity()).forward(np.array([[-1.0, 2.0]]))[0]
    array([[-1.,  4.]])
    """

    def __init__(self, *layers: Layer) -> None:
        super().__init__(*layers)
        self.out_features = self._agreed("out_features")

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Pullback]:
        """Compute the sum of the branches; see `Layer.forward`."""
        outputs, pullbacks = self._run(x, training)
        y = outputs[0]
        for other in outputs[1:]:
            if other.shape != y.shape:
                raise ArgumentError("Parallel.forward", f"branches of shape {y.shape}", other.shape)
            y = y + other

        def back(dy: Array, *, inputs: bool = True) -> tuple[Array | None, Gradients]:
            return _gather(pullbacks, [dy] * len(pullbacks), inputs)

        return y, back


class Concatenate(_Branches):
    """Branches on one input whose outputs stand side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn import layers
    >>> layers.Concatenate(layers.Relu(), layers.Identity()).forward(np.array([[-1.0, 2.0]]))[0]
    array([[ 0.,  2., -1.,  2.]])
    """

    def __init__(self, *layers: Layer) -> None:
        super().__init__(*layers)
        widths = [w for layer in layers if (w := layer.out_features) is not None]
        self.out_features = sum(widths) if len(widths) == len(layers) else None

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Pullback]:
        """Compute the branches and join their columns; see `Layer.forward`."""
        outputs, pullbacks = self._run(x, training)
        ends = np.cumsum([y.shape[1] for y in outputs])[:-1]

        def back(dy: Array, *, inputs: bool = True) -> tuple[Array | None, Gradients]:
            return _gather(pullbacks, np.split(dy, ends, axis=1), inputs)

        return np.asfortranarray(np.concatenate(outputs, axis=1)), back

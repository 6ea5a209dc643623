"""Layers made of layers: `Chain`, `Residual`, `Parallel` (outputs added), `Concatenate` (side by side).

All pass sparse activations on as they come. A sum is sparse where all its terms are; columns set side by side
are sparse where any of them are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gbnn.errors import ArgumentError, KindError
from gbnn.layers.combine import added, parted, side_by_side
from gbnn.layers.layer import Activations, Gradients, Layer, Pullback, as_activations, values_of_gradient
from gbnn.layers.sparse import checked_gradient
from gbnn.rows import SparseRows

__all__ = ["Chain", "Concatenate", "Parallel", "Residual"]


def _named(prefix: str, gradients: Gradients) -> Gradients:
    return {f"{prefix}.{name}": gradient for name, gradient in gradients.items()}


def _pattern(y: Activations) -> SparseRows | None:
    return y if isinstance(y, SparseRows) else None


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


def _agreed(where: str, side: str, widths: Iterable[int | None]) -> int | None:
    """Return the one number of features all branches share, None where none is known, or raise."""
    known = [width for width in widths if width is not None]
    if len(set(known)) > 1:
        raise ArgumentError(where, f"branches of equal {side}", known)
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
    ...     layers.Linear.random(64, 100, nnz=640, seed=0),
    ...     layers.Relu(),
    ...     layers.Dense.random(100, 10, seed=1),
    ... )
    >>> list(net.parameters())
    ['0.weights', '0.bias', '2.weights', '2.bias']
    >>> print(net.describe())
    layer  kind               shape       nnz  density   bytes
    0      Linear plus_times  64 x 100    640      0.1   9,112
    1      Relu()             any
    2      Dense              100 x 10  1,000        1   4,040
    total                               1,640           13,152
    """

    def __init__(self, *layers: Layer) -> None:
        super().__init__(*layers)
        for layer in layers:
            self.in_features = layer.in_features
            if layer.in_features is not None or layer.width_after(1) != 1:
                break  # until here, every layer keeps the width it is given
        self.out_features = self.width_after(self.in_features)

    def width_after(self, width: int | None) -> int | None:
        """Return how wide the output is; see `Layer.width_after`."""
        for i, layer in enumerate(self.layers):
            if None not in (width, layer.in_features) and layer.in_features != width:
                before = f"{width} inputs, the width before it"
                raise ArgumentError(f"Chain layer {i}", before, layer.in_features)
            width = layer.width_after(width)
        return width

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Compute the layers in turn; see `Layer.forward`."""
        pullbacks: list[Pullback] = []
        for layer in self.layers:
            x, pullback = layer.forward(x, training=training)
            pullbacks.append(pullback)

        def back(dy: Any, *, inputs: bool = True) -> tuple[Activations | None, Gradients]:
            # Without dx the work ends at the first layer that has parameters.
            count = len(pullbacks)
            first = 0 if inputs else next((i for i in range(count) if self.layers[i].parameters()), count)
            gradients: Gradients = {}
            for i in reversed(range(first, count)):
                dy, own = pullbacks[i](dy, inputs=inputs or i > first)
                gradients = _named(str(i), own) | gradients
            return (dy if inputs else None), gradients

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
        width = inner.in_features or 1  # a layer for any width must keep each
        after = inner.width_after(width)
        if after != width:
            equal = "a layer as wide at its output as at its input"
            raise ArgumentError("Residual", equal, f"{after} for {width}")
        self.in_features = self.out_features = inner.in_features

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Compute ``x + inner(x)``; see `Layer.forward`."""
        x = as_activations("Residual.forward x", x, self.in_features)
        inner, pullback = self.layers[0].forward(x, training=training)
        if inner.shape != x.shape:
            raise ArgumentError("Residual.forward", f"an inner output of shape {x.shape}", inner.shape)
        y = added(x if x.dtype == inner.dtype else x.astype(inner.dtype), inner)
        shape, dtype, pattern, active = y.shape, y.dtype, _pattern(y), _pattern(x)

        def back(dy: Any, *, inputs: bool = True) -> tuple[Activations | None, Gradients]:
            dy = checked_gradient("Residual.pullback dy", dy, shape, dtype, pattern)
            dx, gradients = pullback(dy, inputs=inputs)
            if inputs and active is not None:
                dy = active.with_values(values_of_gradient("Residual.pullback dy", dy, active))
            return (added(dx, dy) if inputs else None), _named("0", gradients)

        return y, back


class _Branches(_Container):
    """Layers side by side on one input."""

    def __init__(self, *layers: Layer) -> None:
        super().__init__(*layers)
        widths = (layer.in_features for layer in layers)
        self.in_features = _agreed(type(self).__name__, "in_features", widths)
        self.out_features = self.width_after(self.in_features)

    def _run(self, x: Activations, training: bool) -> tuple[list[Activations], list[Pullback]]:
        both = [layer.forward(x, training=training) for layer in self.layers]
        return [y for y, _ in both], [pullback for _, pullback in both]


def _gather(
    pullbacks: list[Pullback], parts: list[Activations], inputs: bool
) -> tuple[Activations | None, Gradients]:
    """Pull each branch's part of dy back and add up what reaches the shared input."""
    dx: Activations | None = None
    gradients: Gradients = {}
    for i, (pullback, part) in enumerate(zip(pullbacks, parts, strict=True)):
        one, own = pullback(part, inputs=inputs)
        gradients |= _named(str(i), own)
        if inputs:
            dx = one if dx is None else added(dx, one)
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
        self.width_after(self.in_features or 1)  # branches for any width must agree at each

    def width_after(self, width: int | None) -> int | None:
        """Return how wide the output is; see `Layer.width_after`."""
        return _agreed("Parallel", "out_features", (layer.width_after(width) for layer in self.layers))

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Compute the sum of the branches; see `Layer.forward`."""
        x = as_activations("Parallel.forward x", x, self.in_features)
        outputs, pullbacks = self._run(x, training)
        y = outputs[0]
        for other in outputs[1:]:
            if other.shape != y.shape:
                raise ArgumentError("Parallel.forward", f"branches of shape {y.shape}", other.shape)
            y = added(y, other)
        shape, dtype, pattern = y.shape, y.dtype, _pattern(y)

        def back(dy: Any, *, inputs: bool = True) -> tuple[Activations | None, Gradients]:
            dy = checked_gradient("Parallel.pullback dy", dy, shape, dtype, pattern)
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

    def width_after(self, width: int | None) -> int | None:
        """Return how wide the output is; see `Layer.width_after`."""
        widths = [w for layer in self.layers if (w := layer.width_after(width)) is not None]
        return sum(widths) if len(widths) == len(self.layers) else None

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Compute the branches and join their columns; see `Layer.forward`."""
        x = as_activations("Concatenate.forward x", x, self.in_features)
        outputs, pullbacks = self._run(x, training)
        widths = [y.shape[1] for y in outputs]
        y = side_by_side(outputs)
        shape, dtype, pattern = y.shape, y.dtype, _pattern(y)

        def back(dy: Any, *, inputs: bool = True) -> tuple[Activations | None, Gradients]:
            dy = checked_gradient("Concatenate.pullback dy", dy, shape, dtype, pattern)
            return _gather(pullbacks, parted(dy, widths), inputs)

        return y, back

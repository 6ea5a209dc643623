"""`Scale`: a layer that multiplies by a number."""

from __future__ import annotations

from typing import Any

from gbnn.errors import check_float
from gbnn.layers import Gradients, Layer, as_activations
from gbnn.layers.layer import Activations, Pullback, as_output_gradient, values_of_gradient
from gbnn.rows import SparseRows

__all__ = ["Scale"]


class Scale(Layer):
    """``y = factor * x``, sparse where x is.

    Parameters
    ----------
    factor : float

    Examples
    --------
    >>> from gbnn.interop.sklearn.scale import Scale
    >>> Scale(0.5).forward([[1.0, 4.0]])[0]
    array([[0.5, 2. ]])
    """

    def __init__(self, factor: float) -> None:
        self.factor = check_float("factor", factor)

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Multiply; see `Layer.forward`."""
        rows = as_activations("Scale.forward x", x)

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[Activations | None, Gradients]:
            if not inputs:
                return None, {}
            if isinstance(rows, SparseRows):
                return self._scaled(rows.with_values(values_of_gradient("Scale.pullback dy", dy, rows))), {}
            return self._scaled(as_output_gradient("Scale.pullback dy", dy, rows.shape, rows.dtype)), {}

        return self._scaled(rows), pullback

    def _scaled(self, x: Activations) -> Activations:
        if isinstance(x, SparseRows):
            return x.with_values(x.values * x.dtype.type(self.factor))
        scaled: Activations = x * x.dtype.type(self.factor)
        return scaled

    def config(self) -> dict[str, Any]:
        """Return the factor."""
        return {"factor": self.factor}

"""Dropout: in training, entries of the batch set to zero at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import ArgumentError, check_float, check_int
from gbnn.layers.layer import (
    Activations,
    Array,
    Gradients,
    Layer,
    Pullback,
    as_activations,
    values_of_gradient,
)
from gbnn.layers.sparse import checked_gradient, spread
from gbnn.rows import SparseRows

__all__ = ["Dropout"]


class Dropout(Layer):
    """Set each entry to zero with probability `rate` in training, and scale the others by ``1 / (1 - rate)``.

    The expected output is the input, so evaluation passes the batch through unchanged ("inverted" dropout).
    Of a sparse batch only active entries are drawn for, and those dropped become absent; before the first
    layer this is dropout of features.

    Source: Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov, "Dropout: a simple way to prevent
    neural networks from overfitting", JMLR 15, 2014.

    Parameters
    ----------
    rate : float in [0, 1)
        Probability that an entry is dropped.
    seed : int or numpy.random.Generator
        Where the masks come from. From a Generator one number is drawn to seed the layer's own, so that
        layers made from one Generator draw different masks, also after they are saved and loaded.
    state : dict, optional
        In place of `seed`: the state of the generator as `config` gives it.

    Attributes
    ----------
    generator : numpy.random.Generator
        Draws the masks; `config` holds its state.

    Raises
    ------
    ArgumentError, KindError
        If `rate` is outside [0, 1), or `seed` or `state` cannot be used, or not exactly one of them is given.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.dropout import Dropout
    >>> y, pullback = Dropout(0.5, seed=0).forward(np.ones((1, 6)), training=True)
    >>> y
    array([[2., 2., 2., 0., 0., 0.]])
    >>> pullback(np.ones((1, 6)))[0]
    array([[2., 2., 2., 0., 0., 0.]])
    """

    def __init__(
        self,
        rate: float,
        seed: int | np.random.Generator | None = None,
        *,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.rate = check_float("Dropout rate", rate, 0, 1)
        if self.rate == 1:
            raise ArgumentError("Dropout rate", "a finite number in [0, 1)", self.rate)
        if (seed is None) == (state is None):
            raise ArgumentError("Dropout", "either seed or state", "both" if state is not None else "neither")
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**63))
        elif seed is not None:
            seed = check_int("Dropout seed", seed, 0)
        # PCG64 by name, not default_rng: a saved state must fit when NumPy changes its default.
        self.generator = np.random.Generator(np.random.PCG64(seed))
        if state is not None:
            try:
                self.generator.bit_generator.state = state
            except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
                raise ArgumentError("Dropout state", "the state of a PCG64 generator", repr(state)) from None

    def config(self) -> dict[str, Any]:
        """Return {"rate": ..., "state": ...}: a layer made from it draws the same masks as this one will."""
        return {"rate": self.rate, "state": self.generator.bit_generator.state}

    def __repr__(self) -> str:
        return f"Dropout(rate={self.rate!r})"

    def forward(self, x: Any, *, training: bool = False) -> tuple[Activations, Pullback]:
        """Drop entries in training, pass the batch through otherwise.

        Parameters
        ----------
        x : ndarray or anything sparse, shape (batch, features)
            float32 and float64 are kept, other real dtypes become float32.
        training : bool
            Whether to drop; each call draws a new mask.

        Returns
        -------
        y : ndarray, Fortran order, or SparseRows, as x is; shape (batch, features)
            In evaluation `x` itself, where it needs no conversion.
        pullback : Pullback
            Applies the same mask. Its gradients are empty: there are no parameters.

        Raises
        ------
        ArgumentError, KindError
            If `x` is not a batch of real numbers; likewise for `dy` in the pullback.
        """
        x = as_activations("Dropout.forward x", x)
        drops = training and self.rate > 0
        return self._on_entries(x, drops) if isinstance(x, SparseRows) else self._on_array(x, drops)

    def _on_array(self, x: Array, drops: bool) -> tuple[Array, Pullback]:
        shape, dtype = x.shape, x.dtype
        keep: Array | None = None
        y = x
        if drops:
            # Drawn by feature, so that the mask is in Fortran order as the batch is; a bool, a byte an entry.
            drawn = self.generator.random(shape[::-1], dtype=np.float32)
            keep = drawn.transpose() >= self.rate
            y = self._masked(x, keep)

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[Activations | None, Gradients]:
            if not inputs:
                return None, {}
            dy = checked_gradient("Dropout.pullback dy", dy, shape, dtype)
            if keep is None:
                return dy, {}
            if isinstance(dy, SparseRows):
                return dy.with_values(self._masked(dy.values, keep[dy.rows, dy.columns])), {}
            return self._masked(dy, keep), {}

        return y, pullback

    def _on_entries(self, x: SparseRows, drops: bool) -> tuple[SparseRows, Pullback]:
        keep: Array | None = None
        y = x
        if drops:
            keep = self.generator.random(x.nnz, dtype=np.float32) >= self.rate
            keep |= ~np.isfinite(x.values)  # these must show
            y = x.where(keep)
            y = y.with_values(self._masked(y.values, np.True_))

        def pullback(dy: Any, *, inputs: bool = True) -> tuple[SparseRows | None, Gradients]:
            if not inputs:
                return None, {}
            values = values_of_gradient("Dropout.pullback dy", dy, y)
            if keep is not None:
                values = spread(self._masked(values, np.True_), keep)
            return x.with_values(values), {}

        return y, pullback

    def _masked(self, array: Array, keep: Any) -> Array:
        # Multiplied, not assigned: NaN in a dropped entry stays NaN, and shows.
        with np.errstate(all="ignore"):
            kept: Array = array * keep
            kept *= 1 / (1 - self.rate)
        return kept

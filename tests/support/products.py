"""Small products drawn by hypothesis, and every built-in semiring to compute them in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gbnn import semirings
from gbnn.semirings import Semiring
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]

SEMIRINGS = {name: s for name, s in vars(semirings).items() if isinstance(s, Semiring)}
DIFFERENTIABLE = [s for s in SEMIRINGS.values() if s.partials is not None]
DTYPES = [np.dtype(np.float32), np.dtype(np.float64)]

both_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


class Product(NamedTuple):
    """What a product needs, and what may come back to it."""

    x: Array  # (batch, in), Fortran order
    weights: Weights
    bias: Array  # (out,)
    dy: Array  # (batch, out), Fortran order


@st.composite
def structures(draw: st.DrawFn) -> tuple[int, Array]:
    """Draw a batch size and which edges exist, shape (in, out): from none to all, from one neuron to five."""
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    return draw(st.integers(1, 4)), draw(arrays(np.bool_, shape))


@st.composite
def tied_products(draw: st.DrawFn, semiring: Semiring, dtype: Any) -> Product:
    """Draw a product of few and simple numbers: ties abound, sums and products of float32 are exact."""
    batch, mask = draw(structures())
    low, high = (-6, 6) if semiring.domain[0] < 0 else (0, 6)
    scale = 0.25
    if semiring.domain == (0, 1):  # Boolean
        high, scale = 1, 1.0

    def numbers(*shape: int) -> Array:
        return np.asfortranarray(draw(arrays(np.int8, shape, elements=st.integers(low, high))) * scale, dtype)

    rows, columns = np.nonzero(mask)
    values = numbers(*mask.shape)[rows, columns]
    weights = Weights.from_coo(rows, columns, values, mask.shape, dtype=dtype)
    signs = draw(arrays(np.int8, (batch, mask.shape[1]), elements=st.integers(-3, 3)))
    x, bias = numbers(batch, mask.shape[0]), numbers(mask.shape[1])
    return Product(x, weights, bias, np.asfortranarray(signs, dtype))


@st.composite
def scattered_products(draw: st.DrawFn, semiring: Semiring) -> Product:
    """Draw a float64 product of arbitrary numbers inside the semiring's domain."""
    batch, mask = draw(structures())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    low, high = max(semiring.domain[0], -2.0) + 0.25, min(semiring.domain[1], 2.0) - 0.25
    rows, columns = np.nonzero(mask)
    values = rng.uniform(low, high, rows.size)
    weights = Weights.from_coo(rows, columns, values, mask.shape, dtype=np.float64)
    x = rng.uniform(low, high, (batch, mask.shape[0]))
    bias, dy = rng.uniform(low, high, mask.shape[1]), rng.standard_normal((batch, mask.shape[1]))
    return Product(np.asfortranarray(x), weights, bias, np.asfortranarray(dy))


def biases(semiring: Semiring, bias: Array) -> list[Array | None]:
    """Without a bias, and with it where the semiring can carry one."""
    return [None] if semiring.one is None else [None, bias]


def ordinary(dtype: Any = np.float64, seed: int = 0) -> Product:
    """A product of arbitrary numbers, of a size that differs in every dimension."""
    rng = np.random.default_rng(seed)
    mask = rng.random((13, 9)) < 0.3
    weights = Weights.from_dense(np.where(mask, rng.standard_normal(mask.shape), 0).astype(dtype))
    x, dy = rng.standard_normal((6, 13)), rng.standard_normal((6, 9))
    return Product(
        np.asfortranarray(x, dtype),
        weights,
        rng.standard_normal(9).astype(dtype),
        np.asfortranarray(dy, dtype),
    )

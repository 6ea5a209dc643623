"""A fixed scale and shift: standardizes, is undone, and refuses what makes no layer."""

from __future__ import annotations

import numpy as np
import pytest

from gbnn.errors import GbnnError
from gbnn.layers import Affine


def test_standardizing_gives_every_column_mean_0_and_deviation_1() -> None:
    x = np.random.default_rng(0).normal([1e4, -3.0, 0.5], [100.0, 1e-3, 7.0], (500, 3))
    y, _ = Affine.standardizing(x, dtype=np.float64).forward(x)
    np.testing.assert_allclose(y.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(y.std(axis=0), 1, rtol=1e-9)


def test_a_constant_column_becomes_0() -> None:
    x = np.full((9, 1), 0.1)
    y, _ = Affine.standardizing(x, dtype=np.float64).forward(x)
    np.testing.assert_allclose(y, 0, atol=1e-12)


def test_inverse_undoes_it() -> None:
    x = np.random.default_rng(0).normal(5.0, 3.0, (20, 4))
    layer = Affine.standardizing(x, dtype=np.float64)
    np.testing.assert_allclose(layer.inverse().forward(layer.forward(x)[0])[0], x)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Affine(0),
        lambda: Affine(2, [1.0, 2.0, 3.0]),
        lambda: Affine(2, np.nan),
        lambda: Affine(2, shift=1e300),
        lambda: Affine(2, "a"),
        lambda: Affine(2, dtype=np.int32),
        lambda: Affine(2, [1.0, 0.0]).inverse(),
        lambda: Affine.standardizing(np.ones(3)),
        lambda: Affine.standardizing([[np.inf]]),
    ],
)
def test_what_makes_no_layer_is_refused(make) -> None:
    with pytest.raises(GbnnError):
        make()

"""log_plus: the isomorphism where it loses nothing, the kernel elsewhere; against torch."""

from __future__ import annotations

import numpy as np
import pytest
from support.products import both_dtypes, ordinary

from gbnn.errors import ArgumentError
from gbnn.semirings import EdgeGradient, log_plus
from gbnn.semirings.log import _fits_exponentials
from gbnn.semirings.routes import adjoint_by_kernel
from gbnn.weights import Weights


@both_dtypes
def test_log_plus_with_a_huge_spread_takes_the_kernel_and_stays_exact(dtype):
    weights = Weights.from_coo([0, 1, 1], [0, 0, 1], [0.0, -1.0, 2.0], (2, 2), dtype=dtype)
    x = np.asfortranarray([[0.0, -2000.0], [3000.0, -5.0]], dtype=dtype)
    assert not _fits_exponentials(x, weights)
    y, pullback = log_plus.product(x, weights)
    expected = np.logaddexp.reduce([[[0, -1998], [3000, -3]], [[-2001, -np.inf], [-6, -np.inf]]], axis=0)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(y, log_plus.product(x, weights, route="kernel")[0])
    lost = log_plus.product(x, weights, route="isomorphism")[0]
    assert np.isneginf(lost[0, 1])  # what the kernel is there for
    dx, gradients = pullback(np.ones_like(y))
    np.testing.assert_array_equal(dx, [[1, 1], [1, 1]])
    np.testing.assert_array_equal(gradients["weights"], [2, 0, 2])


@both_dtypes
@pytest.mark.parametrize("level", [0.0, 1e4, -1e4])
def test_log_plus_routes_agree_up_to_the_spread_that_fits(dtype, level):
    rng = np.random.default_rng(0)
    spread = 34.0 if dtype == np.float32 else 290.0
    weights = Weights.from_dense(rng.uniform(-spread / 2, spread / 2, (6, 4)).astype(dtype))
    x = np.asfortranarray(level + rng.uniform(-spread / 2, spread / 2, (5, 6)), dtype=dtype)
    bias = np.linspace(-2000, 2000, 4).astype(dtype)
    assert _fits_exponentials(x, weights)
    near = {"rtol": 0, "atol": 64 * np.finfo(dtype).eps * (spread + abs(level))}
    for b in (None, bias):
        y, pullback = log_plus.product(x, weights, b, route="isomorphism")
        np.testing.assert_allclose(y, log_plus.product(x, weights, b, route="kernel")[0], **near)
        dy = np.asfortranarray(rng.standard_normal(y.shape), dtype=dtype)
        dx, gradients = pullback(dy)
        dx_kernel, dw_kernel, _ = adjoint_by_kernel(log_plus, x, weights, b, y, dy, True)
        np.testing.assert_allclose(dx, dx_kernel, **near)
        np.testing.assert_allclose(gradients["weights"], dw_kernel, **near)
        assert isinstance(gradients["weights"], EdgeGradient)  # so the isomorphism served


def test_log_plus_of_nothing_but_minus_infinity_and_a_low_bias():
    weights = Weights.from_dense(np.ones((2, 2)))
    x = np.array([[-np.inf, -np.inf], [0.0, -np.inf]])
    y, pullback = log_plus.product(x, weights, np.array([-1000.0, 0.0]))
    np.testing.assert_allclose(y, [[-1000, 0], [1, np.log(np.e + 1)]])
    dx, gradients = pullback(np.ones((2, 2)))
    share = np.e / (1 + np.e)
    np.testing.assert_allclose(dx, [[0, 0], [1 + share, 0]])
    np.testing.assert_allclose(gradients["weights"], [1, share, 0, 0])
    np.testing.assert_allclose(gradients["bias"], [1, 1 + 1 - share])


def test_log_plus_is_torch_logsumexp():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    mask = rng.random((7, 5)) < 0.4
    mask[0] = True
    dense = np.where(mask, rng.standard_normal(mask.shape), -np.inf)
    rows, columns = np.nonzero(mask)
    weights = Weights.from_coo(rows, columns, dense[mask], mask.shape, dtype=np.float64)
    x, dy = rng.standard_normal((4, 7)), rng.standard_normal((4, 5))
    tx, tw = torch.tensor(x, requires_grad=True), torch.tensor(dense, requires_grad=True)
    ty = torch.logsumexp(tx[:, :, None] + tw, dim=1)
    ty.backward(torch.tensor(dy))
    y, pullback = log_plus.product(x, weights)
    dx, gradients = pullback(dy)
    np.testing.assert_allclose(y, ty.detach().numpy(), rtol=1e-13)
    np.testing.assert_allclose(dx, tx.grad.numpy(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gradients["weights"], tw.grad.numpy()[mask], rtol=1e-12, atol=1e-13)


def test_log_plus_has_no_probe():
    x, weights, _, dy = ordinary()
    gradient = log_plus.product(x, weights)[1](dy)[1]["weights"]
    with pytest.raises(ArgumentError, match="probe"):
        gradient.probe  # noqa: B018

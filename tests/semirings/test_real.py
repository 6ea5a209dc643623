"""plus_times, the ordinary product, its lazy gradient and its probe."""

from __future__ import annotations

import numpy as np
import pytest
from support.products import both_dtypes, ordinary

from gbnn.semirings import EdgeGradient, Probe, kernels, plus_times


@both_dtypes
def test_plus_times_is_the_dense_product(dtype):
    x, weights, bias, dy = ordinary(dtype)
    near = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    dense = weights.to_dense()
    y, pullback = plus_times.product(x, weights, bias)
    dx, gradients = pullback(dy)
    np.testing.assert_allclose(y, x @ dense + bias, **near)
    np.testing.assert_allclose(dx, dy @ dense.T, **near)
    np.testing.assert_allclose(gradients["weights"], (x.T @ dy)[weights.sources, weights.targets], **near)
    np.testing.assert_allclose(gradients["bias"], dy.sum(axis=0), **near)


def test_plus_times_is_torch():
    torch = pytest.importorskip("torch")
    x, weights, bias, dy = ordinary()
    tensors = [
        torch.tensor(np.ascontiguousarray(a), requires_grad=True) for a in (x, weights.to_dense(), bias)
    ]
    ty = tensors[0] @ tensors[1] + tensors[2]
    ty.backward(torch.tensor(np.ascontiguousarray(dy)))
    y, pullback = plus_times.product(x, weights, bias)
    dx, gradients = pullback(dy)
    dw = tensors[1].grad.numpy()[weights.sources, weights.targets]
    came = (y, dx, gradients["weights"], gradients["bias"])
    wanted = (ty.detach().numpy(), tensors[0].grad.numpy(), dw, tensors[2].grad.numpy())
    for a, b in zip(came, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_edge_gradient_is_computed_once_and_when_asked(monkeypatch):
    calls = []
    real = kernels.sampled_product
    monkeypatch.setattr(kernels, "sampled_product", lambda *a: (calls.append(1), real(*a)))
    x, weights, _, dy = ordinary()
    gradient = plus_times.product(x, weights)[1](dy)[1]["weights"]
    assert isinstance(gradient, EdgeGradient)
    assert gradient.shape == (weights.nnz,)
    assert not calls
    array = np.asarray(gradient)
    assert np.asarray(gradient) is gradient.array() is array
    assert len(calls) == 1
    copy = np.array(gradient, copy=True)
    assert not np.shares_memory(copy, array)
    np.testing.assert_array_equal(copy, array)
    single = np.asarray(gradient, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, array.astype(np.float32))
    assert np.asarray(gradient, dtype=np.float64, copy=False) is array
    with pytest.raises(ValueError, match="copy"):
        np.asarray(gradient, dtype=np.float32, copy=False)
    assert len(calls) == 1


def test_edge_gradient_survives_a_change_of_the_weights():
    x, weights, _, dy = ordinary()
    gradient = plus_times.product(x, weights)[1](dy)[1]["weights"]
    expected = (x.T @ dy)[weights.sources, weights.targets]
    weights.rewire([0, 1], [], [])
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_probe_gives_the_derivative_of_absent_edges():
    x, weights, _, dy = ordinary()
    probe = plus_times.product(x, weights)[1](dy)[1]["weights"].probe
    dense = x.T @ dy
    assert probe.shape == dense.shape
    for start, stop in [(0, 9), (3, 4), (5, 9), (2, 2)]:
        np.testing.assert_allclose(probe.block(start, stop), dense[:, start:stop], rtol=1e-12)
    rows, columns = np.indices(dense.shape).reshape(2, -1)
    np.testing.assert_allclose(probe.at(rows, columns), dense.ravel(), rtol=1e-12)
    assert probe.at(rows[:0], columns[:0]).shape == (0,)
    narrow = Probe(x.astype(np.float32), dy.astype(np.float32))
    assert narrow.at(rows, columns).dtype == narrow.block(0, 9).dtype == np.float32

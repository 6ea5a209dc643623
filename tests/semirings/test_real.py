"""plus_times, the ordinary product, its lazy gradient and its probe."""

from __future__ import annotations

import numpy as np
import pytest
from support.products import both_dtypes, ordinary

from gbnn import storage
from gbnn.semirings import EdgeGradient, Probe, kernels, plus_times, routes
from gbnn.weights import Weights


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


# -- Small products, by kernel -------------------------------------------------------------------------------


def layers_of_every_fan(dtype):
    """Layers with no edges, one, all, and neurons of every number of edges from none up, on both sides."""
    rng = np.random.default_rng(0)
    stairs = np.tri(11, 11, -1)  # target j has 10 - j edges: every remainder of a group of four
    for mask in (
        np.zeros((3, 2)),
        np.ones((1, 1)),
        np.ones((9, 6)),
        stairs,
        stairs.T,
        rng.random((80, 50)) < 0.1,
    ):
        rows, columns = np.nonzero(mask)
        yield Weights.from_coo(rows, columns, rng.standard_normal(rows.size), mask.shape, dtype=dtype)


@both_dtypes
@pytest.mark.parametrize("batch", [1, 3, 8, 100])
def test_small_products_are_those_of_graphblas_up_to_rounding(batch, dtype, monkeypatch):
    rng, accuracy = np.random.default_rng(1), 20 * np.finfo(dtype).eps
    for weights in layers_of_every_fan(dtype):
        x = np.asfortranarray(rng.standard_normal((batch, weights.in_features)), dtype)
        dy = np.asfortranarray(rng.standard_normal((batch, weights.out_features)), dtype)
        assert routes.is_small(x, weights)
        for bias in (None, rng.standard_normal(weights.out_features).astype(dtype)):
            small, _ = plus_times.product(x, weights, bias)
            large, _ = plus_times.product(x, weights, bias, route="graphblas")
            assert (small.shape, small.dtype, small.flags.f_contiguous) == (large.shape, dtype, True)
            # Relative to the sum of the absolute terms, which bounds the error of a sum in any order.
            terms = np.abs(x) @ np.abs(weights.to_dense()) + (0 if bias is None else np.abs(bias))
            assert (np.abs(small - large) <= accuracy * terms).all()
        small = routes.times_transposed(dy, weights)
        with monkeypatch.context() as patch:
            patch.setattr(routes, "is_small", lambda dy, weights: False)
            large = routes.times_transposed(dy, weights)
        assert (small.shape, small.dtype, small.flags.f_contiguous) == (large.shape, dtype, True)
        assert (np.abs(small - large) <= accuracy * (np.abs(dy) @ np.abs(weights.to_dense().T))).all()


def test_small_products_keep_infinity_and_nan():
    weights = Weights.from_dense(np.ones((5, 2)))
    for place in range(5):
        x = np.ones((3, 5))
        x[:, place] = np.inf, -np.inf, np.nan
        wanted = np.repeat([[np.inf], [-np.inf], [np.nan]], 2, axis=1)
        for route in ("small", "graphblas"):
            np.testing.assert_array_equal(plus_times.product(x, weights, route=route)[0], wanted)


@pytest.mark.parametrize(
    ("batch", "features", "nnz", "small"),
    [
        (1, 200, 8_000, True),
        (1, 200, 8_001, False),
        (31, 200, 8_001, False),
        (32, 200, 25_000, True),
        (32, 200, 25_001, False),
        (63, 2**10, 10, True),
        (64, 2**10, 10, False),
    ],
)
def test_shapes_choose_the_route_of_both_directions(batch, features, nnz, small):
    """So the same network computes the same bits, whatever the numbers and the threads are."""
    places = np.arange(nnz) * 7919 % features**2  # distinct, as 7919 is prime to the size
    weights = Weights.from_coo(*np.divmod(places, features), 1.0, (features, features))
    x = np.ones((batch, features), dtype=np.float32, order="F")
    before, found = storage.threads(), []
    try:
        for threads in (1, before):
            storage.set_threads(threads)
            with storage.kernel_report() as report:
                y, pullback = plus_times.product(x, weights)
                dx, _ = pullback(y)
            assert len(report.kernels) == (0 if small else 2)
            found.append((y, dx))
    finally:
        storage.set_threads(before)
    for one, many in zip(*found, strict=True):
        np.testing.assert_array_equal(one, many)

"""Dense: the layer for heads, against NumPy, torch and Linear."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory import peak_while

from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.layers import Dense, Linear, glorot, he, zeros
from gbnn.rows import SparseRows


def batch(*shape, dtype=np.float64, seed=0):
    return np.asfortranarray(np.random.default_rng(seed).standard_normal(shape), dtype=dtype)


@settings(deadline=None, max_examples=40)
@given(
    rows=st.integers(1, 6),
    columns=st.integers(1, 6),
    size=st.integers(1, 5),
    bias=st.booleans(),
    seed=st.integers(0, 99),
)
def test_is_a_linear_layer_of_all_edges(rows, columns, size, bias, seed):
    dense = Dense.random(rows, columns, bias=bias, dtype=np.float64, seed=seed)
    if bias:
        dense.bias[...] = np.arange(columns)
    linear = Linear.from_dense(dense.weights, dense.bias)
    x, dy = batch(size, rows, seed=seed), batch(size, columns, seed=seed + 1)
    (y, pullback), (wanted, reference) = dense.forward(x), linear.forward(x)
    np.testing.assert_allclose(y, wanted, rtol=1e-12, atol=1e-12)
    (dx, gradients), (dx_wanted, gradients_wanted) = pullback(dy), reference(dy)
    np.testing.assert_allclose(dx, dx_wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        gradients["weights"].ravel(), gradients_wanted["weights"], rtol=1e-12, atol=1e-12
    )
    assert set(gradients) == set(gradients_wanted) == set(dense.parameters())
    assert dense.nnz == linear.nnz == rows * columns
    for array in (y, dx):
        assert array.flags.f_contiguous


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_is_torch(dtype):
    torch = pytest.importorskip("torch")
    layer = Dense(batch(7, 4, dtype=dtype), batch(4, dtype=dtype))
    x, dy = batch(5, 7, dtype=dtype, seed=1), batch(5, 4, dtype=dtype, seed=2)
    tensors = [torch.tensor(a.copy(order="C"), requires_grad=True) for a in (x, layer.weights, layer.bias)]
    expected = tensors[0] @ tensors[1] + tensors[2]
    expected.backward(torch.tensor(dy.copy(order="C")))
    y, pullback = layer.forward(x)
    dx, gradients = pullback(dy)
    came = (y, dx, gradients["weights"], gradients["bias"])
    near = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    for array, tensor in zip(came, (expected.detach(), *(t.grad for t in tensors)), strict=True):
        assert array.dtype == dtype
        np.testing.assert_allclose(array, tensor.numpy(), **near)


def test_random():
    layer = Dense.random(300, 200, seed=1)
    assert (layer.in_features, layer.out_features, layer.nnz) == (300, 200, 60_000)
    assert layer.weights.dtype == layer.bias.dtype == np.float32
    assert layer.nbytes == 4 * 60_200
    assert layer.weights.var() == pytest.approx(2 / 300, rel=0.05)
    assert not layer.bias.any()
    assert Dense.random(300, 200, init=glorot).weights.var() == pytest.approx(2 / 500, rel=0.05)
    assert not Dense.random(3, 2, init=zeros).weights.any()
    np.testing.assert_array_equal(Dense.random(300, 200, seed=1).weights, layer.weights)
    assert (Dense.random(300, 200, seed=2).weights != layer.weights).any()
    assert Dense.random(3, 2, bias=False).bias is None
    assert Dense.random(3, 2, dtype=np.float64).bias.dtype == np.float64
    assert "3 x 2" in repr(Dense.random(3, 2))
    seen = []
    Dense.random(3, 2, init=lambda rng, *fans: seen.extend(fans) or he(rng, *fans))
    np.testing.assert_array_equal(seen, [[3] * 6, [2] * 6])


def test_arrays_are_the_layers_own():
    weights, bias = np.ones((2, 2)), np.ones(2)
    layer = Dense(weights, bias)
    layer.weights += 1
    layer.bias += 1
    assert (weights == 1).all()
    assert (bias == 1).all()


@pytest.mark.parametrize(
    ("arguments", "where", "kind"),
    [
        ((np.ones(3),), "weights", ArgumentError),
        ((np.ones((3, 0)),), "weights", ArgumentError),
        ((np.ones((1, 2, 3)),), "weights", ArgumentError),
        ((np.ones((2, 3), dtype=int),), "weights", KindError),
        ((np.ones((2, 3)) * 1j,), "weights", KindError),
        (([["a"]],), "weights", KindError),
        (([[1.0], [1.0, 2.0]],), "weights", KindError),
        ((None,), "weights", ArgumentError),
        (([[np.nan]],), "weights", NonFiniteError),
        ((np.ones((2, 3)), np.ones(2)), "bias", ArgumentError),
        ((np.ones((2, 3)), 0.0), "bias", ArgumentError),
        ((np.ones((2, 3)), ["a", "b", "c"]), "bias", KindError),
        ((np.ones((2, 3)), [np.inf] * 3), "bias", NonFiniteError),
    ],
)
def test_bad_arguments(arguments, where, kind):
    with pytest.raises(kind, match=f"^{where}: expected") as caught:
        Dense(*arguments)
    assert isinstance(caught.value, GbnnError)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"in_features": 0}, "in_features"),
        ({"in_features": 2**32}, "in_features"),
        ({"in_features": 2**16, "out_features": 2**16}, "out_features"),
        ({"out_features": 2.0}, "out_features"),
        ({"dtype": np.float16}, "dtype"),
        ({"seed": None}, "seed"),
        ({"init": None}, "init"),
        ({"init": lambda rng, fan_in, fan_out: np.ones(2)}, "init"),
        ({"init": lambda rng, fan_in, fan_out: np.full(fan_in.shape, np.inf)}, "init"),
        ({"bias": np.ones(2)}, "bias"),
    ],
)
def test_bad_arguments_of_random(change, where):
    with pytest.raises(GbnnError, match=f"^{where}: expected"):
        Dense.random(**{"in_features": 3, "out_features": 2} | change)


# -- Sparse activations --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sparse_batch_is_never_made_dense(dtype):
    rng = np.random.default_rng(0)
    layer = Dense.random(200_000, 3, dtype=dtype)
    columns = np.sort(rng.choice(200_000, (64, 20), replace=False), axis=1)
    x = SparseRows(
        np.arange(65) * 20, columns.ravel(), rng.standard_normal(1280).astype(dtype), (64, 200_000)
    )

    def step():
        y, pullback = layer.forward(x)
        return y, *pullback(np.ones((64, 3)))

    peak, (y, dx, gradients) = peak_while(step)
    assert peak < 2 * layer.weights.nbytes + 1_000_000  # the gradient of the weights; x as an array is 51 MB
    assert y.dtype == dx.dtype == gradients["weights"].dtype == dtype
    assert y.flags.f_contiguous
    expected, back = layer.forward(x.take(slice(0, 4)).to_dense())
    np.testing.assert_allclose(y[:4], expected, rtol=1e-5, atol=1e-5)
    some = x.take(slice(0, 4))
    np.testing.assert_allclose(
        dx.take(slice(0, 4)).values, back(np.ones((4, 3)))[0][some.rows, some.columns], rtol=1e-5
    )


def test_dx_in_more_than_one_block():
    rng = np.random.default_rng(0)
    layer = Dense.random(50, 40_000, dtype=np.float64)
    x = rng.standard_normal((3, 50))
    dy = np.asfortranarray(rng.standard_normal((3, 40_000)))
    dx = layer.forward(SparseRows.from_dense(x))[1](dy)[0]
    np.testing.assert_allclose(dx.to_dense(), layer.forward(x)[1](dy)[0], rtol=1e-9)

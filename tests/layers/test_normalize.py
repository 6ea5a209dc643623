"""LayerNorm and BatchNorm against torch, against differences, and where float32 is tried."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.adjoint import check_layer_pullback

from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers.normalize import BatchNorm, LayerNorm

KINDS = [LayerNorm, BatchNorm]
DTYPES = [np.float32, np.float64]


def batch(rows, columns, *, seed=0, dtype=np.float64, mean=0.0):
    rng = np.random.default_rng(seed)
    x = mean + rng.standard_normal((rows, columns)) * np.linspace(0.5, 3, columns)
    return np.asfortranarray(x, dtype=dtype)


def unusual(layer, seed=5):
    """Give scale, shift and buffers values that a mistake would show in."""
    rng = np.random.default_rng(seed)
    for array in (layer.scale, layer.shift):
        array[...] = rng.standard_normal(array.shape)
    if isinstance(layer, BatchNorm):
        layer.mean[...] = rng.standard_normal(layer.mean.shape)
        layer.variance[...] = rng.uniform(0.5, 2, layer.variance.shape)
    return layer


def torch_twin(layer):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, layer.dtype.name)
    features = layer.in_features
    if isinstance(layer, LayerNorm):
        twin = torch.nn.LayerNorm(features, eps=layer.epsilon, dtype=dtype)
    else:
        twin = torch.nn.BatchNorm1d(features, eps=layer.epsilon, momentum=layer.momentum, dtype=dtype)
        twin.running_mean.copy_(torch.tensor(layer.mean))
        twin.running_var.copy_(torch.tensor(layer.variance))
    with torch.no_grad():
        twin.weight.copy_(torch.tensor(layer.scale))
        twin.bias.copy_(torch.tensor(layer.shift))
    return twin


def assert_step_equals(layer, twin, x, dy, tolerance, *, training):
    torch = pytest.importorskip("torch")
    twin.train(training)
    twin.zero_grad()
    tensor = torch.tensor(np.ascontiguousarray(x), requires_grad=True)
    expected = twin(tensor)
    expected.backward(torch.tensor(np.ascontiguousarray(dy)))
    y, pullback = layer.forward(x, training=training)
    dx, gradients = pullback(dy)
    pairs = {
        "y": (y, expected.detach()),
        "dx": (dx, tensor.grad),
        "scale": (gradients["scale"], twin.weight.grad),
        "shift": (gradients["shift"], twin.bias.grad),
    }
    if isinstance(layer, BatchNorm):
        pairs["mean"] = (layer.mean, twin.running_mean)
        pairs["variance"] = (layer.variance, twin.running_var)
    for name, (ours, theirs) in pairs.items():
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=tolerance, atol=tolerance, err_msg=name)
    return gradients


# -- Against torch -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 2e-5)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"epsilon": 1e-2}])
def test_equals_torch_over_several_steps(kind, options, dtype, tolerance):
    torch = pytest.importorskip("torch")
    layer = unusual(kind(6, dtype=dtype, **options))
    twin = torch_twin(layer)
    for step, rows in enumerate([8, 5, 2, 11]):
        x = batch(rows, 6, seed=step, dtype=dtype, mean=step)
        dy = batch(rows, 6, seed=100 + step, dtype=dtype)
        gradients = assert_step_equals(layer, twin, x, dy, tolerance, training=True)
        assert_step_equals(layer, twin, x, dy, tolerance, training=False)
        for name, theirs in (("scale", twin.weight), ("shift", twin.bias)):  # a step of gradient descent
            getattr(layer, name)[...] -= np.asarray(0.1 * gradients[name], dtype=dtype)
            with torch.no_grad():
                theirs.copy_(torch.tensor(getattr(layer, name)))
    one = batch(1, 6, seed=9, dtype=dtype)
    assert_step_equals(layer, twin, one, one, tolerance, training=False)


@pytest.mark.parametrize("momentum", [0.0, 0.3, 1.0])
def test_momentum_as_in_torch(momentum):
    layer = unusual(BatchNorm(4, momentum=momentum, dtype=np.float64))
    before = layer.mean.copy()
    twin = torch_twin(layer)
    for step in range(3):
        x = batch(7, 4, seed=step)
        assert_step_equals(layer, twin, x, x, 1e-10, training=True)
    assert np.array_equal(layer.mean, before) == (momentum == 0)


# -- Derivatives ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(5, 4), (2, 3), (6, 1), (3, 1)])
def test_pullback_is_the_derivative(kind, training, shape):
    layer = unusual(kind(shape[1], dtype=np.float64))
    if kind is BatchNorm and training:
        layer.momentum = 0.0  # the running statistics stay, so each call gives the same
    check_layer_pullback(layer, batch(*shape), training=training)


def test_layer_norm_pullback_on_one_row():
    check_layer_pullback(unusual(LayerNorm(5, dtype=np.float64)), batch(1, 5), training=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("training", [True, False])
def test_pullback_stays_at_the_point_of_its_forward(kind, training):
    x, dy = batch(6, 4), batch(6, 4, seed=1)
    kept_x, kept_dy = x.copy(), dy.copy()
    layer = unusual(kind(4, dtype=np.float64))
    _, pullback = layer.forward(x, training=training)
    dx, gradients = pullback(dy)
    # What training does between a forward and a later call of its pullback.
    layer.forward(batch(6, 4, seed=2, mean=5), training=True)
    layer.scale *= 3
    layer.shift += 1
    again, others = pullback(dy)
    np.testing.assert_array_equal(again, dx)
    assert set(others) == {"scale", "shift"}
    for name in others:
        np.testing.assert_array_equal(others[name], gradients[name])
    nothing, others = pullback(dy, inputs=False)
    assert nothing is None
    for name in others:
        np.testing.assert_array_equal(others[name], gradients[name])
    np.testing.assert_array_equal(x, kept_x)
    np.testing.assert_array_equal(dy, kept_dy)


# -- Where float32 is tried ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mean", [0.0, 1e3, -1e6])
def test_large_mean_in_float32(kind, mean):
    # The same numbers in float64 are the reference: what remains is the arithmetic, not the rounding of x.
    x = batch(64, 32, dtype=np.float32, mean=mean)
    dy = batch(64, 32, seed=1, dtype=np.float32)
    results = []
    for dtype in DTYPES:
        layer = kind(32, dtype=dtype)
        y, pullback = layer.forward(x, training=True)
        dx, gradients = pullback(dy)
        results.append((y, dx, gradients["scale"], gradients["shift"]))
    for single, double in zip(*results, strict=True):
        np.testing.assert_allclose(single, double, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-15, 1e25])
def test_numbers_whose_square_leaves_float32(kind, scale):
    x = batch(16, 8) * scale
    y, pullback = kind(8, epsilon=1e-37).forward(x.astype(np.float32), training=True)
    expected, _ = kind(8, epsilon=1e-37, dtype=np.float64).forward(x, training=True)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    dx, _ = pullback(x / scale)
    assert np.isfinite(dx).all()
    assert np.abs(dx).max() > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e7, 3e38])
def test_constant_input_gives_the_shift(kind, value):
    layer = kind(5)
    layer.shift[...] = np.arange(5)
    y, pullback = layer.forward(np.full((7, 5), value, dtype=np.float32), training=True)
    np.testing.assert_allclose(y, np.tile(np.arange(5), (7, 1)), atol=1e-4)
    assert np.isfinite(pullback(batch(7, 5))[0]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("training", [True, False])
def test_what_is_not_finite_shows_without_warning(kind, bad, training):
    x = batch(4, 3)
    x[1, 2] = bad
    y, pullback = kind(3).forward(x, training=training)
    assert not np.isfinite(y[1, 2])
    touched = ~np.isfinite(y)
    alone = np.zeros((4, 3), dtype=bool)  # only its own row or column may suffer
    if kind is LayerNorm:
        alone[1, :] = True
    elif training:
        alone[:, 2] = True
    else:
        alone[1, 2] = True
    np.testing.assert_array_equal(touched, alone)
    assert not np.isfinite(pullback(batch(4, 3))[1]["scale"][2])


# -- Statistics and modes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_output_is_normalized(dtype):
    x = batch(200, 50, mean=3, dtype=dtype)
    for kind, axis in ((BatchNorm, 0), (LayerNorm, 1)):
        y, _ = kind(50, dtype=dtype).forward(x, training=True)
        np.testing.assert_allclose(y.mean(axis=axis, dtype=np.float64), 0, atol=1e-6)
        np.testing.assert_allclose(y.var(axis=axis, dtype=np.float64), 1, atol=1e-4)


def test_buffers_are_updated_in_place_and_only_in_training():
    layer = BatchNorm(4)
    mean, variance = layer.mean, layer.variance
    layer.forward(batch(9, 4))
    np.testing.assert_array_equal(mean, np.zeros(4))
    np.testing.assert_array_equal(variance, np.ones(4))
    x = batch(9, 4, mean=2)
    layer.forward(x, training=True)
    assert layer.mean is mean
    assert layer.variance is variance
    np.testing.assert_allclose(mean, 0.1 * x.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance, 0.9 + 0.1 * x.var(axis=0, ddof=1), rtol=1e-5)


def test_one_row_in_training_is_refused_and_changes_nothing():
    layer = BatchNorm(3)
    with pytest.raises(ArgumentError, match="two rows in training"):
        layer.forward(np.ones((1, 3)), training=True)
    np.testing.assert_array_equal(layer.mean, np.zeros(3))
    assert layer.forward(np.ones((1, 3)))[0].shape == (1, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("given_dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("training", [True, False])
def test_dtype_shape_and_order(kind, dtype, order, given_dtype, training):
    x = np.array(10 * batch(6, 5), dtype=given_dtype, order=order)
    y, pullback = kind(5, dtype=dtype).forward(x, training=training)
    dx, gradients = pullback(np.array(batch(6, 5, seed=1), order=order))
    for out in (y, dx):
        assert out.dtype == dtype
        assert out.shape == (6, 5)
        assert out.flags.f_contiguous
    for gradient in gradients.values():
        assert gradient.dtype == dtype
        assert gradient.shape == (5,)
    same, _ = kind(5, dtype=dtype).forward(np.asfortranarray(x, dtype=dtype), training=training)
    np.testing.assert_array_equal(y, same)


# -- Saving --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_restored_layer_is_the_same(kind, dtype):
    layer = unusual(kind(4, epsilon=1e-3, dtype=dtype))
    config = json.loads(json.dumps(layer.config()))
    arrays = {name: array.copy() for name, array in (layer.parameters() | layer.buffers()).items()}
    again = kind.restore(config, arrays, {})
    assert again.config() == layer.config()
    assert (again.in_features, again.out_features) == (4, 4)
    for seed in range(2):
        x = batch(5, 4, seed=seed)
        for training in (True, False):
            expected, _ = layer.forward(x, training=training)
            np.testing.assert_array_equal(again.forward(x, training=training)[0], expected)


def test_momentum_is_saved():
    assert BatchNorm.restore(
        BatchNorm(2, momentum=0.7).config(),
        {**BatchNorm(2).own_parameters(), **BatchNorm(2).own_buffers()},
        {},
    ).momentum == pytest.approx(0.7)


def test_names_of_parameters_and_buffers():
    assert list(LayerNorm(2).parameters()) == list(BatchNorm(2).parameters()) == ["scale", "shift"]
    assert LayerNorm(2).buffers() == {}
    assert list(BatchNorm(2).buffers()) == ["mean", "variance"]
    assert repr(LayerNorm(2)) == "LayerNorm(features=2, epsilon=1e-05, dtype='float32')"


# -- Bad arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@given(features=st.one_of(st.integers(max_value=0), st.floats(), st.none(), st.text(), st.booleans()))
def test_features_that_make_no_sense(kind, features):
    with pytest.raises(GbnnError, match=f"{kind.__name__} features"):
        kind(features)


@pytest.mark.parametrize("kind", KINDS)
@given(epsilon=st.one_of(st.floats(max_value=1e-39), st.sampled_from([np.nan, np.inf]), st.none(), st.text()))
def test_epsilon_that_makes_no_sense(kind, epsilon):
    with pytest.raises(GbnnError, match=f"{kind.__name__} epsilon"):
        kind(3, epsilon=epsilon)


@given(
    st.one_of(
        st.floats(max_value=0, exclude_max=True),
        st.floats(min_value=1, exclude_min=True),
        st.none(),
        st.text(),
    )
)
def test_momentum_that_makes_no_sense(momentum):
    with pytest.raises(GbnnError, match="BatchNorm momentum"):
        BatchNorm(3, momentum=momentum)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float16, np.int64, "complex64", "nonsense", object])
def test_dtype_that_makes_no_sense(kind, dtype):
    with pytest.raises(KindError, match=f"{kind.__name__} dtype"):
        kind(3, dtype=dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("training", [True, False])
@given(rows=st.integers(0, 5), columns=st.integers(0, 5))
def test_shapes_that_do_not_fit(kind, training, rows, columns):
    layer = kind(3)
    array = np.ones((rows, columns))
    if rows == 0 or columns != 3:
        with pytest.raises(ArgumentError, match=rf"{kind.__name__}\.forward x"):
            layer.forward(array, training=training)
    _, pullback = layer.forward(np.ones((4, 3)), training=training)
    if array.shape == (4, 3):
        assert pullback(array)[0].shape == (4, 3)
    else:
        with pytest.raises(ArgumentError, match=rf"{kind.__name__}\.pullback dy"):
            pullback(array)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("x", [None, "abc", [[1, 2, 3], [4]], np.zeros((2, 3), dtype=complex)])
def test_what_is_no_batch(kind, x):
    with pytest.raises(GbnnError, match=rf"{kind.__name__}\.forward x"):
        kind(3).forward(x)

"""Every activation of the table: against torch and differences; dtype, order, extremes, bad arguments."""

from __future__ import annotations

import gc
import re
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.adjoint import check_layer_pullback

from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers.activations import ACTIVATIONS, Activation, Gelu, Identity, LeakyRelu, Relu, activation
from gbnn.rows import SparseRows

NAMES = sorted(ACTIVATIONS)
REQUIRED = {"relu", "leaky_relu", "gelu", "silu", "tanh", "sigmoid", "softplus", "identity"}

# Away from 0, where the rectifiers have no derivative for differences to find.
GRID = np.concatenate([-np.logspace(1.2, -3, 20), np.logspace(-3, 1.2, 20)]).reshape(8, 5)
HUGE = np.float32(3e38)


@pytest.fixture(params=NAMES)
def layer(request):
    return activation(request.param)


def torch_function(name):
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    return {
        "gelu": functional.gelu,
        "identity": lambda x: x * 1,
        "leaky_relu": functional.leaky_relu,
        "relu": functional.relu,
        "sigmoid": torch.sigmoid,
        "silu": functional.silu,
        "softplus": functional.softplus,
        "tanh": torch.tanh,
    }[name]


def torch_value_and_gradient(name, x, dy):
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(np.ascontiguousarray(x), requires_grad=True)
    y = torch_function(name)(tensor)
    y.backward(torch.tensor(np.ascontiguousarray(dy)))
    return y.detach().numpy(), tensor.grad.numpy()


# -- The table -----------------------------------------------------------------------------------------------


def test_table_holds_every_class_under_its_own_name():
    classes = {
        value
        for name, module in sys.modules.items()
        if name.startswith("gbnn.")
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Activation) and value is not Activation
    }
    assert {re.sub(r"(?<!^)(?=[A-Z])", "_", c.__name__).lower(): c for c in classes} == ACTIVATIONS
    assert set(ACTIVATIONS) >= REQUIRED
    assert all(type(activation(name)) is ACTIVATIONS[name] for name in NAMES)


@given(st.text().filter(lambda name: name not in ACTIVATIONS))
def test_unknown_name_lists_the_names(name):
    with pytest.raises(ArgumentError) as caught:
        activation(name)
    assert all(known in str(caught.value) for known in NAMES)


@pytest.mark.parametrize("name", [None, 3, Relu, ["relu"], Relu()])
def test_name_that_is_no_string(name):
    with pytest.raises(KindError, match="activation"):
        activation(name)


# -- Values and derivatives ----------------------------------------------------------------------------------


def test_pullback_is_the_derivative(layer):
    check_layer_pullback(layer, GRID)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-8), (np.float32, 2e-6)])
def test_equals_torch(name, dtype, tolerance):
    rng = np.random.default_rng(0)
    x = np.asfortranarray(np.vstack([GRID, np.zeros((1, 5)), 4 * rng.standard_normal((20, 5))]), dtype=dtype)
    dy = np.asfortranarray(rng.standard_normal(x.shape), dtype=dtype)
    y, pullback = activation(name).forward(x)
    dx, gradients = pullback(dy)
    expected, gradient = torch_value_and_gradient(name, x, dy)
    np.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(dx, gradient, rtol=tolerance, atol=tolerance)
    assert gradients == {}


def test_slope_is_used():
    y, pullback = LeakyRelu(0.25).forward(np.array([[-4.0, 0.0, 4.0]]))
    np.testing.assert_array_equal(y, [[-1, 0, 4]])
    np.testing.assert_array_equal(pullback(np.ones((1, 3)))[0], [[0.25, 0.25, 1]])
    assert LeakyRelu.restore(LeakyRelu(0.25).config(), {}, {}).slope == 0.25


def test_tails_keep_their_relative_accuracy():
    # Far left, where 1 + erf and 1 + tanh would cancel to nothing.
    x = np.array([[-8.0, -6.0]])
    gelu = Gelu().forward(x)[0]
    np.testing.assert_allclose(gelu, [[-8 * 6.220960574271785e-16, -6 * 9.865876450376946e-10]], rtol=1e-12)
    for name in ("sigmoid", "softplus"):
        y = activation(name).forward(np.float32([[-80.0]]))[0]
        np.testing.assert_allclose(y, [[np.exp(-80.0)]], rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_derivative_near_zero(dtype):
    # There the derivative divides y by x.
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([[-1e-31, -tiny, -0.0, 0.0, tiny, 1e-31, 1e-29]], dtype=dtype)
    _, pullback = Gelu().forward(x)
    np.testing.assert_allclose(pullback(np.ones_like(x))[0], np.full((1, 7), 0.5), rtol=1e-6)


# -- Extremes ------------------------------------------------------------------------------------------------

LIMITS = {  # name -> value at -3e38 and 3e38, derivative there
    "gelu": ([0, HUGE], [0, 1]),
    "identity": ([-HUGE, HUGE], [1, 1]),
    "leaky_relu": ([np.float32(-3e36), HUGE], [0.01, 1]),
    "relu": ([0, HUGE], [0, 1]),
    "sigmoid": ([0, 1], [0, 0]),
    "silu": ([0, HUGE], [0, 1]),
    "softplus": ([0, HUGE], [0, 1]),
    "tanh": ([-1, 1], [0, 0]),
}


@pytest.mark.parametrize("name", NAMES)
def test_huge_numbers(name):
    x = np.array([[-HUGE, HUGE]])
    y, pullback = activation(name).forward(x)
    values, slopes = LIMITS[name]
    np.testing.assert_allclose(y, [values], rtol=1e-6)
    np.testing.assert_allclose(pullback(np.ones_like(x))[0], [slopes], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("magnitude", [20, 90, 104, 710, 750, 1e4, 1e19, 1e30])
def test_large_numbers_give_finite_numbers_without_warning(layer, magnitude, dtype):
    x = np.array([[-magnitude, magnitude]], dtype=dtype)
    y, pullback = layer.forward(x)
    dx, _ = pullback(np.ones_like(x))
    assert np.isfinite(y).all()
    assert np.isfinite(dx).all()
    assert (np.abs(y) <= magnitude * (1 + 1e-6)).all()
    assert (np.abs(dx - 0.5) <= 0.5 + 1e-6).all()  # gelu and silu come to 0 from below


def test_value_and_derivative_by_themselves_do_not_warn(layer):
    x = np.asfortranarray([[-HUGE, -100, -1, 1, 100, HUGE]], dtype=np.float32)
    assert np.isfinite(layer.derivative(x, layer.value(x))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_comes_out(layer, dtype):
    x = np.array([[1, np.nan], [np.nan, -1]], dtype=dtype)
    y, pullback = layer.forward(x)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(x))
    dx, _ = pullback(x)  # a NaN that comes from above goes on below
    np.testing.assert_array_equal(np.isnan(dx), np.isnan(x))


@pytest.mark.parametrize("name", NAMES)
def test_infinities_follow_ieee_without_warning(name):
    y, pullback = activation(name).forward(np.array([[-np.inf, np.inf]], dtype=np.float32))
    low = {"gelu": np.nan, "silu": np.nan, "identity": -np.inf, "leaky_relu": -np.inf, "tanh": -1}
    high = {"sigmoid": 1, "tanh": 1}
    np.testing.assert_array_equal(y, [[low.get(name, 0), high.get(name, np.inf)]])
    pullback(np.full((1, 2), np.inf))


# -- The contract of a layer ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (6, 5)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dtype_shape_and_order(layer, shape, dtype, order):
    x = np.array(np.random.default_rng(0).standard_normal(shape), dtype=dtype, order=order)
    kept = x.copy()
    y, pullback = layer.forward(x)
    dx, _ = pullback(np.ones(shape, dtype=dtype, order=order))
    for out in (y, dx):
        assert out.dtype == dtype
        assert out.shape == shape
        assert out.flags.f_contiguous
    np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(y, layer.forward(np.asfortranarray(x))[0])


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.float16])
def test_other_dtypes_become_float32(layer, dtype):
    x = np.array([[0, 1], [1, 1]], dtype=dtype)
    y, pullback = layer.forward(x)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, layer.forward(x.astype(np.float32))[0])
    assert pullback(np.ones((2, 2)))[0].dtype == np.float32


def test_has_no_parameters_and_any_width(layer):
    assert layer.parameters() == {}
    assert layer.in_features is None
    assert layer.out_features is None
    assert type(layer).restore(layer.config(), {}, {}).config() == layer.config()


def test_inputs_not_wanted(layer):
    _, pullback = layer.forward(GRID)
    assert pullback(np.ones_like(GRID), inputs=False) == (None, {})


def test_pullback_may_be_called_again_and_does_not_change_dy(layer):
    dy = np.asfortranarray(np.random.default_rng(1).standard_normal(GRID.shape))
    kept = dy.copy()
    _, pullback = layer.forward(GRID)
    first = pullback(dy)[0].copy()
    np.testing.assert_array_equal(pullback(dy)[0], first)
    np.testing.assert_array_equal(dy, kept)


@pytest.mark.parametrize("name", NAMES)
def test_holds_only_what_the_pullback_reads(name):
    made = activation(name)
    x = np.asfortranarray(GRID.astype(np.float32))
    y, pullback = made.forward(x)
    refs = {"x": weakref.ref(x), "y": weakref.ref(y)}
    del x, y
    gc.collect()
    assert {which for which, ref in refs.items() if ref() is not None} == set(made.reads)
    assert pullback(GRID)[0].shape == GRID.shape


def test_relu_and_identity_are_light():
    assert Relu.reads == "y"
    x = np.asfortranarray(GRID)
    assert Identity().forward(x)[0] is x


def test_derivative_that_reads_what_it_said_it_would_not_fails():
    class Wrong(Activation):
        reads = "y"

        def value(self, x):
            return x * x

        def derivative(self, x, y):
            return 2 * x

    _, pullback = Wrong().forward(GRID)
    with pytest.raises(TypeError):
        pullback(GRID)


# -- Sparse activations --------------------------------------------------------------------------------------


def test_who_keeps_zeros_is_0_at_0(layer):
    zero = layer.forward(np.zeros((1, 1)))[0][0, 0]
    assert layer.keeps_zeros == (zero == 0)


@pytest.mark.parametrize("name", [n for n in NAMES if ACTIVATIONS[n]().keeps_zeros])
def test_sparse_values_are_those_of_the_entries(name):
    numbers = np.concatenate([GRID.ravel(), [0.0, -0.0]])
    x = SparseRows(np.array([0, 42]), np.arange(42) * 2**54, numbers, (1, 2**60))
    y, pullback = activation(name).forward(x)
    expected, back = activation(name).forward(numbers[None])
    np.testing.assert_array_equal(y.onto(x), expected[0])
    dy = np.linspace(-1, 1, 42)
    dx, _ = pullback(x.with_values(dy))
    assert dx.columns is x.columns
    stay = expected[0] != 0 if name == "relu" else np.ones(42, dtype=bool)
    np.testing.assert_array_equal(dx.values[stay], back(dy[None])[0][0][stay])
    np.testing.assert_array_equal(dx.values[~stay], 0)
    assert y.same_pattern(x) == (name != "relu")


def test_relu_makes_sparse_activations_sparser():
    x = SparseRows.from_dense([[1.0, -1.0, np.nan, 0.0], [0.0, -2.0, 0.0, 0.0]])
    y, _ = Relu().forward(x)
    assert y.starts.tolist() == [0, 2, 2]
    assert y.columns.tolist() == [0, 2]
    positive = x.where(x.values > 0)
    assert Relu().forward(positive)[0].columns is positive.columns


def test_a_sparse_gradient_of_a_dense_batch_stays_sparse(layer):
    _, pullback = layer.forward(GRID)
    dy = np.where(np.random.default_rng(0).random(GRID.shape) < 0.3, 2.0, 0.0)
    rows = SparseRows.from_dense(dy)
    dx, _ = pullback(rows)
    assert isinstance(dx, SparseRows)
    assert dx.columns is rows.columns
    np.testing.assert_array_equal(dx.to_dense(), pullback(dy)[0])


# -- Bad arguments -------------------------------------------------------------------------------------------


@given(
    x=st.one_of(
        st.none(),
        st.text(),
        st.integers(),
        st.lists(st.integers(0, 3)),
        st.just([[1, 2], [3]]),
        st.just([["a"]]),
        st.just(np.zeros((0, 3))),
        st.just(np.zeros((2, 3, 4))),
        st.just(np.zeros((2, 3), dtype=complex)),
        st.just(np.zeros((2, 3), dtype=object)),
    ),
    name=st.sampled_from(NAMES),
)
def test_what_is_no_batch(x, name):
    made = activation(name)
    with pytest.raises(GbnnError, match=rf"{type(made).__name__}\.forward x"):
        made.forward(x)
    _, pullback = made.forward(np.ones((2, 3)))
    with pytest.raises(GbnnError, match=rf"{type(made).__name__}\.pullback dy"):
        pullback(x)


@given(rows=st.integers(1, 6), columns=st.integers(1, 6), name=st.sampled_from(NAMES))
def test_dy_must_have_the_shape_of_y(rows, columns, name):
    _, pullback = activation(name).forward(np.ones((3, 4)))
    dy = np.ones((rows, columns))
    if dy.shape == (3, 4):
        assert pullback(dy)[0].shape == (3, 4)
    else:
        with pytest.raises(ArgumentError, match="pullback dy"):
            pullback(dy)


@given(st.one_of(st.floats(max_value=0), st.floats(min_value=1, exclude_min=True), st.just(float("nan"))))
def test_slope_out_of_range(slope):
    with pytest.raises(ArgumentError, match="LeakyRelu slope"):
        LeakyRelu(slope)


@pytest.mark.parametrize("slope", [None, "0.1", True, [0.1]])
def test_slope_of_wrong_type(slope):
    with pytest.raises(KindError, match="LeakyRelu slope"):
        LeakyRelu(slope)

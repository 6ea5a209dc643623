"""Semirings of a user's own scalar functions: equal to built-in ones, trained, refused when wrong."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.adjoint import check_layer_pullback
from support.products import DIFFERENTIABLE, DTYPES, biases, tied_products

from gbnn import semirings
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers import Linear
from gbnn.semirings import define, definition
from gbnn.weights import Weights


@pytest.fixture(scope="module")
def norm4():
    """⊕ is the 4-norm, ⊗ the product: a smooth maximum."""
    return define(
        "norm4_times",
        add=lambda a, b: (a**4 + b**4) ** 0.25,
        identity=0.0,
        multiply=lambda x, w: x * w,
        partials=lambda x, w, y: ((x * w / y) ** 3 * w, (x * w / y) ** 3 * x),
        one=1.0,
        span=(0.5, 1.5),
    )


@pytest.mark.parametrize("built_in", DIFFERENTIABLE, ids=str)
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_the_functions_of_a_built_in_semiring_make_it_again(built_in, data):
    s = built_in
    mine = define("mine", s.add, s.identity, s.multiply, s.partials, one=s.one, selective=s.selective)
    dtype = DTYPES[1]
    x, weights, bias, dy = data.draw(tied_products(s, dtype))
    near = {"rtol": 1e-12, "atol": 1e-12}
    for b in biases(s, bias):
        y, pullback = s.product(x, weights, b)
        my_y, my_pullback = mine.product(x, weights, b)
        np.testing.assert_allclose(my_y, y, **near)
        (dx, gradients), (my_dx, my_gradients) = pullback(dy), my_pullback(dy)
        np.testing.assert_allclose(my_dx, dx, **near)
        assert set(my_gradients) == set(gradients)
        for name, gradient in gradients.items():
            np.testing.assert_allclose(my_gradients[name], gradient, **near)


def test_plain_functions_are_min_plus_and_a_constant_does_not_lose_ties():
    """A constant makes numba compute in float64: the terms must still be found in a float32 output."""
    dtype = np.float32
    mine = define(
        "min_tenth",
        add=lambda a, b: a if a < b else b,
        identity=np.inf,
        multiply=lambda x, w: (x + w) * 0.1,
        partials=lambda x, w, y: (0.1, 0.1),
        selective=True,
    )
    rng = np.random.default_rng(0)
    weights = Weights.from_dense(rng.integers(1, 4, (5, 4)).astype(dtype))
    x = np.asfortranarray(rng.integers(0, 4, (3, 5)), dtype=dtype)
    y, pullback = mine.product(x, weights)
    expected, reference = semirings.min_plus.product(x, weights)
    np.testing.assert_allclose(y, expected / 10, rtol=1e-6)
    dy = np.ones_like(y)
    (dx, gradients), (dx_sum, gradients_sum) = pullback(dy), reference(dy)
    np.testing.assert_allclose(dx, dx_sum / 10, rtol=1e-6)
    np.testing.assert_allclose(gradients["weights"], gradients_sum["weights"] / 10, rtol=1e-6)
    assert dx.sum() == pytest.approx(y.size / 10)


def test_smooth_semiring_against_differences_and_definition(norm4):
    layer = Linear.random(6, 5, nnz=14, semiring=norm4, dtype=np.float64, seed=1)
    x = np.random.default_rng(0).uniform(0.5, 1.5, (3, 6))
    check_layer_pullback(layer, x)
    y, pullback = layer.forward(x)
    np.testing.assert_allclose(y, definition.product(norm4, x, layer.weights, layer.bias), rtol=1e-12)
    dx, dw, dbias = definition.adjoint(norm4, x, layer.weights, layer.bias, y, np.ones(y.shape))
    came, gradients = pullback(np.ones(y.shape))
    np.testing.assert_allclose(came, dx, rtol=1e-12)
    np.testing.assert_allclose(gradients["weights"], dw, rtol=1e-12)
    np.testing.assert_allclose(gradients["bias"], dbias, rtol=1e-12)


def test_it_trains(norm4):
    """A student learns what a teacher of the same edges computes."""
    rng = np.random.default_rng(0)
    teacher = Linear.random(8, 3, nnz=12, semiring=norm4, dtype=np.float64, seed=0)
    student = Linear(Weights(teacher.weights.edges, rng.uniform(0.5, 1.5, 12)), np.ones(3), norm4)
    x = rng.uniform(0.5, 1.5, (32, 8))
    target = teacher.forward(x)[0]
    losses = []
    for _ in range(200):
        y, pullback = student.forward(x, training=True)
        losses.append(float(np.square(y - target).mean()))
        _, gradients = pullback(2 * (y - target) / y.size, inputs=False)
        student.weights.add(-0.5 * np.asarray(gradients["weights"]))
        student.bias -= 0.5 * gradients["bias"]
    assert losses[-1] < losses[0] / 20


def test_forward_only():
    xor = define("xor", lambda a, b: abs(a - b), 0.0, lambda x, w: x * w)
    y, pullback = xor.product(np.ones((1, 3)), Weights.from_dense(np.ones((3, 1))))
    np.testing.assert_array_equal(y, [[1.0]])
    with pytest.raises(ArgumentError, match="xor"):
        pullback(np.ones((1, 1)))


def test_division_by_zero_gives_nan_and_no_crash(norm4):
    """An exception inside a parallel kernel would end in a SystemError."""
    _, pullback = norm4.product(np.zeros((1, 2)), Weights.from_dense(np.ones((2, 1))))
    dx, _ = pullback(np.ones((1, 1)))
    assert np.isnan(dx).all()


def test_compiled_functions_are_taken_and_keep_their_options():
    add = numba.njit(fastmath=True)(lambda a, b: a + b)
    mine = define("mine", add, 0.0, numba.njit(lambda x, w: x / w if w != 7 else 0.0))
    assert mine.add.targetoptions["fastmath"] is True
    assert mine.add.targetoptions["error_model"] == "numpy"
    assert mine.multiply(1.0, 0.0) == np.inf
    assert define("again", mine.add, 0.0, mine.multiply).add is mine.add


def test_exception_inside_a_kernel():
    def strict(x, w):
        if x > 100:
            raise ValueError("too large")
        return x * w

    mine = define("strict", lambda a, b: a + b, 0.0, strict)
    weights = Weights.from_dense(np.ones((2, 2)))
    np.testing.assert_array_equal(mine.product(np.ones((1, 2)), weights)[0], [[2.0, 2.0]])
    with pytest.raises(GbnnError, match=r"no exception.*too large"):
        mine.product(np.full((1, 2), 101.0), weights)


# -- Bad functions -------------------------------------------------------------------------------------------

GOOD = {
    "name": "mine",
    "add": semirings.plus_times.add,
    "identity": 0.0,
    "multiply": semirings.plus_times.multiply,
    "partials": semirings.plus_times.partials,
    "one": 1.0,
}


def two_numbers_or_none(x, w, y):
    return None if x > 0 else (w, x)


BAD = [
    ("name", None, KindError),
    ("name", "", KindError),
    ("add", None, KindError),
    ("add", "max", KindError),
    ("add", max, KindError),  # a built-in has no source to compile
    ("add", np.maximum, KindError),
    ("add", lambda a: a, ArgumentError),
    ("add", lambda a, b: "sum", ArgumentError),
    ("add", lambda a, b: (a, b), ArgumentError),
    ("add", lambda a, b: absent(a, b), ArgumentError),  # noqa: F821
    ("multiply", 3.0, KindError),
    ("multiply", lambda x, w: None, ArgumentError),
    ("multiply", lambda x, w: open("x"), ArgumentError),  # noqa: SIM115
    ("multiply", lambda x, w, y: x * w, ArgumentError),
    ("partials", (1.0, 1.0), KindError),
    ("partials", lambda x, w, y: w, ArgumentError),
    ("partials", lambda x, w, y: (w, x, y), ArgumentError),
    ("partials", lambda x, w, y: [w, x], ArgumentError),
    ("partials", lambda x, w, y: ("w", "x"), ArgumentError),
    ("partials", lambda x, w: (w, x), ArgumentError),
    ("partials", two_numbers_or_none, ArgumentError),
    ("identity", 1.0, ArgumentError),
    ("identity", np.inf, ArgumentError),
    ("identity", np.nan, ArgumentError),
    ("identity", "0", KindError),
    ("identity", None, KindError),
    ("identity", False, KindError),
    ("one", 2.0, ArgumentError),
    ("one", np.nan, ArgumentError),
    ("one", "1", KindError),
    ("selective", True, ArgumentError),  # a + b is neither a nor b
    ("span", 1.0, KindError),
    ("span", (0.0, 1.0, 2.0), KindError),
    ("span", ("a", "b"), KindError),
    ("span", (1.0, 0.0), ArgumentError),
    ("span", (0.0, np.inf), ArgumentError),
]


@pytest.mark.parametrize(("name", "value", "kind"), BAD)
def test_bad_arguments_are_named(name, value, kind):
    with pytest.raises(kind, match=f"^{name}: expected") as caught:
        define(**GOOD | {name: value})
    assert isinstance(caught.value, GbnnError)
    assert "\n" not in str(caught.value)


def test_an_identity_from_one_side_is_none():
    with pytest.raises(ArgumentError, match="identity"):
        define("minus", lambda a, b: a - b, 0.0, lambda x, w: x * w)


def test_rounding_does_not_refuse_an_identity():
    assert define("norm3", lambda a, b: (a**3 + b**3) ** (1 / 3), 0.0, lambda x, w: x * w).identity == 0


SWAPPED = {
    "add": lambda a, b: a + b,
    "identity": 0.0,
    "multiply": lambda x, w: x * w,
    "partials": lambda x, w, y: (x, w),
}


def test_partials_that_are_not_the_derivative_are_refused_unless_meant() -> None:
    with pytest.raises(ArgumentError, match="partials: expected the derivatives"):
        define("swapped", **SWAPPED)
    assert define("swapped", **SWAPPED, surrogate=True).partials is not None


@pytest.mark.parametrize(
    "name", ["plus_times", "min_plus", "max_times", "log_plus", "max_min", "min_max", "plus_min"]
)
def test_partials_of_the_built_in_semirings_pass_as_a_users(name: str) -> None:
    s = getattr(semirings, name)
    made = define("mine", s.add, s.identity, s.multiply, s.partials, one=s.one, selective=s.selective)
    assert made.partials is s.partials

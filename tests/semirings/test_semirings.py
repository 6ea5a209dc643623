"""Every built-in semiring: its laws, every route against the definition and GraphBLAS, its adjoint."""

from __future__ import annotations

import math

import graphblas as gb
import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.adjoint import numeric_gradient, numeric_weight_gradient
from support.products import (
    DIFFERENTIABLE,
    DTYPES,
    SEMIRINGS,
    biases,
    both_dtypes,
    ordinary,
    scattered_products,
    tied_products,
)

from gbnn import semirings, storage
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.semirings import definition, kernels, log_plus, plus_times
from gbnn.semirings.routes import adjoint_by_kernel
from gbnn.weights import Weights

FORWARD_ONLY = ["any_pair", "lor_land", "plus_pair"]
INFINITE = ["log_plus", "max_min", "max_plus", "min_max", "min_plus"]
REQUIRED = sorted([*INFINITE, *FORWARD_ONLY, "max_times", "min_times", "plus_min", "plus_times"])
every = pytest.mark.parametrize("semiring", SEMIRINGS.values(), ids=str)
differentiable = pytest.mark.parametrize("semiring", DIFFERENTIABLE, ids=str)
drawn = settings(deadline=None, max_examples=30)  # a first example compiles


def tolerance(semiring, dtype):
    """Exact, but where logarithms are taken."""
    if semiring is not log_plus:
        return {"rtol": 0, "atol": 0}
    return {"rtol": 2e-6, "atol": 2e-6} if dtype == np.float32 else {"rtol": 1e-13, "atol": 1e-13}


def test_table():
    assert sorted(SEMIRINGS) == REQUIRED
    assert all(name == s.name == repr(s) for name, s in SEMIRINGS.items())
    assert sorted(n for n, s in SEMIRINGS.items() if s.partials is None) == FORWARD_ONLY


# -- Laws ----------------------------------------------------------------------------------------------------


LAWS = {
    "add_associates": lambda s, a, b, c: (s.add(s.add(a, b), c), s.add(a, s.add(b, c))),
    "add_commutes": lambda s, a, b, c: (s.add(a, b), s.add(b, a)),
    "identity": lambda s, a, b, c: (s.add(s.identity, a), a),
    "multiply_associates": lambda s, a, b, c: (
        s.multiply(s.multiply(a, b), c),
        s.multiply(a, s.multiply(b, c)),
    ),
    "one_left": lambda s, a, b, c: (s.multiply(1.0 if s.one is None else s.one, a), a),
    "one_right": lambda s, a, b, c: (s.multiply(a, 1.0 if s.one is None else s.one), a),
    "distributes_left": lambda s, a, b, c: (
        s.multiply(a, s.add(b, c)),
        s.add(s.multiply(a, b), s.multiply(a, c)),
    ),
    "distributes_right": lambda s, a, b, c: (
        s.multiply(s.add(a, b), c),
        s.add(s.multiply(a, c), s.multiply(b, c)),
    ),
    "annihilates_left": lambda s, a, b, c: (s.multiply(s.identity, a), s.identity),
    "annihilates_right": lambda s, a, b, c: (s.multiply(a, s.identity), s.identity),
}
# Where a law does not hold, and three numbers that show it.
EXCEPTIONS = {
    ("plus_min", "distributes_left"): (1.0, 1.0, 1.0),  # min(1, 1 + 1) = 1, but min(1, 1) + min(1, 1) = 2
    ("plus_min", "distributes_right"): (1.0, 1.0, 1.0),
    ("plus_pair", "distributes_left"): (1.0, 1.0, 1.0),
    ("plus_pair", "distributes_right"): (1.0, 1.0, 1.0),
    ("any_pair", "one_left"): (0.0, 0.0, 0.0),
    ("any_pair", "one_right"): (0.0, 0.0, 0.0),
    ("plus_pair", "one_left"): (5.0, 0.0, 0.0),
    ("plus_pair", "one_right"): (5.0, 0.0, 0.0),
    ("any_pair", "annihilates_left"): (0.0, 0.0, 0.0),
    ("any_pair", "annihilates_right"): (0.0, 0.0, 0.0),
    ("plus_pair", "annihilates_left"): (0.0, 0.0, 0.0),
    ("plus_pair", "annihilates_right"): (0.0, 0.0, 0.0),
}


def numbers(semiring):
    """Numbers of the domain; of min_times without 0, which ∞ does not annihilate."""
    low, high = semiring.domain
    if (low, high) == (0, 1):
        return st.sampled_from([0.0, 1.0])
    low = -1000.0 if low < 0 else 1 / 64 if math.isinf(semiring.identity) else 0.0
    grid = st.integers(math.ceil(low * 64), 64000).map(lambda k: k / 64)
    return grid | st.floats(low, 1000.0, allow_subnormal=False)


@pytest.mark.parametrize("law", LAWS)
@every
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_law(semiring, law, data):
    if (semiring.name, law) in EXCEPTIONS:
        left, right = LAWS[law](semiring, *EXCEPTIONS[semiring.name, law])
        assert left != right
        return
    left, right = LAWS[law](semiring, *data.draw(st.tuples(*[numbers(semiring)] * 3)))
    assert left == pytest.approx(right, rel=1e-12, abs=1e-9)


def test_infinity_does_not_annihilate_zero_in_min_times():
    assert math.isnan(semirings.min_times.multiply(0.0, math.inf))


# -- Routes --------------------------------------------------------------------------------------------------


@both_dtypes
@every
@drawn
@given(data=st.data())
def test_every_route_computes_the_definition(semiring, dtype, data):
    x, weights, bias, _ = data.draw(tied_products(semiring, dtype))
    for b in biases(semiring, bias):
        expected = definition.product(semiring, x, weights, b)
        for route in [None, *(r.name for r in semiring.routes)]:
            y, _ = semiring.product(x, weights, b, route=route)
            assert (y.shape, y.dtype, y.flags.f_contiguous) == (expected.shape, dtype, True), route
            np.testing.assert_allclose(y, expected, **tolerance(semiring, dtype), err_msg=str(route))


@pytest.mark.parametrize("name", [n for n in REQUIRED if n != "log_plus"])
@both_dtypes
@drawn
@given(data=st.data())
def test_equals_graphblas(name, dtype, data):
    """GraphBLAS has an operator for every built-in but log_plus."""
    semiring = SEMIRINGS[name]
    x, weights, _, _ = data.draw(tied_products(semiring, dtype))
    kind = bool if name == "lor_land" else dtype
    left = gb.Matrix.from_dense(np.ascontiguousarray(x)).dup(kind)
    product = getattr(gb.semiring, name)(left @ weights.to_graphblas().dup(kind)).new(dtype)
    expected = product.to_dense(semiring.identity, dtype)
    np.testing.assert_array_equal(semiring.product(x, weights)[0], expected)


@differentiable
def test_nan_stays_visible(semiring):
    weights = Weights.from_dense(np.ones((3, 1)))
    for place in range(3):
        x = np.full((1, 3), 0.5)
        x[0, place] = np.nan
        assert np.isnan(semiring.product(x, weights)[0]).all()


@every
def test_output_without_edges_gives_identity_or_bias_and_passes_nothing(semiring):
    weights = Weights.from_coo([0, 1], [0, 0], [1.0, 1.0], shape=(2, 2), dtype=np.float64)
    x = np.ones((3, 2))
    for bias in biases(semiring, np.array([0.0, 1.0])):
        y, pullback = semiring.product(x, weights, bias)
        np.testing.assert_array_equal(y[:, 1], semiring.identity if bias is None else 1.0)
        if semiring.partials is None:
            continue
        dx, gradients = pullback(np.array([[0.0, 2.0]] * 3))
        assert not dx.any()
        assert not np.asarray(gradients["weights"]).any()
        if bias is not None:
            np.testing.assert_array_equal(gradients["bias"], [0.0, 6.0])


# -- Adjoints ------------------------------------------------------------------------------------------------


# In float32 not all of them, because each takes seconds to compile: one of each kind.
ADJOINTS = [(s, DTYPES[1]) for s in DIFFERENTIABLE] + [
    (s, DTYPES[0]) for s in (plus_times, log_plus, semirings.max_times)
]


@pytest.mark.parametrize(("semiring", "dtype"), ADJOINTS, ids=str)
@drawn
@given(data=st.data())
def test_every_adjoint_is_the_definition(semiring, dtype, data):
    x, weights, bias, dy = data.draw(tied_products(semiring, dtype))
    near = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    for b in biases(semiring, bias):
        y, pullback = semiring.product(x, weights, b)
        dx, dw, dbias = definition.adjoint(semiring, x, weights, b, y, dy)
        expected = {"weights": dw} if b is None else {"weights": dw, "bias": dbias}
        came, gradients = pullback(dy)
        without, same = pullback(dy, inputs=False)
        assert without is None
        assert came.dtype == dtype
        np.testing.assert_allclose(came, dx, **near)
        assert set(gradients) == set(same) == set(expected)
        for name, gradient in expected.items():
            assert np.asarray(gradients[name]).dtype == dtype
            np.testing.assert_allclose(gradients[name], gradient, **near, err_msg=name)
            np.testing.assert_array_equal(same[name], gradients[name])
        by_kernel = adjoint_by_kernel(semiring, x, weights, b, y, dy, True)
        for came, wanted in zip(by_kernel, (dx, dw, dbias), strict=True):
            assert (came is None) == (wanted is None)
            if wanted is not None:
                np.testing.assert_allclose(came, wanted, **near)


def nearest_choice(semiring, x, weights, bias):
    """How far from a tie the closest decision of a min or max is."""
    sources, targets, values = weights.to_coo()
    gaps = [np.inf]
    if semiring.multiply in (semirings.max_min.multiply, semirings.min_max.multiply):
        gaps.append(np.abs(x[:, sources] - values).min(initial=np.inf))
    if semiring.selective:
        terms = np.array(
            [[semiring.multiply(a, w) for a, w in zip(r, values, strict=True)] for r in x[:, sources]]
        )
        for j in range(weights.out_features):
            into = terms[:, targets == j]
            if bias is not None:
                into = np.column_stack([into, np.full(len(x), bias[j])])
            gaps.append(np.diff(np.sort(into, axis=1), axis=1).min(initial=np.inf))
    return min(gaps)


@differentiable
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_adjoint_is_the_derivative(semiring, data):
    x, weights, bias, dy = data.draw(scattered_products(semiring))
    for b in biases(semiring, bias):
        assume(nearest_choice(semiring, x, weights, b) > 1e-4)
        y, pullback = semiring.product(x, weights, b)
        dx, gradients = pullback(dy)
        gradients = {name: np.asarray(gradient) for name, gradient in gradients.items()}
        finite = np.isfinite(y)

        def loss(b=b, finite=finite):
            out = semiring.product(x, weights, b)[0]
            return float((out[finite] * dy[finite]).sum())

        near = {"rtol": 1e-7, "atol": 1e-7}
        np.testing.assert_allclose(dx, numeric_gradient(loss, x), **near)
        np.testing.assert_allclose(gradients["weights"], numeric_weight_gradient(loss, weights), **near)
        if b is not None:
            np.testing.assert_allclose(gradients["bias"], numeric_gradient(loss, b), **near)


# semiring, x, w (one target), bias -> dx, dw, dbias for dy = 1
TIES = [
    ("min_plus", [1, 2, 5], [2, 1, 0], None, [0.5, 0.5, 0], [0.5, 0.5, 0], None),
    ("min_plus", [1, 2, 5], [2, 1, 0], 3, [1 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 0], 1 / 3),
    ("max_plus", [1, 2, 5], [4, 3, 0], 5, [0.25, 0.25, 0.25], [0.25, 0.25, 0.25], 0.25),
    ("max_plus", [1, 2], [1, 1], 7, [0, 0], [0, 0], 1),
    ("max_times", [2, 1, 1], [1, 2, 1], None, [0.5, 1, 0], [1, 0.5, 0], None),
    ("max_times", [0, 2], [3, 0], 0, [1, 0], [0, 2 / 3], 1 / 3),
    ("min_times", [2, 1, 3], [1, 2, 1], 2, [1 / 3, 2 / 3, 0], [2 / 3, 1 / 3, 0], 1 / 3),
    ("max_min", [2, 1], [2, 2], None, [0.5, 0], [0.5, 0], None),  # min(2, 2): x and w share
    ("max_min", [3, 2], [2, 3], 2, [0, 1 / 3], [1 / 3, 0], 1 / 3),
    ("min_max", [2, 3], [2, 2], None, [0.5, 0], [0.5, 0], None),
    ("min_max", [3, 2], [2, 3], 3, [1 / 3, 0], [0, 1 / 3], 1 / 3),
    ("plus_min", [2, 1], [2, 3], 1, [0.5, 1], [0.5, 0], 1),
]


@pytest.mark.parametrize(("name", "x", "w", "bias", "dx", "dw", "dbias"), TIES)
def test_ties_share_equally(name, x, w, bias, dx, dw, dbias):
    weights = Weights.from_coo(range(len(w)), [0] * len(w), w, (len(w), 1), dtype=np.float64)
    b = None if bias is None else np.array([float(bias)])
    _, pullback = SEMIRINGS[name].product(np.array([x], dtype=float), weights, b)
    came, gradients = pullback(np.ones((1, 1)))
    np.testing.assert_allclose(came, [dx])
    np.testing.assert_allclose(gradients["weights"], dw)
    if b is not None:
        np.testing.assert_allclose(gradients["bias"], [dbias])


@pytest.mark.parametrize("name", INFINITE)
@drawn
@given(data=st.data())
def test_infinities_pass_through_a_chain_without_nan(name, data):
    semiring = SEMIRINGS[name]
    x, first, bias, _ = data.draw(tied_products(semiring, np.dtype(np.float64)))
    size = first.out_features
    mask = data.draw(st.lists(st.booleans(), min_size=size**2, max_size=size**2))
    second = Weights.from_dense(np.reshape(mask, (size, size)).astype(float))
    places = st.sampled_from([-np.inf, 0.0, 1.0, np.inf])
    x = np.reshape(data.draw(st.lists(places, min_size=x.size, max_size=x.size)), x.shape)
    bias[: data.draw(st.integers(0, size))] = semiring.identity
    for b in (None, bias):
        h, back = semiring.product(x, first, b)
        y, further = semiring.product(h, second, b)
        dh, upper = further(np.ones(y.shape))
        dx, lower = back(dh)
        np.testing.assert_allclose(h, definition.product(semiring, x, first, b), rtol=1e-12)
        np.testing.assert_allclose(y, definition.product(semiring, h, second, b), rtol=1e-12)
        for array in (dh, dx, *upper.values(), *lower.values()):
            assert np.isfinite(array).all()


@pytest.mark.parametrize("samples", [1, 100])
@pytest.mark.parametrize("name", ["plus_times", "min_plus"])
def test_threads_change_no_bit(name, samples):
    """Kernels are parallel over neurons only; few edges x samples run in one thread, whatever is set."""
    semiring, rng = SEMIRINGS[name], np.random.default_rng(0)
    weights = Weights.from_dense(np.where(rng.random((300, 200)) < 0.1, rng.standard_normal((300, 200)), 0))
    assert (weights.nnz * samples > kernels._ALONE) == (samples > 1)
    x = np.asfortranarray(rng.standard_normal((samples, 300)))
    before = storage.threads()
    found = []
    try:
        for threads in (1, before):
            storage.set_threads(threads)
            y, pullback = semiring.product(x, weights, route="kernel")
            dx, gradients = pullback(y)
            found.append((y, dx, np.asarray(gradients["weights"])))
            assert numba.get_num_threads() == threads
    finally:
        storage.set_threads(before)
    for one, many in zip(*found, strict=True):
        np.testing.assert_array_equal(one, many)


# -- Bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.assign(1.0),
        lambda w: w.add(np.ones(w.nnz)),
        lambda w: w.rewire([0], [], []),
        lambda w: w.rewire([], [], []),
    ],
    ids=["assign", "add", "rewire", "rewire nothing"],
)
@pytest.mark.parametrize("name", ["plus_times", "min_plus", "log_plus"])
def test_pullback_refuses_changed_weights(name, change):
    x, weights, _, dy = ordinary()
    _, pullback = SEMIRINGS[name].product(x, weights)
    change(weights)
    with pytest.raises(ArgumentError, match="pullback"):
        pullback(dy)


def test_pullback_remembers_the_bias():
    """Training changes a bias in place; what was selected at the forward pass counts."""
    weights = Weights.from_dense(np.ones((1, 1)))
    bias = np.array([0.5])
    _, pullback = semirings.min_plus.product(np.ones((1, 1)), weights, bias)
    bias[0] = 100.0
    np.testing.assert_array_equal(pullback(np.ones((1, 1)))[1]["bias"], [1.0])


@pytest.mark.parametrize("name", FORWARD_ONLY)
def test_forward_only_semirings_have_no_pullback(name):
    x, weights, _, dy = ordinary()
    _, pullback = SEMIRINGS[name].product(x, weights)
    with pytest.raises(ArgumentError, match=name):
        pullback(dy)


@pytest.mark.parametrize("name", ["any_pair", "plus_pair"])
def test_a_bias_needs_an_identity_of_multiply(name):
    x, weights, bias, _ = ordinary()
    with pytest.raises(ArgumentError, match=f"bias.*{name}"):
        SEMIRINGS[name].product(x, weights, bias)


BAD = [np.ones(9), np.ones((6, 8)), np.ones((5, 9)), np.ones((1, 9)), np.ones((6, 9, 1)), 1.0, None]
WRONG = [np.ones((6, 9)) * 1j, np.full((6, 9), "a"), [[1.0], [1.0, 2.0]], object(), np.full((6, 9), None)]


@pytest.mark.parametrize(
    "dy", BAD + WRONG, ids=lambda a: f"{type(a).__name__}{np.shape(a) if a is not WRONG[2] else ''}"
)
@differentiable
def test_bad_dy(semiring, dy):
    x, weights, _, _ = ordinary()
    _, pullback = semiring.product(np.abs(x), weights)
    with pytest.raises(GbnnError, match="dy"):
        pullback(dy)


@pytest.mark.parametrize(
    "x", [np.ones(13), np.ones((6, 12)), np.ones((0, 13)), np.ones((6, 13, 1)), None, "x"]
)
def test_bad_x(x):
    _, weights, _, _ = ordinary()
    with pytest.raises(GbnnError, match="x: expected"):
        plus_times.product(x, weights)


@pytest.mark.parametrize("bias", [np.ones(8), np.ones((1, 9)), 1.0])
def test_bad_bias(bias):
    x, weights, _, _ = ordinary()
    with pytest.raises(ArgumentError, match="bias"):
        plus_times.product(x, weights, bias)


def test_bad_kinds_and_routes():
    x, weights, _, _ = ordinary()
    with pytest.raises(KindError, match="bias"):
        plus_times.product(x, weights, ["a"] * 9)
    with pytest.raises(ArgumentError, match=r"route.*graphblas.*kernel.*fast"):
        plus_times.product(x, weights, route="fast")


def test_too_many_dense_outputs():
    wide = Weights.from_coo([0], [2**59], [1.0], shape=(1, 2**60))
    with pytest.raises(ArgumentError, match=r"2\*\*40"):
        plus_times.product(np.ones((1, 1)), wide)

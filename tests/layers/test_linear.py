"""Linear: its random edges and initial values, other ways to make it, its kernels and its memory."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support.loans import misaligned

from gbnn import semirings, storage
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.layers import Linear, glorot, he, normal, uniform, zeros
from gbnn.sampling import distinct_edges
from gbnn.weights import Weights

drawn = settings(deadline=None, max_examples=50)


def edges_of(layer):
    return layer.weights.sources, layer.weights.targets


def same(a, b):
    pairs = zip(a.weights.to_coo(), b.weights.to_coo(), strict=True)
    biases = (a.bias is None) == (b.bias is None) and (a.bias is None or np.array_equal(a.bias, b.bias))
    return biases and all(np.array_equal(x, y) for x, y in pairs)


# -- Random edges --------------------------------------------------------------------------------------------


@drawn
@given(shape=st.tuples(st.integers(1, 40), st.integers(1, 40)), data=st.data())
def test_random_has_exactly_the_edges_asked_for(shape, data):
    places = shape[0] * shape[1]
    nnz = data.draw(st.integers(0, places) | st.sampled_from([0, 1, places - 1, places]))
    layer = Linear.random(*shape, nnz=nnz, seed=data.draw(st.integers(0, 2**64)))
    sources, targets = edges_of(layer)
    assert (
        layer.nnz
        == layer.weights.nnz
        == nnz
        == len(set(zip(sources.tolist(), targets.tolist(), strict=True)))
    )
    assert (layer.in_features, layer.out_features) == shape
    assert layer.weights.dtype == layer.bias.dtype == np.float32
    assert np.isfinite(layer.weights.values).all()
    assert not layer.bias.any()
    y, _ = layer.forward(np.ones((2, shape[0])))
    np.testing.assert_allclose(y, np.ones((2, shape[0])) @ layer.weights.to_dense(), rtol=1e-5, atol=1e-5)


@drawn
@given(
    shape=st.tuples(st.integers(1, 200), st.integers(1, 200)),
    density=st.floats(0, 1, exclude_min=True),
)
def test_random_by_density(shape, density):
    assert Linear.random(*shape, density=density).nnz == round(density * shape[0] * shape[1])


@drawn
@given(shape=st.tuples(st.integers(1, 100), st.integers(1, 100)), more=st.integers(1, 2**70))
def test_more_edges_than_places(shape, more):
    with pytest.raises(ArgumentError, match="nnz"):
        Linear.random(*shape, nnz=shape[0] * shape[1] + more)


def test_edges_are_spread_evenly():
    layer = Linear.random(50, 40, nnz=1000, seed=3)
    hits = sum(Linear.random(50, 40, nnz=1000, seed=s).weights.to_dense() != 0 for s in range(60))
    assert layer.weights.density == 0.5
    assert hits.min() > 10  # 60 draws of a fair coin, 2000 times: 6 deviations from 30 are 7 and 53
    assert hits.max() < 50


def test_widths_up_to_two_to_the_sixty():
    layer = Linear.random(2**60, 2**60, nnz=1000, bias=False, seed=0)
    sources, targets = edges_of(layer)
    assert layer.nnz == 1000
    assert layer.nbytes < 100_000
    for ends in (sources, targets):
        assert 2**54 < ends.max() < 2**60
    assert f"{2**60} x {2**60}" in repr(layer)
    assert "1,000" in layer.describe()


def test_seeds():
    make = {"in_features": 30, "out_features": 20, "nnz": 100, "semiring": semirings.min_plus}
    assert same(Linear.random(**make, seed=1), Linear.random(**make, seed=1))
    assert not same(Linear.random(**make, seed=1), Linear.random(**make, seed=2))
    rng = np.random.default_rng(1)
    first, second = Linear.random(**make, seed=rng), Linear.random(**make, seed=rng)
    assert same(first, Linear.random(**make, seed=1))
    assert not same(first, second)
    single, double = (Linear.random(**make, seed=1, dtype=t) for t in (np.float32, np.float64))
    assert double.weights.dtype == double.bias.dtype == np.float64
    np.testing.assert_array_equal(double.weights.values.astype(np.float32), single.weights.values)


def test_nothing_of_size_in_times_out_or_in_is_made():
    edges = 100_000
    tracemalloc.start()
    try:
        layer = Linear.random(10**6, 10**6, nnz=edges, bias=False, seed=0)
        text = layer.describe()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "100,000" in text
    assert peak < 150 * edges  # 15 MB: less than two arrays of one number a neuron


# -- Initial values ------------------------------------------------------------------------------------------


def test_initializers_are_told_the_fans_of_each_edge():
    seen = {}

    def record(rng, fan_in, fan_out):
        seen["fans"] = fan_in.copy(), fan_out.copy()
        return np.arange(fan_in.size)

    layer = Linear.random(30, 20, nnz=150, init=record, seed=0)
    sources, targets = edges_of(layer)
    np.testing.assert_array_equal(seen["fans"][0], np.bincount(targets)[targets])
    np.testing.assert_array_equal(seen["fans"][1], np.bincount(sources)[sources])
    np.testing.assert_array_equal(layer.weights.values, np.arange(150))


def test_he_by_each_neurons_own_fan_in():
    """Neurons of very different fan-in, in one layer: each has variance 2 / its own."""
    fans = np.repeat([10, 100, 1000], [10, 100, 1000])
    sizes = {10: [], 100: [], 1000: []}
    rng = np.random.default_rng(0)
    for _ in range(400):
        values = he(rng, fans, np.ones_like(fans))
        for fan, found in sizes.items():
            found.append(np.mean(values[fans == fan] ** 2))
    for fan, found in sizes.items():
        assert np.mean(found) * fan == pytest.approx(2, rel=0.1)


def test_default_keeps_the_signal_of_a_sparse_layer():
    """With weights of variance 2 / fan-in and unit inputs, every output has variance 2, however sparse."""
    layer = Linear.random(2000, 400, nnz=8000, bias=False, dtype=np.float64, seed=0)
    into, counts = layer.weights.fan_in()
    x = np.random.default_rng(1).standard_normal((500, 2000))
    power = np.square(layer.forward(x)[0]).mean(axis=0)[into]
    assert power[counts <= 15].mean() == pytest.approx(2, rel=0.15)
    assert power[counts >= 25].mean() == pytest.approx(2, rel=0.15)


def test_other_initializers():
    rng = np.random.default_rng(0)
    fan_in, fan_out = np.full(20_000, 30), np.full(20_000, 10)
    limit = np.sqrt(6 / 40)
    values = glorot(rng, fan_in, fan_out)
    assert values.var() == pytest.approx(2 / 40, rel=0.05)
    assert np.abs(values).max() <= limit
    assert normal(0.3)(rng, fan_in, fan_out).std() == pytest.approx(0.3, rel=0.05)
    values = uniform(2, 3)(rng, fan_in, fan_out)
    assert values.min() >= 2
    assert values.max() <= 3
    assert values.std() == pytest.approx(np.sqrt(1 / 12), rel=0.05)
    assert not zeros(rng, fan_in, fan_out).any()
    for draw in (glorot, normal(1), uniform(0, 1), zeros):
        assert Linear.random(5, 5, nnz=7, init=draw).weights.values.shape == (7,)


@pytest.mark.parametrize("semiring", [semirings.min_plus, semirings.max_times, semirings.min_times], ids=str)
def test_semirings_draw_from_their_own_span(semiring):
    low, high = semiring.span
    layer = Linear.random(50, 40, nnz=800, semiring=semiring, seed=0)
    for array in (layer.weights.values, layer.bias):
        assert low <= array.min() < low + 0.2 * (high - low)
        assert high - 0.2 * (high - low) < array.max() <= high


# -- Other ways to make one ----------------------------------------------------------------------------------


def test_from_scipy():
    matrix = sp.random_array((8, 5), density=0.4, format="csc", rng=np.random.default_rng(0))
    x = np.random.default_rng(1).standard_normal((3, 8))
    layer = Linear.from_scipy(matrix, np.arange(5.0))
    assert layer.weights.dtype == np.float64
    np.testing.assert_allclose(layer.forward(x)[0], x @ matrix.toarray() + np.arange(5.0), rtol=1e-12)
    assert (layer.weights.to_scipy() != matrix).nnz == 0
    assert Linear.from_scipy(matrix, semiring=semirings.max_plus).semiring is semirings.max_plus


def test_from_dense():
    dense = np.array([[0.0, 0.4], [-0.5, 0.0], [2.0, -0.1]], dtype=np.float32)
    np.testing.assert_array_equal(Linear.from_dense(dense).weights.to_dense(), dense)
    layer = Linear.from_dense(dense, [1, 2], threshold=0.4)
    assert layer.nnz == 2
    np.testing.assert_array_equal(layer.forward([[1, 1, 1]])[0], [[2.5, 2.0]])
    assert layer.bias.dtype == np.float32


def test_the_bias_is_the_layers_own():
    given_bias = np.zeros(2)
    layer = Linear(Weights.from_dense(np.eye(2)), given_bias)
    layer.bias += 1
    assert not given_bias.any()
    infinite = np.array([np.inf, 0.0])
    assert np.isposinf(Linear(layer.weights, infinite, semirings.min_plus).bias[0])  # no bias there


def test_arrays_at_odd_addresses_are_taken_as_any():
    x, dy = np.asfortranarray(np.ones((2, 6)), np.float32), np.asfortranarray(np.ones((2, 9)), np.float32)
    layer = Linear.random(6, 9, nnz=20, seed=0)
    y, pullback = layer.forward(x)
    odd_y, odd_pullback = layer.forward(misaligned(x))
    assert np.array_equal(odd_y, y)
    (dx, gradients), (odd_dx, odd) = pullback(dy), odd_pullback(misaligned(dy))
    assert np.array_equal(odd_dx, dx)
    assert np.array_equal(odd["weights"], gradients["weights"])
    assert np.array_equal(odd["bias"], gradients["bias"])


def test_numbers_too_large_for_float32_become_infinite():
    """And show as such, with no warning from NumPy (which the tests would fail on)."""
    layer = Linear.from_dense(np.eye(2, dtype=np.float32))
    y, pullback = layer.forward([[1e300, 1.0]])
    np.testing.assert_array_equal(y[:, 1], [1.0])
    assert np.isposinf(y[0, 0])
    assert np.isneginf(pullback([[-1e300, 1.0]])[0][0, 0])


# -- Kernels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 32])
def test_graphblas_runs_its_in_place_kernel_forward_and_backward(dtype, batch, bias):
    layer = Linear.random(400, 300, nnz=40_000, bias=bias, dtype=dtype, seed=0)
    x = np.asfortranarray(np.random.default_rng(0).standard_normal((batch, 400)), dtype=dtype)
    for _ in range(2):
        with storage.kernel_report() as report:
            y, pullback = layer.forward(x)
            dx, gradients = pullback(np.ones_like(y))
            dw = np.asarray(gradients["weights"])
        assert report.kernels == ["saxpy5", "saxpy5"]
        assert report.in_place
        layer.weights.add(-0.01 * dw)  # changed values are seen, and cost no other kernel
    dense = layer.weights.to_dense()
    np.testing.assert_allclose(
        layer.forward(x)[0], x @ dense + (layer.bias if bias else 0), rtol=1e-4, atol=1e-4
    )
    assert dx.flags.f_contiguous


# -- Memory --------------------------------------------------------------------------------------------------


def test_memory_of_forward_and_backward():
    """GraphBLAS takes its memory through NumPy, so that tracemalloc counts it.

    (The law of a whole training step is in tests/training.)
    """
    width, nnz, batch = 100_000, 1_000_000, 32
    layer = Linear.random(width, width, nnz=nnz, seed=0)
    x = np.asfortranarray(np.random.default_rng(0).standard_normal((batch, width), dtype=np.float32))
    small = Linear.random(10, 10, nnz=10)
    y, pullback = small.forward(x[:, :10])
    np.asarray(pullback(y)[1]["weights"])  # compiled before
    _ = layer.weights.by_target  # made by the first product, and kept
    gc.collect()
    largest = 0

    def look():
        nonlocal largest
        sizes = [trace.size for trace in tracemalloc.take_snapshot().traces]
        largest = max(largest, *sizes)

    tracemalloc.start()
    try:
        y, pullback = layer.forward(x)
        look()
        dy = np.ones_like(y)
        dx, gradients = pullback(dy)
        look()
        held = [np.asarray(gradient) for gradient in gradients.values()]
        look()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [a.shape for a in held] == [(nnz,), (width,)]
    activations = [x, y, dy, dx]
    slots = 2 * 4 * nnz
    budget = layer.weights.nbytes + slots + sum(a.nbytes for a in activations)
    assert peak + x.nbytes + layer.weights.nbytes < 3 * budget
    outputs = y.nbytes + dy.nbytes + dx.nbytes
    assert outputs < peak < outputs + 3 * 4 * nnz  # all is counted, and no activation copied in passing
    assert largest <= max(x.nbytes, 8 * nnz) + 1024


# -- Bad input -----------------------------------------------------------------------------------------------

SIZES = {"in_features": 5, "out_features": 4, "nnz": 6}
BAD = [
    ({"in_features": 0}, "in_features", ArgumentError),
    ({"in_features": 2**60 + 1}, "in_features", ArgumentError),
    ({"out_features": -1}, "out_features", ArgumentError),
    ({"out_features": 4.0}, "out_features", KindError),
    ({"in_features": True}, "in_features", KindError),
    ({"nnz": -1}, "nnz", ArgumentError),
    ({"nnz": 21}, "nnz", ArgumentError),
    ({"nnz": 6.0}, "nnz", KindError),
    ({"nnz": None}, "nnz, density", ArgumentError),
    ({"density": 0.5}, "nnz, density", ArgumentError),
    ({"nnz": None, "density": 0.0}, "density", ArgumentError),
    ({"nnz": None, "density": 1.1}, "density", ArgumentError),
    ({"nnz": None, "density": np.nan}, "density", ArgumentError),
    ({"nnz": None, "density": "0.5"}, "density", KindError),
    ({"in_features": 2**60, "out_features": 2**30, "nnz": 2**50}, "nnz", ArgumentError),
    ({"in_features": 2**60, "out_features": 2**30, "nnz": None, "density": 0.1}, "density", ArgumentError),
    ({"out_features": 2**40}, "bias", ArgumentError),
    ({"bias": np.ones(4)}, "bias", KindError),
    ({"bias": None}, "bias", KindError),
    ({"semiring": "min_plus"}, "semiring", KindError),
    ({"semiring": semirings.plus_pair}, "bias", ArgumentError),
    ({"dtype": np.int32}, "dtype", KindError),
    ({"dtype": "float7"}, "dtype", KindError),
    ({"seed": -1}, "seed", ArgumentError),
    ({"seed": "one"}, "seed", KindError),
    ({"init": "he"}, "init", KindError),
    ({"init": lambda rng, fan_in, fan_out: np.ones(3)}, "init", ArgumentError),
    ({"init": lambda rng, fan_in, fan_out: ["a"] * fan_in.size}, "init", KindError),
    ({"init": lambda rng, fan_in, fan_out: np.full(fan_in.size, np.nan)}, "init", NonFiniteError),
]


@pytest.mark.parametrize(("change", "where", "kind"), BAD)
def test_bad_arguments_of_random(change, where, kind):
    with pytest.raises(kind, match=f"^{where}: expected") as caught:
        Linear.random(**SIZES | change)
    assert isinstance(caught.value, GbnnError)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ((np.eye(2),), "weights"),
        ((None,), "weights"),
        ((Weights.from_dense(np.eye(2)), np.ones(3)), "bias"),
        ((Weights.from_dense(np.eye(2)), np.ones((2, 1))), "bias"),
        ((Weights.from_dense(np.eye(2)), "ab"), "bias"),
        ((Weights.from_dense(np.eye(2)), [1j, 1]), "bias"),
        ((Weights.from_dense(np.eye(2)), [np.nan, 1]), "bias"),
        ((Weights.from_dense(np.eye(2)), [np.inf, 1]), "bias"),
        ((Weights.from_dense(np.eye(2)), [np.nan, 1], semirings.min_plus), "bias"),
        ((Weights.from_dense(np.eye(2)), [1, 1], semirings.any_pair), "bias"),
        ((Weights.from_dense(np.eye(2)), None, "plus_times"), "semiring"),
        ((Weights.from_dense(np.eye(2)), None, None), "semiring"),
    ],
)
def test_bad_arguments(arguments, where):
    with pytest.raises(GbnnError, match=f"^{where}: expected"):
        Linear(*arguments)


@pytest.mark.parametrize("config", [{}, {"semiring": semirings.plus_times, "more": 1}])
def test_restore_needs_a_semiring(config):
    with pytest.raises(ArgumentError, match="semiring"):
        Linear.restore(config, {"weights": Weights.from_dense(np.eye(2))}, {})


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (normal, (-1.0,)),
        (normal, ("a",)),
        (uniform, (1.0, 0.0)),
        (uniform, (0.0, np.inf)),
        (uniform, (np.nan, 1.0)),
    ],
)
def test_bad_initializers(make, arguments):
    with pytest.raises(GbnnError, match="expected"):
        make(*arguments)


@pytest.mark.parametrize("matrix", [np.eye(2), None, [[1.0]]])
def test_bad_matrix(matrix):
    with pytest.raises(KindError, match="matrix"):
        Linear.from_scipy(matrix)


# -- On a given graph ----------------------------------------------------------------------------------------


@drawn
@given(
    shape=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    semiring=st.sampled_from([semirings.plus_times, semirings.min_plus]),
    bias=st.booleans(),
    init=st.sampled_from([None, glorot, normal(0.1)]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 99),
)
def test_from_edges_draws_values_as_random_does(shape, semiring, bias, init, dtype, seed):
    options = {"semiring": semiring, "bias": bias, "init": init, "dtype": dtype}
    nnz = shape[0] * shape[1] // 2
    rng = np.random.default_rng(seed)
    edges, _ = Edges.from_coo(*distinct_edges(rng, shape, nnz), shape)
    layer = Linear.from_edges(edges, **options, seed=rng)
    assert layer.weights.edges is edges
    assert layer.semiring is semiring
    assert layer.weights.dtype == dtype
    assert same(layer, Linear.random(*shape, nnz=nnz, **options, seed=seed))


def test_from_edges_of_no_edges_and_of_the_largest_layers():
    nothing, _ = Edges.from_coo([], [], (3, 2))
    np.testing.assert_array_equal(Linear.from_edges(nothing).forward(np.ones((4, 3)))[0], np.zeros((4, 2)))
    huge, _ = Edges.from_coo([2**59, 1], [0, 2**59], (2**60, 2**60))
    assert Linear.from_edges(huge, bias=False).nnz == 2
    with pytest.raises(ArgumentError, match=r"bias: expected False for more than 2\*\*31 outputs"):
        Linear.from_edges(huge)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"edges": None}, "edges"),
        ({"edges": [(0, 1)]}, "edges"),
        ({"edges": sp.eye_array(3)}, "edges"),
        ({"semiring": "plus_times"}, "semiring"),
        ({"bias": 1}, "bias"),
        ({"init": 0.1}, "init"),
        ({"dtype": int}, "dtype"),
        ({"seed": None}, "seed"),
    ],
)
def test_from_edges_of_what_is_none(options, where):
    arguments = {"edges": Edges.from_coo([0], [1], (3, 2))[0]} | options
    with pytest.raises(KindError, match=f"^{where}: expected"):
        Linear.from_edges(arguments.pop("edges"), **arguments)

"""KWinners: exactly k, ties, gradients, boosting, saving, bad arguments."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory import peak_while

import gbnn
from gbnn import layers, losses, models, training
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers import KWinners
from gbnn.rows import SparseRows


def batch(rows, features, seed=0, dtype=np.float64):
    return np.asfortranarray(np.random.default_rng(seed).standard_normal((rows, features)), dtype=dtype)


# -- Who wins ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_exactly_k_of_each_sample(k, dtype):
    x = batch(50, 10, dtype=dtype)
    y, pullback = KWinners(k).forward(x)
    assert isinstance(y, SparseRows)
    assert y.dtype == dtype
    np.testing.assert_array_equal(np.diff(y.starts), np.full(50, k))
    order = np.sort(np.argsort(-x, axis=1, kind="stable")[:, :k], axis=1)
    np.testing.assert_array_equal(y.columns.reshape(50, k), order)
    np.testing.assert_array_equal(y.values.reshape(50, k), np.take_along_axis(x, order, 1))
    dx, gradients = pullback(np.arange(500.0).reshape(50, 10))
    assert gradients == {}
    assert dx.same_pattern(y)
    np.testing.assert_array_equal(dx.values.reshape(50, k), 10 * np.arange(50)[:, None] + order)


def test_of_equal_entries_the_smaller_index_wins():
    x = np.array([[1.0, 2, 2, 2, 1], [0, 0, 0, 5, 0], [-1, -1, -1, -1, -1], [0, 0, 0, 0, 0]])
    for form in (x, sp.csr_array(x)):
        y = KWinners(2).forward(form)[0]
        assert y.columns.tolist() == [1, 2, 3, 0, 1]
        assert y.starts.tolist() == [0, 2, 3, 5, 5]
    y = KWinners(4).forward(x)[0]
    assert y.columns.tolist() == [0, 1, 2, 3, 3, 0, 1, 2, 3]


def test_rows_with_fewer_entries_keep_all():
    x = sp.csr_array(np.array([[0.0, -3, 0, 1], [0, 0, 0, 0], [4, 3, 2, 1]]))
    y, pullback = KWinners(3).forward(x)
    assert y.columns.tolist() == [1, 3, 0, 1, 2]
    dx, _ = pullback(np.ones((3, 4)))
    assert dx.same_pattern(SparseRows.of(x))
    assert dx.values.tolist() == [1, 1, 1, 1, 1, 0]


def test_a_stored_zero_competes():
    x = sp.csr_array((np.array([0.0, -1.0]), np.array([1, 2]), np.array([0, 2])), shape=(1, 3))
    assert KWinners(1).forward(x)[0].columns.tolist() == [1]


def test_nan_wins_and_shows():
    x = batch(3, 6)
    x[1, 4] = np.nan
    x[1, 2] = np.inf
    for form in (x, sp.csr_array(x)):
        y = KWinners(1).forward(form)[0]
        assert np.isnan(y.values[1])
        assert np.isfinite(y.values[[0, 2]]).all()


def test_k_may_differ_outside_of_training():
    layer, x = KWinners(2, k_inference=4), batch(3, 8)
    assert layer.forward(x, training=True)[0].nnz == 6
    assert layer.forward(x)[0].nnz == 12
    assert KWinners(2).forward(x)[0].nnz == 6


def test_into_an_array():
    x = batch(4, 6)
    y, pullback = KWinners(2, dense=True).forward(x)
    expected, back = KWinners(2).forward(x)
    np.testing.assert_array_equal(y, expected.to_dense())
    dy = batch(4, 6, seed=1)
    np.testing.assert_array_equal(pullback(dy)[0].to_dense(), back(dy)[0].to_dense())


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 5), st.integers(1, 8), st.integers(1, 9), st.floats(0, 3), st.integers(0, 2**31))
def test_dense_and_sparse_have_the_same_winners_through_training(rows, features, k, boost, seed):
    one, other = (KWinners(k, boost=boost, period=7, slots=4) for _ in range(2))
    for step in range(4):
        x = np.round(batch(rows, features, seed=seed + step))
        (y, back), (expected, back_expected) = (
            one.forward(SparseRows.from_dense(x), training=True),
            other.forward(x, training=True),
        )
        assert y.same_pattern(expected)
        np.testing.assert_array_equal(y.values, expected.values)
        assert (np.diff(y.starts) == np.minimum((x != 0).sum(axis=1), k)).all()
        dy = np.ones_like(x)
        np.testing.assert_array_equal(back(dy)[0].to_dense(), back_expected(dy)[0].to_dense())
    np.testing.assert_array_equal(one.duty, other.duty)


# -- Boosting ------------------------------------------------------------------------------------------------


def test_boost_is_that_of_the_published_code():
    """The winners are those of x exp(boost (k / n - duty)), duty the running mean of positive winners."""
    k, n, boost, period = 3, 12, 2.0, 40
    layer = KWinners(k, boost=boost, period=period)
    duty, seen = np.zeros(n), 0
    for step in range(12):
        x = batch(8, n, seed=step) + np.linspace(0, 2, n)
        boosted = x * np.exp((k / n - duty) * boost)
        winners = np.sort(np.argsort(-boosted, axis=1)[:, :k], axis=1)
        y, _ = layer.forward(x, training=True)
        np.testing.assert_array_equal(y.columns.reshape(8, k), winners)
        np.testing.assert_array_equal(y.values.reshape(8, k), np.take_along_axis(x, winners, 1))
        seen += 8
        window = min(period, seen)
        duty = (duty * (window - 8) + (y.to_dense() > 0).sum(axis=0)) / window
        np.testing.assert_allclose(layer.duty[:n] * layer.clock[1], duty, rtol=1e-12)


def test_boost_shares_the_work():
    def winners(boost):
        layer, seen = KWinners(2, boost=boost, period=200), set()
        for step in range(60):
            x = np.abs(batch(8, 30, seed=step)) * 0.1 + np.linspace(1, 2, 30)
            seen |= set(layer.forward(x, training=True)[0].columns.tolist())
        return len(seen)

    assert winners(5.0) > 2 * winners(0.0)


def test_duty_cycles_move_only_in_training():
    layer = KWinners(2, boost=1.0, slots=10)
    layer.forward(batch(3, 10))
    assert not layer.duty.any()
    duty = layer.duty
    layer.forward(batch(3, 10), training=True)
    assert layer.duty is duty  # in place: the training loop may put it back
    assert duty.any()


def test_without_boost_there_is_nothing_to_keep():
    layer = KWinners(5)
    layer.forward(batch(3, 10), training=True)
    assert layer.buffers() == {}
    assert layer.nbytes == 0
    assert list(KWinners(5, boost=1.0).buffers()) == ["duty", "clock"]


def test_boost_over_2_to_the_60_neurons():
    layer, rng = KWinners(20, boost=2.0, slots=2**10), np.random.default_rng(0)

    def step():
        columns = np.sort(rng.integers(0, 2**60, (16, 100)), axis=1)
        x = SparseRows(np.arange(17) * 100, columns.ravel(), rng.random(1600), (16, 2**60))
        y, pullback = layer.forward(x, training=True)
        assert (np.diff(y.starts) == 20).all()
        return pullback(y)[0].nnz

    assert step() == 1600
    assert peak_while(step)[0] < 300_000


# -- In a network --------------------------------------------------------------------------------------------


def test_as_the_activation_of_a_network_that_learns(tmp_path):
    model = models.mlp(
        [8, 60, 3], density=0.5, activation=lambda: KWinners(12, boost=0.5, period=100), seed=0
    )
    x, labels = batch(90, 8, dtype=np.float32), np.random.default_rng(0).integers(0, 3, 90)
    x[np.arange(90), labels] += 4
    training.fit(model, (x, labels), epochs=30, batch_size=30, optimizer=training.adam(0.01), seed=0)
    result = training.evaluate(model, (x, labels), loss=losses.cross_entropy)
    assert result["accuracy"] > 0.95
    gbnn.save(tmp_path / "m.safetensors", model)
    again = gbnn.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.layers[1].duty, model.layers[1].duty)
    np.testing.assert_array_equal(again.layers[1].clock, model.layers[1].clock)
    np.testing.assert_array_equal(again.forward(x)[0], model.forward(x)[0])


def test_restored_goes_on_the_same():
    layer = KWinners(2, boost=3.0, period=20, slots=5, k_inference=3)
    layer.forward(batch(6, 9), training=True)
    config = json.loads(json.dumps(layer.config()))
    again = KWinners.restore(config, {k: v.copy() for k, v in layer.buffers().items()}, {})
    for step in range(3):
        x = batch(6, 9, seed=step)
        assert again.forward(x, training=True)[0].same_pattern(layer.forward(x, training=True)[0])
    np.testing.assert_array_equal(again.duty, layer.duty)
    assert repr(again) == repr(layer) == "KWinners(k=2, boost=3.0, period=20, k_inference=3, slots=5)"
    assert repr(KWinners(7)) == "KWinners(k=7)"
    assert layers.KWinners is KWinners


# -- Bad arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, -1, 2**32, True, 1.5, None, "3", [3]])
def test_k_that_makes_no_sense(k):
    with pytest.raises(GbnnError, match="KWinners k: expected"):
        KWinners(k)
    if k is not None:
        with pytest.raises(GbnnError, match="KWinners k_inference: expected"):
            KWinners(1, k_inference=k)


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("boost", -0.1, ArgumentError),
        ("boost", 51, ArgumentError),
        ("boost", np.nan, ArgumentError),
        ("boost", "1", KindError),
        ("period", 0, ArgumentError),
        ("period", 2.5, KindError),
        ("slots", 0, ArgumentError),
        ("slots", 2**40, ArgumentError),
        ("dense", 1, KindError),
    ],
)
def test_options_that_make_no_sense(option, value, error):
    with pytest.raises(error, match=f"KWinners {option}: expected"):
        KWinners(3, **{option: value})

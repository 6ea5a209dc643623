"""Dropout: its rate, its mean, its mask in the pullback, and that it goes on the same after a reload."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.adjoint import check_layer_pullback

from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers.dropout import Dropout
from gbnn.rows import SparseRows

ONES = np.ones((400, 250), dtype=np.float32, order="F")


def masks(layer, count=3, shape=(5, 7)):
    return [layer.forward(np.ones(shape), training=True)[0] for _ in range(count)]


# -- What it does to a batch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.9])
def test_rate_and_mean(rate):
    y, _ = Dropout(rate, seed=0).forward(ONES, training=True)
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / (1 - rate))}
    deviation = np.sqrt(rate * (1 - rate) / ONES.size)
    assert abs((y == 0).mean() - rate) < 4 * deviation
    assert abs(y.mean(dtype=np.float64) - 1) < 4 * deviation / (1 - rate)


def test_rows_and_columns_are_dropped_independently():
    y, _ = Dropout(0.5, seed=0).forward(ONES, training=True)
    for axis in (0, 1):
        share = (y == 0).mean(axis=axis)
        # Six standard deviations around, and the spread itself that of independent entries.
        assert np.abs(share - 0.5).max() < 6 * 0.5 / np.sqrt(ONES.shape[axis])
        assert 0.8 < share.std() / (0.5 / np.sqrt(ONES.shape[axis])) < 1.2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("training", [True, False])
def test_dtype_shape_and_order(dtype, order, training):
    x = np.array(np.random.default_rng(0).standard_normal((6, 5)), dtype=dtype, order=order)
    y, pullback = Dropout(0.4, seed=1).forward(x, training=training)
    dx, gradients = pullback(np.ones((6, 5), order=order))
    for out in (y, dx):
        assert out.dtype == dtype
        assert out.shape == x.shape
        assert out.flags.f_contiguous
    assert gradients == {}
    mask = dx  # of ones
    np.testing.assert_allclose(y, x * mask, rtol=1e-6)
    assert (mask == 0).any() == training


def test_integers_become_float32():
    y, _ = Dropout(0.5, seed=0).forward(np.ones((3, 4), dtype=np.int64), training=True)
    assert y.dtype == np.float32


def test_pullback_uses_the_mask_of_its_own_forward():
    layer = Dropout(0.5, seed=0)
    first, pullback = layer.forward(ONES, training=True)
    second, _ = layer.forward(ONES, training=True)
    assert (first != second).any()
    np.testing.assert_array_equal(pullback(ONES)[0], first)
    np.testing.assert_array_equal(pullback(2 * ONES)[0], 2 * first)
    assert pullback(ONES, inputs=False) == (None, {})


def test_pullback_is_the_derivative():
    class Frozen(Dropout):
        def forward(self, x, *, training=False):
            self.generator = np.random.default_rng(0)
            return super().forward(x, training=training)

    x = np.random.default_rng(1).standard_normal((4, 3))
    check_layer_pullback(Frozen(0.4, seed=0), x, training=True)
    check_layer_pullback(Frozen(0.4, seed=0), x, training=False)


def test_evaluation_is_the_identity_and_draws_nothing():
    layer = Dropout(0.5, seed=0)
    before = layer.config()
    y, pullback = layer.forward(ONES)
    assert y is ONES
    np.testing.assert_array_equal(pullback(ONES)[0], ONES)
    assert layer.config() == before


def test_rate_zero_is_the_identity():
    y, pullback = Dropout(0, seed=0).forward(ONES, training=True)
    np.testing.assert_array_equal(y, ONES)
    np.testing.assert_array_equal(pullback(3 * ONES)[0], 3 * ONES)


def test_batch_of_one():
    y, pullback = Dropout(0.5, seed=0).forward(np.ones((1, 1)), training=True)
    assert y.shape == (1, 1)
    np.testing.assert_array_equal(pullback(np.ones((1, 1)))[0], y)


def test_nan_shows_even_where_it_is_dropped_and_infinity_does_not_warn():
    bad = np.full((20, 20), np.nan)
    y, pullback = Dropout(0.5, seed=0).forward(bad, training=True)
    assert np.isnan(y).all()
    assert np.isnan(pullback(bad)[0]).all()
    y, _ = Dropout(0.5, seed=0).forward(np.full((20, 20), np.inf), training=True)
    assert not np.isfinite(y).any()


# -- Seeds and state -----------------------------------------------------------------------------------------


def test_same_seed_same_masks():
    np.testing.assert_array_equal(masks(Dropout(0.5, seed=3)), masks(Dropout(0.5, seed=3)))
    assert (np.array(masks(Dropout(0.5, seed=3))) != masks(Dropout(0.5, seed=4))).any()
    same = [masks(Dropout(0.5, np.random.default_rng(3))) for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_layers_from_one_generator_differ_and_do_not_share_it():
    rng = np.random.default_rng(0)
    one, other = Dropout(0.5, rng), Dropout(0.5, rng)
    assert one.generator is not other.generator
    expected = masks(Dropout(0.5, np.random.default_rng(0)))
    assert (np.array(masks(other)) != expected).any()
    np.testing.assert_array_equal(masks(one), expected)


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.PCG64DXSM])
def test_any_generator_will_do(bits):
    layer = Dropout(0.5, np.random.Generator(bits(0)))
    again = Dropout.restore(json.loads(json.dumps(layer.config())), {}, {})
    np.testing.assert_array_equal(masks(layer), masks(again))


@pytest.mark.parametrize(
    "shape", [(5, 7), (4, 4)]
)  # an odd number of float32 leaves half a draw in the state
@given(seed=st.integers(0, 2**70), before=st.integers(0, 3))
def test_restored_layer_goes_on_identically(shape, seed, before):
    layer = Dropout(0.3, seed)
    masks(layer, before, shape)
    config = json.loads(json.dumps(layer.config()))
    again = Dropout.restore(config, {}, {})
    assert again.rate == 0.3
    np.testing.assert_array_equal(masks(layer, 3, shape), masks(again, 3, shape))


def test_config_is_a_copy_of_the_state():
    layer = Dropout(0.3, seed=0)
    config = layer.config()
    expected = masks(Dropout(0.3, seed=0))
    masks(layer)
    np.testing.assert_array_equal(masks(Dropout.restore(config, {}, {})), expected)


def test_repr_is_short():
    assert repr(Dropout(0.25, seed=0)) == "Dropout(rate=0.25)"


# -- Bad arguments -------------------------------------------------------------------------------------------


@given(st.one_of(st.floats(max_value=0, exclude_max=True), st.floats(min_value=1), st.just(float("nan"))))
def test_rate_out_of_range(rate):
    with pytest.raises(ArgumentError, match="Dropout rate"):
        Dropout(rate, seed=0)


@pytest.mark.parametrize("rate", [None, "0.5", True, [0.5]])
def test_rate_of_wrong_type(rate):
    with pytest.raises(KindError, match="Dropout rate"):
        Dropout(rate, seed=0)


@pytest.mark.parametrize("seed", ["1", 1.5, True, [1], np.random.RandomState(0)])
def test_seed_of_wrong_type(seed):
    with pytest.raises(KindError, match="Dropout seed"):
        Dropout(0.5, seed)


def test_seed_negative_or_absent_or_with_state():
    with pytest.raises(ArgumentError, match="Dropout seed"):
        Dropout(0.5, -1)
    with pytest.raises(ArgumentError, match="either seed or state"):
        Dropout(0.5)
    with pytest.raises(ArgumentError, match="either seed or state"):
        Dropout(0.5, 0, state=Dropout(0.5, 0).config()["state"])


VALID = Dropout(0.5, seed=0).config()["state"]
JUNK = st.one_of(st.text(), st.integers(max_value=-1), st.none(), st.lists(st.integers()), st.just({}))


@given(
    st.one_of(
        JUNK.filter(lambda junk: junk is not None),
        JUNK.map(lambda junk: {**VALID, "bit_generator": junk}),
        JUNK.map(lambda junk: {**VALID, "state": junk}),
        JUNK.map(lambda junk: {**VALID, "state": {"state": 1, "inc": junk}}),
        st.sampled_from(sorted(VALID)).map(lambda gone: {k: v for k, v in VALID.items() if k != gone}),
        st.just(np.random.MT19937(0).state),
    )
)
def test_state_that_is_none(state):
    with pytest.raises(ArgumentError, match="Dropout state"):
        Dropout(0.5, state=state)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "x", [None, [1, 2], np.zeros((0, 3)), np.zeros((2, 3, 1)), np.zeros((2, 3), dtype=complex)]
)
def test_what_is_no_batch(x, training):
    layer = Dropout(0.5, seed=0)
    with pytest.raises(GbnnError, match=r"Dropout\.forward x"):
        layer.forward(x, training=training)
    _, pullback = layer.forward(np.ones((2, 3)), training=training)
    for dy in (x, np.ones((1, 3)), np.ones((2, 1))):
        with pytest.raises(GbnnError, match=r"Dropout\.pullback dy"):
            pullback(dy)


# -- Sparse activations --------------------------------------------------------------------------------------


def sparse_ones(rows=200, entries=50, features=2**60):
    columns = np.sort(np.random.default_rng(0).integers(0, features, (rows, entries)), axis=1)
    starts = np.arange(rows + 1) * entries
    return SparseRows(starts, columns.ravel(), np.ones(rows * entries), (rows, features))


def test_sparse_entries_are_dropped_and_the_others_scaled():
    x = sparse_ones()
    y, pullback = Dropout(0.25, seed=0).forward(x, training=True)
    assert isinstance(y, SparseRows)
    assert abs(y.nnz / x.nnz - 0.75) < 0.02
    np.testing.assert_allclose(y.values, 4 / 3)
    np.testing.assert_array_equal(x.onto(y), 1)  # no entry is new
    dy = y.with_values(np.arange(1.0, y.nnz + 1))
    dx, gradients = pullback(dy)
    assert gradients == {}
    assert dx.columns is x.columns
    np.testing.assert_allclose(dx.values, dy.onto(x) * (4 / 3))


def test_sparse_masks_differ_and_repeat_from_a_saved_state():
    x, layer = sparse_ones(20), Dropout(0.5, seed=3)
    layer.forward(x, training=True)
    again = Dropout(**layer.config())
    one, other = (made.forward(x, training=True)[0] for made in (layer, again))
    assert one.same_pattern(other)
    assert not layer.forward(x, training=True)[0].same_pattern(one)


def test_sparse_batch_passes_outside_of_training():
    x = sparse_ones(3)
    for rate, training in ((0.5, False), (0.0, True)):
        y, pullback = Dropout(rate, seed=0).forward(x, training=training)
        assert y is x
        np.testing.assert_array_equal(pullback(y)[0].values, 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_sparse_entries_that_are_not_finite_are_never_dropped(bad):
    x = sparse_ones(1)
    x.values[::2] = bad
    y, _ = Dropout(0.9, seed=0).forward(x, training=True)
    assert (~np.isfinite(y.values)).sum() == 25

"""Losses of sparse outputs: equal to the dense ones where all are there, and what absent labels do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from support.adjoint import numeric_gradient
from support.losses import CLASSES, TABLE, all_losses, case, labels

from gbnn import losses
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.losses.by_row import find, first_best
from gbnn.rows import SparseRows

LABELS = {name: row for name, row in TABLE.items() if row[0].name not in ("mse", "huber")}
label_losses = pytest.mark.parametrize(("loss", "make"), LABELS.values(), ids=LABELS)


def all_there(y: np.ndarray) -> SparseRows:
    batch, outputs = y.shape
    columns = np.tile(np.arange(outputs), batch)
    return SparseRows(np.arange(batch + 1) * outputs, columns, y.ravel(order="C"), y.shape)


def some_there(y: np.ndarray, seed: int = 0, share: float = 0.6) -> SparseRows:
    rows = all_there(y)
    rng = np.random.default_rng(seed)
    keep = rng.random(rows.nnz) < share
    keep[2 * y.shape[1] : 3 * y.shape[1]] = False  # a row of which nothing is there
    return rows.where(keep)


# -- With all outputs there ----------------------------------------------------------------------------------


@all_losses
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_that_are_all_there_give_what_the_array_gives(loss, make, dtype):
    y, target = case(make, dtype=dtype)
    rows = all_there(y)
    value, pullback = loss(rows, target)
    expected, expected_pullback = loss(y, target)
    close = {"rtol": 1e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-15}
    assert value == pytest.approx(expected, rel=close["rtol"])
    dy = pullback()
    assert isinstance(dy, SparseRows)
    assert dy.dtype == dtype
    assert dy.columns is rows.columns
    np.testing.assert_allclose(dy.to_dense(), expected_pullback(), **close)
    dense, sparse = loss.metrics(y, target), loss.metrics(rows, target)
    assert sparse.pop("reached", 1.0) == 1.0
    assert {name: sparse[name] for name in dense if name in sparse} == {
        name: pytest.approx(dense[name]) for name in dense if name in sparse
    }
    predicted = loss.predict(rows)
    predicted = predicted.toarray() if sp.issparse(predicted) else predicted
    predicted = predicted.to_dense() if isinstance(predicted, SparseRows) else predicted
    np.testing.assert_array_equal(predicted, loss.predict(y))
    if loss.name.endswith("cross_entropy"):
        np.testing.assert_allclose(loss.probabilities(rows).to_dense(), loss.probabilities(y), **close)


@all_losses
def test_any_sparse_form_is_taken(loss, make):
    y, target = case(make)
    rows = all_there(y)
    expected = loss(rows, target)[0]
    for form in (rows.to_scipy(), rows.to_scipy().tocoo(), rows.to_graphblas()):
        value, pullback = loss(form, target)
        assert value == expected
        assert isinstance(pullback(), SparseRows)


# -- With some -----------------------------------------------------------------------------------------------


@all_losses
@pytest.mark.parametrize("seed", [0, 1])
def test_pullback_is_the_derivative_of_the_value(loss, make, seed):
    y, target = case(make)
    rows = some_there(y, seed)
    value, pullback = loss(rows, target)
    expected = numeric_gradient(lambda: loss(rows, target)[0], rows.values)
    np.testing.assert_allclose(pullback().values, expected, rtol=1e-6, atol=1e-8)
    first = pullback()
    first.values[...] = 99
    assert not (pullback().values == 99).any()
    assert np.isfinite(value)


@pytest.mark.parametrize("loss", [losses.cross_entropy, losses.CrossEntropy((0.5, 2, 0, 1.25))])
def test_absent_classes_are_as_if_minus_infinity(loss):
    y, target = case(labels)
    rows = some_there(y).to_scipy().tolil()
    rows[np.arange(7), target] = y[np.arange(7), target]
    rows = SparseRows.of(rows.tocsr())
    dense = np.full(y.shape, -1e9)
    dense[rows.rows, rows.columns] = rows.values
    value, pullback = loss(rows, target)
    expected, expected_pullback = loss(dense, target)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(pullback().to_dense(), expected_pullback(), rtol=1e-12, atol=1e-300)
    assert loss.metrics(rows, target)["reached"] == 1.0


def test_a_true_class_that_is_absent_counts_a_guess_and_learns_nothing():
    y = sp.csr_array([[0.0, 3.0, 0.0], [0.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    alone, _ = losses.cross_entropy(sp.csr_array([[0.0, 1.0, 2.0]]), [1])
    value, pullback = losses.cross_entropy(y, [2, 1, 0])
    assert value == pytest.approx((2 * np.log(3) + alone) / 3)
    dy = pullback()
    assert dy.values[0] == 0
    assert dy.values[1:].sum() == pytest.approx(0)
    assert losses.cross_entropy.metrics(y, [2, 1, 0]) == {
        "accuracy": 0.0,
        "reached": pytest.approx(1 / 3),
    }
    value, pullback = losses.hinge(y, [2, 1, 0])
    assert value == pytest.approx((1.0 + 2.0) / 3)  # a margin for the first row; 1 - 1 + 2 for the second
    np.testing.assert_allclose(pullback().values, [0, -1 / 3, 1 / 3])
    np.testing.assert_array_equal(losses.cross_entropy.predict(y), [1, 2, -1])


def test_true_labels_that_are_absent_cost_what_an_output_of_0_does():
    y, target = sp.csr_array([[0.0, 3.0, 0.0], [0.0, 0.0, 0.0]]), sp.csr_array([[1, 1, 0], [0, 0, 1]])
    log = np.log1p(np.exp(-3.0))
    value, pullback = losses.BinaryCrossEntropy(reduction="rows")(y, target)
    assert value == pytest.approx((log + 2 * np.log(2)) / 2)
    np.testing.assert_allclose(pullback().values, [(1 / (1 + np.exp(-3.0)) - 1) / 2])
    assert losses.binary_cross_entropy(y, target)[0] == pytest.approx((log + 2 * np.log(2)) / 3)
    assert losses.binary_cross_entropy.metrics(y, target) == {
        "precision_at_1": 0.5,
        "reached": pytest.approx(1 / 3),
    }
    value, pullback = losses.multilabel_cross_entropy(y, target)
    assert value == pytest.approx((np.log(3) / 2 + np.log(3)) / 2)
    np.testing.assert_allclose(pullback().values, [0.0])
    np.testing.assert_array_equal(losses.multilabel_cross_entropy.predict(y), [1, -1])


@label_losses
def test_outputs_may_have_no_entries_at_all(loss, make):
    _, target = case(make)
    nothing = SparseRows(np.zeros(8, np.int64), np.zeros(0, np.int64), np.zeros(0), (7, CLASSES))
    value, pullback = loss(nothing, target)
    assert np.isfinite(value)
    assert value >= 0
    assert pullback().nnz == 0
    loss.metrics(nothing, target)
    loss.predict(nothing)


@label_losses
def test_nothing_is_made_dense(loss, make, monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("made dense")

    y, target = case(make)
    rows = some_there(y)
    for owner, name in ((SparseRows, "to_dense"), (sp.csr_array, "toarray"), (sp.csr_array, "todense")):
        monkeypatch.setattr(owner, name, refuse)
    loss(rows, target)[1]()
    loss.metrics(rows, target)
    loss.predict(rows)


def test_outputs_may_be_as_many_as_there_are_features():
    columns = np.array([5, 2**59, 2**60 - 1])
    y = SparseRows(np.array([0, 2, 3]), columns, np.array([1.0, 2.0, 0.5]), (2, 2**60))
    target = np.array([2**59, 2**60 - 1])
    value, pullback = losses.cross_entropy(y, target)
    assert value == pytest.approx(np.log1p(np.exp(-1.0)) / 2)
    assert pullback().shape == (2, 2**60)
    assert losses.hinge(y, target)[0] == 0.0
    assert losses.cross_entropy.metrics(y, target) == {"accuracy": 1.0, "reached": 1.0}


@label_losses
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_that_are_not_finite_show_in_the_value(loss, make, bad):
    y, target = case(make)
    for entry in range(CLASSES):
        rows = all_there(y)
        rows.values[entry] = bad
        assert not np.isfinite(loss(rows, target)[0])
        loss.metrics(rows, target)
        loss.predict(rows)


def test_outputs_that_are_not_finite_show_where_the_true_class_is_absent():
    for loss in (losses.cross_entropy, losses.hinge):
        assert np.isnan(loss(sp.csr_array([[np.nan, 1.0, 0.0], [1.0, 0.0, 0.0]]), [2, 0])[0])


def test_samples_without_labels_do_not_count_in_a_softmax_of_labels():
    y, target = np.array([[1.0, 2.0], [3.0, 1.0]]), sp.csr_array([[1, 0], [0, 0]])
    for outputs in (y, sp.csr_array(y)):
        value, pullback = losses.multilabel_cross_entropy(outputs, target)
        assert value == pytest.approx(np.log1p(np.exp(1.0)))
        dy = pullback()
        dy = dy.to_dense() if isinstance(dy, SparseRows) else dy
        assert not dy[1].any()


@label_losses
def test_huge_outputs_in_float32(loss, make):
    y, target = case(make)
    rows = some_there(y * 1e30)
    value, pullback = loss(rows.astype(np.float32), target)
    expected, expected_pullback = loss(rows, target)
    assert value == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(pullback().values, expected_pullback().values, rtol=1e-5, atol=1e-6)


@all_losses
def test_targets_and_shapes_are_checked_as_for_arrays(loss, make):
    y, _ = case(make)
    _, other = case(make, (6, CLASSES))
    for ask in (loss, loss.metrics):
        with pytest.raises(ArgumentError, match="target"):
            ask(all_there(y), other)
    with pytest.raises(GbnnError):
        loss(sp.csr_array((0, 4)), other)


def test_a_loss_of_ones_own_may_leave_sparse_outputs_out():
    class Own(losses.Loss):
        name = "own"

        def _check(self, target, rows, outputs):
            return target

        def _compute(self, y, target):
            return 0.0, lambda: np.zeros_like(y)

        def _predict(self, y):
            return y

        def _metrics(self, y, target):
            return {}

    assert Own()(np.ones((1, 2)), None)[0] == 0.0
    for ask in (Own(), Own().metrics, lambda y, _: Own().predict(y)):
        with pytest.raises(KindError, match="own takes no sparse outputs"):
            ask(sp.csr_array([[1.0]]), None)


# -- Parts ---------------------------------------------------------------------------------------------------

patterns = st.lists(st.lists(st.sampled_from([0, 1, 2, 7, 2**59]), unique=True), min_size=1, max_size=5)


@given(patterns, st.lists(st.sampled_from([0, 1, 2, 3, 7, 2**59, 2**60 - 1]), max_size=9), st.randoms())
def test_find_is_a_lookup(rows, columns, random):
    flat = [(b, c) for b, row in enumerate(rows) for c in sorted(row)]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    y = SparseRows(
        starts, np.array([c for _, c in flat], dtype=np.int64), np.zeros(len(flat)), (len(rows), 2**60)
    )
    at = [random.randrange(len(rows)) for _ in columns]
    found = find(y, np.array(at, dtype=np.int64), np.array(columns, dtype=np.int64))
    places = {pair: k for k, pair in enumerate(flat)}
    assert found.tolist() == [places.get(pair, -1) for pair in zip(at, columns, strict=True)]


def test_the_first_of_equal_outputs_is_the_best():
    y = sp.csr_array([[0.0, 2.0, 2.0], [-1.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(first_best(SparseRows.of(y)), [1, 0, -1])

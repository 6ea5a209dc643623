"""Classes and matrices of labels; weights of rows and classes; the losses of rows behind them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_class_weight

from gbnn import losses
from gbnn.errors import ArgumentError, GbnnError
from gbnn.interop.sklearn import SparseMLPClassifier
from gbnn.interop.sklearn.labels import class_weights, largest
from gbnn.interop.sklearn.losses import RowLoss, huber, sigmoid, softmax, squared

SMALL = {
    "hidden_layer_sizes": 16,
    "batch_size": 32,
    "learning_rate_init": 0.03,
    "max_iter": 40,
    "random_state": 0,
}


def problem(rows=120, labels=6, seed=0):
    """Rows whose labels are those of their features: feature 3 l + (0, 1, 2) goes with label l."""
    rng = np.random.default_rng(seed)
    x = sp.random_array((rows, 3 * labels), density=0.15, format="csr", rng=rng)
    x.data[:] = 1
    y = (x.toarray().reshape(rows, labels, 3).sum(axis=2) > 0).astype(int)
    return x, y


def test_sparse_and_dense_labels_give_the_same():
    x, y = problem()
    dense = SparseMLPClassifier(**SMALL).fit(x, y)
    for form in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        sparse = SparseMLPClassifier(**SMALL).fit(x, form(y))
        np.testing.assert_allclose(sparse.decision_function(x), dense.decision_function(x))
        found = sparse.predict(x)
        assert found.format == "csr"
        assert isinstance(found, sp.sparray) == issubclass(form, sp.sparray)
        np.testing.assert_array_equal(found.toarray(), dense.predict(x))
        assert sparse.score(x, form(y)) == dense.score(x, y) > 0.9


def test_stored_zeros_are_no_labels():
    x, y = problem()
    stored = sp.csr_array((y.ravel(), np.tile(np.arange(6), 120), 6 * np.arange(121)), shape=y.shape)
    kept = stored.nnz
    one, other = (SparseMLPClassifier(**SMALL).fit(x, form) for form in (stored, sp.csr_array(y)))
    np.testing.assert_array_equal(one.decision_function(x), other.decision_function(x))
    assert stored.nnz == kept


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(
    "change", [lambda y: 2 * y, lambda y: -1.0 * y, lambda y: 0.5 * y, lambda y: 2 * y - 1]
)
def test_labels_are_zeros_and_ones(form, change):
    x, y = problem()
    other = change(y)
    row, column = np.argwhere((other != 0) & (other != 1))[0]
    wanted = rf"y: expected zeros and ones.*, got {other[row, column]} at \[{row}, {column}\]"
    for fit in ("fit", "partial_fit"):
        with pytest.raises(ArgumentError, match=wanted):
            getattr(SparseMLPClassifier(**SMALL), fit)(x, form(other))


def test_labels_are_zeros_and_ones_once_duplicates_are_added_up():
    x, y = problem()
    rows, columns = np.nonzero(y)
    csr = sp.coo_array((np.ones(rows.size), (rows, columns)), shape=y.shape).tocsr()
    starts, twice = 2 * csr.indptr, np.repeat(csr.indices, 2)
    halves = sp.csr_array((np.full(twice.size, 0.5), twice, starts), shape=y.shape)
    one, other = (SparseMLPClassifier(**SMALL).fit(x, form) for form in (halves, sp.csr_array(y)))
    np.testing.assert_array_equal(one.decision_function(x), other.decision_function(x))
    assert halves.nnz == twice.size
    first = rf"got 2.0 at \[{rows[0]}, {columns[0]}\]"
    with pytest.raises(ArgumentError, match=first):
        SparseMLPClassifier(**SMALL).fit(x, sp.csr_array((np.ones(twice.size), twice, starts), shape=y.shape))


def test_labels_come_in_their_dtype_and_probabilities_for_each():
    x, y = problem()
    model = SparseMLPClassifier(**SMALL).fit(x, y.astype(np.uint8))
    assert model.predict(x).dtype == np.uint8
    assert model.out_activation_ == "logistic"
    assert model.classes_.tolist() == list(range(6))
    np.testing.assert_array_equal(model.predict_proba(x) > 0.5, model.predict(x))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(x)), model.predict_proba(x))


def test_labels_in_part():
    x, y = problem()
    model = SparseMLPClassifier(**SMALL)
    for _ in range(40):
        model.partial_fit(x, sp.csr_array(y))
    assert model.score(x, y) > 0.9
    with pytest.raises(ValueError, match="6 labels of the first call"):
        model.partial_fit(x, y[:, :5])
    with pytest.raises(ValueError, match="6 labels of the first call"):
        model.partial_fit(x, y[:, 0])


def test_rare_labels_start_rare():
    x, y = problem()
    y[:, 2] = 0
    model = SparseMLPClassifier(**SMALL | {"max_iter": 1, "learning_rate_init": 1e-9}).fit(x, y)
    expected = (y.sum(axis=0) + 0.5) / 121
    np.testing.assert_allclose(model.predict_proba(sp.csr_array((1, 18)))[0], expected, rtol=1e-5)


def test_early_stopping_on_labels():
    x, y = problem()
    for form in (y, sp.csr_array(y)):
        model = SparseMLPClassifier(**SMALL, early_stopping=True).fit(x, form)
        assert model.best_validation_score_ > 0.8


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_numbers_of_classes(classes):
    x, labels = problem()
    y = np.array(["a", "b", "c"])[labels[:, 0] + (classes > 2) * labels[:, 1]]
    y = np.full(120, "a") if classes == 1 else y
    model = SparseMLPClassifier(**SMALL).fit(x, y)
    assert model.classes_.tolist() == ["a", "b", "c"][:classes]
    assert model.score(x, y) > 0.95
    assert model.predict_proba(x).shape == (120, classes)
    assert model.decision_function(x).shape == ((120, 3) if classes == 3 else (120,))
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1)
    assert (model.out_activation_ == "logistic") == (classes == 2)


def test_top_of_classes_and_of_labels():
    x, y = problem()
    for target in (y, sp.csr_array(y), y[:, 0] + 2 * y[:, 1], y[:, 0]):
        model = SparseMLPClassifier(**SMALL).fit(x, target)
        probabilities = model.predict_proba(x)
        ids, scores = model.predict_top(x, k=2)
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]
        np.testing.assert_array_equal(scores, np.take_along_axis(probabilities, order, axis=1))
        np.testing.assert_array_equal(ids, model.classes_[order])
        with pytest.raises(GbnnError, match="k: expected"):
            model.predict_top(x, k=7)


def test_largest_takes_the_first_of_equal_scores():
    ids, scores = largest(np.array([[1.0, 3.0, 3.0, 2.0], [0.0, 0.0, 0.0, 0.0]]), 4)
    assert ids.tolist() == [[1, 2, 3, 0], [0, 1, 2, 3]]
    assert scores[0].tolist() == [3, 3, 2, 1]


def test_blocks_of_rows_are_put_together(monkeypatch):
    x, y = problem()
    model = SparseMLPClassifier(**SMALL).fit(x, sp.csr_array(y))
    whole = model.decision_function(x), model.predict(x).toarray(), model.predict_top(x, 3)[0]
    monkeypatch.setattr("gbnn.interop.sklearn.base.HELD", 100)
    parts = model.decision_function(x), model.predict(x).toarray(), model.predict_top(x, 3)[0]
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other)


# -- Weights -------------------------------------------------------------------------------------------------

FULL = SMALL | {"batch_size": 1000, "max_iter": 5}


def test_class_weights_are_weights_of_rows():
    x, labels = problem()
    y = labels[:, 0]
    weights = np.where(y == 1, 3.0, 0.5)
    by_class = SparseMLPClassifier(**FULL, class_weight={1: 3.0, 0: 0.5}).fit(x, y)
    by_row = SparseMLPClassifier(**FULL).fit(x, y, sample_weight=weights)
    np.testing.assert_allclose(by_class.decision_function(x), by_row.decision_function(x))
    both = SparseMLPClassifier(**FULL, class_weight={1: 3.0, 0: 0.5}).fit(x, y, sample_weight=weights)
    squared_ = SparseMLPClassifier(**FULL).fit(x, y, sample_weight=weights**2)
    np.testing.assert_allclose(both.decision_function(x), squared_.decision_function(x))


def test_the_unit_of_weights_does_not_matter():
    x, labels = problem()
    weights = np.random.default_rng(0).random(120)
    one, other = (
        SparseMLPClassifier(**FULL).fit(x, labels, sample_weight=factor * weights) for factor in (1, 8)
    )
    np.testing.assert_allclose(one.loss_curve_, other.loss_curve_, rtol=1e-2)
    assert one.loss_ == pytest.approx(SparseMLPClassifier(**FULL).fit(x, labels).loss_, rel=0.1)


def test_class_weights_are_those_of_scikit_learn():
    numbers = np.array([0, 0, 0, 1, 2, 2])
    classes = np.array(["a", "b", "c"])
    for given in ("balanced", {"a": 2.0, "c": 0.5}):
        wanted = compute_class_weight(given, classes=classes, y=classes[numbers])
        np.testing.assert_allclose(class_weights(given, classes, numbers, None), wanted)


def test_balanced_classes_weigh_the_same():
    x, labels = problem()
    y = labels[:, 0] + labels[:, 1]
    counts = np.bincount(y)
    balanced = SparseMLPClassifier(**FULL, class_weight="balanced").fit(x, y)
    by_row = SparseMLPClassifier(**FULL).fit(x, y, sample_weight=(120 / (3 * counts))[y])
    np.testing.assert_allclose(balanced.decision_function(x), by_row.decision_function(x))


def test_a_class_that_weighs_nothing_is_known_and_not_learnt():
    x, labels = problem()
    y = labels[:, 0]
    model = SparseMLPClassifier(**FULL | {"max_iter": 60}).fit(x, y, sample_weight=(y == 1).astype(float))
    assert model.classes_.tolist() == [0, 1]
    assert model.predict(x).tolist() == [1] * 120


def test_class_weights_that_cannot_be():
    x, y = problem()
    with pytest.raises(ValueError, match="None for labels"):
        SparseMLPClassifier(**SMALL, class_weight="balanced").fit(x, y)
    with pytest.raises(ValueError, match="a dict or None with partial_fit"):
        SparseMLPClassifier(**SMALL, class_weight="balanced").partial_fit(x, y[:, 0], classes=[0, 1])


# -- Losses --------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
Y = np.asfortranarray(RNG.standard_normal((7, 4)))
CLASSES = RNG.integers(4, size=7)
BITS = RNG.integers(2, size=(7, 4))
NUMBERS = RNG.standard_normal((7, 4)) * 2
TABLE = [
    (softmax(0.0), CLASSES, losses.cross_entropy, 1),
    (softmax(0.2), CLASSES, losses.CrossEntropy(label_smoothing=0.2), 1),
    (sigmoid(), BITS, losses.binary_cross_entropy, 4),
    (sigmoid(), sp.csr_array(BITS), losses.binary_cross_entropy, 4),
    (squared, NUMBERS, losses.mse, 0.5),
    (huber, NUMBERS, losses.huber, 1),
]


@pytest.mark.parametrize(("of_rows", "target", "same", "factor"), TABLE)
def test_without_weights_they_are_the_losses_of_gbnn(of_rows, target, same, factor):
    value, pullback = RowLoss(of_rows, target)(Y, np.arange(7))
    wanted, derivative = same(Y, target)
    assert value == pytest.approx(factor * wanted)
    np.testing.assert_allclose(pullback(), factor * derivative())
    np.testing.assert_array_equal(pullback(), pullback())  # made anew each time


@pytest.mark.parametrize(("of_rows", "target", "same", "factor"), [*TABLE, (sigmoid(0.3), BITS, None, 1)])
def test_derivative_of_weighted_rows_is_the_difference(of_rows, target, same, factor):
    weights = RNG.random(7) * 3
    rows = np.array([5, 1, 2])
    loss = RowLoss(of_rows, target, weights)
    y, step = Y[rows], 1e-6
    dy = loss(y, rows)[1]()
    alone = [RowLoss(of_rows, target)(Y[[row]], np.array([row]))[0] for row in rows]
    assert loss(y, rows)[0] == pytest.approx(alone @ weights[rows] / 3)
    for i in range(3):
        for j in range(4):
            ahead, behind = y.copy(), y.copy()
            ahead[i, j] += step
            behind[i, j] -= step
            difference = (loss(ahead, rows)[0] - loss(behind, rows)[0]) / (2 * step)
            assert dy[i, j] == pytest.approx(difference, abs=1e-6)


def test_smoothing_of_two_classes_is_that_of_a_softmax():
    one = RNG.standard_normal((7, 1))
    bits = BITS[:, :1]
    value, _ = RowLoss(sigmoid(0.2), bits)(one, np.arange(7))
    both = np.column_stack([np.zeros(7), one])
    assert value == pytest.approx(losses.CrossEntropy(label_smoothing=0.2)(both, bits[:, 0])[0])

"""Losses against central differences, torch, scikit-learn and hand-worked cases; and every bad target."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.adjoint import numeric_gradient

from gbnn import losses
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError

Array = np.ndarray[Any, Any]

WEIGHTS = (0.5, 2.0, 0.0, 1.25)
CLASSES = len(WEIGHTS)


def labels(shape: tuple[int, int], rng: np.random.Generator) -> Any:
    return rng.permutation(np.arange(shape[0]) % shape[1])


def shares(shape: tuple[int, int], rng: np.random.Generator) -> Any:
    return rng.random(shape)


def indicators(shape: tuple[int, int], rng: np.random.Generator) -> Any:
    return rng.random(shape) < 0.4


def sparse(shape: tuple[int, int], rng: np.random.Generator) -> Any:
    return sp.csr_array(rng.random(shape) * (rng.random(shape) < 0.4))


def numbers(shape: tuple[int, int], rng: np.random.Generator) -> Any:
    return rng.standard_normal(shape)


# Every loss, with a maker of targets for outputs of a shape. The rest of this file goes through this table.
TABLE: dict[str, tuple[losses.Loss, Callable[..., Any]]] = {
    "cross_entropy": (losses.cross_entropy, labels),
    "smoothed": (losses.CrossEntropy(label_smoothing=0.1), labels),
    "weighted": (losses.CrossEntropy(class_weights=np.array(WEIGHTS)), labels),
    "weighted and smoothed": (losses.CrossEntropy(WEIGHTS, 0.3), labels),
    "hinge": (losses.hinge, labels),
    "hinge of margin 0.3": (losses.Hinge(margin=0.3), labels),
    "binary, bool": (losses.binary_cross_entropy, indicators),
    "binary, shares": (losses.binary_cross_entropy, shares),
    "binary, sparse": (losses.binary_cross_entropy, sparse),
    "mse": (losses.mse, numbers),
    "huber": (losses.huber, numbers),
    "huber of delta 0.4": (losses.Huber(delta=0.4), numbers),
}
DEFAULTS = {
    "cross_entropy": losses.cross_entropy,
    "binary_cross_entropy": losses.binary_cross_entropy,
    "mse": losses.mse,
    "huber": losses.huber,
    "hinge": losses.hinge,
}
all_losses = pytest.mark.parametrize(("loss", "make"), TABLE.values(), ids=TABLE)


def case(make: Callable[..., Any], shape: tuple[int, int] = (7, CLASSES), dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(3)
    y = np.asfortranarray(2 * rng.standard_normal(shape), dtype=dtype)
    return y, make(shape, rng)


def allowed(loss: losses.Loss, shape: tuple[int, int]) -> bool:
    return loss.config().get("class_weights") is None or shape[1] == CLASSES


# -- Values and gradients -----------------------------------------------------------------------------------


@all_losses
@pytest.mark.parametrize("shape", [(7, CLASSES), (1, CLASSES), (5, 1), (1, 1)])
def test_pullback_is_the_derivative_of_the_value(loss, make, shape):
    if not allowed(loss, shape):
        shape = (shape[0] + 1, CLASSES)
    y, target = case(make, shape)
    dy = loss(y, target)[1]()
    expected = numeric_gradient(lambda: loss(y, target)[0], y)
    np.testing.assert_allclose(dy, expected, rtol=1e-6, atol=1e-8)


@all_losses
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradient_is_new_and_laid_out_as_y(loss, make, dtype):
    y, target = case(make, dtype=dtype)
    kept = y.copy()
    value, pullback = loss(y, target)
    first = pullback()
    assert type(value) is float
    assert first.shape == y.shape
    assert first.dtype == dtype
    assert first.flags.f_contiguous
    expected = first.copy()
    first[...] = 99  # the caller may use the gradient up
    np.testing.assert_array_equal(pullback(), expected)
    np.testing.assert_array_equal(y, kept)


@all_losses
def test_order_and_precision_of_y_do_not_matter(loss, make):
    y, target = case(make)
    value, pullback = loss(y, target)
    same, same_pullback = loss(np.ascontiguousarray(y), target)
    assert same == value
    np.testing.assert_array_equal(same_pullback(), pullback())
    single, single_pullback = loss(y.astype(np.float32), target)
    assert single == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(single_pullback(), pullback(), rtol=1e-4, atol=1e-6)


def reference(torch: Any, name: str) -> Any:
    weight = torch.tensor(WEIGHTS, dtype=torch.float64)
    nn = torch.nn
    return {
        "cross_entropy": nn.CrossEntropyLoss(),
        "smoothed": nn.CrossEntropyLoss(label_smoothing=0.1),
        "weighted": nn.CrossEntropyLoss(weight=weight),
        "weighted and smoothed": nn.CrossEntropyLoss(weight=weight, label_smoothing=0.3),
        "hinge": nn.MultiMarginLoss(),
        "hinge of margin 0.3": nn.MultiMarginLoss(margin=0.3),
        "binary, bool": nn.BCEWithLogitsLoss(),
        "binary, shares": nn.BCEWithLogitsLoss(),
        "binary, sparse": nn.BCEWithLogitsLoss(),
        "mse": nn.MSELoss(),
        "huber": nn.HuberLoss(),
        "huber of delta 0.4": nn.HuberLoss(delta=0.4),
    }[name]


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("shape", [(64, CLASSES), (2, CLASSES), (33, 1), (1, 1)])
def test_equals_torch(name, shape):
    torch = pytest.importorskip("torch")
    loss, make = TABLE[name]
    if not allowed(loss, shape):
        shape = (shape[0] + 1, CLASSES)
    y, target = case(make, shape)
    value, pullback = loss(y, target)
    dense = target.toarray() if sp.issparse(target) else target
    wanted = torch.tensor(dense) if make is labels else torch.tensor(dense, dtype=torch.float64)
    leaf = torch.tensor(y, requires_grad=True)
    expected = reference(torch, name)(leaf, wanted)
    expected.backward()
    assert value == pytest.approx(expected.item(), rel=1e-12, abs=1e-15)
    np.testing.assert_allclose(pullback(), leaf.grad.numpy(), rtol=1e-10, atol=1e-15)


def test_every_loss_is_in_the_table():
    assert {type(loss).name for loss, _ in TABLE.values()} == set(DEFAULTS)


def test_labels_of_no_weight_give_nan_as_in_torch():
    value, pullback = losses.CrossEntropy(WEIGHTS)(np.zeros((2, CLASSES)), [2, 2])
    assert np.isnan(value)
    assert np.isnan(pullback()).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.uint64])
def test_labels_of_any_integer_dtype(dtype):
    y, target = case(labels)
    assert losses.cross_entropy(y, target.astype(dtype))[0] == losses.cross_entropy(y, target)[0]


@pytest.mark.parametrize("name", ["mse", "huber", "binary_cross_entropy"])
def test_one_output_takes_a_flat_target_and_does_not_broadcast_it(name):
    loss = losses.named(name)
    y = np.array([[0.0], [1.0], [2.0]])
    flat = np.array([0, 1, 1])
    value, pullback = loss(y, flat)
    column, column_pullback = loss(y, flat[:, None])
    assert value == column
    assert pullback().shape == (3, 1)
    np.testing.assert_array_equal(pullback(), column_pullback())
    assert loss.metrics(y, flat) == loss.metrics(y, flat[:, None])


# -- Sparse targets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_sparse_target_equals_the_dense_one(kind, dtype):
    y, dense = case(indicators, (20, 9), np.float32)
    target = kind(dense.astype(dtype))
    loss = losses.binary_cross_entropy
    value, pullback = loss(y, target)
    expected, expected_pullback = loss(y, dense)
    assert value == pytest.approx(expected, rel=1e-7)
    np.testing.assert_array_equal(pullback(), expected_pullback())
    assert loss.metrics(y, target) == loss.metrics(y, dense)


def test_sparse_target_is_never_made_dense(monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("made dense")

    y, target = case(sparse)
    monkeypatch.setattr(sp.csr_array, "toarray", refuse)
    monkeypatch.setattr(sp.csr_array, "todense", refuse)
    losses.binary_cross_entropy(y, target)[1]()
    losses.binary_cross_entropy.metrics(y, target)
    target.data[0] = 2.0
    with pytest.raises(ArgumentError, match=r"2.0 at \["):
        losses.binary_cross_entropy(y, target)


def test_the_same_place_twice_counts_as_the_sum():
    y = np.array([[0.3, -0.2]])
    twice = sp.csr_array((np.array([0.5, 0.25]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    value, pullback = losses.binary_cross_entropy(y, twice)
    expected, expected_pullback = losses.binary_cross_entropy(y, [[0.0, 0.75]])
    assert value == pytest.approx(expected)
    np.testing.assert_allclose(pullback(), expected_pullback())
    assert twice.nnz == 2  # the caller's matrix stays as it was


def test_a_sparse_target_may_have_no_entries():
    y = np.array([[0.3, -0.2]])
    empty = sp.csr_array((1, 2))
    assert losses.binary_cross_entropy(y, empty)[0] == losses.binary_cross_entropy(y, [[0, 0]])[0]


@pytest.mark.parametrize(
    ("indices", "indptr"), [([0, 7], [0, 1, 2]), ([0, -1], [0, 1, 2]), ([0, 1], [0, 9, 2])]
)
def test_a_broken_sparse_target_is_refused(indices, indptr):
    target = sp.csr_array(np.eye(2))
    target.indices[:] = indices
    target.indptr[:] = indptr
    with pytest.raises(ArgumentError, match="target: expected a well-formed CSR matrix"):
        losses.binary_cross_entropy(np.zeros((2, 2)), target)


# -- Stability (warnings are errors in this suite) ----------------------------------------------------------


@all_losses
@pytest.mark.parametrize("scale", [1e4, 1e30])
def test_huge_outputs_in_float32(loss, make, scale):
    y, target = case(make)
    y = (y * scale).astype(np.float32)
    value, pullback = loss(y, target)
    expected, expected_pullback = loss(y.astype(np.float64), target)
    assert np.isfinite(value)
    assert value == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(pullback(), expected_pullback(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_logits_have_the_known_limits(dtype):
    y = np.array([[1e30, 0.0, -1e30], [-1e30, 0.0, 1e30]], dtype=dtype, order="F")
    value, pullback = losses.cross_entropy(y, [0, 2])
    assert value == 0.0
    assert not pullback().any()
    value, pullback = losses.cross_entropy(y, [2, 0])
    assert value == pytest.approx(2e30, rel=1e-6)
    np.testing.assert_array_equal(pullback(), [[0.5, 0, -0.5], [-0.5, 0, 0.5]])
    value, pullback = losses.binary_cross_entropy(y, [[1, 0, 0], [0, 0, 1]])
    assert value == pytest.approx(np.log(2) / 3, rel=1e-6)
    np.testing.assert_allclose(pullback(), [[0, 1 / 12, 0], [0, 1 / 12, 0]], rtol=1e-6)
    np.testing.assert_array_equal(losses.cross_entropy.probabilities(y), [[1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(losses.binary_cross_entropy.probabilities(y), [[1, 0.5, 0], [0, 0.5, 1]])


def test_small_losses_keep_their_digits():
    y = np.array([[-40.0], [40.0]], dtype=np.float32)
    for target in (np.array([0, 1]), sp.csr_array([[0.0], [1.0]])):
        assert losses.binary_cross_entropy(y, target)[0] == pytest.approx(np.exp(-40), rel=1e-5, abs=0)
    value, _ = losses.cross_entropy(np.array([[20.0, 0.0]], dtype=np.float32), [0])
    assert value == pytest.approx(np.log1p(np.exp(-20)), rel=1e-5, abs=0)


@all_losses
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7, CLASSES), (1, 1)])
def test_outputs_that_are_not_finite_show_in_the_value(loss, make, bad, dtype, shape):
    shape = shape if allowed(loss, shape) else (7, CLASSES)
    y, target = case(make, shape, dtype)
    for column in range(shape[1]):
        spoiled = y.copy(order="F")
        spoiled[0, column] = bad
        value, pullback = loss(spoiled, target)
        assert not np.isfinite(value)
        assert pullback().shape == shape
        loss.metrics(spoiled, target)
        loss.predict(spoiled)


@all_losses
def test_the_callers_floating_point_settings_do_not_matter(loss, make):
    y, target = case(make)
    y = (y * 50).astype(np.float32)  # some exponentials are too small for float32
    value, pullback = loss(y, target)
    with np.errstate(all="raise"):
        same, same_pullback = loss(y, target)
        assert same == value
        np.testing.assert_array_equal(same_pullback(), pullback())
        loss.metrics(y * 1e30, target)
        if loss.name.endswith("cross_entropy"):
            loss.probabilities(y)


def test_overflow_is_infinite_and_silent():
    top = np.finfo(np.float32).max
    y = np.array([[top, -top]], dtype=np.float32, order="F")
    assert losses.hinge(y, [1])[0] == np.inf
    assert losses.mse(y, [[-top, top]])[0] == np.inf
    assert losses.huber(y, [[-1e300, 1e300]])[0] == np.inf
    # The log-sum-exp is taken in float64 and so does not overflow.
    assert losses.cross_entropy(y, [1])[0] == pytest.approx(2 * float(top))


# -- What the outputs say -----------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [losses.cross_entropy, losses.hinge])
def test_classes_are_predicted_and_scored(loss):
    y = np.array([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]])
    predicted = loss.predict(y)
    assert predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, [1, 0, 1])
    assert loss.metrics(y, [1, 1, 1]) == {"accuracy": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    "target", [[[1, 0], [0, 0]], [[0.9, 0.2], [0.1, 0.5]], sp.csr_array([[1, 0], [0, 0]])]
)
def test_labels_are_predicted_and_scored(target):
    y = np.array([[1.0, 2.0], [-3.0, 0.0]])
    predicted = losses.binary_cross_entropy.predict(y)
    assert predicted.dtype == bool
    np.testing.assert_array_equal(predicted, [[True, True], [False, False]])
    assert losses.binary_cross_entropy.metrics(y, target) == {"accuracy": 0.75}


@pytest.mark.parametrize("loss", [losses.mse, losses.huber])
def test_regression_predicts_its_outputs(loss):
    y, _ = case(numbers)
    assert loss.predict(y) is y


@pytest.mark.parametrize("loss", [losses.mse, losses.huber])
def test_r2_equals_scikit_learn(loss):
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    y, target = case(numbers, (30, 3))
    target[:, 1] = 0.1  # constant, missed
    target[:, 2] = y[:, 2] = 0.1  # constant, met
    expected = sklearn_metrics.r2_score(target[:, [0]], y[:, [0]])
    assert loss.metrics(y, target) == {"r2": pytest.approx((expected + 0.0 + 1.0) / 3)}
    mixed = np.random.default_rng(0).standard_normal((30, 3))
    assert loss.metrics(y, mixed)["r2"] == pytest.approx(sklearn_metrics.r2_score(mixed, y))


def test_r2_by_hand():
    metrics = losses.mse.metrics(np.array([[0.0], [1.0], [3.0]]), [0, 1, 2])
    assert metrics == {"r2": pytest.approx(0.5)}
    assert np.isnan(losses.mse.metrics([[1.0]], [1.0])["r2"])
    assert losses.mse.metrics([[1.0], [1.0]], [1.0, 1.0]) == {"r2": 1.0}
    assert losses.mse.metrics([[1.0], [2.0]], [1.0, 1.0]) == {"r2": 0.0}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_are_softmax_and_sigmoid(dtype):
    y, _ = case(numbers, dtype=dtype)
    softmax = losses.cross_entropy.probabilities(y)
    sigmoid = losses.binary_cross_entropy.probabilities(y)
    wide = y.astype(np.float64)
    np.testing.assert_allclose(softmax, np.exp(wide) / np.exp(wide).sum(axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(sigmoid, 1 / (1 + np.exp(-wide)), rtol=1e-6)
    for probabilities in (softmax, sigmoid):
        assert probabilities.dtype == dtype
        assert probabilities.flags.f_contiguous


@pytest.mark.parametrize("loss", [losses.mse, losses.huber, losses.hinge])
def test_other_losses_have_no_probabilities(loss):
    with pytest.raises(ArgumentError, match=f"{loss.name}, which has none"):
        loss.probabilities(np.zeros((2, 2)))


# -- Names, options, equality -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEFAULTS)
def test_named(name):
    assert losses.named(name) is DEFAULTS[name]
    assert DEFAULTS[name].name == name


@pytest.mark.parametrize("name", ["Cross_Entropy", "", None, 3])
def test_an_unknown_name_lists_the_known_ones(name):
    with pytest.raises(ArgumentError) as caught:
        losses.named(name)
    assert all(known in str(caught.value) for known in DEFAULTS)


@all_losses
def test_a_loss_is_a_value_that_a_file_can_record(loss, make):
    recorded = json.loads(json.dumps(loss.config()))
    again = type(losses.named(loss.name))(**recorded)
    for copy in (again, pickle.loads(pickle.dumps(loss)), eval(repr(loss), vars(losses))):
        assert copy == loss
        assert hash(copy) == hash(loss)
        y, target = case(make)
        assert copy(y, target)[0] == loss(y, target)[0]
    with pytest.raises(AttributeError):
        loss.label_smoothing = 0.5


def test_options_tell_losses_apart():
    assert len({repr(loss) for loss, _ in TABLE.values()}) == len({loss for loss, _ in TABLE.values()}) == 10
    assert losses.Huber(1) == losses.Huber(np.float32(1.0))


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: losses.CrossEntropy(label_smoothing=1.0), "label_smoothing"),
        (lambda: losses.CrossEntropy(label_smoothing=-0.1), "label_smoothing"),
        (lambda: losses.CrossEntropy(label_smoothing=np.nan), "label_smoothing"),
        (lambda: losses.CrossEntropy(label_smoothing="0.1"), "label_smoothing"),
        (lambda: losses.CrossEntropy(class_weights=[1.0, -1.0]), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=[1.0, np.nan]), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=[0.0, 0.0]), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=[]), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=2.0), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=["a", "b"]), "class_weights"),
        (lambda: losses.CrossEntropy(class_weights=[[1.0], [1.0, 2.0]]), "class_weights"),
        (lambda: losses.CrossEntropy([1.0, 2.0])(np.zeros((1, 3)), [0]), "class_weights"),
        (lambda: losses.CrossEntropy([1.0, 2.0]).check_target([0], outputs=3), "class_weights"),
        (lambda: losses.CrossEntropy([1.0, 2.0]).check_target([0, 2]), "target"),
        (lambda: losses.Huber(delta=0.0), "delta"),
        (lambda: losses.Huber(delta=np.inf), "delta"),
        (lambda: losses.Huber(delta=None), "delta"),
        (lambda: losses.Hinge(margin=-1), "margin"),
        (lambda: losses.Hinge(margin=True), "margin"),
    ],
)
def test_bad_options_are_refused_by_name(make, argument):
    with pytest.raises(GbnnError) as caught:
        make()
    assert caught.value.where == argument


# -- Targets ------------------------------------------------------------------------------------------------


@all_losses
def test_a_good_target_passes_whatever_is_known(loss, make):
    _, target = case(make)
    for known in ({}, {"rows": 7}, {"outputs": CLASSES}, {"rows": 7, "outputs": CLASSES}):
        assert loss.check_target(target, **known) is target  # no copy
    with pytest.raises(ArgumentError, match=r"target: expected .*8"):
        loss.check_target(target, rows=8)


@pytest.mark.parametrize(
    ("loss", "target", "message"),
    [
        (losses.cross_entropy, [0, 1, 2, 9], "class labels from 0 to 2, got 9 at [3]"),
        (losses.hinge, [0, 1, -1, 9], "class labels from 0 to 2, got -1 at [2]"),
        (losses.hinge, np.array([0, 1, 2**64 - 1, 0], dtype=np.uint64), "got 18446744073709551615 at [2]"),
        (losses.cross_entropy, [0, 1], "class labels of shape (4,), got shape (2,)"),
        (losses.cross_entropy, np.eye(4, 3, dtype=int), "class labels of shape (4,), got shape (4, 3)"),
        (losses.cross_entropy, [0.0, 1.0, 2.0, 1.0], "integer class labels, got list of dtype float64"),
        (losses.cross_entropy, ["a", "b", "c", "d"], "integer class labels, got list of dtype <U1"),
        (losses.binary_cross_entropy, np.full((4, 3), 2), "numbers in [0, 1], got 2 at [0, 0]"),
        (losses.binary_cross_entropy, np.diag([0, 0, -1.0])[[0, 1, 2, 2]], "got -1.0 at [2, 2]"),
        (losses.binary_cross_entropy, sp.csr_array(np.eye(4, 3) * 3), "got 3.0 at [0, 0]"),
        (losses.binary_cross_entropy, sp.csr_array(np.eye(3)), "shape (4, 3), got shape (3, 3)"),
        (losses.binary_cross_entropy, sp.csc_array(np.eye(4, 3)), "SciPy CSR (see .tocsr())"),
        (losses.mse, np.zeros(4), "shape (4, 3), got shape (4,)"),
        (losses.huber, np.zeros((3, 4)), "shape (4, 3), got shape (3, 4)"),
        (losses.mse, [[0, 1, 2]] * 3 + [[0, np.inf, 2]], "finite numbers, got inf at [3, 1]"),
        (losses.mse, sp.csr_array(np.eye(4, 3)), "a dense array of numbers, got a sparse csr_array"),
        (losses.mse, [[1, 2, 3], [1, 2]], "a dense array of numbers, got list"),
    ],
)
def test_errors_say_what_came_and_where(loss, target, message):
    for refuse in (
        lambda: loss(np.zeros((4, 3)), target),
        lambda: loss.metrics(np.zeros((4, 3)), target),
        lambda: loss.check_target(target, rows=4, outputs=3),
    ):
        with pytest.raises(GbnnError) as caught:
            refuse()
        assert caught.value.where == "target"
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("loss", "target", "kind"),
    [
        (losses.cross_entropy, [-1], ArgumentError),
        (losses.cross_entropy, np.array([2**63], dtype=np.uint64), ArgumentError),
        (losses.cross_entropy, np.zeros((0,), dtype=int), ArgumentError),
        (losses.cross_entropy, 3, ArgumentError),
        (losses.cross_entropy, [True], KindError),
        (losses.mse, [np.nan], NonFiniteError),
        (losses.mse, np.zeros((0, 2)), ArgumentError),
        (losses.mse, np.zeros((2, 0)), ArgumentError),
        (losses.mse, 1.0, ArgumentError),
        (losses.mse, [1j], KindError),
        (losses.binary_cross_entropy, np.zeros(0), ArgumentError),
        (losses.binary_cross_entropy, sp.csr_array([1.0, 0.0]), ArgumentError),
        (losses.binary_cross_entropy, sp.csr_array([[1j, 0.0]]), KindError),
    ],
)
def test_check_target_refuses_with_nothing_known(loss, target, kind):
    with pytest.raises(kind):
        loss.check_target(target)


@pytest.mark.parametrize("loss", DEFAULTS.values(), ids=DEFAULTS)
@pytest.mark.parametrize(
    "y", [np.zeros(3), np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((3, 1), complex), "y"]
)
def test_bad_outputs_are_refused(loss, y):
    for refuse in (lambda: loss(y, [0, 0, 0]), lambda: loss.predict(y), lambda: loss.metrics(y, [0, 0, 0])):
        with pytest.raises(GbnnError) as caught:
            refuse()
        assert caught.value.where == "y"


SHAPE = (3, 2)
real = hnp.integer_dtypes() | hnp.unsigned_integer_dtypes() | hnp.floating_dtypes(sizes=(16, 32, 64))
dtypes = real | hnp.boolean_dtypes() | hnp.complex_number_dtypes() | hnp.unicode_string_dtypes()
shapes = st.sampled_from([(3,), (3, 2), (3, 1), (2, 3), (2,), (4,), (0,), (0, 2), (3, 0), (), (1, 3, 2)])
anything = st.one_of(
    hnp.arrays(dtypes, shapes),
    hnp.arrays(real, st.just((3,)) | st.just(SHAPE)),
    hnp.arrays(np.int64, (3,), elements=st.integers(-2, 3)),
    hnp.arrays(np.float64, SHAPE, elements=st.sampled_from([0.0, 0.5, 1.0, -0.1, 1.1, np.nan, np.inf])),
    st.lists(st.none() | st.integers() | st.floats() | st.booleans() | st.text(max_size=2), max_size=4),
    st.lists(st.lists(st.integers(-1, 2) | st.floats(), max_size=3), max_size=4),
    st.none() | st.text() | st.integers() | st.dictionaries(st.integers(), st.integers()) | st.binary(),
    st.builds(
        lambda array, kind: kind(array),
        hnp.arrays(
            np.float32, st.just(SHAPE) | st.just((2, 2)), elements=st.sampled_from([0, 1, 0.5, -1, 2])
        ),
        st.sampled_from(
            [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array, sp.dia_array]
        ),
    ),
)


@pytest.mark.parametrize("loss", DEFAULTS.values(), ids=DEFAULTS)
@given(target=anything)
def test_any_target_at_all_is_right_or_refused(loss, target):
    y = np.array([[0.5, -1.0], [2.0, 0.0], [-0.5, 0.25]])
    refused: GbnnError | None = None
    try:
        value, pullback = loss(y, target)
    except GbnnError as error:
        refused = error
    if refused is not None:
        assert refused.where == "target"
        with pytest.raises(type(refused)):
            loss.check_target(target, *SHAPE)
        with pytest.raises(type(refused)):
            loss.metrics(y, target)
        return
    # What passes has the right form, and so gives a number and a gradient.
    form = target if sp.issparse(target) else np.asarray(target)
    assert form.shape == ((3,) if loss.name in ("cross_entropy", "hinge") else SHAPE)
    assert value >= 0  # infinite where a difference of 1e300 is squared
    assert not np.isnan(value)
    assert pullback().shape == SHAPE


@pytest.mark.parametrize("loss", [losses.cross_entropy, losses.hinge])
@given(
    target=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3),
    dtype=st.sampled_from([np.int64, np.int8]),
)
def test_labels_out_of_range_are_refused(loss, target, dtype):
    wrapped = np.array(target, dtype=np.int64).astype(dtype)
    assume(not ((wrapped >= 0) & (wrapped < 2)).all())
    with pytest.raises(
        ArgumentError, match=r"target: expected class labels from 0 to 1, got -?\d+ at \[\d\]"
    ):
        loss(np.zeros(SHAPE), wrapped)


@pytest.mark.parametrize("loss", [losses.mse, losses.huber, losses.binary_cross_entropy])
@given(place=st.tuples(st.integers(0, 2), st.integers(0, 1)), bad=st.sampled_from([np.nan, np.inf, -np.inf]))
def test_a_number_that_is_not_finite_is_found(loss, place, bad):
    target = np.zeros(SHAPE)
    target[place] = bad
    with pytest.raises(GbnnError) as caught:
        loss(np.zeros(SHAPE), target)
    assert f"{bad} at [{place[0]}, {place[1]}]" in str(caught.value)


@pytest.mark.parametrize("make", [labels, indicators, numbers, sparse])
@given(rows=st.integers(1, 9))
def test_a_target_of_another_length_is_refused(make, rows):
    assume(rows != 7)
    for loss, own in TABLE.values():
        if own is make:
            y, _ = case(make)
            _, target = case(make, (rows, CLASSES))
            with pytest.raises(ArgumentError, match=r"target: expected .*7.*, got shape"):
                loss(y, target)

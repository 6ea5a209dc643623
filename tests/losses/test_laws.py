"""Every loss of the table: its gradient, against differences and torch, and where numbers are extreme."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.adjoint import numeric_gradient
from support.losses import CLASSES, DEFAULTS, TABLE, WEIGHTS, all_losses, allowed, case, labels

from gbnn import losses

# -- Values and gradients ------------------------------------------------------------------------------------


def test_every_loss_is_in_the_table():
    assert {type(loss).name for loss, _ in TABLE.values()} == set(DEFAULTS)


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


def several(nn: Any, y: Any, target: Any, share: Any) -> Any:
    """Torch's softmax cross entropy with a distribution as the target, over the rows that have labels."""
    some = target.sum(1) > 0
    shares = (target / share)[some]
    return nn.functional.cross_entropy(y[some], shares) if some.any() else 0 * y.sum()


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
        "binary, a mean over rows": lambda y, t: nn.BCEWithLogitsLoss(reduction="sum")(y, t) / len(y),
        "multi-label, bool": lambda y, t: several(nn, y, t, t.sum(1, keepdim=True)),
        "multi-label, sparse": lambda y, t: several(nn, y, t, t.sum(1, keepdim=True)),
        "multi-label, each label 1": lambda y, t: several(nn, y, t, 1),
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


# -- Stability (warnings are errors in this suite) -----------------------------------------------------------


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

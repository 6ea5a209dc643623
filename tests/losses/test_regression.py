"""Mean squared error and Huber: predictions and the coefficient of determination."""

from __future__ import annotations

import numpy as np
import pytest
from support.losses import case, numbers

from gbnn import losses


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

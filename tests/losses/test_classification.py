"""Cross entropy and hinge: their labels, predictions and probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.losses import CLASSES, WEIGHTS, case, labels, numbers

from gbnn import losses
from gbnn.errors import ArgumentError


def test_labels_of_no_weight_give_nan_as_in_torch():
    value, pullback = losses.CrossEntropy(WEIGHTS)(np.zeros((2, CLASSES)), [2, 2])
    assert np.isnan(value)
    assert np.isnan(pullback()).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.uint64])
def test_labels_of_any_integer_dtype(dtype):
    y, target = case(labels)
    assert losses.cross_entropy(y, target.astype(dtype))[0] == losses.cross_entropy(y, target)[0]


@pytest.mark.parametrize("loss", [losses.cross_entropy, losses.hinge])
def test_classes_are_predicted_and_scored(loss):
    y = np.array([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]])
    predicted = loss.predict(y)
    assert predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, [1, 0, 1])
    assert loss.metrics(y, [1, 1, 1]) == {"accuracy": pytest.approx(2 / 3)}


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
        loss(np.zeros((3, 2)), wrapped)

"""Binary cross entropy: sparse targets, predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.losses import case, indicators, sparse

from gbnn import losses
from gbnn.errors import ArgumentError

# -- Sparse targets ------------------------------------------------------------------------------------------


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


# -- What the outputs say ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", [[[1, 0], [0, 0]], [[0.9, 0.2], [0.1, 0.5]], sp.csr_array([[1, 0], [0, 0]])]
)
def test_labels_are_predicted_and_scored(target):
    y = np.array([[1.0, 2.0], [-3.0, 0.0]])
    predicted = losses.binary_cross_entropy.predict(y)
    assert predicted.dtype == bool
    np.testing.assert_array_equal(predicted, [[True, True], [False, False]])
    assert losses.binary_cross_entropy.metrics(y, target) == {"accuracy": 0.75}

"""The best labels of every row, of models and of their outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory import peak_while

from gbnn import layers
from gbnn.errors import GbnnError, KindError, NonFiniteError
from gbnn.layers.head import ManyLabels
from gbnn.rows import SparseRows
from gbnn.training import ranking

LABELS = 12


def sort_of(scores: np.ndarray, k: int) -> list[int]:
    return sorted(range(len(scores)), key=lambda j: (-scores[j], j))[:k]


some_scores = st.lists(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0, -np.inf, np.inf]), min_size=4, max_size=4),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(some_scores, st.integers(1, 6))
def test_ranked_is_a_stable_sort(scores, k):
    array = np.array(scores)
    for form in (
        array,
        SparseRows(
            np.arange(len(array) + 1) * 4, np.tile(np.arange(4), len(array)), array.ravel(), array.shape
        ),
    ):
        labels, values = ranking.ranked(form, k)
        assert labels.dtype == np.int64
        for row, found, value in zip(array, labels, values, strict=True):
            order = [j for j in sort_of(row, 4) if row[j] > -np.inf][:k]
            assert found.tolist() == order + [-1] * (k - len(order))
            assert value.tolist() == row[order].tolist() + [-np.inf] * (k - len(order))


def models() -> dict[str, Any]:
    weights = layers.Linear.random(6, LABELS, nnz=40, dtype=np.float64, seed=0)
    weights.bias[...] = np.linspace(-1, 1, LABELS)
    return {
        "dense": weights,
        "lazy": ManyLabels(weights.weights, weights.bias),
        "chain": layers.Chain(layers.Identity(), ManyLabels(weights.weights, weights.bias)),
    }


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("k", [1, 3, LABELS + 2])
def test_top_k_of_a_model(name, k):
    model, x = models()[name], np.random.default_rng(0).standard_normal((23, 6))
    x[np.abs(x) < 0.5] = 0
    wanted = models()["dense"].forward(x)[0]
    for size in (1, 5, 100):
        labels, values = ranking.top_k(model, x, k, batch_size=size)
        assert labels.shape == values.shape == (23, k)
        for row, found, value in zip(wanted, labels, values, strict=True):
            order = sort_of(row, k)
            assert found.tolist() == order + [-1] * (k - len(order))
            np.testing.assert_allclose(value[: len(order)], row[order], rtol=1e-12)
    if name != "dense":
        for form in (sp.csr_array(x), sp.coo_array(x), SparseRows.from_dense(x)):
            np.testing.assert_array_equal(ranking.top_k(model, form, k, batch_size=5)[0], labels)


def test_top_k_of_a_million_labels_holds_no_scores_of_all_rows():
    model = ManyLabels.random(32, 10**6, nnz=10**5, bias=False, seed=0)
    x = np.random.default_rng(0).standard_normal((40, 32)).astype(np.float32)
    ranking.top_k(model, x, 3)
    peak, (labels, _) = peak_while(lambda: ranking.top_k(model, x, 3, batch_size=16))
    assert labels.shape == (40, 3)
    assert peak < 500_000  # one row of scores is 4,000,000 bytes


def test_top_k_holds_one_batch_of_dense_scores(monkeypatch):
    model = layers.Linear.random(8, 20_000, nnz=100, bias=False, seed=0)
    x = np.ones((200, 8), dtype=np.float32)
    ranking.top_k(model, x, 3)
    peak, _ = peak_while(lambda: ranking.top_k(model, x, 3, batch_size=2))
    assert peak < 4_000_000  # all scores are 16,000,000 bytes
    monkeypatch.setattr(ranking, "_MAX_ENTRIES", 40_000)
    peak, _ = peak_while(lambda: ranking.top_k(model, x, 3, batch_size=200))
    assert peak < 4_000_000


def test_bad_arguments_are_refused():
    for k in (0, 1.5, None):
        with pytest.raises(GbnnError, match="k: expected"):
            ranking.top_k(models()["dense"], np.ones((1, 6)), k)
    with pytest.raises(KindError, match="model"):
        ranking.top_k("model", np.eye(2))
    for x in (np.ones((2, 5)), np.ones((0, 6)), sp.csr_array((2, 5)), "x"):
        with pytest.raises(GbnnError, match="x"):
            ranking.top_k(models()["lazy"], x)
    with pytest.raises(NonFiniteError):
        ranking.top_k(models()["lazy"], np.full((2, 6), np.nan))
    with pytest.raises(NonFiniteError):
        ranking.top_k(models()["dense"], np.full((2, 6), np.nan))

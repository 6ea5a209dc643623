"""Rankings of labels and how good they are, against scikit-learn and definitions written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers.head import ManyLabels
from gbnn.rows import SparseRows
from gbnn.training import metrics
from gbnn.training.ranking import ranked

LABELS = 12


def problem(seed: int = 0, rows: int = 9, labels: int = LABELS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    true = (rng.random((rows, labels)) < 0.3).astype(float)
    true[:, 0] = 1
    true[1] = 0  # a row without labels
    return rng.permuted(np.tile(np.arange(labels) / 10, (rows, 1)), axis=1), true


def propensity(labels: int = LABELS) -> np.ndarray:
    return np.linspace(0.2, 1.0, labels)


# -- Definitions, row by row ---------------------------------------------------------------------------------


def ranking(scores: np.ndarray, k: int) -> list[int]:
    return sorted(range(len(scores)), key=lambda j: (-scores[j], j))[:k]


def precision(scores: Any, true: Any, k: int) -> float:
    return float(np.mean([sum(t[j] for j in ranking(s, k)) / k for s, t in zip(scores, true, strict=True)]))


def recall(scores: Any, true: Any, k: int) -> float:
    each = [
        sum(t[j] for j in ranking(s, k)) / t.sum() if t.any() else 0.0
        for s, t in zip(scores, true, strict=True)
    ]
    return float(np.mean(each))


def gathered(order: list[int], gain: np.ndarray, discounted: bool) -> float:
    return sum(gain[j] / (np.log2(r + 2) if discounted else 1) for r, j in enumerate(order))


def ideal(count: int, k: int) -> float:
    return sum(1 / np.log2(r + 2) for r in range(min(count, k))) or 1.0


def ndcg(scores: Any, true: Any, k: int) -> float:
    each = [
        gathered(ranking(s, k), t, True) / ideal(int(t.sum()), k) for s, t in zip(scores, true, strict=True)
    ]
    return float(np.mean(each))


def scored(scores: Any, true: Any, k: int, discounted: bool) -> float:
    reached = most = 0.0
    for s, t in zip(scores, true, strict=True):
        gain = t / propensity(len(t))
        norm = ideal(int(t.sum()), k) if discounted else 1.0
        reached += gathered(ranking(s, k), gain, discounted) / norm
        most += gathered(ranking(gain, min(k, int(t.sum()))), gain, discounted) / norm
    return reached / most


CASES = {
    "precision": (metrics.precision_at_k, precision),
    "recall": (metrics.recall_at_k, recall),
    "ndcg": (metrics.ndcg_at_k, ndcg),
    "ps_precision": (
        lambda r, t, k: metrics.ps_precision_at_k(r, t, propensity(), k),
        lambda s, t, k: scored(s, t, k, False),
    ),
    "ps_ndcg": (
        lambda r, t, k: metrics.ps_ndcg_at_k(r, t, propensity(), k),
        lambda s, t, k: scored(s, t, k, True),
    ),
}
every = pytest.mark.parametrize(("measure", "definition"), CASES.values(), ids=CASES)


@every
@pytest.mark.parametrize("k", [1, 3, 5, LABELS])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_definitions(measure, definition, k, seed):
    scores, true = problem(seed)
    assert measure(scores, sp.csr_array(true), k) == pytest.approx(definition(scores, true, k), rel=1e-12)


@every
def test_every_form_of_ranking_and_target_is_taken(measure, definition):
    scores, true = problem()
    expected = definition(scores, true, 3)
    order = np.array([ranking(s, 5) for s in scores])
    stored = sp.csr_array(scores + 5)  # no score is 0
    lazy = ManyLabels.from_dense(np.eye(LABELS)).forward(scores)[0]
    forms = [
        scores,
        scores.tolist(),
        np.asfortranarray(scores),
        order,
        order.tolist(),
        order.astype(np.uint8),
    ]
    forms += [stored, stored.tocoo(), SparseRows.of(stored), SparseRows.of(stored).to_graphblas(), lazy]
    targets = [sp.csr_array(true), sp.csr_matrix(true), true, true.astype(bool), true.astype(int).tolist()]
    for form in forms:
        for target in targets:
            assert measure(form, target, 3) == pytest.approx(expected, rel=1e-12)
    classes = np.arange(9)
    alone = np.eye(LABELS)[classes]
    assert measure(scores, classes, 3) == pytest.approx(definition(scores, alone, 3), rel=1e-12)
    assert measure(order, classes.tolist(), 3) == pytest.approx(definition(scores, alone, 3), rel=1e-12)


@every
def test_ties_go_to_the_smaller_label(measure, definition):
    _, true = problem()
    scores = np.round(np.random.default_rng(4).random(true.shape) * 2)
    for k in (1, 2, 5):
        expected = definition(scores, true, k)
        lazy = ManyLabels.from_dense(np.eye(LABELS)).forward(scores)[0]
        for form in (scores, sp.csr_array(scores + 1), lazy):
            assert measure(form, true, k) == pytest.approx(expected, rel=1e-12)


@every
def test_the_best_ranking_is_1_and_the_worst_0(measure, definition):
    _, true = problem()
    true[1, 2] = 1
    best = true / propensity()
    few = int(true.sum(axis=1).min())
    assert measure(best, true, few) == pytest.approx(1.0) or definition is recall
    assert measure(-best, true, 1) == 0.0


def test_against_scikit_learn():
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    scores, true = problem()
    for k in (1, 3, 5):
        expected = sklearn_metrics.ndcg_score(true, scores, k=k)
        assert metrics.ndcg_at_k(scores, true, k) == pytest.approx(expected, rel=1e-12)
        order = np.array([ranking(s, k) for s in scores])
        chosen = np.zeros_like(true)
        np.put_along_axis(chosen, order, 1, axis=1)
        by_sample = {"average": "samples", "zero_division": 0}
        expected = sklearn_metrics.recall_score(true, chosen, **by_sample)
        assert metrics.recall_at_k(scores, true, k) == pytest.approx(expected, rel=1e-12)
        expected = sklearn_metrics.precision_score(true, chosen, **by_sample)
        assert metrics.precision_at_k(scores, true, k) == pytest.approx(expected, rel=1e-12)
    classes = np.arange(9)
    expected = sklearn_metrics.top_k_accuracy_score(classes, scores, k=3, labels=np.arange(LABELS))
    assert metrics.precision_at_k(scores, classes, 3) * 3 == pytest.approx(expected)


def test_places_without_a_label_are_wrong():
    true = sp.csr_array([[1, 1, 0], [0, 0, 1]])
    found = [[1, -1, -1], [-1, 2, -1]]
    assert metrics.precision_at_k(found, true, 2) == 0.5
    assert metrics.precision_at_k(found, true, 1) == 0.5
    assert metrics.recall_at_k(found, true, 3) == 0.75


def test_stored_zeros_of_a_target_are_no_labels_and_of_scores_are_scores():
    zero = sp.csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    assert metrics.precision_at_k([[0]], zero) == 0.0
    assert metrics.precision_at_k([[1]], zero) == 1.0
    scores = sp.csr_array((np.array([-1.0, 0.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    np.testing.assert_array_equal(ranked(scores, 3)[0], [[1, 0, -1]])


def test_rows_without_labels_count_0():
    nothing = sp.csr_array((3, 4))
    scores = np.ones((3, 4))
    for measure in (metrics.precision_at_k, metrics.recall_at_k, metrics.ndcg_at_k):
        assert measure(scores, nothing, 2) == 0.0
    assert np.isnan(metrics.ps_precision_at_k(scores, nothing, np.ones(4), 2))
    assert np.isnan(metrics.ps_ndcg_at_k(scores, nothing, np.ones(4), 2))


def test_labels_may_be_numbered_up_to_2_60():
    rows = SparseRows(np.array([0, 2, 3]), np.array([5, 2**59, 7]), np.array([1.0, 2.0, 3.0]), (2, 2**60))
    assert metrics.precision_at_k(rows, np.array([2**59, 8]), 1) == 0.5
    target = sp.csr_array((np.ones(2), np.array([2**59, 7]), np.array([0, 1, 2])), shape=(2, 2**60))
    assert metrics.ndcg_at_k(rows, target, 2) == 1.0


# -- Propensities --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(0.55, 1.5), (0.5, 0.4), (0.6, 2.6)])
def test_propensities_by_the_formula(a, b):
    _, true = problem(rows=40)
    found = metrics.propensities(sp.csr_array(true), a, b)
    scale = (np.log(40) - 1) * (b + 1) ** a
    for label in range(LABELS):
        n = true[:, label].sum()
        assert found[label] == pytest.approx(1 / (1 + scale * np.exp(-a * np.log(n + b))), rel=1e-12)
    np.testing.assert_array_equal(found, metrics.propensities(true, a, b))
    rare = metrics.propensities(sp.csr_array((40, 2)), a, b)
    assert (rare < found.min()).all()


# -- Bad arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "target", "where"),
    [
        ([[0, 9]], np.eye(1, 3), "ranking"),
        ([[0, -2]], np.eye(1, 3), "ranking"),
        ([[1, 1]], np.eye(1, 3), "ranking"),
        ([[0]], np.eye(1, 3), "ranking"),
        ([0, 1], np.eye(1, 3), "ranking"),
        ([["a", "b"]], np.eye(1, 3), "ranking"),
        ([[True, False]], np.eye(1, 3), "ranking"),
        ([[0, 1]], np.eye(2, 3), "target"),
        ([[0.0, 1.0]], np.eye(1, 3), "target"),
        ([[0, 1]], [-1], "target"),
        ([[0, 1]], [0.5], "target"),
        ([[0, 1]], "a", "target"),
        ([[0, 1]], np.zeros((1, 1, 1)), "target"),
        ([[0, 1]], sp.csc_array(np.eye(1, 3)), "target"),
        ([[0.0, np.nan]], np.eye(1, 2), "scores"),
        (sp.csr_array([[1.0, np.nan]]), np.eye(1, 2), "scores"),
    ],
)
def test_bad_rankings_and_targets_are_refused(found, target, where):
    for measure in (metrics.precision_at_k, metrics.recall_at_k, metrics.ndcg_at_k):
        with pytest.raises(GbnnError) as caught:
            measure(found, target, 2)
        assert caught.value.where == where


def test_other_bad_arguments_are_refused():
    true = np.eye(2, 3)
    for bad in ([1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0], [1.0, np.nan, 1.0], np.ones((3, 1)), "abc"):
        with pytest.raises(GbnnError, match="propensity"):
            metrics.ps_precision_at_k(np.eye(2, 3), true, bad)
    with pytest.raises(KindError, match="target"):
        metrics.propensities([0, 1, 2])
    with pytest.raises(ArgumentError, match="target, rows"):
        metrics.propensities(true)
    for k in (0, 1.5, None):
        with pytest.raises(GbnnError, match="k: expected"):
            metrics.precision_at_k(true, true, k)

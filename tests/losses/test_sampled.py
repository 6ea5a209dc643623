"""Losses over candidates, and what draws the negatives."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gbnn import losses
from gbnn.errors import ArgumentError, GbnnError, KindError
from gbnn.layers.head import ManyLabels
from gbnn.losses import Sampled, negatives
from gbnn.losses.negatives import Negatives
from gbnn.losses.sampled import _candidates
from gbnn.rows import SparseRows

HIDDEN, LABELS, BATCH = 5, 8, 6

BASES = {
    "cross_entropy": losses.cross_entropy,
    "smoothed": losses.CrossEntropy(label_smoothing=0.2),
    "weighted": losses.CrossEntropy(np.linspace(0.5, 2, LABELS)),
    "hinge": losses.hinge,
    "binary": losses.binary_cross_entropy,
    "binary by rows": losses.BinaryCrossEntropy(reduction="rows"),
    "multi-label": losses.multilabel_cross_entropy,
    "multi-label, each 1": losses.MultiLabelCrossEntropy(normalized=False),
}
bases = pytest.mark.parametrize("base", BASES.values(), ids=BASES)
graph = pytest.mark.parametrize(
    "choose", [negatives.two_hops(5), negatives.active(5)], ids=["two_hops", "active"]
)


def scores_of(seed: int = 0, sparse: bool = False) -> Any:
    layer = ManyLabels.random(HIDDEN, LABELS, nnz=24, dtype=np.float64, seed=seed)
    layer.bias[...] = np.linspace(-0.5, 0.5, LABELS)
    h = np.random.default_rng(seed).standard_normal((BATCH, HIDDEN))
    return layer.forward(SparseRows.from_dense(np.maximum(h, 0)) if sparse else h, training=True)


def target_of(base: losses.Loss, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if isinstance(base, losses.CrossEntropy | losses.Hinge):
        return rng.integers(0, LABELS, BATCH)
    keep = rng.random((BATCH, LABELS)) < 0.3
    keep[2] = False  # a row without labels
    return sp.csr_array(keep.astype(float))


# -- Values and gradients ------------------------------------------------------------------------------------


@bases
@pytest.mark.parametrize("sparse", [False, True])
def test_all_labels_as_candidates_give_the_exact_loss(base, sparse):
    target = target_of(base)
    (scores, back), (exact_scores, exact_back) = scores_of(sparse=sparse), scores_of(sparse=sparse)
    value, pullback = Sampled(base, negatives.uniform(LABELS))(scores, target)
    expected, expected_pullback = base(exact_scores, target)
    assert value == pytest.approx(expected, rel=1e-12)
    dy = pullback()
    assert isinstance(dy, SparseRows)
    np.testing.assert_allclose(dy.to_dense(), expected_pullback(), rtol=1e-10, atol=1e-14)
    dh, gradients = back(dy)
    expected_dh, expected_gradients = exact_back(expected_pullback())
    if sparse:
        dh, expected_dh = dh.values, expected_dh.values
    np.testing.assert_allclose(dh, expected_dh, rtol=1e-10, atol=1e-14)
    for name in gradients:
        given, wanted = np.asarray(gradients[name]), np.asarray(expected_gradients[name])
        np.testing.assert_allclose(given, wanted, rtol=1e-10, atol=1e-14)


@bases
@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("drawn", ["uniform", "popular", "both", "two_hops"])
def test_pullback_is_the_derivative_of_the_value(base, corrected, drawn):
    choose = {
        "uniform": negatives.uniform(3),
        "popular": negatives.popular(np.arange(1, LABELS + 1), 3),
        "both": [negatives.uniform(2), negatives.popular(np.arange(1, LABELS + 1), 2)],
        "two_hops": negatives.two_hops(3),
    }[drawn]
    target = target_of(base)
    scores, _ = scores_of()

    def value() -> float:
        return Sampled(base, choose, seed=4, corrected=corrected)(scores, target)[0]

    dy = Sampled(base, choose, seed=4, corrected=corrected)(scores, target)[1]()
    assert dy.nnz < BATCH * LABELS
    bias, moved = scores.bias, np.zeros(LABELS)
    for label in range(LABELS):
        kept = bias[label]
        bias[label] = kept + 1e-6
        up = value()
        bias[label] = kept - 1e-6
        moved[label] = (up - value()) / 2e-6
        bias[label] = kept
    np.testing.assert_allclose(dy.to_scipy().sum(axis=0), moved, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("drawn", ["uniform", "popular", "both"])
def test_corrected_losses_are_right_on_average(drawn):
    often = np.arange(1, LABELS + 1.0)
    choose = {
        "uniform": negatives.uniform(3),
        "popular": negatives.popular(often, 3),
        "both": [negatives.uniform(2), negatives.popular(often, 2)],
    }[drawn]
    base = losses.BinaryCrossEntropy(reduction="rows")
    target, (scores, _) = target_of(base), scores_of()
    loss = Sampled(base, choose, seed=0)
    values = [loss(scores, target)[0] for _ in range(600)]
    error = np.std(values) / np.sqrt(len(values))
    assert error < 0.2
    assert np.mean(values) == pytest.approx(base(scores, target)[0], abs=4 * error)
    # Of a softmax the partition function is.
    labels = np.arange(BATCH) % LABELS
    loss = Sampled(losses.cross_entropy, choose, seed=1)
    at = scores.dense()[np.arange(BATCH), labels]
    partitions = [np.exp(loss.base(scores.at(_single(labels)), labels)[0])]  # of the label alone: 1
    assert partitions == [pytest.approx(1.0)]
    one, _ = scores_of()
    one.h = one.h[:1]
    partitions = [np.exp(loss(one, labels[:1])[0] + at[0]) for _ in range(600)]
    error = np.std(partitions) / np.sqrt(len(partitions))
    assert np.mean(partitions) == pytest.approx(np.exp(scores.dense()[0]).sum(), abs=4 * error)


def _single(labels: np.ndarray) -> SparseRows:
    return SparseRows(np.arange(BATCH + 1), labels, np.ones(BATCH), (BATCH, LABELS))


def test_without_correction_negatives_weigh_as_they_are():
    target, (scores, _) = np.zeros(BATCH, dtype=int), scores_of()
    loss = Sampled(losses.cross_entropy, lambda *_: Negatives(np.array([2, 5]), None))
    value, pullback = loss(scores, target)
    some = scores.dense()[:, [0, 2, 5]]
    expected, expected_pullback = losses.cross_entropy(some, target)
    assert value == pytest.approx(expected)
    np.testing.assert_allclose(pullback().values.reshape(BATCH, 3), expected_pullback())

    def known(*_: Any) -> Negatives:
        return Negatives(np.array([2, 5]), lambda some: np.full(some.size, 0.25))

    assert Sampled(losses.cross_entropy, known, corrected=False)(scores, target)[0] == value
    four_times = (np.exp(scores.dense()[:, [2, 5]]).sum(axis=1) * 4 + np.exp(some[:, 0])) / np.exp(some[:, 0])
    assert Sampled(losses.cross_entropy, known)(scores, target)[0] == pytest.approx(np.log(four_times).mean())


def test_computed_outputs_go_to_the_base_loss():
    y, target = np.random.default_rng(0).standard_normal((3, 4)), [0, 1, 3]
    loss = Sampled(losses.cross_entropy, negatives.uniform(1))
    for outputs in (y, sp.csr_array(y)):
        assert loss(outputs, target)[0] == losses.cross_entropy(outputs, target)[0]
    scores, _ = scores_of()
    labels = np.zeros(BATCH, dtype=int)
    assert loss.metrics(scores, labels) == losses.cross_entropy.metrics(scores.dense(), labels)
    np.testing.assert_array_equal(loss.predict(scores), scores.dense().argmax(axis=1))
    np.testing.assert_allclose(loss.probabilities(scores), losses.cross_entropy.probabilities(scores.dense()))
    several = Sampled(losses.multilabel_cross_entropy)
    np.testing.assert_array_equal(several.predict(scores), scores.dense().argmax(axis=1))
    target = target_of(several.base)
    assert several.metrics(scores, target) == several.base.metrics(scores.dense(), target)


# -- Candidates ----------------------------------------------------------------------------------------------


@given(
    shared=st.lists(st.integers(0, 9), unique=True),
    own=st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=5),
    known=st.booleans(),
)
def test_candidates_are_the_union(shared, own, known):
    drawn = Negatives(
        np.array(sorted(shared), dtype=np.int64), (lambda some: some / 10 + 0.05) if known else None
    )
    rows = np.repeat(np.arange(len(own)), [len(row) for row in own])
    labels = np.array([label for row in own for label in sorted(row)], dtype=np.int64)
    starts, columns, chance = _candidates(drawn, rows, labels, len(own))
    assert starts.size == len(own) + 1
    for b, row in enumerate(own):
        expected = sorted({*row, *shared})
        assert columns[starts[b] : starts[b + 1]].tolist() == expected
        if known:
            chances = [1.0 if label in row else label / 10 + 0.05 for label in expected]
            assert chance[starts[b] : starts[b + 1]].tolist() == chances
    assert known or chance is None


# -- Negatives -----------------------------------------------------------------------------------------------


def test_uniform_draws_each_label_as_often():
    scores, _ = scores_of()
    rng, counts = np.random.default_rng(0), np.zeros(LABELS)
    for _ in range(2000):
        drawn = negatives.uniform(3)(rng, scores, None)
        assert drawn.labels.size == 3
        assert (np.diff(drawn.labels) > 0).all()
        counts[drawn.labels] += 1
    chance = drawn.chance(np.arange(LABELS))
    np.testing.assert_allclose(counts / 2000, chance, atol=4 * np.sqrt(0.25 / 2000))


@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
def test_popular_draws_by_frequency(power):
    scores, _ = scores_of()
    often = np.array([0, 1, 2, 3, 0, 10, 20, 40])
    choose, rng, counts = negatives.popular(often, 3, power), np.random.default_rng(0), np.zeros(LABELS)
    for _ in range(2000):
        drawn = choose(rng, scores, None)
        assert (np.diff(drawn.labels) > 0).all()
        counts[drawn.labels] += 1
    chance = drawn.chance(np.arange(LABELS))
    np.testing.assert_allclose(counts / 2000, chance, atol=4 * np.sqrt(0.25 / 2000))
    assert (chance[[0, 4]] == 0).all()
    share = np.where(often > 0, often.astype(float) ** power, 0)
    np.testing.assert_allclose(chance, 1 - (1 - share / share.sum()) ** 3, rtol=1e-10, atol=1e-12)


@graph
@pytest.mark.parametrize("sparse", [False, True])
def test_the_graphs_negatives_are_its_neighbours(choose, sparse):
    layer = ManyLabels.from_dense(
        np.kron(np.eye(3), np.ones((2, 3)))
    )  # three blocks of two neurons, three labels
    h = np.zeros((2, 6))
    h[0, 3], h[1, 4] = 1.0, -0.5
    scores, _ = layer.forward(SparseRows.from_dense(h) if sparse else h)
    found: set[int] = set()
    for seed in range(20):
        found |= set(choose(np.random.default_rng(seed), scores, np.array([3, 8])).labels.tolist())
    assert found == {3, 4, 5, 6, 7, 8}
    assert choose(np.random.default_rng(0), scores, np.array([3, 8])).chance is None


@graph
def test_where_there_is_no_neighbour_there_is_no_negative(choose):
    scores, _ = ManyLabels.from_scipy(sp.csr_array((3, 4))).forward(np.ones((2, 3)))
    assert choose(np.random.default_rng(0), scores, np.array([1, 2])).labels.size == 0
    scores, _ = ManyLabels.random(3, 4, nnz=5).forward(np.zeros((2, 3)))
    empty = sp.csr_array((2, 4))
    assert choose(np.random.default_rng(0), scores, empty).labels.size == 0
    loss = Sampled(losses.BinaryCrossEntropy(reduction="rows"), choose)
    value, pullback = loss(scores, empty)
    assert value == 0.0
    assert pullback().nnz == 0


# -- As a value ----------------------------------------------------------------------------------------------


def test_randomness_is_its_own_and_goes_on():
    scores, _ = scores_of()
    target = np.zeros(BATCH, dtype=int)

    def three(loss: Sampled) -> list[float]:
        return [loss(scores, target)[0] for _ in range(3)]

    choose = negatives.uniform(2)
    first = Sampled(losses.cross_entropy, choose, seed=3)
    values = three(first)
    assert len(set(values)) > 1
    assert three(Sampled(losses.cross_entropy, choose, seed=3)) == values
    assert three(Sampled(losses.cross_entropy, choose, seed=4)) != values
    again, pickled = Sampled(**first.config()), pickle.loads(pickle.dumps(first))
    following = three(first)
    assert three(again) == three(pickled) == following
    rng = np.random.default_rng(0)
    assert three(Sampled(losses.cross_entropy, choose, rng)) != three(
        Sampled(losses.cross_entropy, choose, rng)
    )
    assert first == Sampled(losses.cross_entropy, choose, seed=3)
    assert hash(first) == hash(Sampled(losses.cross_entropy, choose, seed=3))
    assert first != Sampled(losses.cross_entropy, choose, seed=4)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Sampled("cross_entropy"), "base"),
        (lambda: Sampled(losses.mse), "base"),
        (lambda: Sampled(Sampled()), "base"),
        (lambda: Sampled(negatives=3), "negatives"),
        (lambda: Sampled(negatives=[]), "negatives"),
        (lambda: Sampled(negatives=[negatives.uniform(1), None]), "negatives"),
        (lambda: Sampled(seed=-1), "seed"),
        (lambda: Sampled(seed=None), "seed"),
        (lambda: Sampled(corrected="yes"), "corrected"),
        (lambda: Sampled(state={"a": 1}), "state"),
        (lambda: negatives.uniform(0), "uniform, count"),
        (lambda: negatives.two_hops(1.5), "two_hops, count"),
        (lambda: negatives.active(-1), "active, count"),
        (lambda: negatives.popular([1, 2], 0), "popular, count"),
        (lambda: negatives.popular([1, -2], 1), "popular, frequencies"),
        (lambda: negatives.popular([1, np.nan], 1), "popular, frequencies"),
        (lambda: negatives.popular([0, 0], 1), "popular, frequencies"),
        (lambda: negatives.popular([[1.0]], 1), "popular, frequencies"),
        (lambda: negatives.popular("ab", 1), "popular, frequencies"),
        (lambda: negatives.popular([1, 2], 1, power=-1), "popular, power"),
    ],
)
def test_bad_options_are_refused_by_name(make, argument):
    with pytest.raises(GbnnError) as caught:
        make()
    assert caught.value.where == argument


@pytest.mark.parametrize(
    "bad", [np.array([3, 1]), np.array([1, 1]), np.array([-1]), np.array([8]), np.array([0.5])]
)
def test_negatives_of_ones_own_are_checked(bad):
    scores, _ = scores_of()
    with pytest.raises(GbnnError, match="negatives"):
        Sampled(negatives=lambda *_: Negatives(bad, None))(scores, np.zeros(BATCH, dtype=int))
    with pytest.raises(KindError, match="negatives"):
        Sampled(negatives=lambda *_: bad)(scores, np.zeros(BATCH, dtype=int))


def test_targets_are_those_of_the_base_loss():
    scores, _ = scores_of()
    with pytest.raises(ArgumentError, match="class labels from 0 to 7, got 8"):
        Sampled()(scores, np.full(BATCH, LABELS))
    with pytest.raises(ArgumentError, match="target"):
        Sampled(losses.binary_cross_entropy)(scores, sp.csr_array((BATCH, 3)))
    with pytest.raises(ArgumentError, match="8 frequencies"):
        Sampled(negatives=negatives.popular([1, 2], 1))(scores, np.zeros(BATCH, dtype=int))


# -- It learns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "base", [losses.multilabel_cross_entropy, losses.BinaryCrossEntropy(reduction="rows")]
)
@pytest.mark.parametrize("choose", [negatives.uniform(30), (negatives.uniform(20), negatives.two_hops(20))])
def test_it_learns_many_labels_from_few(base, choose):
    rng = np.random.default_rng(0)
    labels, rows, hidden = 300, 2000, 64
    centres = rng.standard_normal((labels, hidden)).astype(np.float32)
    first = rng.integers(0, labels, rows)
    true = np.sort(np.stack([first, (first + rng.integers(1, labels, rows)) % labels], axis=1), axis=1)
    x = centres[true].sum(axis=1)
    target = sp.csr_array(
        (np.ones(2 * rows), (np.repeat(np.arange(rows), 2), true.ravel())), shape=(rows, labels)
    )
    layer = ManyLabels.random(hidden, labels, density=0.5, seed=0)
    loss = Sampled(base, choose, seed=1, corrected=base.name == "multilabel_cross_entropy")
    step = 4.0 if loss.corrected else 1.0
    for _ in range(6):
        for start in range(0, rows, 50):
            some = slice(start, start + 50)
            scores, back = layer.forward(x[some], training=True)
            _, pullback = loss(scores, target[some])
            _, gradients = back(pullback(), inputs=False)
            layer.weights.add_at(gradients["weights"].positions, -step * gradients["weights"].values)
            layer.bias[gradients["bias"].positions] -= step * gradients["bias"].values
    best = layer.forward(x)[0].top(1)[0][:, 0]
    assert (best[:, None] == true).any(axis=1).mean() > 0.9

"""`ManyLabels` and its lazy `Scores`: what `Linear` gives, but only where it is asked for."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support.adjoint import numeric_gradient, numeric_weight_gradient
from support.memory import peak_while

from gbnn import layers, losses, semirings, topology, training
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.layers import scores_kernels
from gbnn.layers.head import ManyLabels
from gbnn.layers.scores import Scores
from gbnn.rows import SparseRows
from gbnn.semirings import TouchedGradient
from gbnn.topology import wire
from gbnn.topology.grow.groups import by_chance
from gbnn.weights import Weights

HIDDEN, LABELS, BATCH = 6, 9, 4


def head(bias: bool = True, nnz: int = 20, dtype: Any = np.float64) -> ManyLabels:
    made = ManyLabels.random(HIDDEN, LABELS, nnz=nnz, bias=bias, dtype=dtype, seed=1)
    if bias:
        made.bias[...] = np.linspace(-1, 1, LABELS)
    return made


def batch(sparse: bool = False, dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(0)
    x = np.asfortranarray(rng.standard_normal((BATCH, HIDDEN)), dtype=dtype)
    if not sparse:
        return x
    x[rng.random(x.shape) < 0.5] = 0
    x[:, 3] = 0  # a neuron that is active nowhere
    x[2] = 0  # a row without active neurons
    return SparseRows.from_dense(x)


def dense(layer: ManyLabels, x: Any) -> np.ndarray:
    x = x.to_dense() if isinstance(x, SparseRows) else x
    return x @ layer.weights.to_dense() + (0 if layer.bias is None else layer.bias)


def pattern(seed: int = 0, share: float = 0.4) -> SparseRows:
    keep = np.random.default_rng(seed).random((BATCH, LABELS)) < share
    keep[1] = False
    return SparseRows.from_dense(keep)


every = pytest.mark.parametrize(
    ("sparse", "bias", "nnz"),
    [
        (False, True, 20),
        (True, True, 20),
        (False, False, 20),
        (True, False, 20),
        (False, True, 0),
        (True, True, 0),
    ],
)

# -- Scores --------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("training", [False, True])
def test_candidates_are_entries_of_the_dense_product(sparse, bias, nnz, training):
    layer, x = head(bias, nnz), batch(sparse)
    scores, _ = layer.forward(x, training=training)
    assert isinstance(scores, Scores)
    assert scores.shape == (BATCH, LABELS)
    assert len(scores) == BATCH
    wanted = dense(layer, x)
    for seed in range(4):
        at = pattern(seed)
        found = scores.at(at)
        assert found.same_pattern(at)
        np.testing.assert_allclose(found.values, wanted[at.rows, at.columns], rtol=1e-12, atol=1e-14)
        for form in (
            at.to_scipy(),
            at.to_graphblas(),
            (at.starts, at.columns),
            [at.starts.tolist(), at.columns.tolist()],
        ):
            np.testing.assert_array_equal(scores.at(form).values, found.values)
    np.testing.assert_allclose(scores.dense(), wanted, rtol=1e-12, atol=1e-14)
    assert scores.dense().flags.f_contiguous
    nothing = scores.at((np.zeros(BATCH + 1, int), np.zeros(0, int)))
    assert nothing.nnz == 0


@every
@pytest.mark.parametrize("k", [1, 3, LABELS, LABELS + 2])
def test_top_is_a_stable_sort(sparse, bias, nnz, k):
    layer, x = head(bias, nnz), batch(sparse)
    wanted = dense(layer, x)
    labels, values = layer.forward(x)[0].top(k)
    order = np.argsort(-wanted, axis=1, kind="stable")[:, :k]
    filled = min(k, LABELS)
    np.testing.assert_array_equal(labels[:, :filled], order)
    np.testing.assert_allclose(
        values[:, :filled], np.take_along_axis(wanted, order, 1), rtol=1e-12, atol=1e-14
    )
    assert (labels[:, filled:] == -1).all()
    assert (values[:, filled:] == -np.inf).all()


@settings(max_examples=40, deadline=None)
@given(
    scores=st.lists(
        st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.0, -np.inf]), min_size=5, max_size=5), min_size=1
    ),
    k=st.integers(1, 6),
    sparse=st.booleans(),
)
def test_top_breaks_ties_by_the_smaller_label(scores, k, sparse):
    wanted = np.array(scores)
    layer = ManyLabels.from_dense(np.eye(5))
    x = SparseRows.from_dense(wanted) if sparse else wanted
    with np.errstate(invalid="ignore"):
        labels, values = layer.forward(x)[0].top(k)
    for row, found, value in zip(wanted, labels, values, strict=True):
        order = [j for j in np.argsort(-row, kind="stable") if row[j] > -np.inf][:k]
        assert found.tolist() == order + [-1] * (k - len(order))
        assert value.tolist() == row[order].tolist() + [-np.inf] * (k - len(order))


def test_top_of_sparse_rows_goes_by_blocks(monkeypatch):
    monkeypatch.setattr("gbnn.layers.scores._BLOCK", 3)
    layer, x = head(), batch(sparse=True)
    wanted = np.argsort(-dense(layer, x), axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(layer.forward(x)[0].top(4)[0], wanted)


def test_batches_of_more_rows_than_a_thread_does_at_a_time():
    layer = head(dtype=np.float32)
    x = np.random.default_rng(3).standard_normal((37, HIDDEN)).astype(np.float32)
    labels, values = layer.forward(x)[0].top(2)
    wanted = dense(layer, x)
    np.testing.assert_allclose(values, -np.sort(-wanted, axis=1)[:, :2], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(wanted, labels, 1), values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_scores_that_are_nan_are_refused(sparse):
    x = np.ones((BATCH, HIDDEN))
    x[2, :] = np.nan
    layer = head()
    with pytest.raises(NonFiniteError, match="nan in row 2"):
        layer.forward(SparseRows.from_dense(x) if sparse else x)[0].top(2)


@given(st.lists(st.sampled_from([0, 1, 5, 2**40, 2**60 - 1]) | st.integers(0, 2**60 - 1)))
def test_distinct_numbers_each_once(numbers):
    columns = np.array(numbers, dtype=np.int64)
    place, found = np.empty_like(columns), np.empty_like(columns)
    count = scores_kernels.distinct(columns, scores_kernels.table_for(columns.size), place, found)
    assert len(set(found[:count].tolist())) == count
    np.testing.assert_array_equal(found[:count][place], columns)


# -- Gradients -----------------------------------------------------------------------------------------------


@every
def test_gradients_at_candidates(sparse, bias, nnz):
    layer, x = head(bias, nnz), batch(sparse)
    at = pattern()
    dy = at.with_values(np.random.default_rng(5).standard_normal(at.nnz))
    dy.values[0] = 0.0
    scores, pullback = layer.forward(x, training=True)
    scores.at(at)
    dh, gradients = pullback(dy)

    def scalar() -> float:
        return float((layer.forward(x)[0].at(at).values * dy.values).sum())

    assert set(gradients) == set(layer.parameters())
    by_edge = gradients["weights"]
    assert isinstance(by_edge, TouchedGradient)
    assert by_edge.shape == (nnz,)
    assert (np.diff(by_edge.positions) > 0).all()
    into = np.isin(layer.weights.targets, at.columns)
    np.testing.assert_array_equal(by_edge.positions, np.flatnonzero(into))
    close = {"rtol": 1e-7, "atol": 1e-8}
    np.testing.assert_allclose(np.asarray(by_edge), numeric_weight_gradient(scalar, layer.weights), **close)
    if bias:
        assert gradients["bias"].shape == (LABELS,)
        np.testing.assert_allclose(
            np.asarray(gradients["bias"]), numeric_gradient(scalar, layer.bias), **close
        )
    if sparse:
        assert isinstance(dh, SparseRows)
        assert dh.columns is x.columns
        np.testing.assert_allclose(dh.values, numeric_gradient(scalar, x.values), **close)
    else:
        assert dh.flags.f_contiguous
        np.testing.assert_allclose(dh, numeric_gradient(scalar, x), **close)
    none, alone = layer.forward(x)[1](dy, inputs=False)
    assert none is None
    np.testing.assert_array_equal(np.asarray(alone["weights"]), np.asarray(by_edge))


@every
def test_a_dense_gradient_is_that_of_linear(sparse, bias, nnz):
    layer, x = head(bias, nnz), batch(sparse)
    plain = layers.Linear(layer.weights, layer.bias)
    dy = np.random.default_rng(2).standard_normal((BATCH, LABELS))
    dh, gradients = layer.forward(x)[1](dy)
    given = x.to_dense() if sparse else x
    expected, other = plain.forward(given)[1](dy)
    if sparse:
        expected, dh = expected[x.rows, x.columns], dh.values
    np.testing.assert_allclose(dh, expected, rtol=1e-12, atol=1e-14)
    for name, gradient in other.items():
        np.testing.assert_allclose(np.asarray(gradients[name]), np.asarray(gradient), rtol=1e-12, atol=1e-14)


def test_a_pullback_of_other_weights_is_refused():
    layer = head()
    scores, pullback = layer.forward(batch())
    at = scores.at(pattern())
    layer.weights.assign(0.0)
    with pytest.raises(ArgumentError, match="weights of the forward pass"):
        pullback(at)


def test_candidates_are_scored_with_the_weights_a_lazy_optimizer_owes():
    layer, x, at = head(), batch(), pattern()
    expected = layer.forward(x)[0].at(at).values
    owed = layer.weights.values.copy()
    layer.weights.assign(0.0)

    def pay(values: np.ndarray, positions: Any) -> None:
        some = slice(None) if positions is None else positions
        values[some] = owed[some]

    layer.weights.pending = pay
    scores, pullback = layer.forward(x)
    np.testing.assert_array_equal(scores.at(at).values, expected)
    untouched = ~np.isin(layer.weights.targets, at.columns)
    assert (layer.weights.raw[untouched] == 0).all()  # nobody asked for those
    dh, _ = pullback(at)
    layer.weights.pending = None
    layer.weights.assign(owed)
    np.testing.assert_array_equal(dh, layer.forward(x)[1](at)[0])


# -- As a layer ----------------------------------------------------------------------------------------------


def test_it_ends_a_network():
    model = layers.Chain(
        layers.Linear.random(5, HIDDEN, nnz=12, seed=0), layers.Tanh(), head(dtype=np.float32)
    )
    scores, pullback = model.forward(np.ones((BATCH, 5)), training=True)
    dx, gradients = pullback(scores.at(pattern()))
    assert dx.shape == (BATCH, 5)
    assert set(gradients) == set(model.parameters())
    assert model.out_features == LABELS
    assert "ManyLabels" in model.describe()


def test_it_is_saved_and_loaded(tmp_path):
    layer = head()
    training.save(tmp_path / "head.gbnn", layers.Chain(layer))
    loaded = training.load(tmp_path / "head.gbnn", known=[ManyLabels])
    for other in (loaded, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        scores, _ = other.forward(batch())
        np.testing.assert_array_equal(scores.dense(), layer.forward(batch())[0].dense())
    assert repr(layer) == "ManyLabels(6 x 9, nnz=20, density=0.37, bias)"


def test_fixed_fan_in_is_made_and_stays_under_rewiring():
    edges = wire.constant_fan_in(np.random.default_rng(0), (40, 30), 30 * 5)
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((64, 40)).astype(np.float32), rng.integers(0, 30, 64)
    # Within a group of all inputs growth at random keeps a label's edges, and asks for no gradient.
    by_group = topology.Rewiring(
        topology.magnitude,
        topology.in_groups(40, by_chance),
        topology.every_steps(2),
        topology.constant(0.3),
    )
    for rewiring, loss in (
        (topology.srigl(every=2, ablation=0.0), losses.cross_entropy),
        (by_group, losses.Sampled(losses.cross_entropy, losses.negatives.uniform(4))),
    ):
        layer = ManyLabels.from_edges(edges, seed=0)
        before = layer.weights.edges
        for _ in training.train(layer, [(x, y)] * 6, rewiring=rewiring, loss=loss):
            pass
        assert layer.weights.edges.find(before.sources, before.targets).min() == -1
        np.testing.assert_array_equal(layer.weights.fan_in()[1], 5)


# -- Cost ----------------------------------------------------------------------------------------------------


def large(labels: int, hidden: int = 256) -> ManyLabels:
    """One edge into each label."""
    targets = np.arange(labels)
    edges, _ = Edges.from_coo(targets * 7 % hidden, targets, (hidden, labels))
    return ManyLabels(Weights(edges, np.linspace(-1, 1, labels, dtype=np.float32)))


def test_top_of_a_million_labels_holds_no_row_of_scores():
    layer = large(10**6)
    x = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)
    rows = SparseRows.from_dense(np.where(x > 1, x, 0))
    for h in (x, rows):
        layer.forward(h)[0].top(5)  # compiles, and makes the views
        peak, (labels, _) = peak_while(lambda h=h: layer.forward(h)[0].top(5))
        assert labels.shape == (64, 5)
        assert peak < 1_000_000  # one row of scores is 4,000,000 bytes


def test_a_step_costs_what_its_candidates_cost():
    rng = np.random.default_rng(0)
    x = np.asfortranarray(rng.standard_normal((16, 256)).astype(np.float32))
    peaks = []
    for labels in (10**4, 10**6):
        layer = large(labels)
        columns = np.sort(rng.choice(10**4, (16, 50)), axis=1)
        columns += np.arange(50)  # ascending
        at = np.arange(17) * 50, np.minimum(columns, labels - 50 + np.arange(50)).ravel()

        def step(layer=layer, at=at):
            scores, pullback = layer.forward(x)
            return pullback(scores.at(at))

        step()
        peaks.append(peak_while(step)[0])
    assert peaks[1] < 1.05 * peaks[0]
    assert peaks[1] < 400_000


# -- Bad arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (([0, 1, 1, 1, 1], [9]), "labels from 0 to 8, got 9"),
        (([0, 1, 1, 1, 1], [-1]), "labels from 0 to 8, got -1"),
        (([0, 1], [0]), "starts of 4 rows"),
        (([0, 2, 1, 2, 2], [0, 1]), "starts of 4 rows"),
        (([0, 2, 2, 2, 2], [1, 1]), "columns that ascend"),
        (([0, 2, 2, 2, 3], [3, 1, 0]), "columns that ascend"),
        (sp.csr_array((4, 8)), "shape (4, 9)"),
        (np.zeros((4, 9)), "sparse rows, or starts and columns"),
        (None, "sparse rows, or starts and columns"),
        ("ab", "sparse rows, or starts and columns"),
    ],
)
def test_bad_patterns_are_refused(wanted, message):
    with pytest.raises(GbnnError) as caught:
        head().forward(batch())[0].at(wanted)
    assert caught.value.where == "pattern"
    assert message in str(caught.value)


def test_bad_arguments_are_refused():
    with pytest.raises(ArgumentError, match="semiring: expected plus_times"):
        ManyLabels.random(3, 4, nnz=5, semiring=semirings.min_plus)
    with pytest.raises(ArgumentError, match=r"at most 2\*\*31 labels"):
        ManyLabels(Weights.from_coo([0], [0], [1.0], (2, 2**32)))
    layer = head()
    for x in (np.ones((2, 5)), sp.csr_array((2, 5)), "x"):
        with pytest.raises(GbnnError, match=r"ManyLabels.forward x"):
            layer.forward(x)
    scores, pullback = layer.forward(batch())
    for dy in (np.ones((2, LABELS)), sp.csr_array((2, LABELS)), "dy"):
        with pytest.raises(GbnnError, match=r"ManyLabels.pullback dy"):
            pullback(dy)
    for k in (0, -1, 1.5):
        with pytest.raises(GbnnError, match="k: expected"):
            scores.top(k)
    with pytest.raises(ArgumentError, match=r"at most 67108864 scores as an array \(or losses.Sampled"):
        ManyLabels.random(2, 10**8, nnz=3, bias=False).forward(np.ones((1, 2)))[0].dense()
    with pytest.raises(KindError):
        ManyLabels("weights")
    with pytest.raises(ArgumentError):
        ManyLabels.restore({"semiring": 1}, {"weights": layer.weights}, {})

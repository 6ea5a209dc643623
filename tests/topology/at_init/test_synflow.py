"""SynFlow against sums over all paths and a dense version of its loop; layers do not collapse."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bits import bits
from support.memory import peak_while

from gbnn import layers, losses, models, semirings
from gbnn.errors import GbnnError, NonFiniteError
from gbnn.layers import Layer
from gbnn.topology import at_init
from gbnn.topology.at_init.keep import edged
from gbnn.topology.at_init.synflow import flow_of
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
patient = settings(deadline=None, max_examples=30)


@st.composite
def networks(draw: st.DrawFn) -> layers.Chain:
    """Draw a chain of up to three small layers, from no edges to all of them, of weights of either sign."""
    widths = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    made: list[Layer] = []
    for a, b in pairwise(widths):
        mask = rng.random((a, b)) < draw(st.sampled_from([0.0, 0.5, 0.8, 1.0]))
        rows, columns = np.nonzero(mask)
        values = rng.standard_normal(rows.size)
        weights = Weights.from_coo(rows, columns, values, (a, b), dtype=np.float64)
        made += [layers.Linear(weights, rng.standard_normal(b)), layers.Relu()]
    return layers.Chain(*made[:-1])


def path_sums(matrices: list[Array]) -> list[Array]:
    """Return for each entry the sum, over all paths through it, of the product of |w| on the path."""
    sums = [np.zeros_like(m) for m in matrices]
    widths = [matrices[0].shape[0], *(m.shape[1] for m in matrices)]
    for path in product(*map(range, widths)):
        steps = list(pairwise(path))
        weight = float(np.prod([abs(m[step]) for m, step in zip(matrices, steps, strict=True)]))
        for total, step in zip(sums, steps, strict=True):
            total[step] += weight
    return sums


def dense_synflow(matrices: list[Array], nnz: int, rounds: int) -> list[Array]:
    """Return which entries the paper's loop keeps, on dense arrays; entries of 0 are absent edges."""
    masks = [m != 0 for m in matrices]
    total = sum(int(m.sum()) for m in masks)
    for k in range(1, rounds + 1):
        left = [np.abs(m) * mask for m, mask in zip(matrices, masks, strict=True)]
        scores = []
        for i, w in enumerate(left):
            before, after = np.ones(left[0].shape[0]), np.ones(left[-1].shape[1])
            for m in left[:i]:
                before = before @ m
            for m in reversed(left[i + 1 :]):
                after = m @ after
            scores.append(np.where(masks[i], w * np.outer(before, after), -1.0))
        every = np.concatenate([s.ravel() for s in scores])
        count = nnz if k == rounds else max(nnz, round(total * (nnz / total) ** (k / rounds)))
        kept = np.zeros(every.size, dtype=bool)
        kept[np.argsort(-every, kind="stable")[:count]] = True
        masks = [
            part.reshape(m.shape)
            for part, m in zip(np.split(kept, np.cumsum([m.size for m in masks])[:-1]), masks, strict=True)
        ]
    return masks


def dense(model: Layer) -> list[Array]:
    return [w.to_dense() for w in edged(model).values()]


@patient
@given(networks())
def test_one_round_is_the_sum_over_paths_and_conserved_from_layer_to_layer(model: layers.Chain) -> None:
    scores = at_init.synflow(model, 0, rounds=1)
    expected = path_sums(dense(model))
    for (name, w), sums in zip(edged(model).items(), expected, strict=True):
        np.testing.assert_allclose(scores[name], sums[w.sources, w.targets], rtol=1e-12, atol=0)
    total = path_sums(dense(model))[0].sum()
    for score in scores.values():
        assert score.sum() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("rounds", [1, 2, 7, 100])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.03])
def test_rounds_are_those_of_the_paper(rounds: int, share: float) -> None:
    widths = (20, 15, 12, 6)
    model = models.mlp(widths, density=0.5, allocation="uniform", dtype=np.float64, seed=3)
    nnz = int(share * model.nnz)
    expected = dense_synflow(dense(model), nnz, rounds)
    at_init.keep_strongest(model, at_init.synflow(model, nnz, rounds=rounds), nnz)
    assert model.nnz == nnz
    for matrix, mask in zip(dense(model), expected, strict=True):
        np.testing.assert_array_equal(matrix != 0, mask)


def test_edges_that_went_early_come_last() -> None:
    model = models.mlp((20, 15, 6), density=0.5, allocation="uniform", seed=3)
    scores = np.concatenate(list(at_init.synflow(model, 10, rounds=5).values()))
    assert np.count_nonzero(scores == -1) == model.nnz - round(model.nnz * (10 / model.nnz) ** (4 / 5))
    assert (np.delete(scores, np.flatnonzero(scores == -1)) >= 0).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kept", [12, 300])
def test_no_layer_collapses_where_other_scores_empty_one(seed: int, kept: int) -> None:
    # The paper's claim: by rounds of a conserved score the smallest possible networks still conduct.
    widths = [60, 100, 100, 100, 100, 60, 10]
    model = models.mlp(widths, density=0.2, allocation="uniform", seed=seed)
    rng = np.random.default_rng(seed)
    batch = rng.standard_normal((100, 60)), rng.integers(10, size=100)
    others = {
        "magnitude": at_init.magnitude(model),
        "snip": at_init.snip(model, [batch], losses.cross_entropy),
        "grasp": at_init.grasp(model, [batch], losses.cross_entropy),
        "synflow in one round": at_init.synflow(model, kept, rounds=1),
    }
    if kept == 12:
        assert all(min(at_init.counts(scores, kept)) == 0 for scores in others.values())
    scores = at_init.synflow(model, kept)
    assert min(at_init.counts(scores, kept)) > 0
    at_init.keep_strongest(model, scores, kept)
    flow = flow_of(model).forward(np.ones((1, 60)))[0].sum()
    assert flow > 0  # a path from an input to an output


def test_weights_biases_and_data_stay_as_they_are() -> None:
    model = layers.Chain(
        layers.Affine(20, 0.1, 5.0),
        *models.mlp((20, 15, 6), density=0.5, allocation="uniform", dropout=0.5, normalize="batch", seed=3),
    )
    before = bits(model)
    at_init.synflow(model, 5)
    assert bits(model) == before


def test_only_absolute_weights_count() -> None:
    """Signs, biases, activations and the scaling of data change nothing."""
    plain = models.mlp((20, 15, 6), density=0.5, allocation="uniform", seed=3)
    first, second = edged(plain).values()
    rng = np.random.default_rng(0)
    other = layers.Chain(
        layers.Affine(20, rng.standard_normal(20), rng.standard_normal(20)),
        layers.Linear(Weights(first.edges, -first.values), rng.standard_normal(15)),
        layers.Tanh(),
        layers.Dropout(0.5, 0),
        layers.Linear(second.astype(np.float64), rng.standard_normal(6)),
    )
    expected = at_init.synflow(plain, 9)
    for scores, wanted in zip(at_init.synflow(other, 9).values(), expected.values(), strict=True):
        np.testing.assert_array_equal(scores, wanted)


def test_normalization_counts_by_its_scales() -> None:
    norm = layers.BatchNorm(3)
    norm.scale[:] = [-2.0, 1.0, 0.0]
    norm.shift[:] = 5.0
    model = layers.Chain(layers.Linear.from_dense(np.array([[1.0, -1.0, 1.0]])), norm)
    assert at_init.synflow(model, 1, rounds=1)["0.weights"].tolist() == [2.0, 1.0, 0.0]
    layer = layers.LayerNorm(3)
    layer.scale[:] = norm.scale
    model = layers.Chain(layers.Linear.from_dense(np.array([[1.0, -1.0, 1.0]])), layer)
    assert at_init.synflow(model, 1, rounds=1)["0.weights"].tolist() == [2.0, 1.0, 0.0]


def test_branches_and_full_layers_carry_flow() -> None:
    inner = layers.Linear.from_dense(np.array([[0.0, 2.0], [-1.0, 0.0]]))
    head = layers.Dense([[1.0, -1.0], [3.0, 0.0]])
    model = layers.Chain(layers.Residual(inner), head)
    # The head makes 2 and 3 of its two inputs; paths past the inner layer are not through its edges.
    assert at_init.synflow(model, 1, rounds=1)["0.0.weights"].tolist() == [6.0, 2.0]
    for both in (layers.Parallel, layers.Concatenate):
        twice = both(inner, layers.Linear.from_dense(np.array([[5.0, 0.0], [0.0, 0.0]])))
        scores = at_init.synflow(twice, 1, rounds=1)
        assert {name: s.tolist() for name, s in scores.items()} == {
            "0.weights": [2.0, 1.0],
            "1.weights": [5.0],
        }


def test_memory_follows_edges() -> None:
    layer = layers.Linear.random(200_000, 200_000, nnz=1000, bias=False, seed=0)
    peak, scores = peak_while(lambda: at_init.synflow(layer, 10, rounds=3))
    assert np.count_nonzero(scores["weights"] >= 0) == round(1000 * 0.01 ** (2 / 3))
    assert peak < 30_000_000  # some vectors of 200,000; a matrix would take 320 GB


def test_no_edges_and_all_edges() -> None:
    empty = layers.Chain(layers.Linear.random(3, 2, nnz=0), layers.Linear.random(2, 2, nnz=0))
    assert [s.size for s in at_init.synflow(empty, 0).values()] == [0, 0]
    one = layers.Linear.random(1, 1, nnz=1, seed=0)
    assert at_init.synflow(one, 1)["weights"] == np.abs(one.weights.values).astype(float)
    assert at_init.synflow(one, 0)["weights"] == [-1]
    assert at_init.synflow(layers.Dense.random(3, 2), 0) == {}


class Unknown(layers.Relu):
    """A user's activation."""


class Mystery(Layer):
    """A user's layer that no one knows to be linear."""

    def forward(self, x: Array, *, training: bool = False) -> Any:
        raise NotImplementedError


def test_what_is_refused() -> None:
    line = layers.Linear.random(4, 4, nnz=8, seed=0)
    assert at_init.synflow(layers.Chain(line, Unknown()), 4)["0.weights"].size == 8
    bad: list[tuple[Any, Any, Any]] = [
        (line, 9, 1),
        (line, -1, 1),
        (line, 2.5, 1),
        (line, 2, 0),
        (line, 2, None),
        (layers.Relu(), 0, 1),
        (layers.Chain(line, Mystery()), 2, 1),
        (layers.Linear.random(4, 4, nnz=8, semiring=semirings.min_plus, seed=0), 2, 1),
        (layers.Linear.random(2**60, 4, nnz=8, seed=0), 2, 1),
        (layers.Linear.random(4, 2**60, nnz=8, bias=False, seed=0), 2, 1),
        (layers.Chain(line, line), 2, 1),
        ("model", 2, 1),
    ]
    for model, nnz, rounds in bad:
        with pytest.raises(GbnnError):
            at_init.synflow(model, nnz, rounds=rounds)


def test_overflow_is_said() -> None:
    lines = [layers.Linear.from_dense(np.full((2, 2), 1e200)) for _ in range(2)]
    with pytest.raises(NonFiniteError, match="synflow"):
        at_init.synflow(layers.Chain(*lines), 1)

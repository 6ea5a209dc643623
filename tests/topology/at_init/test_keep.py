"""The strongest edges of a whole model against sorting all of them, and what becomes of the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bits import bits

from gbnn import layers, models
from gbnn.errors import GbnnError
from gbnn.topology import at_init
from gbnn.topology.at_init.keep import edged

patient = settings(deadline=None, max_examples=60)
lists_of_scores = st.lists(st.lists(st.integers(-3, 3), max_size=8), max_size=4)


def by_sorting(scores: list[list[int]], nnz: int) -> list[list[int]]:
    """Return the positions that stay in each layer: all edges sorted by score, layer, position."""
    every = [(-s, k, i) for k, layer in enumerate(scores) for i, s in enumerate(layer)]
    kept = {(k, i) for _, k, i in sorted(every)[:nnz]}
    return [[i for i in range(len(layer)) if (k, i) in kept] for k, layer in enumerate(scores)]


def model_of(scores: list[list[int]]) -> layers.Layer:
    """A model whose layers have as many edges as there are scores; their values are 0, 1, 2 ..."""
    made = []
    for layer in scores:
        weights = layers.Linear.random(4, 4, nnz=len(layer), bias=False, seed=len(layer)).weights
        weights.assign(np.arange(len(layer)))
        made.append(layers.Linear(weights))
    return layers.Chain(*made)


@patient
@given(lists_of_scores, st.one_of(st.just(1.0), st.floats(0, 1)))
def test_keeps_what_sorting_all_edges_keeps(scores: list[list[int]], share: float) -> None:
    nnz = int(share * sum(map(len, scores)))
    expected = by_sorting(scores, nnz)
    given_ = {f"{k}.weights": np.array(layer, dtype=float) for k, layer in enumerate(scores)}
    assert at_init.counts(given_, nnz) == [len(kept) for kept in expected]
    if not scores:
        return
    model = model_of(scores)
    before = {name: w.to_coo() for name, w in edged(model).items()}
    changes = at_init.keep_strongest(model, given_, nnz)
    assert model.nnz == nnz
    for (name, w), kept in zip(edged(model).items(), expected, strict=True):
        for old, new in zip(before[name], w.to_coo(), strict=True):
            np.testing.assert_array_equal(old[kept], new)
        np.testing.assert_array_equal(changes[name].carry(np.arange(changes[name].before)), kept)


def test_dtypes_may_differ_and_decide_nothing() -> None:
    scores = {"a": np.array([1, 0], dtype=np.float32), "b": np.array([1 + 1e-12, 2**-60])}
    assert at_init.counts(scores, 1) == [0, 1]
    assert at_init.counts(scores, 3) == [1, 2]
    assert at_init.counts(scores, 4) == [2, 2]
    assert at_init.counts({"a": np.array([2, 1, 3])}, 2) == [2]
    assert at_init.counts({}, 0) == []


def test_dense_layers_and_biases_are_left_alone() -> None:
    model = layers.Chain(layers.Linear.random(6, 5, nnz=12, seed=0), layers.Dense.random(5, 3, seed=1))
    before = bits(model)
    at_init.keep_strongest(model, at_init.magnitude(model), 4)
    assert edged(model)["0.weights"].nnz == 4
    assert model.nnz == 4 + 15
    after = bits(model)
    assert {k for k in after if after[k] != before[k]} == {"0.weights", "0.weights edges"}


def test_a_model_still_runs_and_may_lose_every_edge() -> None:
    model = models.mlp([6, 5, 3], nnz=[12, 9], seed=0)
    model.forward(np.ones((2, 6)))  # whatever views it made are of the old graph
    at_init.keep_strongest(model, at_init.magnitude(model), 5)
    x = np.random.default_rng(0).standard_normal((4, 6))
    first, second = (w.to_dense() for w in edged(model).values())
    np.testing.assert_allclose(model.forward(x)[0], np.maximum(x @ first, 0) @ second, rtol=1e-5, atol=1e-6)
    at_init.keep_strongest(model, at_init.magnitude(model), 0)
    assert model.nnz == 0
    assert not model.forward(x)[0].any()


def test_shapes_beyond_int64_are_fine() -> None:
    model = layers.Linear.random(2**60, 2**60, nnz=1000, bias=False, seed=0)
    at_init.keep_strongest(model, at_init.magnitude(model), 10)
    assert model.nnz == 10


BAD: list[tuple[Any, Any]] = [
    ({"weights": np.ones(4)}, 6),
    ({"weights": np.ones(4)}, -1),
    ({"weights": np.ones(4)}, 2.0),
    ({"weights": np.array([1, np.nan, 0, 0])}, 2),
    ({"weights": np.array([1, np.inf, 0, 0])}, 2),
    ({"weights": np.ones(3)}, 2),
    ({"weights": np.ones((4, 1))}, 2),
    ({"weights": np.array(["a"] * 4)}, 2),
    ({"0.weights": np.ones(4)}, 2),
    ({"weights": np.ones(4), "more": np.ones(1)}, 2),
    ({}, 0),
    ([np.ones(4)], 2),
]


@pytest.mark.parametrize(("scores", "nnz"), BAD)
def test_bad_scores_leave_the_model_as_it_was(scores: Any, nnz: Any) -> None:
    model = layers.Linear.random(4, 4, nnz=4, seed=0)
    before = bits(model)
    with pytest.raises(GbnnError):
        at_init.keep_strongest(model, scores, nnz)
    assert bits(model) == before


def test_one_bad_layer_leaves_all_as_they_were() -> None:
    model = models.mlp([4, 4, 4], nnz=[8, 8], seed=0)
    before = bits(model)
    with pytest.raises(GbnnError, match=r"1\.weights"):
        at_init.keep_strongest(model, {"0.weights": np.ones(8), "1.weights": np.ones(7)}, 2)
    assert bits(model) == before


def test_shared_edges_and_no_model_are_refused() -> None:
    one = layers.Linear.random(4, 4, nnz=4, seed=0)
    with pytest.raises(GbnnError, match="share no weights"):
        at_init.magnitude(layers.Chain(one, one))
    with pytest.raises(GbnnError, match="Layer"):
        at_init.magnitude(np.ones(3))  # type: ignore[arg-type]

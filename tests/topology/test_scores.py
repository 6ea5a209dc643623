"""Scores against their definitions on dense arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sites import dense, site_of, some_site

from gbnn import losses, models, topology, training
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.topology import Site, scores
from gbnn.topology.scores import Score
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]

patient = settings(deadline=None, max_examples=60)  # other work may keep the cores busy


def gradient(site: Site) -> Array:
    """The whole gradient, in loops."""
    x, dy = site.probe.x, site.probe.dy
    return np.array([[sum(x[:, i] * dy[:, j]) for j in range(dy.shape[1])] for i in range(x.shape[1])])


def shares(w: Array) -> Array:
    """|w|/Σ of the row + |w|/Σ of the column, edge by edge; 0/0 is 0."""
    result = np.full(w.shape, np.nan)
    for i, j in np.argwhere(~np.isnan(w)):
        row, column = np.nansum(np.abs(w[i])), np.nansum(np.abs(w[:, j]))
        result[i, j] = sum(abs(w[i, j]) / total if total else 0.0 for total in (row, column))
    return result


def strengths(w: Array) -> Array:
    return np.where(np.isnan(w), np.nan, np.nansum(np.abs(w), axis=0))


def norms(site: Site) -> Array:
    return np.array([[np.linalg.norm(site.probe.x[:, i])] for i in range(site.weights.in_features)])


DEFINITIONS: dict[str, tuple[Score, Callable[[Site, Array], Array]]] = {
    "size": (scores.size, lambda site, w: np.abs(w)),
    "taylor": (scores.taylor, lambda site, w: np.abs(w * gradient(site))),
    "movement": (scores.movement, lambda site, w: -w * gradient(site)),
    "mest": (scores.mest(0.3), lambda site, w: np.abs(w) + 0.3 * np.abs(gradient(site))),
    "mest, default": (scores.mest(), lambda site, w: np.abs(w) + 0.01 * np.abs(gradient(site))),
    "fisher": (scores.fisher, lambda site, w: w**2 * dense(site, site.slots["square"]) / 2),
    "momentum": (
        scores.momentum_size,
        lambda site, w: (
            np.abs(dense(site, site.slots["momentum"])) / (np.sqrt(dense(site, site.slots["square"])) + 1e-8)
        ),
    ),
    "relative": (scores.relative_importance, lambda site, w: shares(w)),
    "strength": (scores.neuron_strength, lambda site, w: strengths(w)),
    "wanda": (scores.by_input(scores.size), lambda site, w: np.abs(w) * norms(site)),
    "ria": (
        scores.by_input(scores.relative_importance, 0.5),
        lambda site, w: shares(w) * norms(site) ** 0.5,
    ),
}
every_score = pytest.mark.parametrize(("score", "definition"), DEFINITIONS.values(), ids=DEFINITIONS.keys())


@every_score
@settings(deadline=None, max_examples=40)
@given(site=some_site())
def test_is_its_definition(score: Score, definition: Callable[[Site, Array], Array], site: Site) -> None:
    expected = definition(site, dense(site, site.weights.values))
    found = score(site)
    assert found.shape == (site.weights.nnz,)
    assert np.isnan(expected).sum() == site.free  # the definition speaks of the edges, and of no others
    np.testing.assert_allclose(dense(site, found), expected, rtol=1e-12, atol=1e-300)


@every_score
@settings(deadline=None, max_examples=20)
@given(site=some_site())
def test_changes_nothing(score: Score, definition: Any, site: Site) -> None:
    before = [site.weights.values.tobytes(), *(slot.tobytes() for slot in site.slots.values())]
    first = score(site).tobytes()
    assert score(site).tobytes() == first
    assert [site.weights.values.tobytes(), *(slot.tobytes() for slot in site.slots.values())] == before
    assert not site.memory.edges
    assert not site.memory.layer


def test_momentum_without_a_square_is_its_size() -> None:
    site = site_of(np.ones((2, 2)))
    del site.slots["square"]
    np.testing.assert_array_equal(scores.momentum_size(site), np.abs(site.slots["momentum"]))


@pytest.mark.parametrize(
    "score", [scores.size, scores.relative_importance, scores.neuron_strength, scores.fisher]
)
def test_no_matter_how_large_the_layer(score: Score) -> None:
    far, shape = 2**60 - 1, (2**60, 2**60)
    w = Weights.from_coo([0, far, far], [far, 0, far], [1.0, -3.0, 1.0], shape)
    found = score(Site("w", w, slots={"square": np.array([1.0, 2.0, 3.0])}))
    expected: dict[Score, list[float]] = {
        scores.size: [1, 3, 1],
        scores.relative_importance: [1 + 1 / 2, 3 / 4 + 1, 1 / 4 + 1 / 2],
        scores.neuron_strength: [2, 3, 2],
        scores.fisher: [0.5, 9, 1.5],
    }
    np.testing.assert_allclose(found, expected[score])


def test_sums_are_not_of_float32() -> None:
    # There 2**24 + 1 is 2**24, and so is every sum after it.
    values = np.ones(1001)
    values[0] = 2**24
    w = Weights.from_coo(np.arange(1001), np.zeros(1001, dtype=int), values, (1001, 1))
    assert scores.neuron_strength(Site("w", w))[0] == 2**24 + 1000
    assert scores.relative_importance(Site("w", w))[1] == 1 + 1 / (2**24 + 1000)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (scores.taylor, "rewiring w: expected the gradient"),
        (scores.movement, "rewiring w: expected the gradient"),
        (scores.mest(), "rewiring w: expected the gradient"),
        (scores.by_input(scores.size), "rewiring w: expected the gradient"),
        (scores.momentum_size, "rewiring w: expected an optimizer that keeps a slot 'momentum', got none"),
        (scores.fisher, "rewiring w: expected an optimizer that keeps a slot 'square', got none"),
    ],
)
def test_what_is_not_known(score: Score, message: str) -> None:
    site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(1, 1)))
    with pytest.raises(ArgumentError, match=message):
        score(site)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("score", [scores.size, scores.taylor, scores.mest(), scores.relative_importance])
def test_checked_finds_what_is_not_finite(score: Score, bad: float) -> None:
    site = Site("w", Weights.from_dense(np.ones((2, 2))), np.ones(4))
    site.weights.assign([1.0, bad, 1.0, 1.0])
    with pytest.raises(NonFiniteError, match="scores, w: expected finite numbers"):
        scores.checked(score, site)


def test_checked_finds_what_overflows() -> None:
    site = Site("w", Weights.from_coo([0], [0], 1e30, shape=(1, 1)), np.array([1e30], dtype=np.float32))
    for score in (scores.taylor, scores.movement, scores.mest(1e30)):
        with pytest.raises(NonFiniteError):
            scores.checked(score, site)


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (np.ones(3), ArgumentError),
        (1.0, ArgumentError),
        (np.ones((4, 1)), ArgumentError),
        ("abcd", KindError),
    ],
)
def test_checked_finds_what_is_no_score(result: Any, error: type[GbnnError]) -> None:
    site = Site("w", Weights.from_dense(np.ones((2, 2))))
    with pytest.raises(error, match="scores, w"):
        scores.checked(lambda site: result, site)


@pytest.mark.parametrize("make", [scores.mest, lambda p: scores.by_input(scores.size, p)])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "1", True])
def test_arguments(make: Any, value: Any) -> None:
    with pytest.raises(GbnnError):
        make(value)


@patient
@given(some_site(), st.integers(0, 2**16))
def test_relative_importance_is_blind_to_scale(site: Site, seed: int) -> None:
    before = scores.relative_importance(site)
    site.weights.assign(site.weights.values * 2.0**-7)
    np.testing.assert_array_equal(scores.relative_importance(site), before)


def test_a_score_that_is_no_function() -> None:
    with pytest.raises(KindError, match=r"^score: expected a function"):
        scores.by_input(None)  # type: ignore[arg-type]


def test_slots_of_a_chain_of_transforms() -> None:
    w = Weights.from_coo([0, 1], [0, 0], [2.0, -1.0], shape=(2, 1), dtype=float)
    mean, square, other = np.array([0.5, -3.0]), np.array([4.0, 9.0]), np.array([7.0, 7.0])

    def of(score: Score, **slots: Array) -> list[float]:
        named = {name.replace("_", "."): slot for name, slot in slots.items()}
        return np.round(score(Site("w", w, slots=named)), 6).tolist()

    momentum, fisher = scores.momentum_size, scores.fisher
    assert of(momentum, **{"1_momentum": mean}) == [0.5, 3.0]
    assert of(momentum, **{"1_0_momentum": mean, "1_0_square": square}) == [0.25, 1.0]
    assert of(momentum, **{"1_momentum": mean, "0_square": square}) == [0.5, 3.0]  # another part's square
    assert of(momentum, **{"1_momentum": mean, "square": square}) == [0.5, 3.0]
    assert of(momentum, **{"1_momentum": other, "momentum": mean}) == [0.5, 3.0]
    assert of(momentum, **{"momentum": mean, "1_square": square}) == [0.5, 3.0]
    assert of(fisher, **{"1_square": square}) == [8.0, 4.5]
    for score, name in ((momentum, "momentum"), (fisher, "square")):
        with pytest.raises(ArgumentError, match=f"keeps one slot '{name}'"):
            of(score, **{f"0_{name}": square, f"1_{name}": other})
        for others in ({}, {f"my{name}": square}, {f"1_my{name}": square}):
            with pytest.raises(ArgumentError, match=f"keeps a slot '{name}'"):
                of(score, **others)


@pytest.mark.parametrize("last", [training.sgd(0.05, momentum=0.9), training.adam(0.01)])
def test_sparse_momentum_behind_clipped_gradients(last: training.Transform) -> None:
    x = np.random.default_rng(0).standard_normal((8, 10))
    nets, bare = [], last
    for optimizer in (bare, training.chain(training.clip_by_norm(1e9), bare)):  # which clips nothing
        model = models.mlp([10, 12, 3], density=0.3, seed=0)
        steps = training.train(
            model,
            [(x, np.ones((8, 3)))] * 4,
            loss=losses.mse,
            optimizer=optimizer,
            rewiring=topology.sparse_momentum(0.3),
            epochs=3,
            seed=0,
        )
        assert any(change.row()["dropped"] for step in steps for change in step.changes)
        nets.append(model)
    for one, other in zip(*(net.parameters().values() for net in nets), strict=True):
        if isinstance(one, Weights):
            assert np.array_equal(one.sources, other.sources)
            assert np.array_equal(one.targets, other.targets)

"""Growth by sampled candidates: distributions against their formulas, choices against a sorted sample."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support.growing import NONE, activations, pairs, random_edges, rng_of, site_of
from support.memory import peak_while

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.topology import Site
from gbnn.topology.grow.candidates import drawn, grabo, graest, sampled_gradient, uniform

SHAPE = (9, 11)


def layer(nnz: int = 20, seed: int = 0, shape: tuple[int, int] = SHAPE) -> tuple[Site, Any]:
    """A layer with small-integer activations, and |gradient|."""
    x, dy = activations(shape, seed=seed)
    return site_of(random_edges(shape, nnz, seed), x, dy), np.abs(x.T @ dy)


def strongest(strength: Any, among: set[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    return sorted(among, key=lambda pair: (-strength[pair], pair))[:count]


# -- Distributions -------------------------------------------------------------------------------------------


def test_grabo_and_uniform() -> None:
    site, _ = layer()
    sources, targets = grabo(site, rng_of())
    np.testing.assert_array_equal(sources, np.abs(site.probe.x).sum(axis=0))
    np.testing.assert_array_equal(targets, np.abs(site.probe.dy).sum(axis=0))
    assert [p.tolist() for p in uniform(site, rng_of())] == [[1.0] * 9, [1.0] * 11]


def test_grabo_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    site, _ = layer()
    whole = grabo(site, rng_of())
    for piece in (1, 10):
        monkeypatch.setitem(grabo.__globals__, "_PIECE", piece)
        for a, b in zip(grabo(site, rng_of()), whole, strict=True):
            np.testing.assert_array_equal(a, b)


def test_graest_takes_the_same_signs_on_both_sides_all_equally_often() -> None:
    site, _ = layer()
    x, dy = site.probe.x, site.probe.dy
    # Signs and their opposites look the same: four of eight for three samples.
    possible = {}
    for signs in itertools.product([1.0], [-1.0, 1.0], [-1.0, 1.0]):
        possible[(*np.abs(signs @ x).tolist(), *np.abs(signs @ dy).tolist())] = 0
    assert len(possible) == 4
    rng = rng_of()
    for _ in range(2000):
        sources, targets = graest(site, rng)
        possible[(*sources.tolist(), *targets.tolist())] += 1
    assert all(abs(times - 500) < 5 * np.sqrt(500) for times in possible.values())


def test_graest_of_one_sample_is_the_gradient() -> None:
    x, dy = activations(SHAPE, batch=1)
    sources, targets = graest(site_of(random_edges(SHAPE, 5), x, dy), rng_of())
    np.testing.assert_array_equal(np.outer(sources, targets), np.abs(x.T @ dy))


def test_drawn_in_proportion_and_independently() -> None:
    sources, targets = np.array([0.0, 1.0, 3.0, 0.0]), np.array([2.0, 0.0, 1.0, 0.5, 0.0])
    n = 200_000
    i, j = drawn((sources, targets), (4, 5), n, rng_of())
    counts = np.zeros((4, 5))
    np.add.at(counts, (i, j), 1)
    expected = n * np.outer(sources / sources.sum(), targets / targets.sum())
    assert (counts[expected == 0] == 0).all()
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e300])
def test_drawn_whatever_the_scale(scale: float) -> None:
    i, j = drawn((np.full(3, scale), np.full(2, scale)), (3, 2), 6000, rng_of())
    assert np.abs(np.bincount(i, minlength=3) - 2000).max() < 5 * np.sqrt(2000)
    assert np.abs(np.bincount(j, minlength=2) - 3000).max() < 5 * np.sqrt(3000)


@pytest.mark.parametrize(
    ("weights", "kind", "match"),
    [
        ((np.ones(8), np.ones(11)), ArgumentError, "distribution of sources: expected shape"),
        ((np.ones(9), np.ones((11, 1))), ArgumentError, "distribution of targets: expected shape"),
        ((np.ones(9), -np.ones(11)), ArgumentError, "not negative"),
        ((np.full(9, np.nan), np.ones(11)), NonFiniteError, "distribution of sources"),
    ],
)
def test_distributions_that_are_none(weights: Any, kind: type, match: str) -> None:
    site, _ = layer()
    with pytest.raises(kind, match=match):
        sampled_gradient(10, lambda site, rng: weights)(site, NONE, 1, rng_of())


# -- The rule ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", [uniform, grabo, graest])
@pytest.mark.parametrize("candidates", [1.0, 2.5, 12, 60])
def test_the_strongest_of_the_candidates(distribution: Any, candidates: float | int) -> None:
    for seed in range(20):
        site, strength = layer(seed=seed)
        dropped = np.array([3, 7, 8])
        rng = rng_of(seed)
        number = candidates if isinstance(candidates, int) else int(candidates * 20)
        sample = set(pairs(*drawn(distribution(site, rng), SHAPE, number, rng)))
        sample -= set(pairs(site.weights.sources, site.weights.targets))
        for count in (0, 1, 3, 10):
            grown = pairs(*sampled_gradient(candidates, distribution)(site, dropped, count, rng_of(seed)))
            best = strongest(strength, sample, count)
            assert sorted(grown[: len(best)]) == sorted(best)


def test_enough_candidates_are_all_of_them() -> None:
    site, strength = layer()
    absent = set(itertools.product(range(9), range(11)))
    absent -= set(pairs(site.weights.sources, site.weights.targets))
    for count in (1, 10, 50):
        grown = pairs(*sampled_gradient(20_000, uniform)(site, np.arange(5), count, rng_of()))
        assert sorted(grown) == sorted(strongest(strength, absent, count))


def test_silent_neurons_only_fill_up() -> None:
    x, dy = activations((40, 40))
    x[:, ::2] = 0
    x[0, 1::2] = dy[0] = 1
    grown = sampled_gradient(400)(site_of(random_edges((40, 40), 10), x, dy), NONE, 30, rng_of())
    assert (grown[0] % 2 == 1).all()


@pytest.mark.parametrize("nnz", [50, 80, 98])
def test_of_a_layer_half_full_all_absent_places_are_candidates(nnz: int) -> None:
    site, strength = layer(nnz)
    absent = set(itertools.product(range(9), range(11)))
    absent -= set(pairs(site.weights.sources, site.weights.targets))
    count = min(7, len(absent))
    grown = pairs(*sampled_gradient(0)(site, np.arange(5), count, rng_of()))
    assert sorted(grown) == sorted(strongest(strength, absent, count))


@pytest.mark.parametrize("candidates", [-1, -0.5, True, "1", float("nan"), float("inf"), None])
def test_candidates_that_are_no_number(candidates: Any) -> None:
    with pytest.raises(GbnnError, match="candidates"):
        sampled_gradient(candidates)


def test_derivatives_that_are_not_finite() -> None:
    x, dy = (np.full((2, n), 1e30, np.float32, order="F") for n in SHAPE)
    site = site_of(random_edges(SHAPE, 5), x, dy)
    with pytest.raises(NonFiniteError, match="sampled gradient growth"):
        sampled_gradient(5)(site, NONE, 1, rng_of())


def test_a_layer_without_such_a_gradient() -> None:
    site, _ = layer()
    site.gradient = None
    for distribution in (uniform, grabo, graest):
        with pytest.raises(ArgumentError, match="plus_times"):
            sampled_gradient(5, distribution)(site, NONE, 1, rng_of())


def test_wide_layers_take_memory_for_edges_and_candidates_only() -> None:
    width, nnz, count = 200_000, 1_000_000, 300_000
    edges = random_edges((width, width), nnz)
    x, dy = (np.asfortranarray(rng_of(k).standard_normal((2, width)), np.float32) for k in (0, 1))
    site, dropped = site_of(edges, x, dy, values=np.zeros(nnz)), np.arange(count)
    peak, grown = peak_while(lambda: sampled_gradient(1.0)(site, dropped, count, rng_of()))
    # At most a dozen numbers of 8 bytes for each edge and candidate: 0.2 GB where in x out bytes are 40 GB.
    assert peak < 12 * 8 * (nnz + nnz + width + width)
    key = np.sort(grown[0] * width + grown[1])
    assert (np.diff(key) > 0).all()
    assert (edges.find(*grown) < 0).all()
    # Guided: what it grows has a much larger gradient than what chance would.
    chance = random_edges((width, width), 10_000, seed=5)
    by_chance = np.abs(site.probe.at(chance.sources, chance.targets)).mean()
    assert np.abs(site.probe.at(*grown)).mean() > 3 * by_chance


def test_no_edges_at_all() -> None:
    x, dy = activations((5, 6))
    site = site_of(Edges(NONE, NONE, (5, 6)), x, dy)
    assert len(set(pairs(*sampled_gradient(1.0)(site, NONE, 30, rng_of())))) == 30


@pytest.mark.parametrize("candidates", [1e300, 2.0**41, 2**63, 2**40 + 1])
def test_more_candidates_than_any_memory_holds(candidates: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^candidates: "):
        sampled_gradient(candidates)


def test_a_multiple_that_is_too_much_for_the_layer_at_hand() -> None:
    site, _ = layer(20)
    with pytest.raises(ArgumentError, match=r"^candidates: expected an integer between 0 and 1099511627776"):
        sampled_gradient(2.0**40)(site, NONE, 1, rng_of())


@pytest.mark.parametrize("distribution", [None, "grabo", 1.0])
def test_a_distribution_that_is_no_function(distribution: Any) -> None:
    with pytest.raises(KindError, match=r"^distribution: expected a function"):
        sampled_gradient(1.0, distribution)


@pytest.mark.parametrize(
    "returned",
    [
        None,
        "ab",
        5,
        np.ones((2, 9)),
        ("a" * 9, "b" * 11),
        (np.ones(9),),
        (None, None),
        (np.ones(9), [[1], [2, 3]]),
        (np.ones(9), np.ones(11) * 1j),
        (np.ones(11), np.ones(9)),
        (np.ones((9, 1)), np.ones(11)),
        (1.0, 1.0),
    ],
)
def test_what_is_no_distribution(returned: Any) -> None:
    site, _ = layer()
    with pytest.raises(GbnnError, match=r"^distribution"):
        sampled_gradient(1.0, lambda site, rng: returned)(site, NONE, 1, rng_of())


@pytest.mark.parametrize(
    "kind", [list, lambda w: np.asarray(w, dtype=np.int8), lambda w: np.asarray(w, bool)]
)
def test_weights_of_any_real_kind(kind: Any) -> None:
    site, _ = layer()
    grown = [
        sampled_gradient(2.0, lambda site, rng, of=of: (of([1, 0] * 4 + [1]), of([1] * 11)))(
            site, NONE, 5, rng_of()
        )
        for of in (np.array, kind)
    ]
    assert pairs(*grown[0]) == pairs(*grown[1])

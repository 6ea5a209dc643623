"""Cannistraci-Hebb scores against their definition: by paths, by dense algebra, by sparse algebra."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn import storage
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, KindError
from gbnn.sampling import distinct_edges
from gbnn.topology.grow.hebb_algebra import hebb_scores
from gbnn.topology.grow.hebb_search import fixed_point, strongest_links

Array = np.ndarray[Any, Any]
patient = settings(deadline=None, max_examples=50)


@st.composite
def graphs(draw: st.DrawFn) -> Edges:
    """Draw edges of a small layer: none, one, all, all but one, or any number; one neuron on a side."""
    shape = draw(st.tuples(st.integers(1, 8), st.integers(1, 8)))
    places = shape[0] * shape[1]
    nnz = draw(st.one_of(st.sampled_from([0, 1, places, places - 1]), st.integers(0, places)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Edges.from_coo(*distinct_edges(rng, shape, nnz), shape)[0]


def random_edges(shape: tuple[int, int], nnz: int, seed: int = 0) -> Edges:
    return Edges.from_coo(*distinct_edges(np.random.default_rng(seed), shape, nnz), shape)[0]


def matrix(edges: Edges) -> Array:
    a = np.zeros(edges.shape)
    a[edges.sources, edges.targets] = 1
    return a


def by_paths(edges: Edges, internal: bool) -> dict[tuple[int, int], Fraction]:
    """The definition: local communities from all paths of length 3, links inside and outside counted."""
    rows, columns = edges.shape
    pairs = set(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))
    scores = {}
    for u, v in product(range(rows), range(columns)):
        if (u, v) in pairs:
            continue
        paths = [(a, j) for a in range(columns) for j in range(rows) if {(u, a), (j, a), (j, v)} <= pairs]
        inner_targets, inner_sources = {a for a, _ in paths}, {j for _, j in paths}
        total = Fraction(0)
        for a in inner_targets:
            links = {j for j in range(rows) if (j, a) in pairs} - {u}
            inside = len(links & inner_sources)
            total += Fraction(1 + inside if internal else 1, 1 + len(links) - inside)
        for j in inner_sources:
            links = {a for a in range(columns) if (j, a) in pairs} - {v}
            inside = len(links & inner_targets)
            total += Fraction(1 + inside if internal else 1, 1 + len(links) - inside)
        if paths:
            scores[u, v] = total
    return scores


def by_dense_algebra(edges: Edges, internal: bool) -> Array:
    """The reference's formula, on dense matrices."""
    a = matrix(edges)

    def share(a: Array) -> Array:
        common, degree = a @ a.T, a.sum(axis=1)
        inside = common + 1 if internal else 1
        return np.where(common > 0, inside / np.maximum(degree[None] - common, 1), 0.0)

    scores: Array = (share(a) @ a + (share(a.T) @ a.T).T) * (a == 0)
    return scores


@patient
@given(graphs(), st.booleans())
def test_scores_are_those_of_the_definition(edges: Edges, internal: bool) -> None:
    wanted = by_paths(edges, internal)
    sources, targets, scores = strongest_links(edges, edges.shape[0] * edges.shape[1], internal=internal)
    got = dict(zip(zip(sources.tolist(), targets.tolist(), strict=True), scores.tolist(), strict=True))
    assert got.keys() == wanted.keys()
    for place, score in got.items():
        assert score == pytest.approx(float(wanted[place]), rel=1e-9)
    dense = by_dense_algebra(edges, internal)
    assert np.count_nonzero(dense) == len(wanted)
    np.testing.assert_allclose(dense[sources, targets], scores, rtol=1e-9)


@patient
@given(graphs(), st.booleans())
def test_sparse_algebra_gives_the_same_bits(edges: Edges, internal: bool) -> None:
    sources, targets, scores = strongest_links(edges, edges.shape[0] * edges.shape[1], internal=internal)
    order = np.lexsort((targets, sources))
    rows, columns, values = hebb_scores(edges, internal=internal).to_coo()
    assert rows.tolist() == sources[order].tolist()
    assert columns.tolist() == targets[order].tolist()
    assert values.tolist() == scores[order].tolist()
    half = hebb_scores(edges, internal=internal, sources=range(0, edges.shape[0], 2))
    assert half.to_coo()[2].tolist() == values[rows % 2 == 0].tolist()


@patient
@given(graphs(), st.booleans(), st.data())
def test_choice_is_the_first_of_all_and_blind_to_blocks(
    edges: Edges, internal: bool, data: st.DataObject
) -> None:
    seed = data.draw(st.one_of(st.none(), st.integers(0, 2**64 - 1)))
    places = edges.shape[0] * edges.shape[1]
    everything = strongest_links(edges, places, internal=internal, seed=seed)
    if seed is None:
        assert (
            np.lexsort((everything[1], everything[0], -everything[2])).tolist()
            == np.arange(everything[0].size).tolist()
        )
    count, block = data.draw(st.integers(0, places)), data.draw(st.integers(1, 60))
    some = strongest_links(edges, count, internal=internal, seed=seed, block=block)
    for got, wanted in zip(some, everything, strict=True):
        assert got.tolist() == wanted[:count].tolist()


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize(("shape", "nnz"), [((300, 200), 1500), ((2000, 3000), 4000), ((40, 500), 3000)])
def test_larger_graphs_in_any_block_and_on_any_threads(
    shape: tuple[int, int], nnz: int, seed: int | None
) -> None:
    edges = random_edges(shape, nnz)
    count = nnz // 3
    best = strongest_links(edges, count, internal=True, seed=seed)
    if seed is None:
        dense = np.sort(by_dense_algebra(edges, True).ravel())[::-1][:count]
        np.testing.assert_allclose(best[2], dense[dense > 0], rtol=1e-9)
    before = storage.threads()
    try:
        storage.set_threads(1)
        for block in (2**12, 2**16):
            again = strongest_links(edges, count, internal=True, seed=seed, block=block)
            for got, wanted in zip(again, best, strict=True):
                np.testing.assert_array_equal(got, wanted)
    finally:
        storage.set_threads(before)


def test_places_that_are_alike_are_tied() -> None:
    """A ring of edges (i, i) and (i, i + 1): every place has a twin in every row; the first rows win."""
    n = 12
    i = np.arange(n)
    edges, _ = Edges.from_coo(np.append(i, i), np.append(i, (i + 1) % n), (n, n))
    for block in (1, 7, 2**20):
        sources, targets, scores = strongest_links(edges, 5, block=block)
        assert len(set(scores.tolist())) == 1
        assert list(zip(sources.tolist(), targets.tolist(), strict=True)) == [
            (0, 2),
            (0, n - 1),
            (1, 0),
            (1, 3),
            (2, 1),
        ]


def test_sampling_is_in_proportion_to_the_score() -> None:
    """First draws of many seeds, against the shares of the scores."""
    edges = random_edges((4, 4), 8, seed=3)
    sources, targets, scores = strongest_links(edges, 16, internal=True)
    assert len(set(scores.tolist())) > 1
    index = {place: k for k, place in enumerate(zip(sources.tolist(), targets.tolist(), strict=True))}
    draws = 3000
    counts = np.zeros(len(index))
    for seed in range(draws):
        (i,), (j,), _ = strongest_links(edges, 1, internal=True, seed=seed * 7919)
        counts[index[int(i), int(j)]] += 1
    share = scores / scores.sum()
    chi = ((counts - draws * share) ** 2 / (draws * share)).sum()
    assert chi < len(index) + 6 * (2 * len(index)) ** 0.5


def test_far_apart_neurons_cost_what_their_edges_cost() -> None:
    small = random_edges((30, 20), 100)
    rows, columns = np.sort(np.random.default_rng(1).integers(2**59, size=(2, 30)), axis=1)
    large, _ = Edges.from_coo(rows[small.sources], columns[small.targets], (2**60, 2**60))
    near, far = strongest_links(small, 50), strongest_links(large, 50)
    np.testing.assert_array_equal(far[0], rows[near[0]])
    np.testing.assert_array_equal(far[1], columns[near[1]])
    np.testing.assert_array_equal(far[2], near[2])
    assert hebb_scores(large).nvals == hebb_scores(small).nvals


@patient
@given(graphs(), st.booleans())
def test_scores_stay_where_float64_is_exact(edges: Edges, internal: bool) -> None:
    scale = fixed_point(edges, internal)
    _, _, scores = strongest_links(edges, 64, internal=internal)
    assert (scores * scale < 2**52).all()
    assert (scores * scale == np.rint(scores * scale)).all()


def test_bad_arguments_are_refused() -> None:
    edges = random_edges((3, 3), 4)
    with pytest.raises(ArgumentError, match="count"):
        strongest_links(edges, -1)
    with pytest.raises(ArgumentError, match="block"):
        strongest_links(edges, 1, block=0)
    with pytest.raises(ArgumentError, match="seed"):
        strongest_links(edges, 1, seed=2**64)
    with pytest.raises(KindError, match="internal"):
        strongest_links(edges, 1, internal="CH2")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="sources"):
        hebb_scores(edges, sources=[3])

"""Random edges: exactly as many as asked, all different, uniform, at any size."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn import sampling
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError
from gbnn.sampling import _subset, distinct_edges

few = settings(deadline=None, max_examples=60)

BIG = 2**60


def draw(shape, count, exclude=None, seed=0):
    sources, targets = distinct_edges(np.random.default_rng(seed), shape, count, exclude)
    assert sources.dtype == targets.dtype == np.int64
    assert sources.shape == targets.shape == (count,)
    return list(zip(sources.tolist(), targets.tolist(), strict=True))


def every_place(shape):
    return [(i, j) for i in range(shape[0]) for j in range(shape[1])]


@few
@given(st.data())
def test_as_many_as_asked_all_different_in_range_and_none_excluded(data):
    shape = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    places = every_place(shape)
    excluded = data.draw(st.sets(st.sampled_from(places)))
    sides = zip(*excluded, strict=True) if excluded else ([], [])
    exclude = Edges.from_coo(*map(list, sides), shape)[0]
    count = data.draw(st.integers(0, len(places) - len(excluded)))
    drawn = draw(shape, count, exclude if excluded or data.draw(st.booleans()) else None)
    assert len(set(drawn)) == count
    assert set(drawn) <= set(places) - excluded


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (13, 17)])
def test_all_places_can_be_drawn(shape):
    assert sorted(draw(shape, shape[0] * shape[1])) == every_place(shape)


@pytest.mark.parametrize("missing", [1, 2, 50])
def test_nearly_all_free_places_can_be_drawn(missing):
    shape = (30, 20)
    places = every_place(shape)
    exclude, _ = Edges.from_coo(*zip(*places[::3], strict=True), shape)
    free = set(places) - set(places[::3])
    drawn = draw(shape, len(free) - missing, exclude)
    assert len(set(drawn)) == len(drawn)
    assert set(drawn) < free


@pytest.mark.parametrize("shape", [(BIG, BIG), (2**31, 2**32), (1, BIG), (BIG, 3)])
def test_the_largest_layers_are_no_different(shape):
    excluded = draw(shape, 1000, seed=1)
    exclude, _ = Edges.from_coo(*zip(*excluded, strict=True), shape)
    drawn = draw(shape, 3000, exclude)
    assert len(set(drawn)) == 3000
    assert not set(drawn) & set(excluded)
    for side in (0, 1):
        values = np.array([edge[side] for edge in drawn], dtype=float)
        # The mean of 3000 uniform numbers, within six of its standard deviations.
        assert abs(values.mean() / shape[side] - (1 - 1 / shape[side]) / 2) < 6 / np.sqrt(12 * 3000)


def test_a_few_free_places_among_many_excluded_are_found():
    side = 300
    free = np.random.default_rng(0).choice(side**2, 600, replace=False)
    taken = np.setdiff1d(np.arange(side**2), free)
    exclude = Edges(taken // side, taken % side, (side, side))
    for count in (1, 190, 210, 600):
        drawn = draw((side, side), count, exclude)
        assert len({i * side + j for i, j in drawn} & set(free.tolist())) == count


@pytest.mark.parametrize("count", [2, 8, 25])  # by rejection, by rejection with collisions, by listing
def test_every_free_place_is_equally_likely(count):
    shape, rounds = (6, 7), 3000
    places = every_place(shape)
    exclude, _ = Edges.from_coo(*zip(*places[::5], strict=True), shape)
    free = [p for p in places if p not in set(places[::5])]
    rng = np.random.default_rng(0)
    hits, first = np.zeros(shape), np.zeros(shape)
    for _ in range(rounds):
        drawn = distinct_edges(rng, shape, count, exclude)
        hits[drawn] += 1
        first[drawn[0][0], drawn[1][0]] += 1
    n, share = len(free), count / len(free)
    assert hits.sum() == rounds * count
    # Draws without replacement: the variance of a place's count, and its ties to the others, are known.
    observed = np.array([hits[p] for p in free])
    statistic = ((observed - rounds * share) ** 2).sum() / (rounds * share * (1 - share)) * (n - 1) / n
    # The first drawn alone: the order is random as well.
    firsts = scipy.stats.chisquare([first[p] for p in free]).statistic
    low, high = scipy.stats.chi2(n - 1).ppf([1e-4, 1 - 1e-4])
    assert low < statistic < high
    assert low < firsts < high


@pytest.mark.parametrize(("shape", "count"), [((6, 7), 5), ((6, 7), 30), ((BIG, BIG), 300), ((1, 1), 0)])
def test_where_order_is_asked_for_the_same_edges_come_in_it(shape, count):
    exclude = Edges.from_coo([0], [0], shape)[0] if count else None
    sources, targets = distinct_edges(np.random.default_rng(0), shape, count, exclude, ordered=True)
    drawn = list(zip(sources.tolist(), targets.tolist(), strict=True))
    assert drawn == sorted(drawn)
    assert drawn == sorted(draw(shape, count, exclude))


@pytest.mark.parametrize("shape", [(40, 50), (BIG, BIG)])
def test_draws_that_fall_short_are_gone_on_with(monkeypatch, shape):
    draw_all = sampling._draw
    monkeypatch.setattr(sampling, "_draw", lambda rng, shape, count: draw_all(rng, shape, min(count, 90)))
    exclude = Edges.from_coo([3, 7], [1, 0], shape)[0]
    sources, targets = distinct_edges(np.random.default_rng(0), shape, 500, exclude, ordered=True)
    drawn = list(zip(sources.tolist(), targets.tolist(), strict=True))
    assert drawn == sorted(set(drawn))
    assert len(drawn) == 500
    assert not set(drawn) & {(3, 1), (7, 0)}


@pytest.mark.parametrize("count", [1, 14, 15, 29, 30])
def test_every_subset_is_as_likely(count):
    rng, rounds, size = np.random.default_rng(0), 2000, 30
    hits = np.zeros(size)
    for _ in range(rounds):
        chosen = _subset(rng, size, count)
        assert (np.diff(chosen) > 0).all()
        assert chosen.size == count
        hits[chosen] += 1
    share = count / size
    deviation = np.sqrt(rounds * share * (1 - share))
    assert (abs(hits - rounds * share) <= 5 * deviation).all()


@pytest.mark.parametrize("count", [5, 100])
def test_the_same_seed_draws_the_same(count):
    assert draw((20, 10), count, seed=3) == draw((20, 10), count, seed=3)
    assert draw((20, 10), count, seed=3) != draw((20, 10), count, seed=4)


def test_more_than_there_are_is_refused():
    exclude, _ = Edges.from_coo([0, 1], [1, 1], (2, 3))
    with pytest.raises(ArgumentError, match=r"^nnz: expected at most 6, the places of a 2 x 3 layer, got 7"):
        draw((2, 3), 7)
    with pytest.raises(ArgumentError, match=r"^nnz: expected at most 4, the free places"):
        draw((2, 3), 5, exclude)


@pytest.mark.parametrize("count", [-1, 1.0, True, None, "1"])
def test_what_is_no_count_is_refused(count):
    with pytest.raises(GbnnError, match=r"^nnz: "):
        distinct_edges(np.random.default_rng(0), (2, 3), count)


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("side", [20, BIG])
def test_a_count_of_numpy_is_a_count(side, kind):
    assert draw((side, side), kind(200)) == draw((side, side), 200)


@pytest.mark.parametrize("shape", [(0, 1), (1, BIG + 1), (1.5, 2), (2,), None])
def test_what_is_no_shape_is_refused(shape):
    with pytest.raises(GbnnError):
        distinct_edges(np.random.default_rng(0), shape, 0)


def test_edges_of_another_layer_exclude_nothing_here():
    exclude, _ = Edges.from_coo([5], [5], (6, 6))
    with pytest.raises(ArgumentError, match=r"^exclude: expected edges of a 3 x 12 layer"):
        draw((3, 12), 30, exclude)


@pytest.mark.parametrize(("side", "count"), [(2**21, 2**42), (2**40, 2**80), (2**60, 2**40 + 1)])
def test_more_than_any_memory_holds_is_refused(side, count):
    with pytest.raises(ArgumentError, match=r"^nnz: expected at most 1099511627776 edges"):
        distinct_edges(np.random.default_rng(0), (side, side), count)

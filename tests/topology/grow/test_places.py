"""What grow rules share, against sets and dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growing import empty_of, layers, pairs, patient, random_edges, rng_of, site_of

from gbnn.edges import Edges
from gbnn.errors import ArgumentError
from gbnn.topology.grow.places import (
    check_room,
    drawn_until,
    filled,
    first_of_each,
    sorted_distinct,
)

some_pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=30)
sizes = st.sampled_from([(4, 5), (2**60, 2**60)])


@patient
@given(some_pairs, sizes)
def test_each_once(given_pairs: list[tuple[int, int]], shape: tuple[int, int]) -> None:
    sources, targets = np.array(given_pairs, dtype=np.int64).reshape(-1, 2).T
    assert pairs(*sorted_distinct(sources, targets, shape)) == sorted(set(given_pairs))
    first = first_of_each(sources, targets, shape).tolist()
    assert first == sorted({pair: k for k, pair in reversed(list(enumerate(given_pairs)))}.values())


def test_drawing_ends() -> None:
    taken = random_edges((3, 3), 4)

    def draw(n, rng):
        return rng.integers(3, size=n), rng.integers(3, size=n)

    for count in (0, 1, 5, 9):
        drawn = pairs(*drawn_until(draw, taken, count, rng_of()))
        assert len(set(drawn)) == len(drawn) == min(count, 5)
        assert not set(drawn) & set(pairs(taken.sources, taken.targets))


def test_drawing_is_in_the_order_drawn() -> None:
    asked = []

    def draw(n, rng):
        asked.append(n)
        return np.arange(n)[::-1] % 5, np.zeros(n, dtype=np.int64)

    taken, _ = Edges.from_coo([2], [0], (5, 1))
    sources, _ = drawn_until(draw, taken, 3, rng_of())
    order = [k for k in dict.fromkeys((np.arange(asked[0])[::-1] % 5).tolist()) if k != 2]
    assert sources.tolist() == order[:3]


@patient
@given(layers(), st.data())
def test_filling_up(layer, data) -> None:
    edges, dropped = layer
    site, seed = site_of(edges), data.draw(st.integers(0, 2**32))
    empty = empty_of(edges)
    assert check_room(site, dropped, empty + dropped.size) == empty
    with pytest.raises(ArgumentError, match=f"at most {empty + dropped.size} free places"):
        check_room(site, dropped, empty + dropped.size + 1)
    count = data.draw(st.integers(0, empty + dropped.size))
    places = np.delete(
        np.arange(edges.shape[0] * edges.shape[1]), edges.sources * edges.shape[1] + edges.targets
    )
    chosen = rng_of(seed).permutation(places)[: data.draw(st.integers(0, count))]
    ends = chosen // edges.shape[1], chosen % edges.shape[1]
    grown = pairs(*filled(site, dropped, ends, count, rng_of(seed)))
    assert grown[: chosen.size] == pairs(*ends)
    assert len(set(grown)) == len(grown) == count
    again = set(grown) & set(pairs(edges.sources, edges.targets))
    assert again <= set(pairs(edges.sources[dropped], edges.targets[dropped]))
    assert len(again) == max(0, count - empty)


def test_filling_up_is_uniform() -> None:
    site = site_of(random_edges((4, 5), 4))
    chosen = np.array([0]), np.array([4])
    if site.weights.edges.find(*chosen)[0] >= 0:
        chosen = np.array([1]), np.array([4])
    counts, rng = np.zeros((4, 5)), rng_of()
    for _ in range(1500):
        counts[filled(site, np.array([0]), chosen, 6, rng)] += 1
    assert counts[chosen] == 1500
    assert not counts[site.weights.sources, site.weights.targets].any()
    counts[chosen] = counts[site.weights.sources, site.weights.targets] = expected = 1500 * 5 / 15
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)

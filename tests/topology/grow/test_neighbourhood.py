"""Growth near by, against the definition place by place in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growing import NONE, layers, pairs, patient, random_edges, rng_of, site_of

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError
from gbnn.topology.grow.neighbourhood import local, same_block, small_world

RADII = [(0.1, Fraction(1, 10)), (0.3, Fraction(3, 10)), (1 / 3, Fraction(1, 3)), (0.5, Fraction(1, 2)),
         (1e-12, Fraction(1, 10**12)), (0.75, Fraction(3, 4)), (1.0, Fraction(1))]  # fmt: skip


def near(shape: tuple[int, int], radius: Fraction, ring: bool) -> set[tuple[int, int]]:
    rows, columns = shape
    found = set()
    for i in range(rows):
        for j in range(columns):
            d = abs(Fraction(i, rows) - Fraction(j, columns))
            if (min(d, 1 - d) if ring else d) <= radius:
                found.add((i, j))
    return found


def check(rule: Any, edges: Edges, dropped: Any, neighbourhood: set[tuple[int, int]], count: int) -> None:
    """Places of the neighbourhood come first, all of them where count asks for more."""
    old = set(pairs(edges.sources, edges.targets))
    free = neighbourhood - old
    grown = pairs(*rule(site_of(edges), dropped, count, rng_of(count)))
    inside = grown[: len(free)]
    assert set(inside) <= free
    assert len(set(inside)) == min(count, len(free))


@patient
@given(layers(), st.sampled_from(RADII), st.booleans(), st.data())
def test_local(layer: Any, radius: Any, ring: bool, data: st.DataObject) -> None:
    edges, dropped = layer
    count = data.draw(st.integers(0, edges.shape[0] * edges.shape[1] - edges.nnz + dropped.size))
    check(local(radius[0], ring=ring), edges, dropped, near(edges.shape, radius[1], ring), count)


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("radius", RADII, ids=lambda r: f"{r[0]:.2g}")
@pytest.mark.parametrize("shape", [(30, 30), (30, 7), (7, 30), (1, 30), (30, 1), (29, 31)])
def test_exactly_the_neighbourhood(shape: tuple[int, int], radius: Any, ring: bool) -> None:
    expected = near(shape, radius[1], ring)
    edges = random_edges(shape, shape[0] * shape[1] // 3)
    check(
        local(radius[0], ring=ring),
        edges,
        NONE,
        expected,
        len(expected - set(pairs(edges.sources, edges.targets))),
    )


@patient
@given(layers(), st.data())
def test_same_block(layer: Any, data: st.DataObject) -> None:
    edges, dropped = layer
    rows, columns = edges.shape
    n = data.draw(st.integers(1, min(rows, columns)))
    inside = {(i, j) for i in range(rows) for j in range(columns) if i * n // rows == j * n // columns}
    count = data.draw(st.integers(0, rows * columns - edges.nnz + dropped.size))
    check(same_block(n), edges, dropped, inside, count)


@pytest.mark.parametrize(
    "rule", [local(0.1), local(0.2, ring=True), same_block(3), small_world(0.0, radius=0.1)], ids=str
)
def test_uniform_inside(rule: Any) -> None:
    edges, _ = Edges.from_coo([2, 5], [3, 3], (10, 7))
    free = len({pair for seed in range(30) for pair in pairs(*rule(site_of(edges), NONE, 5, rng_of(seed)))})
    counts, rng, times = np.zeros((10, 7)), rng_of(), 1200
    for _ in range(times):
        counts[rule(site_of(edges), NONE, 3, rng)] += 1
    assert np.count_nonzero(counts) == free
    expected = times * 3 / free
    assert np.abs(counts[counts > 0] - expected).max() < 5 * np.sqrt(expected)


def test_a_share_of_a_small_world_is_far() -> None:
    edges = random_edges((400, 300), 100)
    for p in (0.0, 0.25, 1.0):
        sources, targets = small_world(p, radius=0.02)(site_of(edges), NONE, 2000, rng_of())
        d = np.abs(sources / 400 - targets / 300)
        far = np.count_nonzero(np.minimum(d, 1 - d) > 0.0200001)
        # Of those drawn anywhere 96 % are far.
        expected = 2000 * p * 0.96
        assert abs(far - expected) <= 5 * np.sqrt(expected)
        assert len(set(pairs(sources, targets))) == 2000


def test_a_small_world_is_as_wide_as_the_layer_is_dense() -> None:
    edges = random_edges((100, 100), 1000)
    sources, targets = small_world(0.0)(site_of(edges), np.arange(300), 300, rng_of())
    d = np.abs(sources - targets)
    assert np.minimum(d, 100 - d).max() == 10


@pytest.mark.parametrize(("ring", "rule"), [(False, local), (True, local), (True, small_world)])
def test_where_products_pass_int64(ring: bool, rule: Any) -> None:
    size = 2**60
    edges, _ = Edges.from_coo([0, size - 1], [0, size // 2 - 1], (size, size // 2))
    grow = local(1e-15, ring=ring) if rule is local else small_world(0.0, radius=1e-15)
    sources, targets = grow(site_of(edges), NONE, 500, rng_of())
    reach = Fraction(1e-15) * (1 + Fraction(1, 2**50))
    for i, j in pairs(sources, targets):
        d = abs(Fraction(i, size) - Fraction(j, size // 2))
        assert (min(d, 1 - d) if ring else d) <= reach
    assert np.unique(sources).size > 490


def test_blocks_where_products_pass_int64() -> None:
    rows, columns, n = 2**60, 2**59 + 7, 10**15 + 1
    edges, _ = Edges.from_coo([5], [7], (rows, columns))
    for i, j in pairs(*same_block(n)(site_of(edges), NONE, 300, rng_of())):
        assert i * n // rows == j * n // columns


def test_a_nearly_full_neighbourhood_of_a_wide_layer() -> None:
    width, reach = 3000, 10
    i, j = np.meshgrid(np.arange(width), np.arange(-reach, reach + 1), indexing="ij")
    sources, targets = i.ravel(), (i + j).ravel() % width
    free = np.sort(rng_of().permutation(sources.size)[:5])
    edges, _ = Edges.from_coo(np.delete(sources, free), np.delete(targets, free), (width, width))
    grown = pairs(*local(reach / width, ring=True)(site_of(edges), NONE, 5, rng_of()))
    assert set(grown) == set(pairs(sources[free], targets[free]))


@pytest.mark.parametrize("radius", [0, -0.1, 1.5, float("nan"), "1", None, True])
def test_radii_that_are_none(radius: Any) -> None:
    with pytest.raises(GbnnError, match="radius"):
        local(radius)
    if radius is not None:
        with pytest.raises(GbnnError, match="radius"):
            small_world(radius=radius)


@pytest.mark.parametrize("p", [-0.1, 1.1, None])
def test_shares_that_are_none(p: Any) -> None:
    with pytest.raises(GbnnError, match="p: expected"):
        small_world(p)


def test_numbers_of_blocks_that_cannot_be() -> None:
    for n in (0, 1.0, True):
        with pytest.raises(GbnnError, match="n: expected"):
            same_block(n)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="at most as many blocks as neurons, 9 and 4, got 5"):
        same_block(5)(site_of(random_edges((9, 4), 3)), NONE, 1, rng_of())

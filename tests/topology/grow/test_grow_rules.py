"""A table of grow rules and what holds for all: exact counts, each edge once, none kept, by seed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growing import NONE, activations, empty_of, layers, pairs, patient, random_edges, rng_of, site_of

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError
from gbnn.topology import gradient, random
from gbnn.topology.grow import Grow
from gbnn.topology.grow.attachment import preferential
from gbnn.topology.grow.blocks import gradient_blocks, random_blocks
from gbnn.topology.grow.candidates import grabo, graest, sampled_gradient, uniform
from gbnn.topology.grow.groups import by_chance, by_gradient, in_groups
from gbnn.topology.grow.neighbourhood import local, same_block, small_world
from gbnn.topology.grow.swaps import swapped


class Case(NamedTuple):
    name: str
    rule: Grow
    same: bool = False  # whether it grows exactly as many as were dropped
    block: tuple[int, int] = (1, 1)  # whether edges come and go in blocks
    spares: bool = True  # whether a just-dropped edge is taken only where there is no other place
    huge: bool = False  # whether it works at 2**60 x 2**60


CASES = [
    Case("random", random, huge=True),
    Case("gradient", gradient, spares=False),
    Case("uniform candidates", sampled_gradient(1.0, uniform)),
    Case("grabo", sampled_gradient(2.0, grabo)),
    Case("graest", sampled_gradient(7, graest)),
    Case("no candidates", sampled_gradient(0)),
    Case("preferential", preferential(), huge=True),
    Case("preferential, offset 0", preferential(0.0), huge=True),
    Case("local", local(0.2), huge=True),
    Case("local, on a ring", local(0.3, ring=True), huge=True),
    Case("nearest", local(1e-9), huge=True),
    Case("same block", same_block(1), huge=True),
    Case("small world", small_world(0.3), huge=True),
    Case("small world, narrow", small_world(0.0, radius=0.01, ring=False), huge=True),
    Case("swapped", swapped(), same=True, spares=False, huge=True),
    Case("swapped, no tries", swapped(0), same=True, spares=False, huge=True),
    Case("2 of a group", in_groups(2), same=True, spares=False),
    Case("4 of a group", in_groups(4, by_gradient), same=True, spares=False),
    Case("by chance", in_groups(3, by_chance), same=True, spares=False, huge=True),
    Case("random blocks", random_blocks((2, 3)), block=(2, 3), huge=True),
    Case("gradient blocks", gradient_blocks((3, 2)), block=(3, 2), spares=False),
    Case("sampled blocks", gradient_blocks(2, candidates=1.0), block=(2, 2)),
    Case("blocks of one", random_blocks(1), huge=True),
]
table = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def holds(case: Case, edges: Edges, dropped: Any, count: int, seed: int = 0) -> None:
    """Grow, and check all laws."""
    before = pairs(edges.sources, edges.targets)
    site = site_of(edges)
    grown = pairs(*case.rule(site, dropped, count, rng_of(seed)))
    assert len(grown) == len(set(grown)) == count
    assert all(0 <= i < edges.shape[0] and 0 <= j < edges.shape[1] for i, j in grown)
    gone = {before[k] for k in dropped}
    assert not set(grown) & (set(before) - gone)
    if case.spares:
        assert len(set(grown) & gone) == max(0, count - empty_of(edges))
    assert pairs(*case.rule(site, dropped, count, rng_of(seed))) == grown
    assert pairs(site.weights.sources, site.weights.targets) == before


@table
def test_laws(case: Case) -> None:
    @patient
    @given(layers(case.block), st.data())
    def run(layer: tuple[Edges, Any], data: st.DataObject) -> None:
        edges, dropped = layer
        area = case.block[0] * case.block[1]
        free = (empty_of(edges) + dropped.size) // area
        count = dropped.size if case.same else area * data.draw(st.integers(0, free))
        holds(case, edges, dropped, count, data.draw(st.integers(0, 2**32)))

    run()


@table
def test_all_free_places(case: Case) -> None:
    shape = (case.block[0] * 3, case.block[1] * 4)
    nothing = Edges(NONE, NONE, shape)
    full, _ = Edges.from_coo(*np.nonzero(np.ones(shape)), shape)
    holds(case, full, NONE, 0)
    holds(case, full, np.arange(full.nnz), full.nnz)
    if not case.same:
        holds(case, nothing, NONE, full.nnz)
        holds(case, nothing, NONE, case.block[0] * case.block[1])


@table
def test_a_layer_of_one_place(case: Case) -> None:
    if case.block == (1, 1):
        holds(case, Edges(np.array([0]), np.array([0]), (1, 1)), np.array([0]), 1)
        holds(case, Edges(np.array([0]), np.array([0]), (1, 1)), NONE, 0)
        holds(case, Edges(NONE, NONE, (1, 1)), NONE, 0 if case.same else 1)


@table
def test_a_larger_layer(case: Case) -> None:
    shape, area = (120, 180), case.block[0] * case.block[1]
    units = random_edges((shape[0] // case.block[0], shape[1] // case.block[1]), 600 // area)
    cells = (
        np.kron(
            np.isin(
                np.arange(units.shape[0] * units.shape[1]), units.sources * units.shape[1] + units.targets
            ).reshape(units.shape),
            np.ones(case.block),
        )
        > 0
    )
    edges, _ = Edges.from_coo(*np.nonzero(cells), shape)
    inside = (edges.sources < 60) & (edges.targets < 90)
    dropped = np.flatnonzero(inside)
    holds(case, edges, dropped, dropped.size)


@table
def test_another_seed_is_another_choice(case: Case) -> None:
    edges = random_edges((90, 80), 1000) if case.block == (1, 1) else Edges(NONE, NONE, (90, 90))
    dropped = np.arange(100) if case.block == (1, 1) else NONE
    count = 120 if not case.same else 100
    first, second = (pairs(*case.rule(site_of(edges), dropped, count, rng_of(seed))) for seed in (0, 1))
    exact = ("gradient", "2 of a group", "4 of a group", "gradient blocks")
    assert (first == second) == (case.name in exact)


@pytest.mark.parametrize("case", CASES[2:], ids=[case.name for case in CASES[2:]])
def test_counts_that_cannot_be(case: Case) -> None:
    edges = Edges(*np.nonzero(np.ones((6, 6))), (6, 6))
    whole = case.block[0] * case.block[1]
    for count in (edges.nnz + whole, -1, 1.5, True):
        with pytest.raises(GbnnError, match="count"):
            case.rule(site_of(edges), np.arange(edges.nnz), count, rng_of())  # type: ignore[arg-type]


@table
def test_beyond_int64(case: Case) -> None:
    if not case.huge:
        return
    size = 6 * (2**60 // 6)  # whole blocks
    at = np.array([0, 5, size // 2, size - 1])
    edges, _ = Edges.from_coo(at, at[::-1], (size, size))
    site = site_of(edges)
    if case.block != (1, 1):
        edges = Edges(NONE, NONE, (size, size))
        site, dropped, count = site_of(edges), NONE, 60
    else:
        dropped = np.arange(3)
        count = 3 if case.same else 60
    grown = pairs(*case.rule(site, dropped, count, rng_of()))
    assert len(set(grown)) == count
    assert all(0 <= i < size and 0 <= j < size for i, j in grown)
    assert not set(grown) & set(pairs(site.kept(dropped).sources, site.kept(dropped).targets))


@pytest.mark.parametrize("case", [c for c in CASES if c.same], ids=[c.name for c in CASES if c.same])
def test_as_many_as_dropped(case: Case) -> None:
    with pytest.raises(ArgumentError, match="count: expected 3, as many as were dropped"):
        case.rule(site_of(random_edges((9, 9), 20)), np.arange(3), 4, rng_of())


def test_the_table_uses_ties() -> None:
    x, dy = activations((90, 80))
    size = np.abs(x.T @ dy)
    assert np.unique(size).size < 20
    assert (size == 0).any()

"""Block sparsity, against block sums of small dense arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growing import NONE, activations, layers, pairs, patient, random_edges, rng_of, site_of
from support.memory import peak_while

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.topology import Site
from gbnn.topology.grow.blocks import expanded, gradient_blocks, random_blocks, weakest_blocks
from gbnn.topology.grow.candidates import uniform
from gbnn.weights import Weights

Cells = set[tuple[int, int]]


def sums(dense: Any, block: tuple[int, int]) -> Any:
    """Σ|.| of each block of a dense array."""
    (rows, columns), (high, wide) = dense.shape, block
    result = np.zeros((rows // high, columns // wide))
    for i in range(rows):
        for j in range(columns):
            result[i // high, j // wide] += abs(dense[i, j])
    return result


def blocks_of(sources: Any, targets: Any, block: tuple[int, int]) -> Cells:
    """The blocks these edges fill, each wholly."""
    cells = set(pairs(sources, targets))
    found = {(i // block[0], j // block[1]) for i, j in cells}
    assert len(cells) == len(sources) == len(found) * block[0] * block[1]
    return found


@pytest.mark.parametrize("block", [(1, 1), (2, 3), (3, 1)])
def test_weakest_blocks(block: tuple[int, int]) -> None:
    @patient
    @given(layers(block), st.floats(0, 1), st.integers(0, 2**32))
    def run(layer: Any, fraction: float, seed: int) -> None:
        edges, _ = layer
        values = rng_of(seed).integers(-2, 3, edges.nnz).astype(float)
        gone = weakest_blocks(block)(Site("w", Weights(edges, values)), fraction, rng_of())
        assert (np.diff(gone) > 0).all()
        dense = np.zeros(edges.shape)
        dense[edges.sources, edges.targets] = values
        size = sums(dense, block)
        all_blocks = blocks_of(edges.sources, edges.targets, block)
        number = int(fraction * len(all_blocks) * (1 + 2**-50))
        weakest = sorted(all_blocks, key=lambda cell: (size[cell], cell))[:number]
        assert blocks_of(edges.sources[gone], edges.targets[gone], block) == set(weakest)

    run()


def strongest(edges: Edges, kept: Cells, block: tuple[int, int], x: Any, dy: Any) -> list[tuple[int, int]]:
    size = sums(x.T @ dy, block)
    free = {(i, j) for i in range(size.shape[0]) for j in range(size.shape[1])} - kept
    return sorted(free, key=lambda cell: (-size[cell], cell))


@pytest.mark.parametrize("block", [(1, 1), (2, 3), (3, 1)])
@pytest.mark.parametrize("piece", [1, 2**18])
def test_gradient_blocks(block: tuple[int, int], piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gradient_blocks.__globals__, "_PIECE", piece)

    @patient
    @given(layers(block), st.data())
    def run(layer: Any, data: st.DataObject) -> None:
        edges, dropped = layer
        x, dy = activations(edges.shape, seed=data.draw(st.integers(0, 99)))
        site = site_of(edges, x, dy)
        kept = site.kept(dropped)
        order = strongest(edges, blocks_of(kept.sources, kept.targets, block), block, x, dy)
        number = data.draw(st.integers(0, len(order)))
        area = block[0] * block[1]
        grown = gradient_blocks(block)(site, dropped, number * area, rng_of())
        assert blocks_of(*grown, block) == set(order[:number])

    run()


@pytest.mark.parametrize("candidates", [100_000, None])
def test_sampled_blocks(candidates: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    block = (2, 3)
    units = random_edges((6, 7), 15)
    edges = expanded(units, block)
    x, dy = activations(edges.shape)
    if candidates is None:  # a layer beyond what is looked at wholly: as many candidates as blocks
        monkeypatch.setitem(gradient_blocks.__globals__, "EXACT_PLACES", 10)
    dropped = np.flatnonzero(
        (edges.sources // 2 == units.sources[0]) & (edges.targets // 3 == units.targets[0])
    )
    old = blocks_of(edges.sources, edges.targets, block)
    for seed in range(5):
        grow = gradient_blocks(block, candidates, uniform)
        grown = blocks_of(*grow(site_of(edges, x, dy), dropped, 4 * 6, rng_of(seed)), block)
        assert not grown & old
        if candidates:
            assert grown == set(strongest(edges, old, block, x, dy)[:4])


def test_sampled_blocks_are_guided() -> None:
    edges = expanded(random_edges((20, 20), 10), 2)
    x, dy = activations((40, 40))
    x[:, :20] = 0
    x[:, 20:] = 1
    dy[:, ::2] = 1
    sources, _ = gradient_blocks(2, candidates=500)(site_of(edges, x, dy), NONE, 40, rng_of())
    assert sources.min() >= 20


def test_pieces_of_candidates_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = expanded(random_edges((20, 20), 10), (2, 3))
    grow = gradient_blocks((2, 3), candidates=200)
    whole = pairs(*grow(site_of(edges), NONE, 60, rng_of()))
    monkeypatch.setitem(gradient_blocks.__globals__, "_PIECE", 7)
    assert pairs(*grow(site_of(edges), NONE, 60, rng_of())) == whole


def test_random_blocks_are_uniform() -> None:
    units, _ = Edges.from_coo([0, 2], [1, 3], (3, 4))
    edges, counts, rng = expanded(units, (2, 1)), np.zeros((3, 4)), rng_of()
    for _ in range(1500):
        for cell in blocks_of(*random_blocks((2, 1))(site_of(edges), np.array([0, 1]), 6, rng), (2, 1)):
            counts[cell] += 1
    assert counts[0, 1] == counts[2, 3] == 0
    counts[0, 1] = counts[2, 3] = expected = 1500 * 3 / 10
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_expanded() -> None:
    units = random_edges((4, 5), 9)
    edges = expanded(units, (3, 2))
    assert edges.shape == (12, 10)
    assert blocks_of(edges.sources, edges.targets, (3, 2)) == set(pairs(units.sources, units.targets))
    assert expanded(Edges(NONE, NONE, (2, 2)), 2).nnz == 0


def test_a_wide_layer_takes_memory_for_its_edges_only() -> None:
    units = random_edges((25_000, 25_000), 10_000)
    edges = expanded(units, 8)
    width, nnz = 200_000, 640_000
    assert edges.shape == (width, width)
    x, dy = (np.asfortranarray(rng_of(k).standard_normal((2, width)), np.float32) for k in (0, 1))
    site = site_of(edges, x, dy, values=rng_of().standard_normal(nnz))
    peak, gone = peak_while(lambda: weakest_blocks(8)(site, 0.3, rng_of()))
    assert gone.size == 3000 * 64
    assert peak < 12 * 8 * nnz
    for rule in (random_blocks(8), gradient_blocks(8)):
        peak, grown = peak_while(lambda rule=rule: rule(site, gone, gone.size, rng_of()))
        assert len(blocks_of(*grown, (8, 8))) == 3000
        assert peak < 20 * 8 * nnz


@pytest.mark.parametrize("b", [0, (2, 0), (1, 2, 3), 1.5, "2", None, True, [2, 2]])
def test_blocks_that_are_none(b: Any) -> None:
    for make in (weakest_blocks, random_blocks, gradient_blocks):
        with pytest.raises(GbnnError, match="b: expected"):
            make(b)


RULES = [random_blocks((2, 3)), gradient_blocks((2, 3)), gradient_blocks((2, 3), 1.0)]


@pytest.mark.parametrize("rule", RULES)
def test_what_is_no_layer_of_blocks(rule: Any) -> None:
    edges = expanded(random_edges((3, 4), 5), (2, 3))
    part = Edges(edges.sources[1:], edges.targets[1:], edges.shape)
    odd = Edges(NONE, NONE, (6, 10))
    with pytest.raises(ArgumentError, match="blocks, w: expected sides that 2 x 3 blocks divide, got 6 x 10"):
        rule(site_of(odd), NONE, 6, rng_of())
    with pytest.raises(ArgumentError, match="whole blocks of 2 x 3, got 29 edges in 5 blocks"):
        rule(site_of(part), NONE, 6, rng_of())
    with pytest.raises(ArgumentError, match="whole blocks"):
        rule(site_of(edges), np.array([0]), 6, rng_of())
    with pytest.raises(ArgumentError, match="count: expected a multiple of 6"):
        rule(site_of(edges), NONE, 7, rng_of())
    for nothing in (part, odd):
        with pytest.raises(ArgumentError, match="blocks, w"):
            weakest_blocks((2, 3))(site_of(nothing), 0.5, rng_of())


@pytest.mark.parametrize("rule", RULES[1:])
def test_derivatives_that_are_not_finite(rule: Any) -> None:
    edges = expanded(random_edges((3, 4), 5), (2, 3))
    x, dy = (np.full((2, n), 1e30, np.float32, order="F") for n in edges.shape)
    with pytest.raises(NonFiniteError, match="block gradient growth"):
        rule(site_of(edges, x, dy), NONE, 6, rng_of())


def test_a_distribution_that_is_no_function_or_returns_no_weights() -> None:
    with pytest.raises(KindError, match=r"^distribution: expected a function"):
        gradient_blocks(2, 1.0, None)  # type: ignore[arg-type]
    site = site_of(expanded(random_edges((3, 4), 5), 2))
    for returned in (None, ([1.0] * 5, [1.0] * 8), ("a", "b"), (np.ones(7), np.ones(8)), (1.0, 1.0)):
        rule = gradient_blocks(2, 1.0, lambda site, rng, it=returned: it)  # type: ignore[misc]
        with pytest.raises(GbnnError, match=r"^distribution"):
            rule(site, NONE, 4, rng_of())
    listed = gradient_blocks(2, 1.0, lambda site, rng: ([1.0] * 6, [1.0] * 8))  # type: ignore[arg-type,return-value]
    assert len(pairs(*listed(site, NONE, 4, rng_of()))) == 4


def test_sizes_beyond_any_memory() -> None:
    with pytest.raises(ArgumentError, match=r"^candidates: "):
        gradient_blocks(1, 10**30)
    with pytest.raises(ArgumentError, match=r"^b: "):
        random_blocks(10**30)
    with pytest.raises(ArgumentError, match=r"^edges of the blocks: "):
        expanded(random_edges((3, 4), 5), 2**30)


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_weights_that_are_not_finite(bad: float) -> None:
    edges = expanded(random_edges((3, 4), 5), 2)
    with pytest.raises(NonFiniteError, match="scores, w"):
        weakest_blocks(2)(site_of(edges, values=[bad] + [1.0] * 19), 0.5, rng_of())

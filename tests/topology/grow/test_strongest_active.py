"""The strongest absent edges of a sparse batch: those of the dense one, whatever the width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.active import WIDE, probes, site_of, sparse_of, spread
from support.memory import peak_while

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.rows import SparseRows
from gbnn.semirings import ActiveProbe, EdgeGradient, Probe
from gbnn.topology import gradient, redistribute
from gbnn.topology.grow import in_groups, strongest_into
from gbnn.topology.grow.strongest import search_absent, strongest_absent

patient = settings(deadline=None)
NONE = np.empty(0, dtype=np.int64)


def by_sorting(dense: Probe, present: Edges, active: Any) -> list[tuple[float, int, int, int]]:
    """All absent edges: first by |s|, then those of active sources, then by (source, target)."""
    size = np.abs(dense.x.astype(np.float64).T @ dense.dy.astype(np.float64))
    held = set(zip(present.sources.tolist(), present.targets.tolist(), strict=True))
    return sorted(
        (-float(size[i, j]), int(i not in active), i, j)
        for i in range(size.shape[0])
        for j in range(size.shape[1])
        if (i, j) not in held
    )


@pytest.mark.parametrize("route", ["blocks", "bound", None])
def test_as_the_dense_batch(route: Any) -> None:
    @patient
    @given(probes(), st.data())
    def run(drawn: tuple[ActiveProbe, Probe, Edges], data: st.DataObject) -> None:
        probe, dense, present = drawn
        expected = by_sorting(dense, present, set(probe.x.columns.tolist()))
        count = data.draw(st.integers(0, len(expected)))
        found = search_absent(probe, present, count, route=route)
        assert list(zip(found.sources.tolist(), found.targets.tolist(), strict=True)) == [
            (i, j) for _, _, i, j in expected[:count]
        ]
        assert found.scores.tolist() == [-s for s, *_ in expected[:count]]
        assert 0 <= found.visited <= 1
        # Without those of derivative 0, dense and sparse are the same.
        few = search_absent(probe, present, count, route=route, fill=False)
        twin = search_absent(dense, present, count, route=route, fill=False)
        better = sum(s < 0 for s, *_ in expected)
        assert few.sources.size == min(count, better)
        for one, two in zip(few[:3], twin[:3], strict=True):
            np.testing.assert_array_equal(one, two)

    run()


@patient
@given(probes(), st.integers(0, 2**32))
def test_the_width_is_of_no_matter(drawn: tuple[ActiveProbe, Probe, Edges], seed: int) -> None:
    """The same neurons under other numbers of a layer of 2**60 x 2**60."""
    probe, _, present = drawn
    rng = np.random.default_rng(seed)
    rows, columns = (np.sort(rng.permutation(50)[:n]) * (WIDE // 50) for n in present.shape)
    dy = probe.dy if isinstance(probe.dy, SparseRows) else SparseRows.from_dense(probe.dy)
    if probe.dy is not dy and dy.nnz == 0:
        return
    wide = ActiveProbe(spread(probe.x, rows, WIDE), spread(dy, columns, WIDE))
    held = Edges(rows[present.sources], columns[present.targets], (WIDE, WIDE))
    count = present.shape[0] * present.shape[1] - present.nnz
    few = search_absent(probe, present, count, fill=False)
    found = search_absent(wide, held, count, fill=False)
    assert found.sources.tolist() == rows[few.sources].tolist()
    assert found.targets.tolist() == columns[few.targets].tolist()
    # Filled up: exact numbers, each once, none that is there.
    sources, targets = strongest_absent(wide, held, count + 3)
    assert sources.size == count + 3
    assert sources[: few.sources.size].tolist() == rows[few.sources].tolist()
    Edges.from_coo(np.append(held.sources, sources), np.append(held.targets, targets), held.shape)
    active = np.unique(probe.x.columns)
    if active.size:  # each has 2**60 places
        assert set(sources.tolist()) <= set(rows[active].tolist())


def test_no_active_inputs_at_all() -> None:
    nothing = SparseRows(np.zeros(3, np.int64), NONE, np.empty(0, np.float32), (2, WIDE))
    for dy in (
        np.ones((2, 8), np.float32, order="F"),
        sparse_of(np.random.default_rng(0), 2, 8, 5, np.float32),
    ):
        present = Edges(np.array([0, 0]), np.array([0, 2]), (WIDE, 8))
        probe = ActiveProbe(nothing, dy)
        assert search_absent(probe, present, 4, fill=False).sources.size == 0
        found = search_absent(probe, present, 8)
        assert found.sources.tolist() == [0] * 6 + [1] * 2
        assert found.targets.tolist() == [1, 3, 4, 5, 6, 7, 0, 1]
        grown = gradient(site_of(probe, present), NONE, 3, np.random.default_rng(0))
        assert [side.tolist() for side in grown] == [[0, 0, 0], [1, 3, 4]]


def test_zeros_of_active_sources_come_before_others() -> None:
    x = SparseRows(np.array([0, 1]), np.array([WIDE // 2]), np.ones(1), (1, WIDE))
    dy = SparseRows(np.array([0, 1]), np.array([2]), np.ones(1), (1, 4))
    found = search_absent(ActiveProbe(x, dy), Edges(NONE, NONE, (WIDE, 4)), 6)
    half = WIDE // 2
    assert found.sources.tolist() == [half, half, half, half, 0, 0]
    assert found.targets.tolist() == [2, 0, 1, 3, 0, 1]
    assert found.scores.tolist() == [1, 0, 0, 0, 0, 0]


def test_memory_does_not_know_the_width() -> None:
    rng = np.random.default_rng(0)
    small, held = sparse_of(rng, 16, 400, 1600, np.float32), rng.permutation(400 * 64)[:5000]
    dy = np.asfortranarray(rng.standard_normal((16, 64)), np.float32)
    peaks = []
    for width in (400, 2**60):
        to = np.sort(rng.permutation(400)) * (width // 400)
        order = np.argsort(held)
        present = Edges(to[held[order] // 64], held[order] % 64, (width, 64))
        probe = ActiveProbe(spread(small, to, width), dy)
        peak, _ = peak_while(lambda p=probe, e=present: search_absent(p, e, 500))
        peaks.append(peak)
    assert peaks[1] < 1.1 * peaks[0] + 10_000


def test_errors() -> None:
    x = SparseRows(np.array([0, 1]), np.array([5]), np.ones(1), (1, WIDE))
    present = Edges(NONE, NONE, (WIDE, 2))
    probe = ActiveProbe(x, np.asfortranarray([[1.0, np.nan]]))
    with pytest.raises(NonFiniteError, match="at an active neuron"):
        search_absent(probe, present, 1)
    with pytest.raises(ArgumentError, match="probe"):
        search_absent(probe, Edges(NONE, NONE, (WIDE, 3)), 1)
    with pytest.raises(KindError, match="fill"):
        search_absent(probe, present, 1, fill=1)  # type: ignore[arg-type]
    with pytest.raises(KindError, match="probe"):
        search_absent(x, present, 1)  # type: ignore[arg-type]
    with pytest.raises(KindError, match="probe"):
        strongest_into(probe, present, np.array([0]), np.array([1]))  # type: ignore[arg-type]
    few = ActiveProbe(SparseRows(np.array([0, 1]), np.array([1]), np.ones(1), (1, 2)), np.ones((1, 2)))
    with pytest.raises(GbnnError, match="at most 4 absent"):
        search_absent(few, Edges(NONE, NONE, (2, 2)), 5)


@patient
@given(probes())
def test_other_rules_that_take_sparse_batches(drawn: tuple[ActiveProbe, Probe, Edges]) -> None:
    probe, dense, present = drawn
    site, twin = site_of(probe, present), site_of(probe, present)
    twin.gradient = EdgeGradient(dense.x, dense.dy, present)
    free = site.free
    for total in range(0, free + 1, 3):
        assert redistribute.by_gradient([site], [NONE], total) == redistribute.by_gradient(
            [twin], [NONE], total
        )
    dropped = np.arange(present.nnz)[::2]
    rule, rng = in_groups(2), np.random.default_rng(0)
    for one, two in zip(
        rule(site, dropped, dropped.size, rng), rule(twin, dropped, dropped.size, rng), strict=True
    ):
        np.testing.assert_array_equal(one, two)

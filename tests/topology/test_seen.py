"""How often sources without edges have been active, against counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.active import WIDE, gradient_of, site_of, sparse_of, spread

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError
from gbnn.rows import SparseRows
from gbnn.semirings import ActiveProbe, EdgeGradient
from gbnn.topology import Clock, Site, count_seen, seen
from gbnn.weights import Weights

patient = settings(deadline=None)
NONE = np.empty(0, dtype=np.int64)


@patient
@given(st.integers(0, 2**32), st.sampled_from([9, WIDE]))
def test_exact_while_there_is_room(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.permutation(9)) * (width // 9)
    edges = Edges(ids[::4].copy(), np.zeros(ids[::4].size, dtype=np.int64), (width, 3))
    site = site_of(
        ActiveProbe(spread(sparse_of(rng, 1, 9, 0, np.float32), ids, width), np.ones((1, 3))), edges
    )
    note, counts = count_seen(9), Counter[int]()
    for step in range(8):
        x = spread(sparse_of(rng, 3, 9, int(rng.integers(0, 9)), np.float32), ids, width)
        site.gradient = gradient_of(
            ActiveProbe(x, np.ones((3, 3), np.float32, order="F")), site.weights.edges
        )
        note(site, Clock(step), rng)
        note(site, Clock(step), rng)
        counts.update(i for i in x.columns.tolist() if i not in site.weights.edges.by_source.ids)
        if step == 4 and 1 in counts.values():  # one that gets an edge is counted no more
            first = next(i for i, n in counts.items() if n == 1)
            site.rewire([], [first], [2])
            del counts[first]
        if step % 3 == 0:
            found, times = seen(site)
            assert dict(zip(found.tolist(), times.tolist(), strict=True)) == counts
            assert (np.diff(found) > 0).all()


@patient
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_bounded(seed: int, most: int) -> None:
    """Misra and Gries: at most `most` are held, and no count is short by more than all / (most + 1)."""
    rng = np.random.default_rng(seed)
    site = Site("w", Weights.from_coo([], [], [], shape=(40, 1)))
    note, counts = count_seen(most), Counter[int]()
    for step in range(10):
        x = sparse_of(rng, 4, 40, int(rng.integers(0, 60)), np.float32)
        site.gradient = gradient_of(
            ActiveProbe(x, np.ones((4, 1), np.float32, order="F")), site.weights.edges
        )
        note(site, Clock(step), rng)
        counts.update(x.columns.tolist())
        if rng.random() < 0.5 or step == 9:
            found, times = seen(site)
            assert found.size <= most
            held = dict(zip(found.tolist(), times.tolist(), strict=True))
            short = sum(counts.values()) / (most + 1)
            assert all(n - short <= held.get(i, 0) <= n for i, n in counts.items())
            assert (times > 0).all()


def test_what_is_taken_off_is_the_count_of_the_next_one() -> None:
    site, note = Site("w", Weights.from_coo([], [], [], shape=(WIDE, 1))), count_seen(2)
    x = SparseRows(np.array([0, 3, 5, 6]), np.array([1, 2, 3, 1, 2, 1]), np.ones(6, np.float32), (3, WIDE))
    site.gradient = gradient_of(ActiveProbe(x, np.ones((3, 1), np.float32)), site.weights.edges)
    note(site, Clock(0), np.random.default_rng(0))
    assert [side.tolist() for side in seen(site)] == [[1, 2], [2, 1]]  # of 3, 2 and 1


def test_a_log_that_grows_long_is_sorted_in() -> None:
    rng = np.random.default_rng(0)
    site = Site("w", Weights.from_coo([], [], [], shape=(WIDE, 1)))
    ids = np.sort(rng.integers(WIDE, size=1000))
    x = spread(sparse_of(rng, 100, 1000, 90_000, np.float32), ids, WIDE)
    note = count_seen(2000)
    for step in range(3):
        site.gradient = gradient_of(ActiveProbe(x, np.ones((100, 1), np.float32)), site.weights.edges)
        note(site, Clock(step), rng)
        assert site.memory.layer.get("seen lately", NONE).size <= 2**16
    assert seen(site)[1].sum() == 3 * x.nnz


def test_dense_batches_too() -> None:

    site = Site("w", Weights.from_coo([0], [0], [1.0], shape=(3, 1)))
    x = np.asfortranarray([[1.0, 0.0, 2.0], [1.0, 0.0, 0.0]])
    site.gradient = EdgeGradient(x, np.ones((2, 1)), site.weights.edges)
    count_seen()(site, Clock(0), np.random.default_rng(0))
    assert [a.tolist() for a in seen(site)] == [[2], [1]]


def test_errors() -> None:
    site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(1, 1)))
    with pytest.raises(ArgumentError, match="count_seen"):
        seen(site)
    with pytest.raises(ArgumentError, match="gradient"):
        count_seen()(site, Clock(0), np.random.default_rng(0))
    for bad in (0, 1.5, True):
        with pytest.raises(GbnnError, match="most"):
            count_seen(bad)  # type: ignore[arg-type]

"""How long ago and how often batches have touched each edge, against counting step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.active import WIDE, gradient_of, site_of, sparse_of, spread

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError
from gbnn.sampling import distinct_edges
from gbnn.semirings import ActiveProbe, EdgeGradient
from gbnn.topology import Clock, Site, track_use
from gbnn.topology.prune import tried, unused
from gbnn.topology.use import last_touched, times_touched
from gbnn.weights import Weights

patient = settings(deadline=None)
NONE = np.empty(0, dtype=np.int64)


@patient
@given(st.integers(0, 2**32), st.booleans(), st.integers(1, 4))
def test_against_counting(seed: int, sparse: bool, patience: int) -> None:
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    nnz = int(rng.integers(0, shape[0] * shape[1] + 1))
    edges, _ = Edges.from_coo(*distinct_edges(rng, shape, nnz), shape)
    site = Site("w", Weights(edges, rng.integers(-3, 4, nnz).astype(np.float32)))
    last: dict[tuple[int, int], int] = {}
    times: dict[tuple[int, int], int] = {}
    rule, weak = unused(patience), tried(2)
    for step in range(3, 12):
        now = site.weights.edges
        pairs = list(zip(now.sources.tolist(), now.targets.tolist(), strict=True))
        x = sparse_of(rng, 2, shape[0], int(rng.integers(0, 5)), np.float32)
        x = x.with_values(np.ones(x.nnz, np.float32))
        dy = np.ones((2, shape[1]), np.float32, order="F")
        probe = ActiveProbe(x, dy)
        site.gradient = gradient_of(probe, now) if sparse else EdgeGradient(x.to_dense(), dy, now)
        track_use(site, Clock(step), rng)
        track_use(site, Clock(step), rng)  # of another rewiring, at the same step
        for pair in pairs:
            if pair[0] in x.columns:
                last[pair], times[pair] = step, times.get(pair, 0) + 1
        assert times_touched(site).tolist() == [times.get(pair, 0) for pair in pairs]
        assert last_touched(site).tolist() == [last.get(pair, -1) + 1 for pair in pairs]
        if step % 3 == 0:
            gone = rule(site, 0.0, rng)
            for pair in pairs:  # what has not been touched yet waits from here
                last.setdefault(pair, step)
            assert gone.tolist() == [k for k, pair in enumerate(pairs) if last[pair] < step - patience]
            size = np.abs(site.weights.values)
            order = sorted((size[k], k) for k, pair in enumerate(pairs) if times.get(pair, 0) >= 2)
            half = sorted(k for _, k in order[: len(pairs) // 2])
            assert weak(site, 0.5, rng).tolist() == half
            free = np.flatnonzero(now.find(*(side.ravel() for side in np.indices(shape))) < 0)[:2]
            for k in gone:
                del last[pairs[k]]
                times.pop(pairs[k], None)
            site.rewire(gone, free // shape[1], free % shape[1])


def test_the_widest_layer() -> None:
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(WIDE, size=6))
    x = spread(sparse_of(rng, 2, 6, 9, np.float32), ids, WIDE)
    edges = Edges(ids, ids.copy(), (WIDE, WIDE))
    dy = spread(sparse_of(rng, 2, 6, 12, np.float32), ids, WIDE)
    site = site_of(ActiveProbe(x, dy), edges)
    track_use(site, Clock(0), rng)
    assert times_touched(site).tolist() == [int(i in x.columns) for i in ids]
    assert unused(5)(site, 1.0, rng).size == 0


def test_errors() -> None:
    site = Site("w", Weights.from_coo([0], [0], 1.0, shape=(1, 1)))
    rng = np.random.default_rng(0)
    for rule in (unused(3), tried(1)):
        with pytest.raises(ArgumentError, match="track_use"):
            rule(site, 0.5, rng)
    with pytest.raises(ArgumentError, match="gradient"):
        track_use(site, Clock(0), rng)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(GbnnError, match="patience"):
            unused(bad)  # type: ignore[arg-type]
    with pytest.raises(GbnnError, match="times"):
        tried(-1)
    with pytest.raises(GbnnError, match="score"):
        tried(1, 3)  # type: ignore[arg-type]

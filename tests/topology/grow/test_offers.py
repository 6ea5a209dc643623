"""Rules that offer edges: absent ones, each once, at most as many as asked, of active or seen sources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.active import WIDE, probes, site_of, sparse_of, spread

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError
from gbnn.rows import SparseRows
from gbnn.semirings import ActiveProbe, EdgeGradient, Probe
from gbnn.topology import Clock, Site, count_seen
from gbnn.topology.grow import Offer, fan_out, one_after_another, strongest

patient = settings(deadline=None)
NONE = np.empty(0, dtype=np.int64)
RULES: dict[str, Offer] = {
    "strongest": strongest,
    "fan_out": fan_out(3),
    "fan_out, of what has come twice": fan_out(2, 2),
    "fan_out, by gradient": fan_out(3, by_gradient=True),
    "one after another": one_after_another(fan_out(1), strongest),
    "none": one_after_another(),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
@pytest.mark.parametrize("dense", [False, True])
def test_laws(rule: Offer, dense: bool) -> None:
    @patient
    @given(probes(), st.integers(0, 60), st.integers(0, 99))
    def run(drawn: tuple[ActiveProbe, Probe, Edges], count: int, seed: int) -> None:
        probe, twin, edges = drawn
        site = site_of(probe, edges)
        if dense:
            site.gradient = EdgeGradient(twin.x, twin.dy, edges)
        count_seen()(site, Clock(0), np.random.default_rng(0))
        sources, targets = rule(site, count, np.random.default_rng(seed))
        assert sources.dtype == targets.dtype == np.int64
        assert sources.shape == targets.shape
        assert sources.size <= count
        # Raises where one is there already, comes twice, or is out of range.
        Edges.from_coo(np.append(edges.sources, sources), np.append(edges.targets, targets), edges.shape)
        assert set(sources.tolist()) <= set(probe.x.columns.tolist())
        again = rule(site, count, np.random.default_rng(seed))
        assert [side.tolist() for side in again] == [sources.tolist(), targets.tolist()]

    run()


def wide_site(entries: int = 30, out: int = 50) -> tuple[Site, Any]:
    rng = np.random.default_rng(0)
    ids = np.sort(rng.integers(WIDE, size=12))
    x = spread(sparse_of(rng, 6, 12, entries, np.float32), ids, WIDE)
    dy: Any = np.asfortranarray(rng.standard_normal((6, min(out, 50))), np.float32)
    if out > 50:
        dy = spread(SparseRows.from_dense(dy), np.arange(50) * (out // 50), out)
    edges = Edges(ids[:3].copy(), np.zeros(3, dtype=np.int64), (WIDE, out))
    site = site_of(ActiveProbe(x, dy), edges)
    count_seen()(site, Clock(0), rng)
    return site, x


def test_the_most_frequent_first_and_all_or_none_of_a_source() -> None:
    site, x = wide_site()
    ids, counts = np.unique(x.columns[x.columns > site.weights.sources[-1]], return_counts=True)
    order = ids[np.argsort(-counts, kind="stable")]
    for count in (0, 3, 4, 11, 12, 1000):
        sources, _ = fan_out(4)(site, count, np.random.default_rng(0))
        assert sources.tolist() == np.repeat(np.sort(order[: count // 4]), 4).tolist()
    sources, _ = fan_out(4, times=3)(site, 1000, np.random.default_rng(0))
    assert np.unique(sources).tolist() == ids[counts >= 3].tolist()
    sources, targets = fan_out(500)(site, 100, np.random.default_rng(0))  # as many as there are targets
    assert targets.tolist() == [*range(50), *range(50)]


def test_by_gradient_takes_the_largest() -> None:
    site, _ = wide_site()
    sources, targets = fan_out(4, by_gradient=True)(site, 1000, np.random.default_rng(0))
    compact = site.probe.compact()
    size = np.abs(compact.probe.x.T @ compact.probe.dy)
    for source in np.unique(sources):
        row = size[np.searchsorted(compact.sources, source)]
        assert sorted(targets[sources == source]) == sorted(np.argsort(-row)[:4])
    # Of those seen before but silent now none is taken.
    few, _ = wide_site(entries=5)
    site.gradient = few.gradient
    sources, _ = fan_out(4, by_gradient=True)(site, 1000, np.random.default_rng(0))
    assert set(sources) <= set(few.probe.x.columns)
    assert set(sources)


def test_random_targets_are_everywhere() -> None:
    site, _ = wide_site(out=2**40)
    _, targets = fan_out(64)(site, 10_000, np.random.default_rng(1))
    assert np.unique(targets).size == targets.size > 64
    assert targets.mean() == pytest.approx(2**39, rel=0.2)


def test_errors() -> None:
    for bad in (0, 1.5, True):
        with pytest.raises(GbnnError, match="edges"):
            fan_out(bad)  # type: ignore[arg-type]
        with pytest.raises(GbnnError, match="times"):
            fan_out(1, bad)  # type: ignore[arg-type]
    with pytest.raises(GbnnError, match="by_gradient"):
        fan_out(1, by_gradient=1)  # type: ignore[arg-type]
    with pytest.raises(GbnnError, match=r"offers\[1\]"):
        one_after_another(strongest, 3)  # type: ignore[arg-type]
    site, _ = wide_site()
    site.memory.layer.clear()
    with pytest.raises(ArgumentError, match="count_seen"):
        fan_out(1)(site, 5, np.random.default_rng(0))

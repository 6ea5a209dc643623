"""SRigL's rules and growth into each neuron, by brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.networks import edges_of, new_batch, random_site

from gbnn.errors import GbnnError, NonFiniteError
from gbnn.semirings import Probe
from gbnn.topology import Clock, ConstantFanIn, Site, constant, srigl, strongest_into
from gbnn.topology import fan_in as module

Array = np.ndarray[Any, Any]
patient = settings(deadline=None)


@st.composite
def layers(draw: st.DrawFn) -> Site:
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    nnz = draw(st.integers(0, rows * columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    index, dtype = draw(st.integers(0, 1)), draw(st.sampled_from([np.float32, np.float64]))
    return random_site(rng, (rows, columns), nnz, index=index, count=2, dtype=dtype)


@patient
@given(layers(), st.data())
def test_strongest_into_each_target(site: Site, data: st.DataObject) -> None:
    rows, columns = site.weights.shape
    present = set(edges_of(site.weights))
    free = [sum((i, j) not in present for i in range(rows)) for j in range(columns)]
    counts = np.array([data.draw(st.integers(0, most)) for most in free])
    size = np.abs(site.probe.block(0, columns))
    expected = []
    for j in range(columns):
        absent = [(i, j) for i in range(rows) if (i, j) not in present]
        expected += sorted(absent, key=lambda e: (-size[e], e))[: counts[j]]
    grown = strongest_into(site.probe, site.weights.edges, np.arange(columns), counts)
    assert set(zip(*(a.tolist() for a in grown), strict=True)) == set(expected)
    assert grown[0].size == len(expected)


def test_blocks_of_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    site = random_site(np.random.default_rng(0), (9, 8), 20, index=0, count=1, dtype=np.float64)
    counts = np.full(8, 2)
    whole = strongest_into(site.probe, site.weights.edges, np.arange(8), counts)
    monkeypatch.setattr(module, "_BLOCK", 9 * 3)
    parts = strongest_into(site.probe, site.weights.edges, np.arange(8), counts)
    assert set(zip(*whole, strict=True)) == set(zip(*parts, strict=True))


def by_definition(site: Site, share: float, ablation: float) -> tuple[set[Any], dict[int, int]]:
    """Return the edges that stay and the fan-in of each neuron that is left, edge by edge."""
    rows, columns = site.weights.shape
    weight = dict(zip(edges_of(site.weights), np.abs(site.weights.values).tolist(), strict=True))
    size = np.abs(site.probe.block(0, columns))
    n_go = int(share * len(weight) + 1e-9)
    keep = sorted(weight, key=lambda e: (weight[e], e))[n_go:]
    absent = [e for e in np.ndindex(rows, columns) if e not in keep]
    salient = keep + sorted(absent, key=lambda e: (-size[e], e))[:n_go]
    entered = {j: sum(e[1] == j for e in salient) for j in range(columns)}
    have = {e[1] for e in weight}
    k = len(weight) // max(1, len(have))
    if site.index == site.count - 1:
        active = have | {j for j in entered if entered[j]}
    else:
        active = {j for j in entered if entered[j] and entered[j] >= max(1, int(ablation * k))}
    least = -(-len(weight) // rows)
    if len(active) < least:
        active |= set(sorted((j for j in entered if entered[j]), key=lambda j: (-entered[j], j))[:least])
        if site.index < site.count - 1:
            active = set(sorted((j for j in entered if entered[j]), key=lambda j: (-entered[j], j))[:least])
    each = min(rows, len(weight) // len(active)) if active else 0
    stays = set()
    for j in active:
        into = sorted((e for e in keep if e[1] == j), key=lambda e: (-weight[e], e))
        stays |= set(into[:each])
    return stays, dict.fromkeys(active, each)


@patient
@given(layers(), st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.sampled_from([0.0, 0.3, 0.95]))
def test_what_stays_and_what_each_neuron_gets(site: Site, share: float, ablation: float) -> None:
    stays, fan_in = by_definition(site, share, ablation)
    before = edges_of(site.weights)
    rules = ConstantFanIn(constant(share), ablation)
    total = rules.goal([site], Clock(0))
    dropped = rules.prune(site, share, np.random.default_rng(0))
    assert set(before) - set(edges_of(site.weights, dropped)) == stays
    (count,) = rules.allocate([site], [dropped], total)
    assert count == total - len(stays)
    sources, targets = rules.grow(site, dropped, count, np.random.default_rng(0))
    after = stays | set(zip(sources.tolist(), targets.tolist(), strict=True))
    assert len(after) == total == sum(fan_in.values())
    got = {j: sum(e[1] == j for e in after) for j in fan_in}
    assert got == fan_in


def test_neurons_without_salient_edges_are_ablated_but_not_in_the_last_layer() -> None:
    for index, ablated in ((0, True), (1, False)):
        rng = np.random.default_rng(0)
        site = random_site(rng, (20, 10), 60, index=index, count=2, dtype=np.float64)
        weak = site.weights.targets < 5  # five neurons of weak edges and weak gradients
        site.weights.assign(np.where(weak, 0.01, 1.0) * (1 + rng.random(60)))
        new_batch(site, rng)
        site.gradient._dy[:, :5] *= 1e-6
        recipe = srigl(1, constant(0.6), until=1.0)
        recipe.apply([site], Clock(1, total_steps=10), rng)
        ids, fan_in = site.weights.fan_in()
        assert (ids.min() >= 5) == ablated
        assert set(fan_in) == ({12} if ablated else {6})


def test_infinite_derivatives_are_reported() -> None:
    edges = random_site(np.random.default_rng(0), (3, 3), 2, index=0, count=1, dtype=np.float32).weights.edges
    x = np.full((1, 3), 1e30, dtype=np.float32, order="F")
    with pytest.raises(NonFiniteError, match="targets 1 to 2"):
        strongest_into(Probe(x, x), edges, np.arange(3), np.array([0, 1, 1]))


@pytest.mark.parametrize("ablation", [-0.1, 1.1, "a"])
def test_bad_ablation(ablation: Any) -> None:
    with pytest.raises(GbnnError, match="ablation"):
        srigl(ablation=ablation)

"""SRigL's rules and growth into each neuron, by brute force."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.networks import edges_of, new_batch, random_site

from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.sampling import distinct_edges
from gbnn.semirings import Probe
from gbnn.topology import Clock, ConstantFanIn, Site, constant, srigl, strongest_into

Array = np.ndarray[Any, Any]
module = import_module("gbnn.topology.grow.strongest_into")  # the package has the function by this name
patient = settings(deadline=None)


@st.composite
def layers(draw: st.DrawFn) -> Site:
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    nnz = draw(st.integers(0, rows * columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    index, dtype = draw(st.integers(0, 1)), draw(st.sampled_from([np.float32, np.float64]))
    return random_site(rng, (rows, columns), nnz, index=index, count=2, dtype=dtype)


def by_order(probe: Probe, present: Edges, targets: Array, counts: Array) -> tuple[Array, Array]:
    """Choose by sorting every absent edge of a target by its score, in float64, sample by sample."""
    scores = np.zeros(present.shape)
    for row, other in zip(probe.x.astype(np.float64), probe.dy.astype(np.float64), strict=True):
        scores += row[:, None] * other
    scores = np.abs(scores)
    scores[present.sources, present.targets] = -1
    best = [
        np.sort(np.argsort(-scores[:, j], kind="stable")[:n]) for j, n in zip(targets, counts, strict=True)
    ]
    return np.concatenate([np.empty(0, dtype=int), *best]), np.repeat(targets, counts)


def assert_strongest(probe: Probe, present: Edges, targets: Array, counts: Array) -> None:
    grown, expected = (way(probe, present, targets, counts) for way in (strongest_into, by_order))
    np.testing.assert_array_equal(grown, expected)
    assert grown[0].dtype == grown[1].dtype == np.int64


def made(
    rng: np.random.Generator, shape: tuple[int, int], nnz: int, batch: int, dtype: Any
) -> tuple[Probe, Edges]:
    x, dy = (np.asfortranarray(rng.standard_normal((batch, n)), dtype=dtype) for n in shape)
    return Probe(x, dy), Edges.from_coo(*distinct_edges(rng, shape, nnz), shape)[0]


def free_places(present: Edges) -> Array:
    return present.shape[0] - np.bincount(present.targets, minlength=present.shape[1])


@patient
@given(layers(), st.data())
def test_strongest_into_each_target(site: Site, data: st.DataObject) -> None:
    columns, present = site.weights.shape[1], site.weights.edges
    targets = np.array(sorted(data.draw(st.sets(st.integers(0, columns - 1)))), dtype=np.int64)
    counts = np.array(
        [data.draw(st.integers(0, int(most))) for most in free_places(present)[targets]], dtype=np.int64
    )
    assert_strongest(site.probe, present, targets, counts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [1, 5, 60, 700])
@pytest.mark.parametrize("rows", [64, 65, 700])
def test_wide_layers(rows: int, most: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    probe, present = made(rng, (rows, 70), rows * 7, 20, dtype)
    assert_strongest(probe, present, np.arange(70), np.minimum(most, free_places(present)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_silent_neurons_and_samples(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    probe, present = made(rng, (300, 60), 900, 12, dtype)
    probe.x[:, rng.random(300) < 0.7] = 0
    probe.dy[:, rng.random(60) < 0.4] = 0
    probe.x[3:6], probe.dy[7:] = 0, 0
    for most in (4, 20, 100, 300):  # about 90 sources have a derivative: the rest of 100 is of score zero
        assert_strongest(probe, present, np.arange(60), np.minimum(most, free_places(present)))
    for array in (probe.x, probe.dy):
        array[:] = 0
        assert_strongest(probe, present, np.arange(60), np.full(60, 8))


def test_silent_sources_tie_with_those_of_score_zero() -> None:
    x = np.asfortranarray([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    present, _ = Edges.from_coo([], [], (3, 2))
    sources, _ = strongest_into(Probe(x, np.eye(2, order="F")), present, np.array([0, 1]), np.array([2, 2]))
    assert sources.tolist() == [0, 1, 0, 2]


def test_a_row_that_overflows_in_blas_has_no_limit() -> None:
    row = np.arange(200, dtype=np.float32)
    infinity = np.float32(np.inf).view(np.int32)
    for largest, expected in ((1e3, np.float32(198).view(np.int32)), (np.inf, -1), (np.nan, -1)):
        row[7] = largest
        bits, tops = row.view(np.int32), np.empty(4, dtype=np.int32)
        module._tops(bits, tops)
        assert module._limit(bits, tops, 3, infinity, np.empty(200, dtype=np.int32)) == expected


def near_ties(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Probe:
    """Make inputs that are rearranged copies of a few: BLAS and order of summation tell them apart."""
    batch = 24
    few = rng.standard_normal((batch // 2, 5))
    x = np.empty((batch, shape[0]))
    for i in range(shape[0]):  # the sums of both halves are of equal terms, in another order
        half = few[:, i % 5]
        x[:, i] = np.concatenate([half, half[::-1]] if i % 2 else [half[::-1], half])
    dy = np.tile(rng.standard_normal((1, shape[1])), (batch, 1))
    return Probe(np.asfortranarray(x, dtype=dtype), np.asfortranarray(dy, dtype=dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_of_blas_does_not_choose(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    shape = (200, 90)
    probe, present = near_ties(rng, shape, dtype), made(rng, shape, 1000, 1, dtype)[1]
    targets, counts = np.arange(90), rng.integers(0, 50, 90)
    expected = by_order(probe, present, targets, counts)
    by_blas = np.abs(probe.x.T @ probe.dy)
    by_blas[present.sources, present.targets] = -1
    naive = [np.sort(np.argsort(-by_blas[:, j], kind="stable")[:n]) for j, n in enumerate(counts)]
    assert (np.concatenate(naive) != expected[0]).any()  # here rounding would choose
    for block, least in ((1, 1), (200 * 7, 1), (2**18, 1), (1, 33)):
        monkeypatch.setattr(module, "_BLOCK", block)
        monkeypatch.setattr(module, "_LEAST", least)
        np.testing.assert_array_equal(strongest_into(probe, present, targets, counts), expected)


def test_most_edges_need_no_second_score(monkeypatch: pytest.MonkeyPatch) -> None:
    probe, present = made(np.random.default_rng(0), (500, 60), 900, 30, np.float32)
    scored: list[int] = []
    decided = module._decided

    def counted(probe: Probe, source: Array, *rest: Any) -> Any:
        scored.append(source.size)
        return decided(probe, source, *rest)

    monkeypatch.setattr(module, "_decided", counted)
    assert_strongest(probe, present, np.arange(60), np.full(60, 6))
    assert sum(scored) < 0.2 * 6 * 60


def test_what_float32_cannot_hold_is_decided_in_float64() -> None:
    """Present edges overflow in BLAS, absent ones nearly do, and some are lost below the smallest number."""
    shape = (150, 3)
    present, _ = Edges.from_coo([0, 1, 2, 0], [0, 0, 0, 1], shape)
    x = np.linspace(1e-30, 2e-30, 150, dtype=np.float32)[None].copy(order="F")
    x[0, :3] = 1e30
    dy = np.asfortranarray([[1e30, 1e8, 1e-20]], dtype=np.float32)
    assert_strongest(Probe(x, dy), present, np.arange(3), np.array([5, 5, 40]))


@pytest.mark.parametrize(
    ("targets", "counts"),
    [([1, 0], [1, 1]), ([1, 1], [1, 1]), ([-1], [1]), ([3], [1]), ([0], [-1]), ([0], [3]), ([0, 1], [1])],
)
def test_bad_targets_and_counts(targets: list[int], counts: list[int]) -> None:
    probe, _ = made(np.random.default_rng(0), (3, 3), 0, 2, np.float32)
    present, _ = Edges.from_coo([1], [0], (3, 3))
    with pytest.raises(ArgumentError, match=r"targets|counts"):
        strongest_into(probe, present, np.array(targets), np.array(counts))
    with pytest.raises(ArgumentError, match="probe"):
        strongest_into(Probe(probe.x[:, :2], probe.dy), present, np.array([0]), np.array([1]))


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
    assert_planned(site, share, ablation)


def test_kept_edges_into_ablated_neurons_go() -> None:
    site = random_site(np.random.default_rng(0), (40, 12), 150, index=0, count=2, dtype=np.float64)
    targets = site.weights.edges.targets
    strong = np.flatnonzero(targets == 3)[:2]
    site.weights.assign(np.where(np.isin(np.arange(150), strong), 9.0, np.where(targets == 3, 0.1, 1.0)))
    site.gradient._dy[:, 3] = 0  # only its two strong edges are salient
    ablated = assert_planned(site, 0.3, 0.95)
    assert set(strong.tolist()) <= set(ablated.tolist())


def assert_planned(site: Site, share: float, ablation: float) -> Array:
    """Compare with `by_definition`; return the positions of what goes."""
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
    return dropped


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
    with pytest.raises(NonFiniteError, match="inf at"):
        strongest_into(Probe(x, x), edges, np.arange(3), np.array([0, 1, 1]))
    x[0, 1] = np.nan
    with pytest.raises(NonFiniteError, match="source 1"):
        strongest_into(Probe(x, np.ones_like(x)), edges, np.arange(3), np.array([0, 1, 1]))


@pytest.mark.parametrize("ablation", [-0.1, 1.1, "a"])
def test_bad_ablation(ablation: Any) -> None:
    with pytest.raises(GbnnError, match="ablation"):
        srigl(ablation=ablation)


@pytest.mark.parametrize("fraction", [0.3, None, "cosine"])
def test_a_fraction_that_is_no_function(fraction: Any) -> None:
    with pytest.raises(KindError, match=r"^fraction: expected a function"):
        ConstantFanIn(fraction)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_not_finite(bad: float) -> None:
    site = random_site(np.random.default_rng(0), (4, 3), 6, index=0, count=2, dtype=np.float64)
    values = site.weights.values.copy()
    values[2] = bad
    site.weights.assign(values)
    with pytest.raises(NonFiniteError, match=f"scores, {site.name}"):
        ConstantFanIn(constant(0.3)).goal([site], Clock(step=1))


def test_targets_and_counts_as_lists_and_of_other_kinds() -> None:
    probe, _ = made(np.random.default_rng(0), (3, 3), 0, 2, np.float32)
    present, _ = Edges.from_coo([1], [0], (3, 3))
    expected = strongest_into(probe, present, np.array([0, 2]), np.array([1, 2]))
    for kind in (list, tuple, lambda some: np.array(some, dtype=np.uint8)):
        found = strongest_into(probe, present, kind([0, 2]), kind([1, 2]))
        np.testing.assert_array_equal(found, expected)
    assert strongest_into(probe, present, [], [])[0].size == 0  # type: ignore[arg-type]
    for bad in (None, "ab", [0.0, 1.0], [True, False], [[0], [1, 2]]):
        with pytest.raises(KindError, match=r"^targets: expected integers"):
            strongest_into(probe, present, bad, np.array([1, 2]))  # type: ignore[arg-type]
        with pytest.raises(KindError, match=r"^counts: expected integers"):
            strongest_into(probe, present, np.array([0, 2]), bad)  # type: ignore[arg-type]
    for flat in (0, [[0, 1]]):
        with pytest.raises(ArgumentError, match="a 1-D array"):
            strongest_into(probe, present, flat, np.array([1, 2]))  # type: ignore[arg-type]
    with pytest.raises(KindError, match="probe"):
        strongest_into(None, present, [0], [1])  # type: ignore[arg-type]

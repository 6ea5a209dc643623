"""Layers that begin with no edges and get them from data: exact numbers, state that follows, any width."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.active import WIDE, gradient_of, probes, site_of, sparse_of, spread
from support.memory import peak_while
from support.networks import edges_of, table_of

from gbnn import data, layers, topology, training
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError
from gbnn.layers import Chain, Dense, Linear, Tanh, normal
from gbnn.rows import SparseRows
from gbnn.semirings import ActiveProbe, EdgeGradient, Probe
from gbnn.topology import Clock, OnDemand, Site, grow, grow_on_demand
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
patient = settings(deadline=None)
OFFERS = {
    "fan_out": grow.fan_out(2),
    "by gradient": grow.fan_out(2, by_gradient=True),
    "strongest": grow.strongest,
    "both": grow.one_after_another(grow.fan_out(1), grow.strongest),
}
every_offer = pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS.keys())


def batch_of(rng: np.random.Generator, ids: Array, columns: int, *, wide: bool) -> ActiveProbe:
    rows = int(rng.integers(1, 4))
    x = sparse_of(rng, rows, ids.size, int(rng.integers(0, rows * ids.size + 1)), np.float32)
    dy: Any = sparse_of(rng, rows, columns, int(rng.integers(0, rows * columns + 1)), np.float32)
    return ActiveProbe(
        spread(x, ids, WIDE if wide else ids.size), dy if rng.random() < 0.5 else dy.to_dense()
    )


@every_offer
def test_laws(offer: grow.Offer) -> None:
    @patient
    @given(st.integers(0, 2**32), st.booleans(), st.integers(0, 20), st.integers(0, 2))
    def run(seed: int, wide: bool, budget: int, trial: int) -> None:
        rng = np.random.default_rng(seed)
        rows, columns = int(rng.integers(1, 8)), int(rng.integers(1, 6))
        ids = np.sort(rng.permutation(rows)) * (WIDE // rows if wide else 1)
        nnz = int(rng.integers(0, rows * columns + 1)) if rng.random() < 0.5 else 0
        at = np.sort(rng.permutation(rows * columns)[:nnz])
        shape = (WIDE if wide else rows), columns
        edges = Edges(ids[at // columns], at % columns, shape)
        site = site_of(batch_of(rng, ids, columns, wide=wide), edges, rng.integers(-4, 5, nnz))
        site.slots["momentum"] = np.arange(1, nnz + 1, dtype=np.float32)
        recipe = grow_on_demand(
            budget, 1, offer=offer, pace=0.5, exchange=0.3, trial=trial, patience=3, until=100
        )
        for step in range(1, 9):
            probe = batch_of(rng, ids, columns, wide=wide)
            site.gradient = gradient_of(probe, site.weights.edges)
            recipe.watch([site], Clock(step), rng)
            before, old = table_of(site), site.weights.nnz
            last = site.memory.edges["last touched"].copy()
            (done,) = recipe.apply([site], Clock(step), rng)
            after, order = table_of(site), edges_of(site.weights)
            assert order == sorted(set(order))
            assert site.weights.nnz <= max(min(budget, site.places), 0)
            assert site.weights.nnz == old - done.change.dropped + done.change.grown
            for edge, place in zip(order, done.change.origin.tolist(), strict=True):
                if place >= 0:
                    assert after[edge] == before[edge] or last[place] == 0  # whose wait begins
                else:
                    assert edge[0] in probe.x.columns or offer is OFFERS["fan_out"] or offer is OFFERS["both"]
                    assert after[edge] == (0.0,) * len(after[edge])
            stayed = set(done.change.origin[done.change.origin >= 0].tolist())
            idle = {k for k in range(old) if 0 < last[k] < step + 1 - 3}
            assert not idle & stayed
            # The pace, and what is exchanged.
            room = max(min(budget, site.places) - (old - len(idle)), 0)
            assert done.change.grown <= max(min(room, int(0.5 * budget)), int(0.3 * budget))

    run()


def test_fills_up_to_the_budget_and_then_exchanges() -> None:
    rng = np.random.default_rng(0)
    site = Site("w", Weights.from_coo([], [], [], shape=(WIDE, 6)))
    recipe, ids = grow_on_demand(30, 1, offer=grow.strongest, pace=0.5, exchange=0.1), np.arange(12) * 10**16
    sizes, moved = [], []
    for step in range(1, 9):
        x = sparse_of(rng, 4, 12, 40, np.float32)
        x = spread(x.with_values(np.ones(x.nnz, np.float32)), ids, WIDE)
        probe = ActiveProbe(x, np.asfortranarray(rng.standard_normal((4, 6)), np.float32))
        site.gradient = gradient_of(probe, site.weights.edges)
        site.weights.assign(rng.standard_normal(site.weights.nnz))
        recipe.watch([site], Clock(step), rng)
        (done,) = recipe.apply([site], Clock(step), rng)
        sizes.append(site.weights.nnz)
        moved.append((done.change.dropped, done.change.grown))
    assert sizes == [15] + [30] * 7
    assert moved[:2] == [(0, 15), (0, 15)]
    assert moved[-1] == (3, 3)  # all have been tried by now


def test_the_weakest_goes_but_not_before_its_trial() -> None:
    weights = Weights.from_coo([0, 1, 2], [0, 0, 0], [0.1, 5.0, 0.3], shape=(WIDE, 1))
    x = SparseRows(np.array([0, 3]), np.array([1, 2, 9]), np.ones(3, np.float32), (1, WIDE))
    site = Site("w", weights)
    site.gradient = gradient_of(ActiveProbe(x, np.ones((1, 1), np.float32)), weights.edges)
    recipe = grow_on_demand(3, 1, offer=grow.fan_out(1), pace=1.0, exchange=0.4, trial=1)
    recipe.watch([site], Clock(0), np.random.default_rng(0))
    recipe.apply([site], Clock(1), np.random.default_rng(0))
    assert site.weights.sources.tolist() == [0, 1, 9]  # 2 is stronger than 0, but 0 was never touched
    smaller = replace(recipe, budget=1)
    smaller.apply([site], Clock(2), np.random.default_rng(0))
    assert site.weights.sources.tolist() == [1]  # a budget is kept at once, trial or not


def test_edges_out_of_use_make_room() -> None:
    weights = Weights.from_coo([0, 1, 2], [0, 0, 0], [0.1, 5.0, 0.3], shape=(WIDE, 2))
    x = SparseRows(np.array([0, 2]), np.array([1, 9]), np.ones(2, np.float32), (1, WIDE))
    site = Site("w", weights)
    recipe, rng = grow_on_demand(3, 1, pace=1.0, exchange=0.0, patience=2, until=50), np.random.default_rng(0)
    nnz = []
    for step in range(6):
        probe = ActiveProbe(x, np.asfortranarray([[1.0, 2.0]], np.float32))
        site.gradient = gradient_of(probe, site.weights.edges)
        recipe.watch([site], Clock(step), rng)
        recipe.apply([site], Clock(step), rng)
        nnz.append(edges_of(site.weights))
    # 0 and 2 are never active: at step 3 they have waited for more than two steps.
    assert nnz[2] == [(0, 0), (1, 0), (2, 0)]
    assert nnz[3] == [(1, 0), (1, 1), (9, 1)]  # the strongest two of those that were absent
    assert nnz[5] == nnz[3]


def test_a_budget_for_each_layer_and_a_start() -> None:
    rng = np.random.default_rng(0)
    ids = np.arange(9) * 10**15
    sites = [
        site_of(
            ActiveProbe(spread(sparse_of(rng, 3, 9, 20, np.float32), ids, WIDE), np.ones((3, n), np.float32)),
            Edges(*np.empty((2, 0), np.int64), (WIDE, n)),
        )
        for n in (8, 4)
    ]
    for index, site in enumerate(sites):
        site.name = f"{index}.weights"
    recipe = grow_on_demand(
        lambda site: site.weights.out_features, 1, offer=grow.fan_out(2), pace=1.0, start=normal(1.0)
    )
    recipe.watch(sites, Clock(0), rng)
    done = recipe.apply(sites, Clock(1), rng)
    assert [site.weights.nnz for site in sites] == [8, 4]
    assert [one.name for one in done] == ["0.weights", "1.weights"]
    assert (sites[0].weights.values != 0).all()


def text_model(hidden: int = 24) -> tuple[Chain, Any, Array]:
    words = [f"w{k}" for k in range(40)]
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 3
    texts = [" ".join(rng.choice(words[13 * k : 13 * k + 13], 5)) for k in labels]
    x = data.HashingText(characters=None, words=(1, 1)).fit_transform(texts)
    first = Linear.random(WIDE, hidden, nnz=0, seed=0)
    return Chain(first, Tanh(), Dense.random(hidden, 3, seed=1)), x, labels


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS.keys())
def test_learns_at_two_to_the_sixty(offer: grow.Offer) -> None:
    model, x, labels = text_model()
    batches = data.batches(x, labels, batch_size=20, seed=0)
    recipe = grow_on_demand(150, 2, offer=offer, pace=0.3)
    losses = []
    for step in training.train(
        model, batches, optimizer=training.adam(0.02), rewiring=recipe, epochs=6, seed=0
    ):
        losses.append(step.loss)
        assert model.layers[0].weights.nnz <= 150
    assert model.layers[0].weights.nnz > 40
    assert np.mean(losses[-5:]) < 0.3  # from 1.1


def test_goes_on_from_a_saved_state(tmp_path: Any) -> None:
    def run(parts: int) -> list[Array]:
        model, x, labels = text_model()
        batches = data.batches(x, labels, batch_size=20, shuffle=False)
        recipe = grow_on_demand(100, 2, offer=OFFERS["both"], pace=1.0, until=30, patience=15)
        state = None
        for _ in range(parts):
            adam = training.adam(0.02)
            options: dict[str, Any] = {"optimizer": adam, "rewiring": recipe, "epochs": 4 // parts}
            *_, last = training.train(model, batches, state=state, **options)
            training.save(tmp_path / "kept", model, state=last.state)
            kept = training.load_all(tmp_path / "kept")
            model, state = kept.model, kept.state
        weights = model.parameters()["0.weights"]
        return [weights.sources, weights.targets, weights.values]

    for one, two in zip(run(1), run(2), strict=True):
        np.testing.assert_array_equal(one, two)


def test_memory_of_a_rewiring_is_that_of_edges_and_active_inputs() -> None:
    def peak(width: int, offer: grow.Offer) -> int:
        rng = np.random.default_rng(0)
        ids = np.sort(rng.permutation(300)) * (width // 300)
        x = spread(sparse_of(rng, 16, 300, 1500, np.float32), ids, width)
        probe = ActiveProbe(x, np.asfortranarray(rng.standard_normal((16, 64)), np.float32))
        site = site_of(probe, Edges(ids[:200], np.arange(200) % 64, (width, 64)))
        recipe = grow_on_demand(1000, 1, offer=offer, pace=1.0)
        recipe.watch([site], Clock(0), rng)
        return peak_while(lambda: recipe.apply([site], Clock(1), rng))[0]

    for offer in OFFERS.values():
        assert peak(WIDE, offer) < 1.2 * peak(300, offer) + 20_000


def test_when() -> None:
    recipe = grow_on_demand(10, 4, until=10)
    assert [s for s in range(20) if recipe.due(Clock(s))] == [4, 8]
    assert recipe.watches
    assert not recipe.skips_update(Clock(4))
    assert isinstance(recipe, topology.Rewirer)


def site_with_batch() -> Site:
    x = SparseRows(np.array([0, 2]), np.array([1, 2**50]), np.ones(2, np.float32), (1, WIDE))
    probe = ActiveProbe(x, np.ones((1, 2), np.float32))
    return site_of(probe, Edges(np.array([1]), np.array([0]), (WIDE, 2)))


@pytest.mark.parametrize(
    ("offered", "match"),
    [
        (([1], [0]), "absent edges"),
        (([1, 1], [1, 1]), "each once"),
        (([2] * 6, [0] * 6), "at most 5 edges"),
        (([2], [0, 1]), "edges"),
        (([2], [7]), "offer"),
        (([-1], [0]), "offer"),
    ],
)
def test_offers_that_do_not_keep_their_word_move_nothing(offered: Any, match: str) -> None:
    site = site_with_batch()
    recipe = grow_on_demand(6, 1, pace=1.0, offer=lambda site, count, rng: tuple(map(np.array, offered)))
    recipe.watch([site], Clock(0), np.random.default_rng(0))
    with pytest.raises(ArgumentError, match=match):
        recipe.apply([site], Clock(1), np.random.default_rng(0))
    assert edges_of(site.weights) == [(1, 0)]


def test_errors() -> None:
    for option, value in {
        "budget": -1,
        "every": 0,
        "offer": 3,
        "pace": 1.5,
        "exchange": -0.1,
        "trial": -1,
        "patience": 0,
        "start": 0.1,
        "until": 0,
        "remembered": 0,
        "layers": None,
    }.items():
        with pytest.raises(GbnnError):
            grow_on_demand(**({"budget": 5} | {option: value}))  # type: ignore[arg-type]
    dense = Chain(Linear.random(4, 3, nnz=5), Linear.random(3, 2, nnz=3))
    x, y = np.ones((4, 4), np.float32), np.array([0, 1, 0, 1])
    with pytest.raises(ArgumentError, match="a layer that gets sparse batches"):
        for _ in training.train(dense, [(x, y)], rewiring=grow_on_demand(5, 1, until=100), epochs=3):
            pass
    site = site_with_batch()
    with pytest.raises(ArgumentError, match="track_use"):
        OnDemand(
            1,
            grow.strongest,
            topology.always,
            topology.prune.magnitude,
            lambda c: 1.0,
            lambda c: 1.0,
            trial=1,
        ).apply([site], Clock(1), np.random.default_rng(0))
    with pytest.raises(GbnnError, match=r"each_step\[0\]"):
        OnDemand(
            1,
            grow.strongest,
            topology.always,
            topology.prune.magnitude,
            lambda c: 1.0,
            lambda c: 1.0,
            each_step=(3,),
        )  # type: ignore[arg-type]


@patient
@given(probes())
def test_layers_of_ones_own_take_dense_batches(drawn: tuple[ActiveProbe, Probe, Edges]) -> None:
    probe, dense, edges = drawn
    sparse, twin = site_of(probe, edges), site_of(probe, edges)
    twin.gradient = EdgeGradient(dense.x, dense.dy, edges)
    recipe = grow_on_demand(12, 1, offer=grow.strongest, pace=1.0, trial=0, layers=lambda site: True)
    for site in (sparse, twin):
        recipe.watch([site], Clock(0), np.random.default_rng(0))
        recipe.apply([site], Clock(1), np.random.default_rng(0))
    assert edges_of(sparse.weights) == edges_of(twin.weights)
    assert layers.zeros is recipe.start

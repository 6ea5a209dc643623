"""Laws of all recipes: exact numbers of edges, state that follows its edge, same seed, any structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.networks import Edge, Table, edges_of, networks, new_batch, random_site, table_of

from gbnn import losses, models, topology, training
from gbnn.errors import ArgumentError
from gbnn.layers import Chain, Layer, Linear, ReserveLinear
from gbnn.topology import Clock, Rewirer, Site, scores
from gbnn.topology.in_turn import InTurn
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
patient = settings(deadline=None)  # other work may keep the cores busy

EPOCHS, STEPS = 6, 3


def clocks() -> list[Clock]:
    """All steps of a short training."""
    total = EPOCHS * STEPS
    return [Clock(s, s // STEPS, EPOCHS, s % STEPS == STEPS - 1, total) for s in range(total)]


def unchanged(recipe: Rewirer, network: Sequence[Site], first: int, clock: Clock) -> int:
    """Most recipes keep the number of edges."""
    return first


def pruned_to(density: float) -> Callable[..., int]:
    """GMP's cubic, over the layers that take part, from what they have at the first rewiring."""

    def planned(recipe: Any, network: Sequence[Site], first: int, clock: Clock) -> int:
        t = min(1.0, clock.step / (0.75 * EPOCHS * STEPS))
        last = density * sum(site.places for site in network)
        return min(first, round(last + (first - last) * (1 - t) ** 3))

    return planned


def pruned_along_a_sigmoid(recipe: Any, network: Sequence[Site], first: int, clock: Clock) -> int:
    """CHTss, over all layers."""
    goal = topology.sigmoid(1.0, 0.0, end=0.75)(clock)
    last = 0.1 * sum(site.places for site in network)
    return min(first, round(last + (first - last) * goal))


def grown_by_share(recipe: Any, network: Sequence[Site], first: int, clock: Clock) -> int:
    """MEST's soft memory: a share more than at the start."""
    full = [bool(site.memory.layer["full at the start"]) for site in network]
    taking_part = [site for site, left in zip(network, full, strict=True) if not left]
    resting = sum(site.weights.nnz for site, left in zip(network, full, strict=True) if left)
    t = clock.step / (EPOCHS * STEPS)
    share = 0.2 if t < 0.5625 else 0.1 if t < 0.75 else 0.0
    share = 0.0 if clock.step == EPOCHS * STEPS - 1 else share  # the very end comes down to the start
    places = sum(site.places for site in taking_part)
    return resting + min(places, round((1 + share) * (first - resting)))


def shared_evenly(recipe: Any, network: Sequence[Site], first: int, clock: Clock) -> int:
    """SRigL: every neuron that is left has the same fan-in, as large as the edges of the start allow."""
    total = 0
    for site in network:
        ids, fan_in = site.weights.fan_in()
        if "planned" in site.memory.layer and ids.size:
            planned = int(site.memory.layer["planned"])
            assert set(fan_in) == {min(site.weights.in_features, planned // ids.size)}
        total += site.weights.nnz
    return total


def within_budget(recipe: Any, network: Sequence[Site], first: int, clock: Clock) -> int:
    """Growth on demand: no more than its budget a layer, and as many as data ask for."""
    assert all(site.weights.nnz <= recipe.budget for site in network)
    return sum(site.weights.nnz for site in network)


class Case(NamedTuple):
    """A recipe, with the number of edges it plans after each rewiring."""

    make: Callable[[], Rewirer]
    planned: Callable[[Rewirer, Sequence[Site], int, Clock], int] = unchanged
    starts_at_zero: bool = True


CASES: dict[str, Case] = {
    "static": Case(topology.static),
    "set_": Case(topology.set_, starts_at_zero=False),
    "set_, no output": Case(lambda: topology.set_(0.5, rewire_output=False), starts_at_zero=False),
    "rigl": Case(lambda: topology.rigl(2, 0.5)),
    "snfs": Case(lambda: topology.snfs(2, 0.5, steps=3)),
    "sparse_momentum": Case(lambda: topology.sparse_momentum(steps=3)),
    "srigl": Case(lambda: topology.srigl(2, 0.5), shared_evenly),
    "dsr": Case(lambda: topology.dsr(0.3, topology.every_steps(2, 1.0), threshold=0.3)),
    "dsr, doubling": Case(lambda: topology.dsr(3, topology.doubling(1, (0.3, 0.6)), threshold=0.3)),
    "deep_r": Case(lambda: topology.deep_r(0.5, temperature=1.0)),
    "mest": Case(lambda: topology.mest(every=1)),
    "mest, soft": Case(lambda: topology.mest(True, every=1), grown_by_share),
    "itop": Case(lambda: topology.itop(every=3)),
    "itop, gradient": Case(lambda: topology.itop(topology.gradient, every=3)),
    "gse": Case(lambda: topology.gse(2, 0.5)),
    "gmp": Case(lambda: topology.gmp(0.1, 2), pruned_to(0.1)),
    "granet": Case(lambda: topology.granet(0.1, 2), pruned_to(0.1)),
    "grow_on_demand": Case(
        lambda: topology.grow_on_demand(
            9, 2, offer=topology.grow.strongest, pace=0.5, trial=1, layers=lambda site: True
        ),
        within_budget,
    ),
    "cht": Case(topology.cht),
    "cht, output": Case(lambda: topology.cht(0.5, rewire_output=True)),
    "chts": Case(lambda: topology.chts(0.5, topology.every_steps(2, 1.0), rewire_output=True)),
    "chtss": Case(
        lambda: topology.chtss(0.1, 0.3, topology.every_steps(2, 1.0), rewire_output=True),
        pruned_along_a_sigmoid,
    ),
    "random, global": Case(
        lambda: topology.Rewiring(
            topology.magnitude,
            topology.random,
            topology.every_steps(2, 1.0),
            topology.constant(0.4),
            rates=topology.rates.overall(scores.size),
            allocate=topology.redistribute.by_gradient,
        )
    ),
    "ramp": Case(
        lambda: topology.Rewiring(
            topology.prune.at_random,
            topology.gradient,
            topology.every_steps(2, 1.0),
            topology.linear(0.8, 1.0),
            rates=topology.rates.rising(0.0, 1.0),
        )
    ),
    "denser": Case(
        lambda: topology.Rewiring(
            topology.magnitude,
            topology.gradient,
            topology.every_steps(1, 1.0),
            topology.constant(0.3),
            goal=topology.from_start(1.0, topology.linear(1.0, 1.0)),
            layers=lambda site: True,
        ),
        lambda recipe, network, first, clock: recipe.goal(network, clock),  # type: ignore[attr-defined]
    ),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def check_layer(before: Table, site: Site, done: topology.Rewired, case: Case) -> None:
    """Compare with the table before: what stayed has all it had, what is new begins at nothing."""
    after, order = table_of(site), edges_of(site.weights)
    assert order == sorted(set(order))  # canonical, no duplicate
    assert all(0 <= i < site.weights.in_features and 0 <= j < site.weights.out_features for i, j in order)
    old = list(before)
    origin = done.change.origin.tolist()
    assert done.change.before == len(before)
    assert len(origin) == len(order)
    for edge, place in zip(order, origin, strict=True):
        if place >= 0:
            assert old[place] == edge
            assert after[edge] == before[edge]
        else:
            weight, *state = after[edge]
            assert not any(state)
            assert not (case.starts_at_zero and weight)
    assert done.change.grown == origin.count(-1)
    assert topology.explored(site.memory) >= len(after)


@every_case
@settings(patient, max_examples=20)
@given(networks(), st.integers(0, 99))
def test_every_rewiring_of_a_training(case: Case, network: list[Site], seed: int) -> None:
    recipe, rng = case.make(), np.random.default_rng(seed)
    first = sum(site.weights.nnz for site in network)
    seen: dict[str, set[Edge]] = {}
    for clock in clocks():
        for site in network:
            new_batch(site, rng)
        if recipe.watches:
            recipe.watch(network, clock, rng)
        if not recipe.due(clock):
            continue
        before = {site.name: table_of(site) for site in network}
        changes = recipe.apply(network, clock, rng)
        named: dict[str, list[topology.Rewired]] = {}
        for done in changes:
            named.setdefault(done.name, []).append(done)
        for site in network:
            done_here = named.get(site.name, [])
            if not done_here:
                assert table_of(site) == before[site.name]
            if len(done_here) == 1:
                check_layer(before[site.name], site, done_here[0], case)
            for done in done_here:
                seen[done.name] = seen.get(done.name, set(before[done.name])) | set(edges_of(site.weights))
        total = sum(site.weights.nnz for site in network)
        assert total == case.planned(recipe, network, first, clock)
    for site in network:
        # Where several rewire in turn, edges that one grows and the next drops have been there, too.
        some, count = len(seen.get(site.name, ())), topology.explored(site.memory)
        assert count == some or (isinstance(recipe, InTurn) and count > some)


@every_case
def test_sixteen_of_a_hundred(case: Case) -> None:
    rng = np.random.default_rng(0)
    sites = [random_site(rng, (10, 10), 16, index=0, count=2, dtype=np.float64)]
    recipe = case.make()
    counts = [16]
    for clock in clocks():
        for site in sites:
            new_batch(site, rng)
        if recipe.watches:
            recipe.watch(sites, clock, rng)
        if recipe.due(clock):
            recipe.apply(sites, clock, rng)
            counts.append(sites[0].weights.nnz)
    if case.planned is unchanged:
        assert set(counts) == {16}
    else:
        assert len(set(counts)) > 1 or case.planned is shared_evenly


def test_half_of_sixteen_go_and_come() -> None:
    rng = np.random.default_rng(0)
    site = random_site(rng, (10, 10), 16, index=0, count=1, dtype=np.float32)
    before = edges_of(site.weights)
    half = topology.Rewiring(
        topology.magnitude, topology.random, topology.always, topology.constant(0.5), keep_regrown=False
    )
    (done,) = half.apply([site], Clock(0), rng)
    assert (done.change.dropped, done.change.grown, site.weights.nnz) == (8, 8, 16)
    assert len(set(edges_of(site.weights)) & set(before)) == 8


# -- In training ---------------------------------------------------------------------------------------------


def trained(case: Case, seed: int) -> tuple[list[bytes], list[dict[str, Any]]]:
    model, batches = two_layers(), regression()
    optimizer, rewirings = training.sgd(0.05, momentum=0.9), []
    for step in training.train(
        model,
        batches,
        loss=losses.mse,
        optimizer=optimizer,
        rewiring=case.make(),
        epochs=EPOCHS,
        seed=seed,
    ):
        rewirings += [done.row() for done in step.changes]
        for name, p in model.parameters().items():
            slots = step.state.slots[name]
            assert all(
                array.shape == (p.nnz if isinstance(p, Weights) else p.shape,) or array.shape == np.shape(p)
                for array in slots.values()
            )
    arrays = [p for p in model.parameters().values() if isinstance(p, Weights)]
    return [a.tobytes() for w in arrays for a in (w.sources, w.targets, w.values)], rewirings


def two_layers() -> Layer:
    return models.mlp([12, 20, 4], nnz=[60, 30], activation="tanh", dtype=np.float64, seed=0)


def regression() -> list[tuple[Array, Array]]:
    rng = np.random.default_rng(5)
    return [(rng.standard_normal((6, 12)), rng.standard_normal((6, 4))) for _ in range(STEPS)]


@every_case
def test_same_seed_same_graph(case: Case) -> None:
    once, rows = trained(case, 7)
    again, _ = trained(case, 7)
    assert once == again
    assert bool(rows) == (case is not CASES["static"])


def test_every_recipe_is_in_the_table() -> None:
    tested = {name.split(",")[0] for name in CASES} | {"top_kast"}
    assert set(topology.recipes.__all__) <= tested


# -- Top-KAST, whose layers have two sets --------------------------------------------------------------------


@patient
@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.floats(0, 1),
    st.integers(0, 99),
)
def test_top_kast_exchanges_the_strong_for_the_weak(
    shape: tuple[int, int], shares: tuple[float, float], fraction: float, seed: int
) -> None:
    places = shape[0] * shape[1]
    nnz = round(shares[0] * places)
    layer = ReserveLinear.of(
        Linear.random(*shape, nnz=nnz, seed=seed), round(shares[1] * (places - nnz)), seed=seed
    )
    rng = np.random.default_rng(seed)
    slots: dict[str, dict[str, Array]] = {}
    for name, p in layer.parameters().items():
        size = p.nnz if isinstance(p, Weights) else p.shape
        slots[name] = {"momentum": rng.permutation(1000)[:size] + 1.0 if isinstance(size, int) else p}
    one, two = topology.sites(layer.parameters(), None, slots)
    before = table_of(one) | table_of(two)
    strongest = sorted((abs(row[0]) for row in before.values()), reverse=True)[:nnz]
    exchange = topology.top_kast(1, fraction)
    exchange.apply([one, two], Clock(1, total_steps=10), rng)
    first, second = table_of(one), table_of(two)
    assert not first.keys() & second.keys()
    assert len(first) == nnz
    assert len(first | second) == len(before)
    assert sorted((abs(row[0]) for row in first.values()), reverse=True) == strongest
    new = (first | second).keys() - before.keys()
    assert len(new) <= fraction * (len(second) + 1)
    for edge, row in (first | second).items():
        assert row == before.get(edge, (0.0, 0.0))
    assert all(edge in second for edge in new)


def test_top_kast_trains_and_needs_a_reserve() -> None:
    chain = models.mlp([12, 20, 4], nnz=[60, 30], dtype=np.float64, seed=0)
    batches = regression()
    with pytest.raises(ArgumentError, match="layers with edges in reserve"):
        list(training.train(chain, batches, loss=losses.mse, rewiring=topology.top_kast(2)))
    model = Chain(*[ReserveLinear.of(p, 10) if isinstance(p, Linear) else p for p in chain.layers])
    shared = []
    for step in training.train(model, batches, loss=losses.mse, rewiring=topology.top_kast(3), epochs=40):
        assert [p.nnz for p in model.parameters().values() if isinstance(p, Weights)] == [60, 10, 30, 10]
        shared.append(step.loss)
    assert np.mean(shared[-3:]) < np.mean(shared[:3])
    for a, b in pairwise([p for p in model.parameters().values() if isinstance(p, Weights)]):
        if a.shape == b.shape:
            assert (a.edges.find(b.sources, b.targets) < 0).all()

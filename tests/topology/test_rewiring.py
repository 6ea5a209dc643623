"""A table of rewirings, each against a dictionary from edge to weight and optimizer slots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn import losses, models, training
from gbnn.edges import Edges
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.layers import Chain, Dense, Dropout, Linear, Parallel, Relu, ReserveLinear, Residual
from gbnn.sampling import distinct_edges
from gbnn.semirings import EdgeGradient
from gbnn.topology import (
    Clock,
    Rewired,
    Rewiring,
    Site,
    chtss,
    constant,
    every_steps,
    gmp,
    gradient,
    granet,
    magnitude,
    random,
    rigl,
    set_,
    set_magnitude,
    sites,
)
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
Edge = tuple[int, int]
Table = dict[Edge, tuple[float, ...]]

patient = settings(deadline=None)  # other work may keep the cores busy
ALWAYS = every_steps(1, 1.0)
CLOCK = Clock(step=0, total_steps=100)


def by_fans(rng: np.random.Generator, fan_in: Array, fan_out: Array) -> Array:
    """Values from which the fans can be read."""
    values: Array = 1000 * fan_in + fan_out
    return values


def last_layer_first(places: Sequence[Site], dropped: Sequence[Array], total: int) -> list[int]:
    """Move edges towards the output, as many as fit."""
    left, counts = total, []
    for site, gone in zip(reversed(places), reversed(dropped), strict=True):
        counts.append(min(left, site.free + gone.size))
        left -= counts[-1]
    return counts[::-1]


CASES: dict[str, Callable[[float], Rewiring]] = {
    "set_": set_,
    "set_, no output": lambda f: set_(f, rewire_output=False),
    "rigl": lambda f: rigl(1, f, until=1.0),
    "rigl, no output": lambda f: rigl(1, f, until=1.0, rewire_output=False),
    "magnitude, random": lambda f: Rewiring(magnitude, random, ALWAYS, constant(f)),
    "signs, gradient": lambda f: Rewiring(set_magnitude, gradient, ALWAYS, constant(f), start=by_fans),
    "random, anew": lambda f: Rewiring(
        magnitude, random, ALWAYS, constant(f), start=by_fans, keep_regrown=False
    ),
    "gradient, anew": lambda f: Rewiring(magnitude, gradient, ALWAYS, constant(f), keep_regrown=False),
    "every layer": lambda f: Rewiring(magnitude, gradient, ALWAYS, constant(f), layers=lambda site: True),
    "last layer first": lambda f: Rewiring(
        magnitude, random, ALWAYS, constant(f), allocate=last_layer_first, layers=lambda site: True
    ),
}
every_case = pytest.mark.parametrize("make", CASES.values(), ids=CASES.keys())


def edges_of(weights: Weights, positions: Any = slice(None)) -> list[Edge]:
    return list(zip(weights.sources[positions].tolist(), weights.targets[positions].tolist(), strict=True))


def table_of(site: Site) -> Table:
    """Each edge with its weight and all its slots."""
    columns = [site.weights.values.tolist(), *(site.slots[name].tolist() for name in sorted(site.slots))]
    return dict(zip(edges_of(site.weights), zip(*columns, strict=True), strict=True))


# -- One rewiring of any layers ------------------------------------------------------------------------------


@st.composite
def networks(draw: st.DrawFn) -> list[Site]:
    """Draw layers as training sees them: no edges, one, all, or any number; ties in weights and gradients."""
    count, dtype = draw(st.integers(1, 3)), draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    result = []
    for index in range(count):
        rows, columns = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
        places = rows * columns
        nnz = draw(st.one_of(st.sampled_from([0, 1, places, places - 1]), st.integers(0, places)))
        edges, _ = Edges.from_coo(*distinct_edges(rng, (rows, columns), nnz), (rows, columns))
        values = (rng.integers(-8, 9, nnz) / 4).astype(dtype)
        x, dy = (np.asfortranarray(rng.integers(-2, 3, (3, n)), dtype) for n in (rows, columns))
        # Each slot of each edge is a number of its own, so that none can be mistaken for another.
        slots = {"momentum": np.arange(1, nnz + 1, dtype=dtype), "square": np.arange(-nnz, 0, dtype=dtype)}
        site = Site(
            f"{index}.weights", Weights(edges, values), EdgeGradient(x, dy, edges), slots, index, count
        )
        result.append(site)
    return result


def strongest(site: Site, kept: set[Edge], count: int) -> set[Edge]:
    """By sorting the dense gradient."""
    rows, columns = site.weights.shape
    block = np.abs(site.probe.block(0, columns))
    absent = [(i, j) for i in range(rows) for j in range(columns) if (i, j) not in kept]
    return set(sorted(absent, key=lambda e: (-block[e], e))[:count])


def check_change(
    rewiring: Rewiring, site: Site, before: Table, gone: set[Edge], count: int, done: Rewired
) -> None:
    after = table_of(site)
    weights = site.weights
    order = edges_of(weights)
    assert order == sorted(set(order))  # canonical, no duplicate
    assert all(0 <= i < weights.in_features and 0 <= j < weights.out_features for i, j in order)
    kept = before.keys() - gone
    assert len(after) == len(kept) + count
    for edge in kept:
        assert after[edge] == before[edge]  # weight and every slot
    grown = after.keys() - kept
    again = grown & gone
    assert done.name == site.name
    assert done.regrown == len(again)
    stay = again if rewiring.keep_regrown else set()
    for edge in stay:
        assert after[edge] == before[edge]
    fan_in = np.bincount(weights.targets, minlength=weights.out_features)
    fan_out = np.bincount(weights.sources, minlength=weights.in_features)
    for edge in grown - stay:
        weight, *slots = after[edge]
        assert slots == [0, 0]
        if rewiring.start is by_fans:
            assert weight == 1000 * fan_in[edge[1]] + fan_out[edge[0]]
        elif rewiring.start.__name__ == "zeros":
            assert weight == 0
        else:
            assert 0 < abs(weight) < 1
    if rewiring.grow is gradient:
        assert grown == strongest(site, kept, count)
    else:
        empty = weights.in_features * weights.out_features - len(before)
        assert len(again) == max(0, count - empty)  # only where there was no other place
    # The change says the same.
    old = list(before)
    assert done.change.before == len(before)
    assert [old[k] if k >= 0 else None for k in done.change.origin] == [
        None if edge in grown - stay else edge for edge in order
    ]
    assert done.change.dropped == len(gone - stay)
    assert done.change.grown == len(grown - stay)


@every_case
@patient
@given(networks(), st.one_of(st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.floats(0, 1)), st.integers(0, 99))
def test_every_edge_is_where_it_should_be(
    make: Callable[[float], Rewiring], network: list[Site], fraction: float, seed: int
) -> None:
    rewiring = make(fraction)
    before = [table_of(site) for site in network]
    chosen = [k for k, site in enumerate(network) if rewiring.layers(site)]
    pruned = [rewiring.prune(network[k], fraction, np.random.default_rng(0)) for k in chosen]
    counts = rewiring.allocate([network[k] for k in chosen], pruned, sum(p.size for p in pruned))
    gone = [set(edges_of(network[k].weights, p)) for k, p in zip(chosen, pruned, strict=True)]
    done = rewiring.apply(network, CLOCK, np.random.default_rng(seed))
    assert sum(site.weights.nnz for site in network) == sum(map(len, before))
    for k, site in enumerate(network):
        if k not in chosen:
            assert table_of(site) == before[k]
    for k, out, count, one in zip(chosen, gone, counts, done, strict=True):
        check_change(rewiring, network[k], before[k], out, count, one)


def sixteen_of_a_hundred() -> Site:
    rng = np.random.default_rng(1)
    edges, _ = Edges.from_coo(*distinct_edges(rng, (10, 10), 16), (10, 10))
    x, dy = (np.asfortranarray(rng.standard_normal((4, 10))) for _ in range(2))
    values = np.arange(1, 17) * np.where(np.arange(16) % 2, 1.0, -1.0)
    return Site("w", Weights(edges, values), EdgeGradient(x, dy, edges), {"m": values.copy()}, 0, 2)


@every_case
def test_sixteen_of_a_hundred_prune_eight_grow_eight_sixteen_again(make: Callable[[float], Rewiring]) -> None:
    site, rng = sixteen_of_a_hundred(), np.random.default_rng(0)
    rewiring = make(0.5)
    assert rewiring.prune(site, 0.5, rng).size == 8
    for _ in range(5):
        before = set(edges_of(site.weights))
        [done] = rewiring.apply([site], CLOCK, rng)
        assert site.weights.nnz == len(set(edges_of(site.weights))) == 16
        assert site.slots["m"].shape == (16,)
        assert len(before - set(edges_of(site.weights))) + done.regrown == 8
        edges = site.weights.edges
        site.gradient = EdgeGradient(site.probe.x, site.probe.dy, edges)
        # As training would: no weight of either sign, and no size, is special.
        site.weights.assign(np.arange(1, 17) * np.where(np.arange(16) % 2, 1.0, -1.0))


@every_case
def test_a_share_that_rounds_to_no_edge_changes_nothing(make: Callable[[float], Rewiring]) -> None:
    site, rng = sixteen_of_a_hundred(), np.random.default_rng(0)
    before, order = table_of(site), edges_of(site.weights)
    [done] = make(0.06).apply([site], CLOCK, rng)  # 0.96 of 16, 0.48 of the 8 of a sign
    assert table_of(site) == before
    assert edges_of(site.weights) == order
    assert (done.change.dropped, done.change.grown, done.regrown) == (0, 0, 0)
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_rigl_keeps_the_weight_of_an_edge_it_drops_and_grows_again() -> None:
    # Edge (0, 0) has the smallest weight and the largest gradient; (0, 1) is second in both.
    edges, _ = Edges.from_coo([0, 0, 1], [0, 1, 0], (2, 2))
    x, dy = np.asfortranarray([[2.0, 1.0]]), np.asfortranarray([[4.0, 1.0]])
    weights = Weights(edges, np.array([0.1, 0.2, 0.3]))
    site = Site("w", weights, EdgeGradient(x, dy, edges), {"m": np.array([5.0, 6.0, 7.0])})
    [done] = rigl(1, constant(0.34)).apply([site], CLOCK, np.random.default_rng(0))
    assert table_of(site) == {(0, 0): (0.1, 5.0), (0, 1): (0.2, 6.0), (1, 0): (0.3, 7.0)}
    assert (done.regrown, done.change.dropped, done.change.grown) == (1, 0, 0)


# -- Through training ----------------------------------------------------------------------------------------


def regression(rows: int, inputs: int, outputs: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, inputs))
    return x, x @ rng.standard_normal((inputs, outputs))


def in_batches(x: Array, target: Array, size: int) -> list[tuple[Array, Array]]:
    return [(x[k : k + size], target[k : k + size]) for k in range(0, len(x), size)]


class Dictionary:
    """Adam, SET and RigL over Python dictionaries and a dense gradient: slow, and different in every line."""

    def __init__(self, weights: Weights) -> None:
        self.shape = weights.shape
        self.w = dict(zip(edges_of(weights), weights.values.tolist(), strict=True))
        self.m = dict.fromkeys(self.w, 0.0)
        self.v = dict.fromkeys(self.w, 0.0)

    def gradients(self, x: Array, target: Array) -> tuple[float, Array]:
        dense = np.zeros(self.shape)
        for edge, weight in self.w.items():
            dense[edge] = weight
        error = x @ dense - target
        return float((error**2).mean()), x.T @ (2 * error / error.size)

    def adam(self, g: Array, step: int, rate: float) -> None:
        for edge in self.w:
            self.m[edge] = 0.9 * self.m[edge] + 0.1 * g[edge]
            self.v[edge] = 0.999 * self.v[edge] + 0.001 * g[edge] ** 2
            mean, square = self.m[edge] / (1 - 0.9 ** (step + 1)), self.v[edge] / (1 - 0.999 ** (step + 1))
            self.w[edge] -= rate * mean / (math.sqrt(square) + 1e-8)

    def move(self, dropped: set[Edge], grown: dict[Edge, float]) -> None:
        stay = dropped & grown.keys()
        for edge in dropped - stay:
            del self.w[edge], self.m[edge], self.v[edge]
        for edge in grown.keys() - stay:
            self.w[edge], self.m[edge], self.v[edge] = grown[edge], 0.0, 0.0

    def smallest(self, among: list[Edge], count: int) -> set[Edge]:
        return set(sorted(among, key=lambda e: (abs(self.w[e]), e))[:count])

    def rigl(self, g: Array, share: float) -> None:
        dropped = self.smallest(list(self.w), math.floor(share * len(self.w)))
        absent = set(np.ndindex(*self.shape)) - (self.w.keys() - dropped)
        grown = sorted(absent, key=lambda e: (-abs(g[e]), e))[: len(dropped)]
        self.move(dropped, dict.fromkeys(grown, 0.0))

    def set_(self, share: float, weights: Weights) -> None:
        """The random new edges are those that the layer under test has now."""
        dropped = set()
        for sign in ([e for e in self.w if self.w[e] > 0], [e for e in self.w if self.w[e] < 0]):
            dropped |= self.smallest(sign, math.floor(share * len(sign) + 0.5))
        now = dict(zip(edges_of(weights), weights.values.tolist(), strict=True))
        grown = {edge: now[edge] for edge in now.keys() - self.w.keys()}
        assert len(grown) == len(dropped)
        assert all(0 < abs(value) < 1 for value in grown.values())
        self.move(dropped, grown)

    def check(self, weights: Weights, slots: dict[str, Array]) -> None:
        assert edges_of(weights) == sorted(self.w)
        for mine, array in ((self.w, weights.values), (self.m, slots["momentum"]), (self.v, slots["square"])):
            np.testing.assert_allclose(array, [mine[e] for e in sorted(mine)], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("method", ["rigl", "set_"])
def test_training_is_that_of_a_dictionary(method: str) -> None:
    layer = Linear.random(9, 7, nnz=30, bias=False, dtype=np.float64, seed=3)
    reference = Dictionary(layer.weights)
    batches = in_batches(*regression(40, 9, 7), 8)
    rewiring = rigl(3, 0.5) if method == "rigl" else set_(0.4)
    optimizer, moved = training.adam(0.05), []
    for step in training.train(
        layer, batches, loss=losses.mse, optimizer=optimizer, rewiring=rewiring, epochs=4
    ):
        loss, g = reference.gradients(*batches[step.index % 5])
        assert step.loss == pytest.approx(loss, rel=1e-9)  # the forward pass sees the edges moved
        rewires = step.index in ((3, 6, 9, 12) if method == "rigl" else (4, 9, 14))
        if not (rewires and method == "rigl"):
            reference.adam(g, step.index, 0.05)
        if rewires and method == "rigl":
            reference.rigl(g, 0.25 * (1 + math.cos(math.pi * step.index / 15)))
        elif rewires:
            reference.set_(0.4, layer.weights)
        assert bool(step.changes) == rewires
        moved += [one.change.grown for one in step.changes]
        reference.check(layer.weights, step.state.slots["weights"])
    assert min(moved) > 0


def two_layers() -> Chain:
    return models.mlp([12, 20, 4], nnz=[60, 30], activation="tanh", dtype=np.float64, seed=0)


def held(model: Chain, slots: dict[str, dict[str, Array]]) -> tuple[dict[str, Table], dict[str, bytes]]:
    """Every edge's table; and the bytes of everything else: biases and their slots."""
    parameters = model.parameters()
    plain = {n: p.tobytes() for n, p in parameters.items() if isinstance(p, np.ndarray)}
    plain |= {f"{n} {k}": s.tobytes() for n in list(plain) for k, s in slots[n].items()}
    return {site.name: table_of(site) for site in sites(parameters, None, slots)}, plain


@pytest.mark.parametrize("method", ["rigl", "set_"])
def test_rigl_moves_edges_instead_of_updating_weights_and_set_does_both(method: str) -> None:
    model, batches = two_layers(), in_batches(*regression(24, 12, 4), 4)
    rewiring = rigl(2, constant(0.4)) if method == "rigl" else set_(0.4)
    optimizer = training.adam(0.01)
    state = training.State.start(model, optimizer)
    tables, plain = held(model, state.slots)
    moves = 0
    for step in training.train(
        model, batches, loss=losses.mse, optimizer=optimizer, rewiring=rewiring, epochs=2, state=state
    ):
        assert state.step == step.index + 1
        now, now_plain = held(model, state.slots)
        kept = [(now[n][e], tables[n][e]) for n in now for e in now[n].keys() & tables[n].keys()]
        if step.changes:
            moves += 1
            assert any(now[n].keys() != tables[n].keys() for n in now)
        if step.changes and method == "rigl":
            assert all(a == b for a, b in kept)
            assert now_plain == plain
        else:
            # Not quite all: a neuron without inputs sends nothing on.
            assert np.mean([a != b for a, b in kept]) > 0.8
            assert all(now_plain[n] != plain[n] for n in plain)
        tables, plain = now, now_plain
    assert moves == (4 if method == "rigl" else 1)


@pytest.mark.parametrize(("skip_last", "ends"), [(True, [5, 11]), (False, [5, 11, 17])])
def test_set_moves_edges_at_the_end_of_each_epoch(skip_last: bool, ends: list[int]) -> None:
    batches = in_batches(*regression(24, 12, 4), 4)
    steps = training.train(
        two_layers(), batches, loss=losses.mse, rewiring=set_(skip_last=skip_last), epochs=3
    )
    assert [step.index for step in steps if step.changes] == ends


@pytest.mark.parametrize("rewiring", [set_(rewire_output=False), rigl(2, rewire_output=False)])
@pytest.mark.parametrize("head", ["sparse", "dense"])
def test_without_output_leaves_the_last_layer_and_no_other(rewiring: Rewiring, head: str) -> None:
    # A full output layer is Dense, and has no edges: then the last layer that has some is a hidden one.
    last = Linear.random(16, 4, nnz=30, seed=2) if head == "sparse" else Dense.random(16, 4, seed=2)
    hidden = [Linear.random(12, 20, nnz=60, seed=0), Linear.random(20, 16, nnz=60, seed=1)]
    model = Chain(hidden[0], Relu(), hidden[1], Relu(), last)
    before = edges_of(last.weights) if isinstance(last, Linear) else []
    names = set()
    batches = in_batches(*regression(24, 12, 4), 4)
    for step in training.train(model, batches, loss=losses.mse, rewiring=rewiring, epochs=2):
        names |= {one.name for one in step.changes}
    assert names == {"0.weights", "2.weights"}
    assert not isinstance(last, Linear) or edges_of(last.weights) == before


@every_case
def test_same_seed_same_graph(make: Callable[[float], Rewiring]) -> None:
    def trained(seed: int) -> list[Any]:
        model, batches = two_layers(), in_batches(*regression(24, 12, 4), 12)
        for _ in training.train(model, batches, loss=losses.mse, rewiring=make(0.4), epochs=2, seed=seed):
            pass
        return [(w.sources.tobytes(), w.targets.tobytes(), w.values.tobytes()) for w in weights_of(model)]

    assert trained(7) == trained(7)
    is_random = make(0.4).grow is random
    assert (trained(8) != trained(7)) == is_random


def weights_of(model: Chain) -> list[Weights]:
    return [p for p in model.parameters().values() if isinstance(p, Weights)]


@every_case
def test_layers_that_are_full_or_empty_or_have_one_edge_survive(make: Callable[[float], Rewiring]) -> None:
    model = Chain(
        Linear.random(12, 6, nnz=72, seed=0),
        Linear.random(6, 5, nnz=0, seed=0),
        Linear.random(5, 1, nnz=1, seed=1),
        Linear.random(1, 4, nnz=3, seed=2),
    )
    total, shapes = model.nnz, [w.shape for w in weights_of(model)]
    batches = in_batches(*regression(24, 12, 4), 12)
    rewiring = make(0.7)
    for step in training.train(model, batches, loss=losses.mse, rewiring=rewiring, epochs=2):
        assert math.isfinite(step.loss)
        assert model.nnz == total
    assert [w.shape for w in weights_of(model)] == shapes
    if rewiring.allocate is not last_layer_first:
        assert [w.nnz for w in weights_of(model)] == [72, 0, 1, 3]


# -- Rules that do not keep their word -----------------------------------------------------------------------


def broken(**parts: Any) -> Rewiring:
    usual: dict[str, Any] = {"prune": magnitude, "grow": random, "when": ALWAYS, "fraction": constant(0.5)}
    return Rewiring(**usual | parts)


def grows(sources: list[int], targets: list[int]) -> Any:
    return lambda site, dropped, count, rng: (np.array(sources), np.array(targets))


SITE_EDGES = [(0, 0), (0, 1), (1, 0), (1, 1)]  # of the layer below; the first two have the smallest weights

RULES: dict[str, tuple[Rewiring, str]] = {
    "a kept edge": (
        broken(grow=grows([1, 2], [0, 2])),
        "grow, w: expected each edge once, and none that is kept",
    ),
    "one edge twice": (broken(grow=grows([2, 2], [2, 2])), "grow, w: expected each edge once"),
    "a dropped edge twice": (broken(grow=grows([0, 0], [0, 0])), "grow, w: expected each edge once"),
    "a kept edge, anew": (
        broken(grow=grows([1, 2], [0, 2]), keep_regrown=False),
        "grow, w: expected each edge once",
    ),
    "too few": (broken(grow=grows([2], [2])), "grow, w, sources: expected 2 edges, got 1"),
    "out of range": (
        broken(grow=grows([2, 3], [2, 2])),
        "grow, w, sources: expected indices from 0 to 2",
    ),
    "no pair": (broken(grow=lambda *a: None), r"grow, w: expected a pair \(sources, targets\), got NoneType"),
    "targets too few": (broken(grow=grows([2, 2], [2])), "grow, w, targets: expected 2 edges, got 1"),
    "edges of float": (broken(grow=grows([2.0, 2.0], [0.0, 1.0])), "grow, w, sources: expected integers"),  # type: ignore[list-item]
    "too many counts": (broken(allocate=lambda s, d, n: [1, 1]), "allocate: expected 1 counts, 2 edges"),
    "no counts": (broken(allocate=lambda s, d, n: None), "allocate: expected a list of counts, got NoneType"),
    "a negative count": (
        broken(allocate=lambda s, d, n: [-2]),
        "allocate: expected an integer at least 0",
    ),
    "another sum": (broken(allocate=lambda s, d, n: [3]), "allocate: expected 1 counts, 2 edges in all"),
    "a share above 1": (broken(fraction=lambda clock: 1.5), "fraction: expected a finite number"),
    "a share that is none": (broken(fraction=lambda clock: math.nan), "fraction: expected a finite number"),
    "one position twice": (
        broken(prune=lambda s, f, r: np.array([0, 0])),
        "prune, w: expected each position once",
    ),
    "no positions": (broken(prune=lambda s, f, r: None), "prune, w: expected a 1-D array"),
    "a mask": (broken(prune=lambda s, f, r: s.weights.values < 0.3), "prune, w: expected integers, got bool"),
    "a position too far": (
        broken(prune=lambda s, f, r: [4]),
        "prune, w: expected indices from 0 to 3, got 4",
    ),
}


@pytest.mark.parametrize(("rewiring", "message"), RULES.values(), ids=RULES.keys())
def test_a_rule_that_does_not_keep_its_word_changes_nothing(rewiring: Rewiring, message: str) -> None:
    sources, targets = zip(*SITE_EDGES, strict=True)
    weights = Weights.from_coo(sources, targets, [0.1, 0.2, 0.3, 0.4], (3, 3))
    site = Site("w", weights, None, {"m": np.arange(4.0)})
    before = table_of(site)
    with pytest.raises(GbnnError, match=message):
        rewiring.apply([site], CLOCK, np.random.default_rng(0))
    assert table_of(site) == before


def test_a_rule_that_fails_in_the_second_layer_leaves_the_first_as_it_was() -> None:
    def grow(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        sources, targets = random(site, dropped, count, rng)
        return (sources, targets) if site.name == "0" else (sources * 0, targets * 0)

    places = [Site(f"{k}", Linear.random(6, 6, nnz=20, seed=k).weights) for k in range(2)]
    before = [table_of(site) for site in places]
    with pytest.raises(ArgumentError, match="grow, 1: expected each edge once"):
        broken(grow=grow).apply(places, CLOCK, np.random.default_rng(0))
    assert [table_of(site) for site in places] == before


@pytest.mark.parametrize(
    ("start", "error"),
    [
        (lambda rng, fan_in, fan_out: np.full(fan_in.size, np.nan), NonFiniteError),
        (lambda rng, fan_in, fan_out: np.ones(fan_in.size + 1), ArgumentError),
        (lambda rng, fan_in, fan_out: ["a"] * fan_in.size, KindError),
    ],
)
def test_a_start_that_gives_no_values(start: Any, error: type[GbnnError]) -> None:
    site = sixteen_of_a_hundred()
    site.slots["m"] = site.weights.values.copy()
    before = table_of(site)
    with pytest.raises(error, match="start, w"):
        broken(start=start).apply([site], CLOCK, np.random.default_rng(0))
    assert table_of(site) == before  # nothing has moved


def test_rules_may_return_lists_and_counts_of_numpy() -> None:
    edges, _ = Edges.from_coo([0, 1, 2], [0, 1, 2], (2**60, 2**60))
    site = Site("w", Weights(edges, np.array([3.0, 1.0, 2.0])))
    rewiring = broken(prune=lambda s, f, r: [0, 1], allocate=lambda s, d, n: np.array([g.size for g in d]))
    (done,) = rewiring.apply([site], CLOCK, np.random.default_rng(0))
    assert (done.change.dropped, done.change.grown) == (2, 2)
    listed = broken(grow=lambda s, d, n, r: ([5], [np.int8(6)]), fraction=constant(0.4))
    listed.apply([site], CLOCK, np.random.default_rng(0))
    assert (5, 6) in edges_of(site.weights)


@pytest.mark.parametrize("part", ["prune", "grow", "when", "fraction", "allocate", "start", "layers"])
def test_a_part_that_is_no_function(part: str) -> None:
    with pytest.raises(KindError, match=f"{part}: expected a function, got 0.3"):
        broken(**{part: 0.3})


def test_layers_that_share_their_edges_cannot_be_rewired() -> None:
    shared = Linear.random(6, 6, nnz=12, seed=0)
    with pytest.raises(
        ArgumentError, match=r"rewiring: expected .*share no weights.*'0.weights', '2.weights'"
    ):
        sites(Chain(shared, Relu(), shared).parameters())


def test_sites_say_where_they_are() -> None:
    model = Chain(Linear.random(6, 5, nnz=4), Relu(), Dense.random(5, 4), Relu(), Linear.random(4, 3, nnz=2))
    slots = {name: {"m": np.zeros(1)} for name in model.parameters()}
    found = sites(model.parameters(), None, slots)
    assert [(s.name, s.index, s.count) for s in found] == [("0.weights", 0, 3), ("4.weights", 2, 3)]
    assert all(s.slots is slots[s.name] and s.gradient is None for s in found)


# -- What the tester found -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.zeros(3), [0.0] * 4, None, np.array(1.0)])
@pytest.mark.parametrize("kind", ["slot", "memory"])
def test_what_is_kept_of_edges_must_be_per_edge(kind: str, bad: Any) -> None:
    places = [Site(f"{k}", Linear.random(6, 6, nnz=20, seed=k).weights) for k in range(2)]
    held = places[1].slots if kind == "slot" else places[1].memory.edges
    held["bad"] = bad
    before = [edges_of(site.weights) for site in places]
    with pytest.raises(GbnnError, match=f"{kind} 'bad' of 1: expected"):
        broken().apply(places, CLOCK, np.random.default_rng(0))
    assert [edges_of(site.weights) for site in places] == before


@pytest.mark.parametrize("also", [lambda s, d: None, lambda s, d: 3, lambda s, d: [], lambda s, d: d * 2])
def test_also_drop_gives_positions_of_every_layer(also: Any) -> None:
    places = [Site("w", Linear.random(6, 6, nnz=20).weights)]
    with pytest.raises(GbnnError, match="also_drop: expected 1 arrays of positions"):
        broken(also_drop=also).apply(places, CLOCK, np.random.default_rng(0))


def test_layers_says_yes_or_no() -> None:
    places = [Site("w", Linear.random(6, 6, nnz=20).weights)]
    with pytest.raises(KindError, match="layers: expected True or False"):
        broken(layers=lambda site: np.ones(3)).apply(places, CLOCK, np.random.default_rng(0))


def test_a_reserve_is_rewired_by_top_kast_only() -> None:
    layer = ReserveLinear.of(Linear.random(6, 6, nnz=10), 5)
    with pytest.raises(ArgumentError, match=r"rewiring: expected layers without a reserve .*top_kast"):
        rigl(1).apply(sites(layer.parameters()), CLOCK, np.random.default_rng(0))


def test_a_class_is_no_rewiring() -> None:
    layer = Linear.random(6, 3, nnz=10)
    with pytest.raises(KindError, match="rewiring: expected a gbnn rewiring"):
        training.train(layer, [(np.ones((2, 6)), np.zeros((2, 3)))], loss=losses.mse, rewiring=Rewiring)  # type: ignore[arg-type]


def test_pruning_grows_nothing_where_training_goes_on() -> None:
    model, batches = two_layers(), in_batches(*regression(24, 12, 4), 4)
    state, grown = None, 0
    for epochs in (3, 27):
        for step in training.train(
            model, batches, loss=losses.mse, rewiring=gmp(0.05, 5), epochs=epochs, state=state
        ):
            grown += sum(one.change.grown for one in step.changes)
        state = step.state
    assert grown == 0
    assert model.nnz == round(0.05 * (12 * 20 + 20 * 4))
    sparse = models.mlp([12, 20, 4], nnz=[6, 3], seed=0)
    for _ in training.train(sparse, batches, loss=losses.mse, rewiring=gmp(0.5, 2), epochs=2):
        assert sparse.nnz == 9


@pytest.mark.parametrize(
    "make", [lambda: gmp(0.1, 5), lambda: granet(0.1, 5), lambda: chtss(0.1, 0.3, ALWAYS)]
)
def test_pruning_begins_at_full_layers_too(make: Callable[[], Any]) -> None:
    model = Chain(
        Linear.random(12, 20, nnz=240), Relu(), Linear.random(20, 10, nnz=200), Relu(), Dense.random(10, 4)
    )
    batches = in_batches(*regression(24, 12, 4), 4)
    for _ in training.train(model, batches, loss=losses.mse, rewiring=make(), epochs=8):
        pass
    assert sum(w.nnz for w in weights_of(model)) == 44


def test_sites_know_which_layer_they_follow() -> None:
    def linear(rows: int, columns: int) -> Linear:
        return Linear.random(rows, columns, nnz=4)

    model = Chain(
        linear(6, 5),
        Relu(),
        Chain(linear(5, 5), Dropout(0.1, 0), linear(5, 5)),
        linear(5, 4),
        Residual(Chain(linear(4, 4), linear(4, 4))),
        linear(4, 4),
        Dense.random(4, 4),
        linear(4, 3),
        Parallel(linear(3, 3), linear(3, 3)),
        linear(3, 2),
    )
    found = {site.name: site.follows for site in sites(model.parameters(), model=model)}
    assert {name: follows for name, follows in found.items() if follows} == {
        "2.0.weights": "0.weights",
        "2.2.weights": "2.0.weights",
        "3.weights": "2.2.weights",
        "4.0.1.weights": "4.0.0.weights",
    }
    assert not any(site.follows for site in sites(model.parameters()))

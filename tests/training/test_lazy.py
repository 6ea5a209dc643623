"""Lazy steps: what anyone reads, at any time, is what the eager optimizer would have made."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.optimizers import CASES
from support.touching import SHAPE, Run, assert_same

from gbnn.errors import ArgumentError, KindError
from gbnn.semirings import TouchedGradient
from gbnn.training import catch_up, in_place, lazy
from gbnn.training.optimizers import adam, adamw, rmsprop, sgd
from gbnn.training.schedules import Schedule, cosine, one_cycle, step_decay
from gbnn.training.state import State
from gbnn.training.transform import Transform, add_decayed_weights, chain, clip_by_norm, scale
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]

Maker = Callable[[float | Schedule], Transform]


def of_bias(name: str) -> bool:
    return name == "bias"


MORE: dict[str, tuple[Maker, float]] = {
    "sgd decay of nothing": (lambda r: sgd(r, weight_decay=0.1, decay=of_bias), 0.1),
    "rmsprop momentum, no decay": (lambda r: rmsprop(r, momentum=0.8), 0.01),
    "adam, no momentum": (lambda r: adam(r, beta1=0.0), 0.05),
    "adam, mean outlives square": (lambda r: adam(r, beta1=0.9, beta2=0.5), 0.05),
    "adam, betas near one": (lambda r: adam(r, beta1=0.99, beta2=0.9999), 0.05),
    "adam, large epsilon": (lambda r: adam(r, epsilon=0.1), 0.05),
    "adam, decay of the bias": (lambda r: adam(r, weight_decay=0.1, decay=of_bias), 0.05),
    "adamw, all of it decays": (lambda r: adamw(r, weight_decay=20.0), 0.05),
    "adamw, decays past zero": (lambda r: adamw(r, weight_decay=30.0), 0.05),
    "clip, adam": (lambda r: chain(clip_by_norm(1.0), adam(r)), 0.05),
    "clip, chain of adam": (lambda r: chain(clip_by_norm(1.0), chain(scale(2.0), adamw(r))), 0.05),
    "adam, scale": (lambda r: chain(adam(r), scale(0.5)), 0.05),
    "rmsprop, sgd": (lambda r: chain(rmsprop(1.0), sgd(r, momentum=0.5)), 0.05),
    "sgd, adam": (lambda r: chain(sgd(1.0, momentum=0.5), adam(r)), 0.05),
    "decay, momentum": (
        lambda r: chain(add_decayed_weights(0.1), sgd(r, momentum=0.5), scale(0.5)),
        0.05,
    ),
    "decay, clip": (lambda r: chain(add_decayed_weights(0.1), clip_by_norm(1.0), sgd(r)), 0.05),
    "momentum, clip": (lambda r: chain(sgd(1.0, momentum=0.5), clip_by_norm(1.0), sgd(r)), 0.05),
    "a user's own": (lambda r: Transform(sgd(r, momentum=0.5).init, sgd(r, momentum=0.5).update), 0.1),
}
ALL = {name: (case.make, case.rate) for name, case in CASES.items()} | MORE
EXACT = {"sgd", "adagrad", "sgd decay of nothing"}
KINDS = {
    "nothing is owed": ("sgd", "adagrad", "sgd decay of nothing"),
    "linear": (
        "sgd decay", "sgd momentum", "sgd nesterov", "rmsprop", "rmsprop momentum, no decay", "rmsprop, sgd",
        "decay, momentum", "clip_by_norm, chain",
    ),
    "closed": (
        "adam", "adamw", "adamw no bias", "adam, no momentum", "adam, betas near one", "adam, large epsilon",
        "adam, decay of the bias", "adamw, all of it decays", "adamw, decays past zero", "clip, adam",
        "clip, chain of adam",
    ),
    "replayed": (
        "adam decay", "rmsprop momentum", "adagrad decay", "add_decayed_weights, scale, chain",
        "adam, mean outlives square", "adam, scale", "sgd, adam",
    ),
    "never lazy": ("decay, clip", "momentum, clip", "a user's own"),
}  # fmt: skip
RATES: dict[str, Callable[[float], float | Schedule]] = {
    "constant": lambda rate: rate,
    "cosine": lambda rate: cosine(rate, 40),
    "one cycle": lambda rate: one_cycle(rate, 60),
    "zero, then not": lambda rate: lambda step: rate * (step % 7 > 2),
    "step decay": lambda rate: step_decay(rate, 10, 0.5),
}

every_case = pytest.mark.parametrize("name", ALL)


def pair(name: str, rate: Any = None, **options: Any) -> tuple[Run, Run]:
    """The same training twice: lazily and not."""
    make, usual = ALL[name]
    optimizer = make(usual if rate is None else rate)
    first, second = (Run(optimizer.lazily(choice), **options) for choice in (True, False))
    return first, second


def tolerance(name: str, run: Run) -> tuple[float, float]:
    if name in EXACT:
        return 0.0, 0.0
    return (1e-9, 1e-12) if run.weights.dtype == np.float64 else (1e-4, 1e-5)


# -- What each optimizer can do ------------------------------------------------------------------------------


def kind_of(name: str) -> str:
    idle = ALL[name][0](0.1).idle("w")
    if idle is None:
        return "never lazy"
    if idle.still:
        assert idle.quiet
        assert idle.linear
        return "nothing is owed"
    return "closed" if idle.closed is not None else "linear" if idle.linear else "replayed"


def test_how_each_optimizer_is_lazy() -> None:
    assert {name: kind_of(name) for name in ALL} == {n: kind for kind, names in KINDS.items() for n in names}


@every_case
def test_an_edge_left_alone_is_owed_something_where_it_should(name: str) -> None:
    run, eager = pair(name)
    run.step([1, 2])
    run.step([1, 2])
    assert (run.weights.pending is None) == (kind_of(name) in ("nothing is owed", "never lazy"))
    eager.step([1, 2])
    assert eager.weights.pending is None


# -- The same as eager ---------------------------------------------------------------------------------------


SOME = st.sets(st.integers(0, 19), max_size=6)
SIZES = st.sampled_from([1.0, 1e-9, 0.0, 30.0])
LOOKS = st.sampled_from(["values", "slots", "some", "by target", "all"])
ACTIONS = st.one_of(
    st.tuples(st.just("touch"), SOME, SIZES),
    st.tuples(st.just("wait"), st.integers(1, 30), st.none()),
    st.tuples(st.just("dense"), SOME, st.just(1.0)),
    st.tuples(st.just("look"), LOOKS, st.integers(0, 9)),
    st.tuples(st.just("skip"), st.none(), st.none()),
    st.tuples(st.just("rewire"), SOME, st.integers(0, 1000)),
    st.tuples(st.just("assign"), SOME, st.floats(-2, 2)),
)


def act(run: Run, action: tuple[Any, Any, Any]) -> None:
    kind, what, more = action
    if kind in ("touch", "dense"):
        run.step(sorted(what), more, dense=kind == "dense")
    elif kind == "wait":
        for _ in range(what):
            run.step([])
    elif kind == "skip":
        run.skip()
    elif kind == "assign":
        run.weights.assign_at(sorted(what), more)
    elif kind == "rewire":
        rng = np.random.default_rng(more)
        free = np.setdiff1d(
            np.arange(SHAPE[0] * SHAPE[1]), run.weights.sources * SHAPE[1] + run.weights.targets
        )
        new = np.sort(rng.choice(free, len(what), replace=False))
        run.rewire(sorted(what), new // SHAPE[1], new % SHAPE[1])


def look(run: Run, what: str, start: int) -> dict[str, Array]:
    some = np.arange(start, 20, 3)
    if what == "values":
        return {"w": run.weights.values.copy()}
    if what == "slots":
        return {name: array.copy() for name, array in run.state.slots["w"].items()}
    if what == "some":
        run.weights.settle(some)
        return {"w": run.weights.raw[some]} | {
            n: array[some] for n, array in run.state.raw_slots["w"].items()
        }
    if what == "by target":
        return {"w": run.weights.values_by_target.copy()}
    return run.held()


@every_case
@settings(deadline=None, max_examples=8)
@given(
    rate=st.sampled_from(sorted(RATES)),
    actions=st.lists(ACTIONS, min_size=1, max_size=25),
    seed=st.integers(0, 100),
    dtype=st.sampled_from([np.float64, np.float64, np.float32]),
)
def test_lazy_equals_eager_whenever_somebody_looks(
    name: str, rate: str, actions: list[tuple[Any, Any, Any]], seed: int, dtype: Any
) -> None:
    runs = pair(name, RATES[rate](ALL[name][1]), nnz=20, seed=seed, dtype=dtype)
    within = tolerance(name, runs[0])
    for action in actions:
        if action[0] == "look":
            ours, theirs = (look(run, action[1], action[2]) for run in runs)
            assert_same(ours, theirs, *within)
        else:
            for run in runs:
                act(run, action)
    assert_same(runs[0].held(), runs[1].held(), *within)


@every_case
def test_an_edge_that_waited_long(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than any table, from the first step on, with gradients below epsilon, too."""
    monkeypatch.setattr(catch_up.LinearTable, "span", 70)
    monkeypatch.setattr(catch_up.AdamTable, "span", 480)
    steps = 510 if kind_of(name) == "closed" else 110
    sizes = np.array([1.0, 1e-8, 1e-20])
    runs = pair(name, one_cycle(ALL[name][1], 400), nnz=12)
    for run in runs:
        for step in range(steps):
            now = [0] + [3] * (step < 3) + [6] * (step in (0, 70)) + [9] * (step % 97 == 5)
            run.step(np.add.outer(now, range(3)).ravel(), np.tile(sizes, len(now)))
    assert_same(runs[0].held(), runs[1].held(), *tolerance(name, runs[0]))


@pytest.mark.parametrize("decay", [0.0, 0.5, 20.0, 30.0, 39.0])
@pytest.mark.parametrize("size", [1e-6, 1e-9])
def test_the_first_steps_of_adam_where_its_series_is_at_its_worst(decay: float, size: float) -> None:
    """The bias correction changes fast, epsilon counts, and decay may turn the signs of what is summed."""
    for waits in range(1, 14):
        runs = [Run(adamw(0.05, weight_decay=decay).lazily(choice), nnz=4) for choice in (True, False)]
        for run in runs:
            run.step([0, 1], size)
            for _ in range(waits):
                run.step([])
        assert_same(runs[0].held(), runs[1].held(), 1e-11, 1e-14)


@every_case
def test_a_gradient_of_zero_counts_as_touched(name: str) -> None:
    runs = pair(name, nnz=8)
    for run in runs:
        for step in range(20):
            run.step([0, 1, 2], 0.0 if step else 1.0)
    assert_same(runs[0].held(), runs[1].held(), *tolerance(name, runs[0]))


def test_by_itself_an_optimizer_is_lazy_where_few_edges_are_touched() -> None:
    for touched, is_lazy in ((60 // lazy.FEW, True), (60 // lazy.FEW + 1, False), (60, False)):
        run = Run(adam(0.1))
        run.step(range(touched))
        assert (run.weights.pending is not None) == is_lazy


def test_a_choice_that_is_none() -> None:
    with pytest.raises(KindError, match="lazy"):
        adam().lazily("yes")  # type: ignore[arg-type]
    assert chain(adam().lazily(True)).lazy is None


# -- An array with touched values, such as a bias on active outputs ------------------------------------------


@pytest.mark.parametrize("name", ["sgd", "adagrad", "sgd momentum", "adam", "adagrad decay"])
def test_an_array_is_never_stale(name: str) -> None:
    results = []
    for choice in (True, False):
        optimizer, bias = CASES[name].make(0.1).lazily(choice), np.arange(50.0)
        state = State(optimizer.start({"bias": bias}), 0, np.random.default_rng(0))
        for step in range(5):
            at = np.arange(step, 50, 20)
            before = bias.copy()
            lazy.update({"bias": bias}, {"bias": TouchedGradient(at, np.ones(at.size), 50)}, optimizer, state)
            state.step += 1
            assert (bias != before)[at].all()
        results.append((bias, *state.slots["bias"].values()))
    for ours, theirs in zip(*results, strict=True):
        assert np.array_equal(ours, theirs)


# -- The compiled step in place ------------------------------------------------------------------------------


def many(optimizer: Transform, dtype: Any = np.float32) -> tuple[Weights, State]:
    """A layer of runs of 8 to 80 edges a source, more than a thread takes at a time."""
    rng = np.random.default_rng(0)
    fans = rng.integers(8, 80, 400)
    targets = np.concatenate([np.arange(fan) for fan in fans])
    values = rng.standard_normal(fans.sum())
    weights = Weights.from_coo(np.repeat(np.arange(400), fans), targets, values, (400, 80), dtype=dtype)
    return weights, State(optimizer.start({"w": weights.values}), 0, rng)


@pytest.mark.parametrize("name", [n for n in ALL if kind_of(n) != "never lazy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_runs_of_edges(name: str, dtype: Any) -> None:
    """All edges of some sources, as a layer touches them, settled by the forward pass."""
    held = []
    for choice in (True, False):
        optimizer = ALL[name][0](one_cycle(0.02, 60)).lazily(choice)
        weights, state = many(optimizer, dtype)
        rng = np.random.default_rng(1)
        for _ in range(40):
            sources = rng.choice(400, rng.choice([3, 30, 200]), replace=False)
            at = np.flatnonzero(np.isin(weights.sources, sources))
            scale = 10.0 ** rng.integers(-9, 1, at.size)
            scale[rng.random(at.size) < 0.1] = 0.0
            numbers = (rng.standard_normal(at.size) * scale).astype(dtype)
            weights.settle(at)
            gradient = TouchedGradient(at, numbers, weights.nnz, settled=weights.stamp)
            lazy.update({"w": weights}, {"w": gradient}, optimizer, state)
            state.step += 1
        held.append({"w": weights.values.copy(), **state.slots["w"]})
    within = (1e-9, 1e-12) if dtype == np.float64 else (1e-4, 1e-5)
    assert_same(held[0], held[1], *((0, 0) if name in EXACT else within))


@pytest.mark.parametrize("claim", ["none", "of another time", "right"])
def test_an_old_word_that_edges_are_settled_does_no_harm(claim: str) -> None:
    runs = pair("sgd momentum")
    for run in runs:
        stamp = run.weights.stamp
        run.step([1, 2, 3])
        run.step([9])
        if claim == "right":
            run.weights.settle(np.array([1, 2]))
            stamp = run.weights.stamp
        settled = None if claim == "none" else stamp
        gradient = TouchedGradient(np.array([1, 2]), np.ones(2), 60, settled=settled)
        lazy.update(run.parameters, {"w": gradient, "bias": np.ones(5)}, run.optimizer, run.state)
    assert_same(runs[0].held(), runs[1].held(), 1e-12, 1e-14)


def test_positions_that_are_not_ascending_are_left_to_numpy() -> None:
    runs = pair("adam")
    for run in runs:
        run.step([5, 9])
        run.step([1, 5])
        for at in ([9, 5, 1], [7, 59, 0]):
            run.step(at)
    assert_same(runs[0].held(), runs[1].held(), 1e-12, 1e-14)
    for wrong in ([3, 60], [-1, 3], [10**9]):
        before = runs[0].held()
        with pytest.raises(ArgumentError, match="positions of the gradient of w"):
            runs[0].step(wrong)
        assert_same(runs[0].held(), before, 0, 0)


@pytest.mark.parametrize("name", ["adamw", "sgd momentum", "adagrad decay"])
def test_edges_settled_twice_in_one_call(name: str) -> None:
    """In parallel, too, each is given what it missed once."""
    results = []
    for repeat in (1, 2):
        weights, state = many(ALL[name][0](0.1).lazily(True))
        optimizer = ALL[name][0](0.1).lazily(True)
        for at in (np.arange(0, weights.nnz, 2), np.arange(50)):
            gradient = TouchedGradient(at, np.ones(at.size, dtype=np.float32), weights.nnz)
            lazy.update({"w": weights}, {"w": gradient}, optimizer, state)
            state.step += 1
        blocks = np.arange(100, 100 + (weights.nnz - 100) // 16 * 16).reshape(-1, 16)
        blocks[:, 1:15] = blocks[::-1, 1:15]  # their ends look like those of runs
        weights.settle(np.concatenate([blocks.ravel(), np.arange(100, weights.nnz)[::-1]][:repeat]))
        results.append({"w": weights.raw[100 : 100 + blocks.size].copy()})
    assert_same(results[0], results[1], 0, 0)


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.make(0.1).in_place])
@pytest.mark.parametrize("order", ["C", "F", "mixed"])
def test_large_dense_arrays_take_the_compiled_step_to_the_bit(
    name: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for block in (16, 10**9):
        monkeypatch.setattr(in_place, "BLOCK", block)
        rng = np.random.default_rng(0)
        array = np.asarray(rng.standard_normal((33, 40)), order="C" if order == "C" else "F")
        optimizer = CASES[name].make(0.1)
        state = State(optimizer.start({"w": array}), 0, rng)
        for _ in range(3):
            gradient = np.asarray(rng.standard_normal((33, 40)), order="F" if order == "F" else "C")
            lazy.update({"w": array}, {"w": gradient}, optimizer, state)
            state.step += 1
        results.append((array, *state.slots["w"].values()))
    for ours, theirs in zip(*results, strict=True):
        assert np.array_equal(ours, theirs)


# -- Whoever looks, and whoever does not ---------------------------------------------------------------------


def test_a_step_touches_no_other_edge_and_settling_some_no_others() -> None:
    run = Run(adamw(0.1, weight_decay=0.5), nnz=60)
    run.step(np.arange(60), dense=True)
    before = run.weights.raw.copy(), *(s.copy() for s in run.state.raw_slots["w"].values())
    run.optimizer = run.optimizer.lazily(True)
    for _ in range(3):
        run.step([5, 7])
    run.weights.settle(np.array([9, 3]))
    after = run.weights.raw, *run.state.raw_slots["w"].values()
    for old, new in zip(before, after, strict=True):
        assert np.flatnonzero(old != new).tolist() == [3, 5, 7, 9]
    assert run.weights.pending is not None
    assert (run.weights.values != before[0]).all()
    assert run.weights.pending is None


def test_the_stamp_changes_by_steps_not_by_settling() -> None:
    run = Run(adam(0.1).lazily(True))
    run.step([1, 2, 3])
    run.step([7])
    before = run.weights.stamp
    run.weights.settle(np.array([1]))
    assert run.weights.values_by_target.size == 60
    assert run.weights.stamp == before
    run.step([1])
    assert run.weights.stamp != before


def after(w: Weights, act: Callable[[], Any]) -> Array:
    act()
    return w.raw


READERS: dict[str, Callable[[Weights], Any]] = {
    "values": lambda w: w.values,
    "values by target": lambda w: w.values_by_target[np.argsort(w.edges.order)],
    "coo": lambda w: w.to_coo()[2],
    "scipy": lambda w: w.to_scipy().data,
    "dense": lambda w: w.to_dense()[w.sources, w.targets],
    "graphblas": lambda w: w.to_graphblas().to_coo()[2],
    "view by source": lambda w: after(w, lambda: w.by_source),
    "view by target": lambda w: w.by_target.new().to_coo()[2],
    "another dtype": lambda w: w.astype(np.float32).astype(np.float64).values,
    "pickle": lambda w: pickle.loads(pickle.dumps(w)).values,
    "copy": lambda w: copy.copy(w).values,
    "deep copy": lambda w: copy.deepcopy(w).values,
    "added to": lambda w: after(w, lambda: w.add(np.zeros(w.nnz))),
    "owed no more": lambda w: after(w, lambda: setattr(w, "pending", None)),
    "rewired": lambda w: after(w, lambda: w.rewire([], [], [])),
}


@pytest.mark.parametrize("reader", READERS)
def test_whoever_reads_weights_sees_them_up_to_date(reader: str) -> None:
    runs = pair("sgd momentum")
    for run in runs:
        for step in range(4):
            run.step([step, 20 + step])
    seen, expected = (np.array(READERS[reader](run.weights)) for run in runs)
    np.testing.assert_allclose(seen, expected, 1e-6 if reader == "another dtype" else 1e-12)
    assert not np.array_equal(Run(runs[0].optimizer).weights.values, seen)


def test_a_copy_owes_nothing_and_is_no_part_of_the_training() -> None:
    run = Run(adam(0.1).lazily(True))
    run.step([1, 2, 3])
    run.step([4])
    weights, state = pickle.loads(pickle.dumps((run.weights, run.state)))
    assert weights.pending is None
    assert state.backlogs == {}
    assert np.array_equal(weights.values, run.weights.values)
    assert state.slots["w"]["square"].tobytes() == run.state.slots["w"]["square"].tobytes()
    run.step([1, 2])
    assert weights.pending is None
    assert (
        copy.deepcopy(run.state).raw_slots["w"]["square"].tobytes()
        == run.state.slots["w"]["square"].tobytes()
    )


def test_slots_read_from_the_state_are_up_to_date() -> None:
    runs = pair("adam")
    for run in runs:
        for step in range(5):
            run.step([step])
    stale = runs[0].state.raw_slots["w"]["square"].copy()
    assert not np.array_equal(stale, runs[1].state.slots["w"]["square"])
    np.testing.assert_allclose(runs[0].state.slots["w"]["square"], runs[1].state.slots["w"]["square"], 1e-12)
    assert runs[0].weights.pending is None
    runs[0].step([3])
    runs[0].state.slots = runs[0].state.slots  # settles, and the next step begins anew
    assert runs[0].weights.pending is None
    assert repr(runs[0].state) == "State(step=6, parameters=['bias', 'w'])"


def test_another_optimizer_goes_on() -> None:
    runs = pair("sgd momentum")
    for run in runs:
        run.step([1, 2])
        run.step([3])
        run.optimizer = sgd(0.2, momentum=0.3).lazily(run.optimizer.lazy)
        run.step([4])
        run.step([5])
    assert_same(runs[0].held(), runs[1].held(), 1e-12, 1e-14)


def test_two_states_of_one_model_take_turns() -> None:
    """Weights are owed the steps of both, in order; each state's slots those of its own."""
    runs = pair("sgd momentum")
    for run in runs:
        slots = run.optimizer.start({"w": run.weights.values, "bias": run.bias})
        states = [run.state, State(slots, 0, run.state.generator)]
        for turn in (0, 0, 1, 1, 0, 1, 0):
            run.state = states[turn]
            run.step([1 + turn, 5], seed=turn)
        run.state = states[0]
    assert_same(runs[0].held(), runs[1].held(), 1e-12, 1e-14)


def test_slots_that_were_left_behind_are_refused_and_nothing_has_changed() -> None:
    run = Run(adam(0.1).lazily(True))
    run.step([1])
    run.step([2])
    before = run.held()
    right = run.state.slots["w"]["square"]
    run.state.slots["w"]["square"] = right[:-1]
    with pytest.raises(ArgumentError, match=r"square of w: expected shape \(60,\)"):
        run.step([1])
    run.state.slots["w"]["square"] = right
    assert_same(run.held(), before, 0, 0)


# -- Cost ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in ALL if kind_of(n) != "never lazy"])
def test_a_lazy_step_takes_no_memory_of_the_size_of_the_layer(name: str) -> None:
    nnz = 200_000
    places = np.arange(nnz) * 7
    weights = Weights.from_coo(places // 2**12, places % 2**12, 1.0, (2**12, 2**12))
    optimizer = ALL[name][0](0.01).lazily(True)
    state = State(optimizer.start({"w": weights.raw}), 0, np.random.default_rng(0))

    def step() -> None:
        at = np.arange(100) * 13 + state.step
        gradient = TouchedGradient(at, np.ones(100, dtype=np.float32), nnz)
        lazy.update({"w": weights}, {"w": gradient}, optimizer, state)
        state.step += 1

    step()
    step()  # the first one makes the tables
    tracemalloc.start()
    for _ in range(3):
        step()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000  # an array of one byte an edge would be four times that
    tracemalloc.start()
    weights.settle()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * nnz * 4

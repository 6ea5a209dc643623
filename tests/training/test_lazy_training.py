"""Training with sparse activations: lazy is eager, through rewiring, snapshots and files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.touching import assert_same

from gbnn import layers, losses, topology, training
from gbnn.errors import NonFiniteError
from gbnn.rows import SparseRows
from gbnn.semirings import TouchedGradient
from gbnn.topology import Rewirer
from gbnn.training import State, snapshot
from gbnn.training.transform import Transform
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
WIDE = 2**60


def model_of(dtype: Any = np.float64) -> layers.Layer:
    """A wide layer, whose edges are at 40 of its inputs, and a dense one behind it."""
    rng = np.random.default_rng(0)
    ends = np.array([divmod(place, 8) for place in np.sort(rng.choice(320, 150, replace=False))])
    wide = Weights.from_coo(ends[:, 0], ends[:, 1], rng.standard_normal(150), (WIDE, 8), dtype=dtype)
    return layers.Chain(layers.Linear(wide), layers.Dense.random(8, 2, seed=1, dtype=dtype))


def batch(seed: int, dtype: Any = np.float64) -> tuple[SparseRows, Array]:
    rng = np.random.default_rng(seed)
    columns = np.concatenate([np.sort(rng.choice(44, 2, replace=False)) for _ in range(3)])
    starts = np.arange(0, 7, 2)
    return SparseRows(starts, columns, rng.standard_normal(6).astype(dtype), (3, WIDE)), rng.integers(0, 2, 3)


def everything(model: layers.Layer, state: State) -> dict[str, Array]:
    held = {n: p.values.copy() if isinstance(p, Weights) else p.copy() for n, p in model.parameters().items()}
    for name, slots in state.slots.items():
        held |= {f"{slot} of {name}": array.copy() for slot, array in slots.items()}
    return held


def wide(model: layers.Layer) -> Weights:
    weights = model.parameters()["0.weights"]
    assert isinstance(weights, Weights)
    return weights


OPTIMIZERS: dict[str, Transform] = {
    "sgd": training.sgd(0.1),
    "momentum, decay": training.sgd(training.schedules.cosine(0.1, 50), momentum=0.9, weight_decay=0.01),
    "adam": training.adam(0.02),
    "clip, adamw": training.chain(training.clip_by_norm(0.5), training.adamw(0.02)),
    "adam, decay": training.adam(0.02, weight_decay=0.01),
}
REWIRINGS: dict[str, Rewirer | None] = {
    "none": None,
    "at times": topology.Rewiring(
        prune=topology.magnitude,
        grow=topology.random,
        when=topology.every_steps(7),
        fraction=topology.constant(0.2),
    ),
    "on demand": topology.grow_on_demand(170, every=7, pace=0.1, exchange=0.1, patience=9),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("rewiring", REWIRINGS)
def test_training_is_that_of_the_eager_optimizer(name: str, rewiring: str) -> None:
    results = []
    for choice in (True, False):
        model, optimizer = model_of(), OPTIMIZERS[name].lazily(choice)
        state, seen = State.start(model, optimizer, seed=3), []
        for step in training.train(
            model,
            [batch(k) for k in range(20)],
            epochs=2,
            optimizer=optimizer,
            rewiring=REWIRINGS[rewiring],
            state=state,
        ):
            seen.append(step.loss)
            if step.index == 25:
                seen.extend(state.slots["0.weights"].get("momentum", np.zeros(1))[:5])
        results.append((seen, everything(model, state), wide(model)))
    (ours, held, weights), (theirs, wanted, other) = results
    np.testing.assert_allclose(ours, theirs, 1e-9)
    assert np.array_equal(weights.sources, other.sources)
    assert_same(held, wanted, 1e-9, 1e-12)


@pytest.mark.parametrize("rewiring", [None, topology.grow_on_demand(150, every=1000)])
def test_the_loop_leaves_untouched_edges_alone(rewiring: Rewirer | None) -> None:
    """Also while a rewiring watches."""
    model, optimizer = model_of(), OPTIMIZERS["momentum, decay"].lazily(True)
    batches = [batch(k) for k in range(3)]
    for step in training.train(model, batches, optimizer=optimizer, rewiring=rewiring):
        assert wide(model).pending is not None
        before = wide(model).raw.copy()
        model.forward(batch(9)[0])  # settles what it reads
        assert wide(model).pending is not None
        assert 0 < np.count_nonzero(wide(model).raw != before) < 150
        assert step.state.backlogs.keys() == {"0.weights"}


@pytest.mark.parametrize("name", ["momentum, decay", "adam"])
def test_going_back_to_a_snapshot(name: str) -> None:
    results = []
    for choice in (True, False):
        model, optimizer = model_of(), OPTIMIZERS[name].lazily(choice)
        state = State.start(model, optimizer)
        kept: snapshot.Snapshot = {}
        for step in training.train(
            model,
            [batch(k) for k in range(24)],
            optimizer=optimizer,
            rewiring=REWIRINGS["at times"],
            state=state,
        ):
            if step.index == 4:
                kept = snapshot.take(model)
            if step.index == 17:
                moved = wide(model).edges
                snapshot.go_back(model, kept, state.slots, state.memory)
                assert moved is not wide(model).edges
        results.append(everything(model, state))
    assert_same(results[0], results[1], 1e-9, 1e-12)


def test_saved_in_the_middle_and_resumed(tmp_path: Path) -> None:
    """To the bit: both go on from what the file holds."""
    model, optimizer = model_of(), OPTIMIZERS["adam"].lazily(True)
    state = State.start(model, optimizer)
    for step in training.train(model, [batch(k) for k in range(20)], optimizer=optimizer, state=state):
        if step.index == 9:
            assert wide(model).pending is not None
            training.save(tmp_path / "m", model, state=state)
            assert wide(model).pending is None
    saved = training.load_all(tmp_path / "m")
    assert saved.state is not None
    for _ in training.train(
        saved.model, [batch(k) for k in range(10, 20)], optimizer=optimizer, state=saved.state
    ):
        pass
    assert_same(everything(saved.model, saved.state), everything(model, state), 0, 0)


def test_a_gradient_that_is_not_finite_is_named_and_changes_nothing() -> None:
    model, optimizer = model_of(), OPTIMIZERS["adam"].lazily(True)
    state = State.start(model, optimizer)
    for _ in training.train(model, [batch(0), batch(1)], optimizer=optimizer, state=state):
        pass
    before = everything(model, state)
    x, target = batch(2)
    huge = x.with_values(np.full(6, 1e308))
    with pytest.raises(NonFiniteError):
        list(training.train(model, [(huge, target)], optimizer=optimizer, state=state))
    assert_same(everything(model, state), before, 0, 0)


def test_no_step_asks_for_the_gradient_of_all_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any) -> Array:
        raise AssertionError("the whole array")

    monkeypatch.setattr(TouchedGradient, "__array__", refused)
    monkeypatch.setattr(TouchedGradient, "array", refused)
    model, optimizer = model_of(), OPTIMIZERS["clip, adamw"].lazily(True)
    assert len(list(training.train(model, [batch(0), batch(1)], optimizer=optimizer))) == 2


def test_reading_in_other_threads_changes_nothing():
    """Each forward pass settles edges that the training is about to update."""

    def trained(readers: int) -> np.ndarray:
        model = layers.Linear.random(
            400, 300, nnz=6000, bias=False, dtype=np.float64, output="sparse", seed=0
        )
        rng = np.random.default_rng(0)
        batches = [
            (SparseRows.from_dense((rng.random((8, 400)) < 0.01).astype(np.float64)), np.zeros((8, 300)))
            for _ in range(60)
        ]
        batches = [(x, y) for x, y in batches if x.nnz]
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                for x, _ in batches:
                    model.forward(x)

        others = [threading.Thread(target=read) for _ in range(readers)]
        for other in others:
            other.start()
        for _ in training.train(model, batches, loss=losses.mse, optimizer=training.sgd(0.5, momentum=0.9)):
            pass
        done.set()
        for other in others:
            other.join()
        return np.array(model.weights.values)

    np.testing.assert_allclose(trained(3), trained(0), rtol=1e-9, atol=1e-12)

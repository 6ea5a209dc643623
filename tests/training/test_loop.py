"""`train`: its steps, and against loops written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.bits import bits
from support.loops import Array, Pairs, pairs, run, samples, small, two_layers

from gbnn import losses, topology, training
from gbnn.data import Batches
from gbnn.errors import ArgumentError
from gbnn.layers import Layer
from gbnn.training import train
from gbnn.weights import Weights

# -- Steps ---------------------------------------------------------------------------------------------------


class Again:
    """An iterable of the user's own, without a length."""

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        yield from pairs()


def in_batches() -> Batches:
    return Batches(*samples(), batch_size=10, shuffle=False, dtype=np.float64)


@pytest.mark.parametrize("batches", [in_batches, pairs, Again], ids=["Batches", "list", "iterable"])
def test_a_step_a_batch(batches: Callable[[], Any]) -> None:
    model = small()
    steps = run(model, batches(), epochs=2)
    assert [s.index for s in steps] == list(range(6))
    assert [s.epoch for s in steps] == [0, 0, 0, 1, 1, 1]
    assert [s.last_in_epoch for s in steps] == [False, False, True] * 2
    assert [s.rows for s in steps] == [10, 10, 5] * 2
    assert all(s.model is model and s.changes == () for s in steps)
    assert steps[-1].state.step == 6
    other = small()
    run(other, pairs(), epochs=2)
    assert bits(model) == bits(other)


def test_a_generator_is_one_epoch() -> None:
    model, other = small(), small()
    run(model, (pair for pair in pairs()))
    run(other, pairs())
    assert bits(model) == bits(other)
    steps = train(small(), (pair for pair in pairs()), epochs=2)
    assert [next(steps).epoch for _ in range(3)] == [0, 0, 0]
    with pytest.raises(ArgumentError, match="none in epoch 1"):
        next(steps)


def test_the_loss_is_that_before_the_update() -> None:
    model, (x, y) = small(), samples()
    expected = losses.cross_entropy(small().forward(x, training=True)[0], y)[0]
    before = bits(model)
    step = next(train(model, [(x, y)]))
    assert step.loss == expected
    assert step.metrics() == losses.cross_entropy.metrics(small().forward(x, training=True)[0], y)
    changed = bits(model)
    names = {"0.weights", "0.bias", "3.scale", "3.shift", "3.mean", "3.variance", "4.weights", "4.bias"}
    assert {name for name in before if before[name] != changed[name]} == names


def test_the_batch_size_of_the_last_batch_counts_in_no_other() -> None:
    """Each step is that of its batch alone: a state can be taken on at any of them."""
    model, other = small(), small()
    run(model, pairs())
    state = None
    for pair in pairs():
        (step,) = run(other, [pair], state=state)
        state = step.state
    assert bits(model) == bits(other)


@pytest.mark.parametrize("rewiring", [None, topology.set_(0.3), topology.rigl(2, 0.3, until=100)])
def test_same_seed_same_bits(rewiring: topology.Rewiring | None) -> None:
    results = []
    for seed in (3, 3, 4):
        model, (x, y) = small(), samples()
        batches = Batches(x, y, 10, seed=seed)
        steps = run(model, batches, epochs=4, rewiring=rewiring, seed=seed)
        results.append((bits(model), [s.loss for s in steps]))
    assert results[0] == results[1]
    assert results[0] != results[2]


def test_x_of_any_kind_is_the_same_batch() -> None:
    """Lists, integers, C order: what it is stored in makes no difference."""
    x = np.arange(30.0).reshape(5, 6) % 7
    y = np.array([0, 1, 2, 1, 0])
    results = []
    for one in (x, np.asfortranarray(x), x.astype(np.int8), x.tolist(), x.astype(np.float32)):
        model = small()
        run(model, [(one, y)], epochs=3)
        results.append(bits(model))
    assert all(other == results[0] for other in results[1:])


# -- Against loops written by hand ---------------------------------------------------------------------------


def dense(model: Layer) -> dict[str, Array]:
    return {n: p.to_dense() if isinstance(p, Weights) else p.copy() for n, p in model.parameters().items()}


def masks(model: Layer) -> dict[str, Array]:
    held = {}
    for name, p in model.parameters().items():
        held[name] = np.ones(p.shape)
        if isinstance(p, Weights):
            held[name][...] = 0
            held[name][p.sources, p.targets] = 1
    return held


def by_hand(model: Layer, batches: Pairs, optimizer: str) -> Iterator[dict[str, Array]]:
    """Train full matrices in NumPy, where every absent edge is held at zero by a mask."""
    w, mask = dense(model), masks(model)
    m, v = ({name: np.zeros(a.shape) for name, a in w.items()} for _ in range(2))
    for t, (x, y) in enumerate(batches, 1):
        hidden = np.tanh(x @ w["0.weights"] + w["0.bias"])
        scores = hidden @ w["2.weights"] + w["2.bias"]
        chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        dy = (chance - np.eye(3)[y]) / len(y)
        dh = dy @ w["2.weights"].T * (1 - hidden**2)
        gradient = {"0.weights": x.T @ dh, "0.bias": dh.sum(axis=0)}
        gradient |= {"2.weights": hidden.T @ dy, "2.bias": dy.sum(axis=0)}
        for name in w:
            g = gradient[name] * mask[name]
            if optimizer == "sgd":
                m[name] = 0.9 * m[name] + g
                w[name] -= 0.5 * m[name]
            else:
                m[name] = 0.9 * m[name] + 0.1 * g
                v[name] = 0.999 * v[name] + 0.001 * g * g
                w[name] -= 0.01 * (m[name] / (1 - 0.9**t)) / (np.sqrt(v[name] / (1 - 0.999**t)) + 1e-8)
        yield w


def by_torch(model: Layer, batches: Pairs, optimizer: str) -> Iterator[dict[str, Array]]:
    torch = pytest.importorskip("torch")
    w = {name: torch.tensor(a, requires_grad=True) for name, a in dense(model).items()}
    mask = {name: torch.tensor(a) for name, a in masks(model).items()}
    if optimizer == "sgd":
        steps = torch.optim.SGD(w.values(), lr=0.5, momentum=0.9)
    else:
        steps = torch.optim.Adam(w.values(), lr=0.01)
    for x, y in batches:
        steps.zero_grad()
        hidden = torch.tanh(torch.tensor(x) @ (w["0.weights"] * mask["0.weights"]) + w["0.bias"])
        scores = hidden @ (w["2.weights"] * mask["2.weights"]) + w["2.bias"]
        torch.nn.functional.cross_entropy(scores, torch.tensor(y)).backward()
        steps.step()
        yield {name: tensor.detach().numpy() for name, tensor in w.items()}


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("oracle", [by_hand, by_torch])
def test_equals_a_dense_loop(oracle: Callable[..., Iterator[dict[str, Array]]], optimizer: str) -> None:
    batches = pairs() * 4
    expected = oracle(two_layers(), batches, optimizer)
    model = two_layers()
    made = training.sgd(0.5, momentum=0.9) if optimizer == "sgd" else training.adam(0.01)
    count = 0
    for _, theirs in zip(train(model, batches, optimizer=made), expected, strict=True):
        for name, ours in dense(model).items():
            np.testing.assert_allclose(
                ours, theirs[name], rtol=1e-9, atol=1e-11, err_msg=f"{name} at {count}"
            )
        count += 1
    assert count == 12


# -- Going on ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda: training.sgd(0.1, momentum=0.9), training.adam], ids=["sgd", "adam"]
)
def test_going_on_equals_one_longer_run(make: Callable[[], training.Transform]) -> None:
    model, other = small(), small()
    longer = run(model, pairs(), optimizer=make(), epochs=3)
    first = run(other, pairs(), optimizer=make())
    second = run(other, pairs(), optimizer=make(), epochs=2, state=first[-1].state)
    assert [s.index for s in first + second] == [s.index for s in longer]
    assert [s.loss for s in first + second] == [s.loss for s in longer]
    assert bits(model, longer[-1].state) == bits(other, second[-1].state)
    third = run(small(), pairs(), optimizer=make(), epochs=3)
    assert third[-1].loss == longer[-1].loss  # the comparison above is not one of equal nothing


def test_going_on_with_rewiring() -> None:
    """Interrupted after any epoch, from the random numbers where they were."""
    whole = small()
    steps = run(whole, pairs(), rewiring=topology.set_(0.3), epochs=4, seed=5)
    assert sum(bool(s.changes) for s in steps) == 3
    parts = small()
    for step in train(parts, pairs(), rewiring=topology.set_(0.3), epochs=4, seed=5):
        if step.index == 5:
            break
    rest = run(parts, pairs(), rewiring=topology.set_(0.3), epochs=2, seed=77, state=step.state)
    assert bits(parts, rest[-1].state) == bits(whole, steps[-1].state)


def test_steps_done_before_count_in_the_share_of_all() -> None:
    """`until=0.5` of 3 + 9 steps is step 6, also where the first three were another call."""
    clocks: list[topology.Clock] = []

    def when(clock: topology.Clock) -> bool:
        clocks.append(clock)
        return False

    watching = topology.Rewiring(
        prune=topology.magnitude, grow=topology.random, when=when, fraction=topology.constant(0.1)
    )
    model = small()
    state = run(model, pairs(), rewiring=watching)[-1].state
    run(model, pairs(), rewiring=watching, epochs=3, state=state)
    assert [clock.step for clock in clocks] == list(range(12))
    assert [clock.total_steps for clock in clocks] == [3] * 3 + [12] * 9
    assert [(c.epoch, c.epochs, c.last_in_epoch) for c in clocks[-3:]] == [(2, 3, k == 2) for k in range(3)]
    clocks.clear()
    run(small(), Again(), rewiring=watching)
    assert {clock.total_steps for clock in clocks} == {None}


def test_rewiring_is_reported_and_keeps_the_number_of_edges() -> None:
    model = small()
    before = model.nnz
    steps = run(model, pairs(), rewiring=topology.set_(0.3), epochs=3)
    assert [bool(s.changes) for s in steps] == [False, False, True, False, False, True, False, False, False]
    assert [done.name for done in steps[2].changes] == ["0.weights", "4.weights"]
    assert all(done.change.grown == done.change.dropped > 0 for done in steps[2].changes)
    assert model.nnz == before


def test_rigl_replaces_the_update() -> None:
    model = small()
    steps = train(model, pairs(), rewiring=topology.rigl(2, 0.3, until=100))
    next(steps), next(steps)
    old, bias = model[0].weights.values.copy(), model[0].bias.copy()
    (done, _) = next(steps).changes
    np.testing.assert_array_equal(model[0].weights.values, done.change.carry(old))
    np.testing.assert_array_equal(model[0].bias, bias)
    assert done.change.grown > 0

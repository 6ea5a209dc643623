"""`train`: its steps, against loops written by hand, and what it does when something is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.bits import bits

from gbnn import layers, losses, models, topology, training
from gbnn.data import Batches
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.layers import Layer
from gbnn.training import State, Step, train
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
Pairs = list[tuple[Any, Any]]


def small(dtype: Any = np.float64, seed: int = 1) -> layers.Chain:
    """Linear, tanh, dropout, batch norm, linear: parameters with and without edges, buffers, randomness."""
    rng = np.random.default_rng(seed)
    return layers.Chain(
        layers.Linear.random(6, 9, nnz=20, dtype=dtype, seed=rng),
        layers.Tanh(),
        layers.Dropout(0.2, rng),
        layers.BatchNorm(9, dtype=dtype),
        layers.Linear.random(9, 3, nnz=13, dtype=dtype, seed=rng),
    )


def samples(rows: int = 25, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, 6)), rng.integers(3, size=rows)


def pairs(size: int = 10, rows: int = 25) -> Pairs:
    x, y = samples(rows)
    return [(x[k : k + size], y[k : k + size]) for k in range(0, rows, size)]


def run(model: Layer, batches: Any, **options: Any) -> list[Step]:
    return list(train(model, batches, **options))


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


def two_layers() -> layers.Chain:
    return layers.Chain(
        layers.Linear.random(6, 9, nnz=20, dtype=np.float64, seed=1),
        layers.Tanh(),
        layers.Linear.random(9, 3, nnz=13, dtype=np.float64, seed=2),
    )


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


# -- What is wrong with a batch ------------------------------------------------------------------------------

X, Y = samples(4)
NAN, INF, HUGE = X.copy(), X.copy(), X.copy()
NAN[2, 3], INF[0, 0], HUGE[1, 1] = np.nan, -np.inf, 1e300

BAD: dict[str, tuple[Any, type[GbnnError], str]] = {
    "empty": ((X[:0], Y[:0]), ArgumentError, "x, "),
    "too wide": ((np.ones((4, 7)), Y), ArgumentError, "x, "),
    "too narrow": ((X[:, :5], Y), ArgumentError, "x, "),
    "one dimension": ((X[0], Y[:1]), ArgumentError, "x, "),
    "three dimensions": ((X[None], Y), ArgumentError, "x, "),
    "text": ((X.astype(str), Y), KindError, "x, "),
    "complex": ((X + 1j, Y), KindError, "x, "),
    "objects": ((np.full((4, 6), None), Y), KindError, "x, "),
    "ragged": (([[1.0] * 6, [1.0] * 5], Y[:2]), KindError, "x, "),
    "sparse": ((sp.csr_array(X), Y), KindError, "x, "),
    "none": ((None, Y), KindError, "x, "),
    "nan": ((NAN, Y), NonFiniteError, "x, "),
    "infinite": ((INF, Y), NonFiniteError, "x, "),
    "too large for float32": ((HUGE, Y), NonFiniteError, "x, "),
    "label too large": ((X, np.array([0, 1, 3, 0])), ArgumentError, "target, "),
    "label negative": ((X, np.array([0, 1, -1, 0])), ArgumentError, "target, "),
    "label of float": ((X, Y.astype(float)), KindError, "target, "),
    "labels too few": ((X, Y[:3]), ArgumentError, "target, "),
    "labels in 2-D": ((X, Y[:, None]), ArgumentError, "target, "),
    "no target": ((X, None), ArgumentError, "batches, "),
    "an array": (X, KindError, "batches, "),
    "a number": (3, KindError, "batches, "),
    "three parts": ((X, Y, Y), ArgumentError, "batches, "),
    "one part": ([X], ArgumentError, "batches, "),
}


@pytest.mark.parametrize(("batch", "kind", "where"), BAD.values(), ids=BAD.keys())
def test_a_bad_batch_is_named_and_not_trained_on(batch: Any, kind: type[GbnnError], where: str) -> None:
    model = small(np.float32)
    steps = train(model, [pairs()[0], batch], optimizer=training.sgd(0.1, momentum=0.5))
    state = next(steps).state
    before = bits(model, state)
    with pytest.raises(kind) as caught:
        list(steps)
    assert str(caught.value).startswith(f"{where}epoch 0, batch 1: expected ")
    assert caught.value.args[0] == caught.value.where
    assert bits(model, state) == before


def test_the_epoch_is_named_too() -> None:
    class Worse:
        epochs = 0

        def __iter__(self) -> Iterator[Any]:
            self.epochs += 1
            return iter(pairs()[:2] + [(X, Y + 3)] * (self.epochs == 3))

    with pytest.raises(ArgumentError, match="target, epoch 2, batch 2"):
        run(small(), Worse(), epochs=4)


def test_nan_in_a_target() -> None:
    model, target = small(), np.zeros((4, 3))
    target[1, 2] = np.nan
    before = bits(model)
    with pytest.raises(NonFiniteError, match=r"target, epoch 0, batch 0: .* nan at \[1, 2\]"):
        run(model, [(X, target)], loss=losses.mse)
    assert bits(model) == before


def test_one_sample() -> None:
    """Enough to train on, but not to normalize over a batch of."""
    model = two_layers()
    before = bits(model)
    (step,) = run(model, [(X[:1], Y[:1])])
    assert step.rows == 1
    assert bits(model) != before
    with pytest.raises(ArgumentError, match=r"BatchNorm.*, epoch 0, batch 1: .*two rows"):
        run(small(), [(X, Y), (X[:1], Y[:1])])


def test_batches_of_another_dtype_are_checked_in_the_models() -> None:
    batches = Batches(HUGE, Y, dtype=np.float64)
    with pytest.raises(NonFiniteError, match="x, epoch 0, batch 0"):
        run(small(np.float32), batches)
    assert run(small(np.float32), Batches(X, Y, dtype=np.float64))[0].rows == 4


# -- Numbers that are not finite -----------------------------------------------------------------------------


def sabotaged(value: float) -> layers.Chain:
    """A model with one bad number, in the layer "4.0.0" of 6: after a batch norm, inside a residual."""
    inner = layers.Linear.random(9, 9, nnz=20, seed=3)
    values = inner.weights.values.copy()
    values[7] = value
    inner.weights.assign(values)
    return layers.Chain(
        layers.Linear.random(6, 9, nnz=40, seed=1),
        layers.Relu(),
        layers.BatchNorm(9),
        layers.Parallel(layers.Identity(), layers.Tanh()),
        layers.Residual(layers.Chain(inner, layers.Tanh())),
        layers.Dense.random(9, 3, seed=2),
    )


def test_nan_in_a_parameter_names_its_layer_and_trains_nothing() -> None:
    model = sabotaged(np.nan)
    optimizer = training.adam()
    state = State.start(model, optimizer)
    before = bits(model, state)
    with pytest.raises(NonFiniteError) as caught:
        run(model, pairs(), optimizer=optimizer, state=state)
    assert str(caught.value) == (
        "loss, epoch 0, batch 0: expected a finite number, got nan, "
        "and layer 4.0.0 (Linear plus_times) is the first whose output is not"
    )
    assert bits(model, state) == before  # the statistics of the batch norm, too


def test_overflow_names_its_layer() -> None:
    model = layers.Chain(
        layers.Linear.random(6, 9, nnz=40, seed=1),
        layers.Dense(np.full((9, 9), 3e38, dtype=np.float32)),
        layers.Dense.random(9, 3, seed=2),
    )
    before = bits(model)
    with pytest.raises(NonFiniteError, match=r"loss, epoch 0, batch 0: .* layer 1 \(Dense\) is the first"):
        run(model, pairs())
    assert bits(model) == before


def test_a_model_that_is_one_layer() -> None:
    model = layers.Dense(np.full((6, 3), 3e38, dtype=np.float32))
    with pytest.raises(NonFiniteError, match=r"layer model \(Dense\) is the first"):
        run(model, pairs())


def test_overflow_in_the_loss_alone() -> None:
    model = layers.Dense(np.full((6, 1), 1e200))
    before = bits(model)
    with pytest.raises(NonFiniteError, match=r"loss, epoch 0, batch 0: .*inf, though every output is finite"):
        run(model, [(np.ones((2, 6)), [0.0, 0.0])], loss=losses.mse)
    assert bits(model) == before


class Bent(Layer):
    """The identity, with a wrong derivative from the second batch on."""

    calls = 0

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        self.calls += 1
        factor = 1.0 if self.calls == 1 else np.nan

        def pullback(dy: Array, *, inputs: bool = True) -> tuple[Array, dict[str, Any]]:
            return dy * factor, {}

        return x, pullback


def test_nan_in_a_gradient() -> None:
    model = layers.Chain(
        layers.Linear.random(6, 9, nnz=20, seed=1),
        layers.BatchNorm(9),
        Bent(),
        layers.Linear.random(9, 3, nnz=20, seed=2),
    )
    steps = train(model, pairs())
    state = next(steps).state
    before = bits(model, state)
    # Behind the bent layer all is finite; the first gradient before it is named.
    with pytest.raises(NonFiniteError, match=r"gradient of 1\.\w+, epoch 0, batch 1: .*nan at"):
        next(steps)
    assert bits(model, state) == before


def test_a_mistake_in_a_layer_comes_through_and_leaves_no_trace() -> None:
    class Wrong(Bent):
        def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
            raise ZeroDivisionError("mine")

    model = layers.Chain(layers.BatchNorm(6), Wrong())
    before = bits(model)
    with pytest.raises(ZeroDivisionError, match="mine"):
        run(model, pairs())
    assert bits(model) == before


# -- Arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"model": "a model"}, KindError),
        ({"model": layers.Linear}, KindError),
        ({"batches": 5}, KindError),
        ({"batches": None}, KindError),
        ({"loss": "mse"}, KindError),
        ({"loss": losses.CrossEntropy}, KindError),
        ({"optimizer": "adam"}, KindError),
        ({"optimizer": training.adam}, KindError),
        ({"rewiring": "set"}, KindError),
        ({"rewiring": topology.set_}, KindError),
        ({"state": {}}, KindError),
        ({"seed": "x"}, KindError),
        ({"seed": -1}, ArgumentError),
        ({"epochs": 0}, ArgumentError),
        ({"epochs": True}, KindError),
        ({"epochs": 1.5}, KindError),
    ],
    ids=str,
)
def test_bad_arguments_are_found_before_the_first_step(
    options: dict[str, Any], kind: type[GbnnError]
) -> None:
    (name,) = options
    arguments = {"model": small(), "batches": pairs()} | options
    with pytest.raises(kind, match=f"^{name}: expected "):
        train(arguments.pop("model"), arguments.pop("batches"), **arguments)


def test_no_batches() -> None:
    with pytest.raises(ArgumentError, match="at least one batch"):
        run(small(), [])


def test_a_state_of_another_model() -> None:
    other = models.mlp([6, 5, 3], density=0.5)
    (step,) = run(other, [(X, Y)])
    with pytest.raises(ArgumentError, match=r"slots, epoch 0, batch 0"):
        run(small(), [(X, Y)], state=step.state)

"""`train` where something is wrong: it says what and where, and leaves the model as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from support.bits import bits
from support.loops import Array, pairs, run, samples, small, two_layers

from gbnn import layers, losses, models, topology, training
from gbnn.data import Batches
from gbnn.errors import ArgumentError, GbnnError, KindError, NonFiniteError
from gbnn.layers import Layer
from gbnn.training import State, train

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
    "sparse, nan": ((sp.csr_array(NAN), Y), NonFiniteError, "x, "),
    "sparse, too narrow": ((sp.csr_array(X[:, :5]), Y), ArgumentError, "x, "),
    "sparse, complex": ((sp.csr_array(X + 1j), Y), KindError, "x, "),
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


def test_layers_that_share_parameters_are_used_but_not_trained() -> None:
    """Each name has optimizer state of its own: two of them would not take the steps of the one array."""
    shared, norm = layers.Linear.random(6, 6, nnz=12, seed=0), layers.BatchNorm(6)
    for model in (layers.Chain(shared, layers.Tanh(), shared), layers.Parallel(norm, layers.Chain(norm))):
        before = bits(model)
        training.predict(model, X)
        with pytest.raises(ArgumentError, match=r"^model: expected layers that share no parameters, got '0"):
            train(model, pairs())
        assert bits(model) == before
    relu = layers.Relu()  # has none to share
    run(layers.Chain(relu, shared, relu), [(X, Y)])


def test_no_batches() -> None:
    with pytest.raises(ArgumentError, match="at least one batch"):
        run(small(), [])


def test_a_state_of_another_model() -> None:
    other = models.mlp([6, 5, 3], density=0.5)
    (step,) = run(other, [(X, Y)])
    with pytest.raises(ArgumentError, match=r"slots, epoch 0, batch 0"):
        run(small(), [(X, Y)], state=step.state)

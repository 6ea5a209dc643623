"""The memory of a training step: a small multiple of what it must hold, and nothing of size in x out.

Allocations of NumPy and of GraphBLAS (which allocates by NumPy's own functions) are counted alike.
"""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Iterator
from typing import Any

import graphblas as gb
import numpy as np
import pytest

from gbnn import data, layers, losses, topology, training
from gbnn.layers import Layer
from gbnn.training import Transform

Array = np.ndarray[Any, Any]

SIZE, NNZ, BATCH = 100_000, 1_000_000, 32
ACTIVATION = SIZE * BATCH * 4  # bytes of x, of y and of dy, each


@pytest.fixture
def traced() -> Iterator[None]:
    """Count allocations, after a training that has all that is imported and compiled at first use."""
    tiny = layers.Linear.random(4, 4, nnz=9)
    rewiring = topology.set_(skip_last=False)
    for _ in training.train(tiny, [(np.ones((2, 4)), np.ones((2, 4)))], loss=losses.mse, rewiring=rewiring):
        pass
    gc.collect()
    gc.disable()  # what waits for it to be freed, in a circle of references, counts
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def held() -> int:
    return tracemalloc.get_traced_memory()[0]


def peak() -> int:
    return tracemalloc.get_traced_memory()[1]


def largest() -> int:
    """The largest single allocation that is alive."""
    return max(trace.size for trace in tracemalloc.take_snapshot().traces)


def test_both_libraries_are_counted(traced: None) -> None:
    """Otherwise the tests below would prove nothing."""
    before = held()
    array = np.ones(10**6)
    assert held() - before >= array.nbytes
    before = held()
    matrix = gb.Matrix.from_dense(np.ones((1, 1))).dup()
    matrix.resize(1000, 1000)
    matrix << gb.binary.plus(matrix | matrix)
    matrix[:, :] = 1.5
    matrix(gb.binary.plus) << gb.semiring.plus_times(matrix @ matrix)
    assert held() - before >= 8 * 10**6
    assert largest() >= 8 * 10**6


class Watched(Layer):
    """A layer that notes the largest allocation alive before and after all that another does."""

    def __init__(self, inner: Layer) -> None:
        self.inner = inner
        self.in_features, self.out_features = inner.in_features, inner.out_features
        self.largest = 0

    def look(self) -> None:
        self.largest = max(self.largest, largest())

    def children(self) -> dict[str, Layer]:
        return {"inner": self.inner}

    def forward(self, x: Array, *, training: bool = False) -> tuple[Array, Any]:
        y, pullback = self.inner.forward(x, training=training)
        self.look()

        def back(dy: Array, *, inputs: bool = True) -> tuple[Any, dict[str, Any]]:
            dx, gradients = pullback(dy, inputs=True)  # dx, too: as in the middle of a network
            self.look()
            return dx, {f"inner.{name}": gradient for name, gradient in gradients.items()}

        return y, back


def watched(optimizer: Transform, model: Watched) -> Transform:
    def update(*arguments: Any) -> Any:
        updates = optimizer.update(*arguments)
        model.look()
        return updates

    return Transform(optimizer.init, update)


def make_batches(loss: losses.Loss, count: int) -> list[tuple[Array, Array]]:
    rng = np.random.default_rng(0)

    def numbers() -> Array:
        return rng.standard_normal((SIZE, BATCH), dtype=np.float32).T

    if loss is losses.cross_entropy:
        return [(numbers(), rng.integers(SIZE, size=BATCH)) for _ in range(count)]
    return [(numbers(), np.abs(numbers()) % 1) for _ in range(count)]


@pytest.mark.parametrize(
    "loss",
    [losses.cross_entropy, losses.mse, losses.huber, losses.binary_cross_entropy],
    ids=lambda s: s.name,
)
def test_the_peak_of_a_training_step(loss: losses.Loss, traced: None) -> None:
    """At most 3 times the bytes of weights, optimizer state and activations: in a first and a warm step."""
    model = Watched(layers.Linear.random(SIZE, SIZE, nnz=NNZ, bias=False))
    batches = make_batches(loss, 2)
    given = sum(x.nbytes + target.nbytes for x, target in batches)
    steps = training.train(model, batches, loss=loss, optimizer=watched(training.adam(), model))
    for number in range(2):
        model.largest = 0
        tracemalloc.reset_peak()
        before = held()
        step = next(steps)
        slots = sum(a.nbytes for own in step.state.slots.values() for a in own.values())
        weights, edges = model.nbytes, model.inner.weights.edges
        view = sum(a.nbytes for a in (*edges.by_target, edges.order, model.inner.weights.values_by_target))
        assert slots == 2 * 4 * NNZ
        assert weights > 12 * NNZ  # an index of 8 bytes and a value of 4 an edge
        assert view > 20 * NNZ  # the view by target: two more indices and another value
        everything = weights + slots + 3 * ACTIVATION
        # Targets, and the batch that is not this step's, are the test's.
        assert peak() - (given - ACTIVATION) <= 3 * everything
        assert held() - (given - ACTIVATION) <= 1.02 * (everything + view - ACTIVATION)  # y is in the step
        assert model.largest <= 1.01 * max(ACTIVATION, 8 * NNZ)
        if number:
            # What comes and goes in a warm step: y, dy, dx and what the loss makes; a gradient and an update.
            assert peak() - before <= 6 * ACTIVATION + 3 * 4 * NNZ
        del step


def test_the_peak_of_rewiring(traced: None) -> None:
    """The same bound where edges move; the indices of old and new edges are there at once for a moment."""
    model = layers.Linear.random(SIZE, SIZE, nnz=NNZ, bias=False)
    batches = make_batches(losses.cross_entropy, 2)
    given = sum(x.nbytes + target.nbytes for x, target in batches)
    steps = training.train(model, batches, rewiring=topology.set_(skip_last=False), optimizer=training.adam())
    next(steps)
    everything = model.nbytes + 2 * 4 * NNZ + 3 * ACTIVATION
    tracemalloc.reset_peak()
    step = next(steps)
    assert step.changes
    assert peak() - (given - ACTIVATION) <= 3 * everything


def test_the_peak_of_many_steps_is_that_of_one(traced: None) -> None:
    """Also while Python does not look for circles of references: nothing large may wait for that."""
    model = layers.Chain(layers.Linear.random(10_000, 10_000, nnz=1000), layers.Relu())
    x, y = np.ones((BATCH, 10_000), dtype=np.float32), np.arange(BATCH)
    steps = training.train(model, [(x, y)] * 20, optimizer=training.adam())
    peaks = []
    for step in steps:
        del step
        peaks.append(peak())
        tracemalloc.reset_peak()
    assert max(peaks[2:]) - peaks[1] < x.nbytes / 2


def test_memory_does_not_grow(traced: None) -> None:
    model = layers.Chain(layers.Linear.random(1000, 1000, nnz=10_000), layers.Relu())
    x, y = np.ones((40, 1000), dtype=np.float32), np.arange(40)
    rewiring = topology.set_(skip_last=False)
    steps = training.train(model, data.batches(x, y, 10), rewiring=rewiring, epochs=12)
    sizes = []
    for step in steps:
        if step.last_in_epoch:
            # What a layer has explored grows with every new edge, up to 8 MiB.
            memory = sum(array.nbytes for m in step.state.memory.values() for array in m.layer.values())
            del step
            gc.collect()
            sizes.append(held() - memory)
    # An epoch that kept even the smallest array of edges or activations would show.
    assert sizes[-1] - sizes[3] < 8 * 10_000


class Watching(data.Batches):
    """Sees, before each batch is made, whether the x of the one before is still there."""

    alive: list[bool]

    def __iter__(self) -> Iterator[tuple[Array, Any]]:
        batches = super().__iter__()
        self.alive = []
        while (pair := next(batches, None)) is not None:
            last = weakref.ref(pair[0])
            yield pair
            del pair
            self.alive.append(last() is not None)


def test_no_batch_is_held_while_the_next_is_made() -> None:
    x, y = np.random.default_rng(0).standard_normal((40, 8)), np.zeros(40, dtype=int)
    model = layers.Chain(layers.Relu(), layers.Linear.random(8, 2, nnz=9))
    batches = Watching(x, y, 10)
    for _ in training.train(model, batches):
        pass
    assert batches.alive == [False] * 4
    training.fit(model, batches, epochs=1)
    assert batches.alive == [False] * 4

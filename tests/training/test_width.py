"""Dimension is free: at the same number of edges a training step takes no more memory in a wider layer."""

from __future__ import annotations

import numpy as np
import pytest
from support.memory import peak_while

from gbnn import layers, losses, training
from gbnn.errors import ArgumentError
from gbnn.losses import Loss
from gbnn.rows import SparseRows

EDGES, ROWS, ACTIVE = 200_000, 32, 50


class Ones(Loss):
    """A gradient of 1 at each active output."""

    name = "ones"

    def __call__(self, y, target):
        return 0.0, lambda: y.with_values(np.ones_like(y.values))

    def _check(self, target, rows, outputs):
        return target

    _compute = _predict = _metrics = None


def peak_of_a_step(width: int) -> tuple[int, int]:
    """Return the bytes that a step takes beside what is kept, and how many edges it updates."""
    layer = layers.Linear.random(width, width, nnz=EDGES, bias=False, seed=0)
    ids, rng = layer.weights.edges.by_source.ids, np.random.default_rng(0)
    columns = np.concatenate([np.sort(rng.choice(ids, ACTIVE, replace=False)) for _ in range(ROWS)])
    values = np.ones(columns.size, np.float32)
    x = SparseRows(np.arange(ROWS + 1) * ACTIVE, columns, values, (ROWS, width))
    model = layers.Chain(layer, layers.KWinners(20))
    steps = training.train(model, [(x, 0)] * 8, loss=Ones(), optimizer=training.adam())
    before = layer.weights.values.copy()
    for _ in range(4):
        next(steps)
    peak, _ = peak_while(lambda: next(steps))
    return peak, int(np.count_nonzero(layer.weights.values != before))


def test_memory_of_a_step_does_not_grow_with_width():
    narrow, _ = peak_of_a_step(10**5)
    for width in (10**6, 10**7, 2**40):
        peak, updated = peak_of_a_step(width)
        assert updated > ROWS
        assert peak < 1.25 * narrow, width


def test_a_step_of_a_dense_output_is_refused_where_it_cannot_be():
    layer = layers.Linear.random(2**40, 2**40, nnz=10, bias=False, output="dense", seed=0)
    x = SparseRows(np.array([0, 1]), np.array([5]), np.ones(1, np.float32), (1, 2**40))
    with pytest.raises(ArgumentError, match="outputs in a dense batch"):
        next(training.train(layer, [(x, np.zeros((1, 1)))], loss=losses.mse))

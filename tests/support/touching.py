"""Parameters trained on random touched edges, lazily or not, without a layer: what tests of `lazy` run."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.semirings import TouchedGradient
from gbnn.training.lazy import update
from gbnn.training.state import State
from gbnn.training.transform import Transform
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
SHAPE = (64, 64)


class Run:
    """Weights and a bias, one optimizer, the steps so far."""

    def __init__(self, optimizer: Transform, nnz: int = 60, dtype: Any = np.float64, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        places = np.sort(rng.choice(SHAPE[0] * SHAPE[1], nnz, replace=False))
        self.weights = Weights.from_coo(
            places // SHAPE[1], places % SHAPE[1], rng.standard_normal(nnz), SHAPE, dtype=dtype
        )
        self.bias = rng.standard_normal(5).astype(dtype)
        self.optimizer = optimizer
        values = {"w": self.weights.values, "bias": self.bias}
        self.state = State(optimizer.start(values), 0, rng)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"w": self.weights, "bias": self.bias}

    def step(self, touched: Any, size: Any = 1.0, *, seed: int = 0, dense: bool = False) -> None:
        """Train on a gradient that is random at the touched edges; handed on as an array if `dense`."""
        rng = np.random.default_rng([seed, self.state.step])
        at = np.asarray(touched, dtype=np.int64)
        numbers = (size * rng.standard_normal(at.size)).astype(self.weights.dtype)
        gradient: Any = TouchedGradient(at, numbers, self.weights.nnz)
        bias = rng.standard_normal(5).astype(self.weights.dtype)
        gradients = {"w": np.asarray(gradient) if dense else gradient, "bias": bias}
        update(self.parameters, gradients, self.optimizer, self.state)
        self.state.step += 1

    def skip(self) -> None:
        """A step without an update, as of a rewiring that replaces it."""
        self.state.step += 1

    def rewire(self, drop: Any, sources: Any, targets: Any) -> None:
        slots = self.state.slots["w"]
        change = self.weights.rewire(drop, sources, targets, 0.25)
        slots.update({name: change.carry(array) for name, array in slots.items()})

    def held(self) -> dict[str, Array]:
        """Copies of all values and slots."""
        held = {"w": self.weights.values.copy(), "bias": self.bias.copy()}
        for name, slots in self.state.slots.items():
            held |= {f"{slot} of {name}": array.copy() for slot, array in slots.items()}
        return held


def assert_same(ours: dict[str, Array], theirs: dict[str, Array], rtol: float, atol: float) -> None:
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol, atol, err_msg=name)

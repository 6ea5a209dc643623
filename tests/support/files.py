"""What tests of files save, and how they compare all of it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gbnn import layers, semirings
from gbnn.layers import Layer
from gbnn.semirings import Semiring
from gbnn.training import State
from gbnn.training.blueprint import describe
from support.bits import bits

Array = np.ndarray[Any, Any]


def whole(model: Layer, state: State | None = None) -> dict[str, Any]:
    """All of it: the layers with their settings, parameters, buffers, and the state of training."""
    return bits(model, state) | {"layers": json.dumps(describe(model))}


def linear(
    semiring: Semiring = semirings.plus_times, inputs: int = 6, outputs: int = 6, **options: Any
) -> layers.Linear:
    options = {
        "nnz": 30,
        "seed": 1,
        "bias": semiring.one is not None and semiring.partials is not None,
    } | options
    return layers.Linear.random(inputs, outputs, semiring=semiring, **options)

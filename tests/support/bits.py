"""What models and the state of their training hold, to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gbnn.layers import Layer
from gbnn.training import State
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]


def bits_of(arrays: Mapping[str, Weights | Array]) -> dict[str, Any]:
    """Dtype, shape and bytes of each array; of edges also where they go."""
    held: dict[str, Any] = {}
    for name, p in arrays.items():
        if isinstance(p, Weights):
            held[f"{name} edges"] = (p.shape, p.sources.tobytes(), p.targets.tobytes())
        values = p.values if isinstance(p, Weights) else p
        held[name] = (values.dtype.str, values.shape, values.tobytes())
    return held


def bits(model: Layer, state: State | None = None) -> dict[str, Any]:
    """All parameters and buffers of a model; with `state` also slots, memory, step and generator."""
    held = bits_of(model.parameters() | model.buffers())
    if state is not None:
        held |= bits_of({f"{name} {k}": a for name, slots in state.slots.items() for k, a in slots.items()})
        for name, memory in state.memory.items():
            held |= bits_of({f"{name} edges {k}": array for k, array in memory.edges.items()})
            held |= bits_of({f"{name} layer {k}": array for k, array in memory.layer.items()})
        held["step"] = state.step
        held["generator"] = repr(state.generator.bit_generator.state)
    return held

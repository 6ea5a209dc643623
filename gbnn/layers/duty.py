"""Duty cycles: how often each neuron was active of late, at a cost that follows the active ones.

The duty cycle of a neuron is a running mean over the last samples of whether it was active with a positive
value. A batch of B samples moves it by the weight B / window. The window is the period, or the number of
samples so far while those are fewer, and at least B: nupic.torch's rule, wherever B is within the period.

They are kept in two arrays, changed in place: `clock`, shape (2,), the samples so far and a scale; `duty`,
shape (slots,), the duty cycles divided by the scale. The scale alone decays, so a step changes no neuron but
those that were active. A layer of at most `slots` neurons has one slot each. In a wider one a neuron's slot
is its hash, and those that share a slot share the sum of their duty cycles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.rows import SparseRows

__all__ = ["count_winners", "duty_cycles"]

Array = np.ndarray[Any, Any]

_SMALL = 1e-100  # a scale below this is multiplied in, long before it underflows


def duty_cycles(duty: Array, clock: Array, neurons: Array | None, features: int) -> Array:
    """Return the duty cycles of these neurons, or of all (None), in a layer of `features`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.layers.duty import count_winners, duty_cycles
    >>> from gbnn.rows import SparseRows
    >>> duty, clock = np.zeros(4), np.array([0.0, 1.0])
    >>> count_winners(duty, clock, SparseRows.from_dense([[1.0, 0.0, 2.0], [5.0, 0.0, 0.0]]), 1000)
    >>> duty_cycles(duty, clock, None, 3)
    array([1. , 0. , 0.5])
    """
    if neurons is None:
        if features <= duty.size:
            every: Array = duty[:features] * clock[1]
            return every
        neurons = np.arange(features)
    found: Array = duty[_slots(neurons, features, duty.size)] * clock[1]
    return found


def count_winners(duty: Array, clock: Array, y: SparseRows, period: int) -> None:
    """Take account of a batch of winners, in O(its entries); `duty` and `clock` are changed.

    Examples
    --------
    See `duty_cycles`.
    """
    batch, features = y.shape
    clock[0] += batch
    window = max(min(period, clock[0]), batch)
    if window == batch:  # nothing before counts
        duty.fill(0)
        clock[1] = 1
    else:
        clock[1] *= 1 - batch / window
        if clock[1] < _SMALL:  # once in many steps
            duty *= clock[1]
            clock[1] = 1
    active = y.columns[y.values > 0]
    np.add.at(duty, _slots(active, features, duty.size), 1 / (window * clock[1]))


def _slots(neurons: Array, features: int, slots: int) -> Array:
    if features <= slots:
        return neurons
    # Multiplicative hashing: the upper half of the product, brought into range without a division.
    mixed = (neurons.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    found: Array = ((mixed * np.uint64(slots)) >> np.uint64(32)).astype(np.int64)
    return found

"""The update of one parameter by its optimizer's compiled step (`InPlace`), where its arrays are such."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gbnn.semirings import TouchedGradient
from gbnn.training.step_kernels import are_ascending
from gbnn.training.transform import BLOCK, InPlace
from gbnn.weights import Weights

__all__ = ["InPlaceStep", "touched", "whole"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class InPlaceStep:
    """A step that is ready to be taken: all has been checked.

    Attributes
    ----------
    by : InPlace
    name : str
    parameter : Weights or ndarray
    gradient : ndarray
    slots : list of ndarray
    positions : ndarray of int64 or None
        Of the values that the gradients belong to; None for all.
    settled : (int, int) or None
        See `TouchedGradient`.
    """

    by: InPlace
    name: str
    parameter: Any
    gradient: Array
    slots: list[Array]
    positions: Array | None = None
    settled: tuple[int, int] | None = None

    def take(self, step: int) -> None:
        """Change the values and the slots."""

        def change(values: Array) -> None:
            gradient, values, *slots = (_flat(array) for array in (self.gradient, values, *self.slots))
            self.by.step(self.name, step, gradient, values, slots, self.positions)

        if isinstance(self.parameter, Weights):
            self.parameter.write(change, self.positions, settled=self.settled)
        else:
            change(self.parameter)


def touched(
    by: InPlace | None, name: str, parameter: Any, gradient: TouchedGradient, slots: Mapping[str, Array]
) -> InPlaceStep | None:
    """Return the step on the touched values, or None where NumPy has to make it.

    A gradient that a pullback made of these weights as they are (`settled`) is believed what it says about
    positions; any other is looked at, for a wrong one would write anywhere.
    """
    at, ours = gradient.positions, isinstance(parameter, Weights)
    array = parameter.raw if ours else parameter
    if by is None or array.ndim != 1 or at.dtype != np.int64 or not at.flags.c_contiguous:
        return None
    trusted = ours and gradient.settled is not None and gradient.settled == parameter.stamp
    if not trusted and not are_ascending(at, array.size):
        return None
    numbers = np.asarray(gradient.values)
    if numbers.dtype != array.dtype or numbers.shape != at.shape or not _fit(by, parameter, array, slots):
        return None
    if not (numbers.flags.c_contiguous and numbers.flags.aligned):
        return None
    own = [slots[slot] for slot in by.names]
    return InPlaceStep(by, name, parameter, numbers, own, at, gradient.settled)


def whole(
    by: InPlace | None, name: str, parameter: Any, gradient: Any, slots: Mapping[str, Array]
) -> InPlaceStep | None:
    """Return the step on all values, or None where NumPy has to make it or does it as well: on few."""
    array = parameter.raw if isinstance(parameter, Weights) else parameter
    if by is None or array.size <= BLOCK or not isinstance(gradient, np.ndarray | TouchedGradient):
        return None
    if gradient.shape != array.shape or not _fit(by, parameter, array, slots):
        return None
    numbers = np.asarray(gradient)
    if numbers.dtype != array.dtype or not _alike(numbers, array):
        return None
    return InPlaceStep(by, name, parameter, numbers, [slots[slot] for slot in by.names])


def _fit(by: InPlace, parameter: Any, array: Array, slots: Mapping[str, Array]) -> bool:
    """Return whether the slots are the optimizer's and lie in memory as the values do."""
    if slots.keys() != set(by.names) or not (isinstance(parameter, Weights) or array.flags.writeable):
        return False
    own = [array, *slots.values()]
    return all(a.dtype == array.dtype and a.shape == array.shape and _alike(a, array) for a in own) and all(
        a.flags.writeable for a in slots.values()
    )


def _alike(a: Array, b: Array) -> bool:
    """Return whether two arrays are contiguous in the same order."""
    same = (a.flags.c_contiguous and b.flags.c_contiguous) or (a.flags.f_contiguous and b.flags.f_contiguous)
    return same and a.flags.aligned and b.flags.aligned


def _flat(array: Array) -> Array:
    """Return a flat view of a contiguous array."""
    return array.reshape(-1, order="C" if array.flags.c_contiguous else "F")

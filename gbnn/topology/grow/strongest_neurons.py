"""The neurons of one side of a layer that can have a derivative, with bounds of their norms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gbnn.edges import Compressed, Edges
from gbnn.errors import NonFiniteError
from gbnn.semirings import Probe

__all__ = ["Neurons", "check_derivatives", "neurons"]

Array = np.ndarray[Any, Any]

_WANTED = "finite derivatives by absent edges"


class Neurons(NamedTuple):
    """Neurons with a nonzero value in the batch: no other has a derivative but zero.

    Attributes
    ----------
    ids : ndarray of int64, shape (k,)
    norms : ndarray of float64, shape (k,)
        Not below each neuron's Euclidean norm over the batch.
    values : ndarray, shape (batch, neurons)
        Of all neurons of this side.
    samples : ndarray of int64 or None
        Samples that matter; None for all.
    dtype : dtype
        What `strip` gives.
    """

    ids: Array
    norms: Array
    values: Array
    samples: Array | None
    dtype: Any

    def strip(self, which: slice) -> Array:
        """Return the values of some of these neurons, shape (neurons, samples), contiguous."""
        ids, values = self.ids[which], self.values.T
        if self.samples is None:
            whole = self.ids.size == values.shape[0] and (np.diff(ids) == 1).all()
            chosen = values[ids[0] : ids[-1] + 1] if whole else values[ids]
        else:
            chosen = values[ids[:, None], self.samples]
        return np.ascontiguousarray(chosen, dtype=self.dtype)

    def take(self, which: Any) -> Neurons:
        """Return some of these neurons."""
        return self._replace(ids=self.ids[which], norms=self.norms[which])

    def by_norm(self) -> Neurons:
        """Return them in the order of falling norm; at a tie the smaller first."""
        return self.take(np.argsort(-self.norms, kind="stable"))


def neurons(probe: Probe, dtype: Any) -> tuple[Neurons, Neurons]:
    """Return the sources and the targets that can have a derivative but zero, finite ones only."""
    samples = np.flatnonzero(_alive(probe.x) & _alive(probe.dy))
    few = samples if samples.size < len(probe.x) else None
    sides = []
    for values in (probe.x, probe.dy):
        largest = _largest(values)
        ids = np.flatnonzero((largest > 0) & np.isfinite(largest))
        sides.append(Neurons(ids, _norms(values, largest, ids), values, few, dtype))
    return sides[0], sides[1]


def _alive(values: Array) -> Array:
    """Return for each sample whether it has a nonzero value; most show one among the first neurons."""
    alive = np.asarray(values[:, :64].any(axis=1))
    if not alive.all():
        rest = np.flatnonzero(~alive)
        for start in range(64, values.shape[1], 4096):  # never a copy of all values
            alive[rest] |= values[rest, start : start + 4096].any(axis=1)
    return alive


def _largest(values: Array) -> Array:
    """Return each neuron's largest size over the batch, NaN where there is one; float64."""
    largest = np.maximum(values.max(axis=0, initial=0), -values.min(axis=0, initial=0))
    return np.asarray(largest, dtype=np.float64)


def _norms(values: Array, largest: Array, ids: Array) -> Array:
    """Return norms of some neurons, rounded up: by more than any order of summation loses."""
    # Squares of a float64 can leave its range; those of a float32 cannot.
    safe = (largest > 1e-140) & (largest < 1e140)
    with np.errstate(all="ignore"):
        result: Array = np.sqrt(np.einsum("bi,bi->i", values, values, dtype=np.float64))
        for i in ids[~safe[ids]]:
            result[i] = largest[i] * np.sqrt(np.square(values[:, i].astype(np.float64) / largest[i]).sum())
    up = 1 + (len(values) + 8) * np.finfo(np.float64).eps
    return result[ids] * up + np.finfo(np.float64).smallest_subnormal


def check_derivatives(probe: Probe, present: Edges, left: Neurons, right: Neurons, block: int) -> None:
    """Raise NonFiniteError if the derivative by an absent edge is NaN or infinite.

    An input or gradient that is not finite makes every derivative of its neuron so: then the neuron must
    have all its edges. Elsewhere Σ|x·dy| <= ‖x‖·‖dy‖ shows that nothing can overflow; where it could, it
    is looked at.
    """
    sides = ((probe.x, present.by_source, probe.shape[1]), (probe.dy, present.by_target, probe.shape[0]))
    for name, (values, held, others) in zip(("source", "target"), sides, strict=True):
        bad = np.flatnonzero(~np.isfinite(_largest(values)))
        free = bad[_degrees(held, bad) < others]
        if free.size:
            raise NonFiniteError("gradient growth", _WANTED, f"NaN or infinity at {name} {free[0]}")
    most = np.finfo(probe.x.dtype).max * (1 - 1e-3)
    if not left.ids.size or not right.ids.size or left.norms.max() * right.norms.max() < most:
        return
    with np.errstate(over="ignore"):
        left = left.take(left.norms * right.norms.max() >= most)
        right = right.take(right.norms * left.norms.max() >= most)
    for i in range(0, left.ids.size, 512):
        x = left.strip(slice(i, i + 512))
        width = max(1, block // len(x))
        for j in range(0, right.ids.size, width):
            with np.errstate(all="ignore"):
                scores = x @ right.strip(slice(j, j + width)).T
            rows, columns = np.nonzero(~np.isfinite(scores))
            sources, targets = left.ids[i + rows], right.ids[j + columns]
            absent = np.flatnonzero(present.find(sources, targets) < 0)
            if absent.size:
                k = absent[0]
                got = f"{scores[rows[k], columns[k]]} at ({sources[k]}, {targets[k]})"
                raise NonFiniteError("gradient growth", _WANTED, got)


def _degrees(held: Compressed, ids: Array) -> Array:
    """Return how many edges each of the neurons has."""
    at = np.searchsorted(held.ids, ids)
    known = np.flatnonzero(at < held.ids.size)
    known = known[held.ids[at[known]] == ids[known]]
    result = np.zeros(ids.size, dtype=np.int64)
    result[known] = held.starts[at[known] + 1] - held.starts[at[known]]
    return result

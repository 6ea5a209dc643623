"""The network of an estimator: made for the features that occur in its data, and grown when others appear."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from gbnn import layers
from gbnn.edges import Edges
from gbnn.errors import ArgumentError
from gbnn.interop.sklearn.samples import FEW
from gbnn.interop.sklearn.scale import Scale
from gbnn.layers import Layer
from gbnn.topology import Memory, Site
from gbnn.training import State
from gbnn.weights import Weights

__all__ = ["NEAR", "Plan", "build", "grow"]

Array = np.ndarray[Any, Any]

BUDGET = 2**23
"""Edges that a layer gets where its user does not say: every one if so many suffice, else so many together, a
feature by how often it occurs."""
BLOCK = 2**13
"""Features whose edges are drawn at a time."""
HALF = 0.5
FEW_ENTRIES, MANY_ENTRIES = 20, 120
LEAST, LEAST_OF_RARE = 16, 4
"""Edges that a neuron gets at least, whatever the budget; and a feature that occurs once or twice."""
START, NEAR = 0.3, 0.03
"""Standard deviation of what a first hidden neuron receives at the start, of a row of mean length: the second
where features are many for the rows there are, since what a rare feature starts with stays as noise."""


@dataclass(frozen=True)
class Plan:
    """What a network is made of; the parameters of the estimators, checked."""

    hidden: Sequence[int]
    edges_per_feature: int | None
    activation: Callable[[], Layer]
    skip: bool
    dropout: float | None
    input_dropout: float | None
    start: float = START
    full: bool = True

    def suited(self, rows: int, counts: Array, entries: float) -> Plan:
        """Return the plan for rows that have so many `entries` that are not 0, on average.

        `counts` says how often each feature occurs. Dropout is by default HALF where there are more features
        than a quarter of the rows. Of inputs it is less where a row has few, none at FEW_ENTRIES: many say
        the same in several ways, as n-grams of text do. Of hidden neurons there is none where a feature
        reaches less than a quarter of them, for few edges are regularisation enough. First weights are then
        nearer to 0. A layer from all features to all neurons is a full array only where rows are full enough
        that its gradient is, too.
        """
        many = counts.size > rows / 4
        usual = HALF if many else 0.0
        hidden = self.dropout
        if hidden is None:
            width = self.hidden[0] if self.hidden else 1
            each = usual_fan(counts, fans(counts, width, self.edges_per_feature))
            hidden = usual if 4 * each >= width else 0.0
        of_input = self.input_dropout
        if of_input is None:
            share = (entries - FEW_ENTRIES) / (MANY_ENTRIES - FEW_ENTRIES)
            of_input = usual * min(1.0, max(0.0, share))
        full = entries >= FEW * counts.size
        start = NEAR if many else START
        return replace(self, dropout=hidden, input_dropout=of_input, start=start, full=full)


def fan(neurons: int, others: int, wanted: int | None = None) -> int:
    """Return how many edges each of so many neurons gets, to or from so many others."""
    if wanted is None:
        wanted = max(LEAST, BUDGET // max(neurons, 1))
    return min(wanted, others)


def fans(counts: Array, others: int, wanted: int | None = None) -> Array:
    """Return how many edges each feature gets, to so many neurons: int64, shape (k,).

    Where the budget is short they go with the root of how often a feature occurs (`counts`): what occurs
    once or twice has little to teach, and there are many such in text.
    """
    if wanted is not None or counts.size * others <= BUDGET:
        return np.full(counts.size, min(wanted or others, others))
    least, roots = min(LEAST_OF_RARE, others), np.sqrt(counts)
    low, high = 0.0, float(others)
    for _ in range(40):  # halve what multiplies the roots, until the budget is met
        middle = (low + high) / 2
        total = np.clip(middle * roots, least, others).sum()
        low, high = (low, middle) if total > BUDGET else (middle, high)
    return np.clip(low * roots, least, others).astype(np.int64)


def usual_fan(counts: Array, each: Array) -> float:
    """Return how many edges the features of a row have, on average over all entries."""
    return float(np.average(each, weights=counts)) if counts.size else 1.0


def build(
    plan: Plan,
    columns: Array,
    counts: Array,
    in_features: int,
    length: float,
    bias: Array,
    rng: np.random.Generator,
) -> tuple[Layer, list[str]]:
    """Make the network.

    Parameters
    ----------
    plan : Plan
    columns : ndarray of int64, shape (k,)
        Features that get edges, ascending.
    counts : ndarray of int64, shape (k,)
        How often each occurs.
    in_features : int
    length : float
        Of a row: inputs are divided by it, so that no learning rate depends on the unit of X.
    bias : ndarray, shape (outputs,)
        Of the outputs, at the start.
    rng : numpy.random.Generator

    Returns
    -------
    model : Layer
    entrances : list of str
        Names of the weights that begin at the features.

    Raises
    ------
    ArgumentError
        If rows are so long or short that what divides them leaves the dtype.
    """
    outputs, dtype = bias.size, bias.dtype
    # A step of the optimizer moves a row's hidden neurons by as much as there are edges: the fewer they are,
    # the longer the rows (the full ratio is too much: measured on text of 16 edges a feature).
    share = 1.0
    if plan.hidden:
        each = fans(counts, plan.hidden[0], plan.edges_per_feature)
        share = usual_fan(counts, each) / plan.hidden[0]
    steps: list[Layer] = [Scale(_factor(length * math.sqrt(share), dtype))]
    if plan.input_dropout:
        steps.append(layers.Dropout(plan.input_dropout, rng))
    at = len(steps)
    if not plan.hidden:
        steps.append(_entrance(plan, columns, counts, (in_features, outputs), 0.0, bias, dtype, rng))
        return layers.Chain(*steps), [f"{at}.weights"]
    zeros = np.zeros(plan.hidden[0], dtype)
    first = _entrance(plan, columns, counts, (in_features, plan.hidden[0]), plan.start, zeros, dtype, rng)
    deep: list[Layer] = [first, *_between(plan, rng)]
    for rows, width in pairwise(plan.hidden):
        deep += [_full_or_sparse(rows, width, np.zeros(width, dtype), rng), *_between(plan, rng)]
    deep.append(_full_or_sparse(plan.hidden[-1], outputs, bias, rng))
    if not plan.skip:
        return layers.Chain(*steps, *deep), [f"{at}.weights"]
    direct = _entrance(plan, columns, counts, (in_features, outputs), 0.0, None, dtype, rng)
    both = layers.Parallel(layers.Chain(*deep), direct)
    return layers.Chain(*steps, both), [f"{at}.0.0.weights", f"{at}.1.weights"]


def _factor(length: float, dtype: Any) -> float:
    """Return what makes rows of this length 1 long."""
    factor = 1 / length if length else math.inf
    limits = np.finfo(dtype)
    if not float(limits.smallest_subnormal) <= factor <= float(limits.max):
        wanted = f"rows whose length has a reciprocal in {np.dtype(dtype).name}"
        raise ArgumentError("X", wanted, f"a root mean squared length of about {length:.3g}")
    return factor


def _between(plan: Plan, rng: np.random.Generator) -> list[Layer]:
    return [plan.activation(), *([layers.Dropout(plan.dropout, rng)] if plan.dropout else [])]


def _entrance(
    plan: Plan,
    columns: Array,
    counts: Array,
    shape: tuple[int, int],
    deviation: float,
    bias: Array | None,
    dtype: Any,
    rng: np.random.Generator,
) -> Layer:
    """Make a layer from the features that occur."""
    each = fans(counts, shape[1], plan.edges_per_feature)
    if plan.full and each.sum() == shape[0] * shape[1]:
        values = _started(shape[0] * shape[1], deviation, dtype, rng)
        return layers.Dense(values.reshape(shape), bias)
    edges = _fanned(columns, each, shape, rng)
    values = _started(edges.nnz, deviation, dtype, rng)
    return layers.Linear(Weights(edges, values), bias)


def _started(count: int, deviation: float, dtype: Any, rng: np.random.Generator) -> Array:
    """Draw first values of edges from features."""
    values: Array = rng.standard_normal(count, dtype=dtype)
    values *= deviation
    return values


def _fanned(columns: Array, each: Array, shape: tuple[int, int], rng: np.random.Generator) -> Edges:
    """Draw different targets for every column: one in each of as many equal parts of the outputs."""
    starts = np.append(0, np.cumsum(each))
    targets = np.empty(starts[-1], dtype=np.int64)
    for low in range(0, columns.size, BLOCK):  # what is drawn at a time stays small beside the edges
        some = each[low : low + BLOCK]
        parts = np.repeat(some, some)
        part = np.arange(parts.size) - np.repeat(np.cumsum(some) - some, some)
        drawn = rng.integers(part * shape[1] // parts, (part + 1) * shape[1] // parts)
        targets[starts[low] : starts[low] + drawn.size] = drawn
    has = each > 0
    return Edges.grouped(columns[has], np.append(starts[:-1][has], starts[-1]), targets, shape)


def _full_or_sparse(rows: int, width: int, bias: Array, rng: np.random.Generator) -> Layer:
    """Make a layer between neurons: full where the budget suffices, else each output has as many inputs."""
    each = fan(width, rows)
    if each == rows:
        values = rng.standard_normal((rows, width)) * np.sqrt(2 / rows)
        return layers.Dense(values.astype(bias.dtype), bias)
    turned = _fanned(np.arange(width), np.full(width, each), (width, rows), rng)
    edges, _ = Edges.from_coo(turned.targets, turned.sources, (rows, width))
    values = rng.standard_normal(edges.nnz) * np.sqrt(2 / each)
    return layers.Linear(Weights(edges, values.astype(bias.dtype)), bias)


def grow(
    plan: Plan, model: Layer, entrances: Sequence[str], columns: Array, state: State, rng: np.random.Generator
) -> None:
    """Give edges to the columns that have none yet; the optimizer's state follows the edges there are."""
    parameters = model.parameters()
    for k, name in enumerate(entrances):
        weights = parameters[name]
        if not isinstance(weights, Weights):
            continue  # a full layer: every feature has its edges
        known, _ = weights.fan_out()
        new = np.setdiff1d(columns, known, assume_unique=True)
        if not new.size:
            continue
        width = weights.out_features
        each = fan(known.size + new.size, width, plan.edges_per_feature)
        added = _fanned(new, np.full(new.size, each), weights.shape, rng)
        edges, change, _ = weights.edges.rewired((), added.sources, added.targets)
        deviation = plan.start if k == 0 and plan.hidden else 0.0
        values = _started(added.nnz, deviation, weights.dtype, rng)
        memory = state.memory.setdefault(name, Memory())
        Site(name, weights, None, state.slots[name], memory=memory).move(edges, change, values)

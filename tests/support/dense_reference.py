"""Sparse training written out on dense arrays with masks, to check the recipes against.

A `Network` is a multilayer perceptron in float64, without anything of gbnn: its loss is the mean square
error, its optimizer SGD with momentum and weight decay. A `Method` says when and how its masks change.
`agree` trains a gbnn model and a network side by side, and compares them after every step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gbnn import layers, losses, topology, training
from gbnn.edges import Edges
from gbnn.layers import Chain, Linear
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
Batch = tuple[Array, Array]


@dataclass
class Seen:
    """A layer as gbnn left it after a step: what is drawn at random is taken from here."""

    mask: Array
    values: Array
    momentum: Array


@dataclass
class Time:
    """Where training stands: steps done before this one, and the epoch."""

    step: int
    total: int
    epoch: int
    epochs: int
    last_in_epoch: bool


class Network:
    """Dense weights, 0 where the mask is False, of every layer, and all that SGD needs."""

    def __init__(
        self, weights: list[Array], masks: list[Array], biases: list[Array], activation: str
    ) -> None:
        self.weights = [np.where(m, w, 0.0) for w, m in zip(weights, masks, strict=True)]
        self.masks = [m.copy() for m in masks]
        self.biases = [b.copy() for b in biases]
        self.momentum = [np.zeros_like(w) for w in weights]
        self.bias_momentum = [np.zeros_like(b) for b in biases]
        self.activation = activation
        self.signals: list[tuple[Array, Array]] = []
        """Of each layer, the inputs and output gradients of the last batch."""

    def differentiate(self, x: Array, target: Array) -> tuple[list[Array], list[Array]]:
        """Return the derivatives by every weight, present or absent, and by every bias."""
        inputs = []
        for k, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            inputs.append(x)
            x = x @ w + b
            if k < len(self.weights) - 1:
                x = np.tanh(x) if self.activation == "tanh" else np.maximum(x, 0.0)
        dy = 2.0 * (x - target) / x.size
        by_weight: list[Array] = []
        by_bias: list[Array] = []
        self.signals = []
        for k in reversed(range(len(self.weights))):
            by_weight.insert(0, inputs[k].T @ dy)
            by_bias.insert(0, dy.sum(axis=0))
            self.signals.insert(0, (inputs[k], dy))
            # Of y = f(s), inputs[k] is y: f'(s) is 1 - y² or whether y is positive.
            slope = 1.0 - inputs[k] ** 2 if self.activation == "tanh" else (inputs[k] > 0).astype(float)
            dy = (dy @ self.weights[k].T) * slope
        return by_weight, by_bias

    def update(
        self, by_weight: list[Array], by_bias: list[Array], rate: float, keep: float, decay: float
    ) -> None:
        """Take one step of SGD: v = keep·v + g + decay·w, w = w - rate·v, present weights only."""
        for k, mask in enumerate(self.masks):
            step = np.where(mask, by_weight[k] + decay * self.weights[k], 0.0)
            self.momentum[k] = keep * self.momentum[k] + step
            self.weights[k] = self.weights[k] - rate * self.momentum[k]
            self.bias_momentum[k] = keep * self.bias_momentum[k] + by_bias[k] + decay * self.biases[k]
            self.biases[k] = self.biases[k] - rate * self.bias_momentum[k]

    def move(self, k: int, kept: Array, grown: Array, *, keep_regrown: bool = True) -> None:
        """Have `kept` and `grown` edges in layer k; new ones begin at 0, with momentum 0.

        Edges of `grown` that were there before are dropped and grown again: they stay as they are, or not.
        """
        assert not (kept & grown).any()
        old = (self.masks[k] & (kept | grown)) if keep_regrown else kept
        self.masks[k] = kept | grown
        self.weights[k] = np.where(old, self.weights[k], 0.0)
        self.momentum[k] = np.where(old, self.momentum[k], 0.0)


class Method:
    """When and how the masks change."""

    replaces_update = False

    def due(self, time: Time) -> bool:
        """Say whether to rewire at this step."""
        raise NotImplementedError

    def watch(self, network: Network, gradients: list[Array], time: Time) -> None:
        """See every step, after the update."""
        return

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        """Change the masks."""
        raise NotImplementedError


# -- Choosing ------------------------------------------------------------------------------------------------


def lowest(scores: Array, among: Array, count: int) -> Array:
    """Return a mask of the `count` places of `among` with the lowest scores; the earlier at a tie."""
    places = np.flatnonzero(among)
    chosen = places[np.argsort(scores.ravel()[places], kind="stable")[:count]]
    result = np.zeros(among.size, dtype=bool)
    result[chosen] = True
    return result.reshape(among.shape)


def highest(scores: Array, among: Array, count: int) -> Array:
    """Return a mask of the `count` places of `among` with the highest scores; the earlier at a tie."""
    return lowest(-scores, among, count)


def drawn(seen: Seen, kept: Array, before: Array, count: int) -> Array:
    """Return the edges gbnn has grown at random, `count` of them.

    Where an edge was before this rewiring, one comes only if there are too few other places.
    """
    grown = seen.mask & ~kept
    assert (seen.mask[kept]).all()
    assert grown.sum() == count
    assert (grown & before).sum() == max(0, count - np.count_nonzero(~before))
    return grown


def cosine(high: float, low: float, step: float, end: float) -> float:
    """Fall from `high` at step 0 to `low` at the end, along half a cosine."""
    return low + (high - low) * (1 + math.cos(math.pi * min(step, end) / end)) / 2


def split(total: int, shares: Sequence[float]) -> list[int]:
    """Divide a number of edges in proportion to shares: rounded down, the rest to the largest remainders.

    At a tie the earlier one gets more.
    """
    whole = sum(map(Fraction, shares))
    exact = [total * Fraction(share) / whole for share in shares]
    counts = [int(wish) for wish in exact]
    order = sorted(range(len(shares)), key=lambda k: counts[k] - exact[k])
    for k in order[: total - sum(counts)]:
        counts[k] += 1
    return counts


# -- Side by side --------------------------------------------------------------------------------------------


def graph(rng: np.random.Generator, shape: tuple[int, int], count: int) -> Array:
    """Return a mask with `count` random edges."""
    mask = np.zeros(shape[0] * shape[1], dtype=bool)
    mask[rng.choice(mask.size, count, replace=False)] = True
    return mask.reshape(shape)


def weights_of(mask: Array, values: Array) -> Weights:
    """Make gbnn's weights of a dense array."""
    sources, targets = np.nonzero(mask)
    edges, _ = Edges.from_coo(sources, targets, (mask.shape[0], mask.shape[1]))
    return Weights(edges, values[mask])


def seen_of(weights: Weights, slots: dict[str, Array]) -> Seen:
    """Return one set of edges, its values and momentum, as dense arrays."""
    found = []
    for values in (np.ones(weights.nnz, dtype=bool), weights.values, slots.get("momentum", 0.0)):
        array = np.zeros(weights.shape, dtype=np.asarray(values).dtype)
        array[weights.sources, weights.targets] = values
        found.append(array)
    return Seen(*found)


def batches(rng: np.random.Generator, inputs: int, outputs: int, count: int, rows: int = 16) -> list[Batch]:
    """Return batches of a random function, fixed for all epochs."""
    teacher = rng.standard_normal((inputs, outputs))
    x = rng.standard_normal((count, rows, inputs))
    return [(some, np.sin(some @ teacher) + 0.1 * rng.standard_normal((rows, outputs))) for some in x]


@dataclass
class Setting:
    """What is trained and how. Edges of each layer: how many random ones, or a mask."""

    widths: tuple[int, ...] = (14, 18, 12, 6)
    edges: tuple[int | Array, ...] = (80, 60, 40)
    activation: str = "tanh"
    epochs: int = 5
    steps: int = 8
    rate: float = 0.1
    keep: float = 0.9
    decay: float = 5e-3


def agree(
    setting: Setting, recipe: topology.Rewirer, method: Method, seed: int | np.random.Generator = 0
) -> Iterator[Network]:
    """Train a gbnn model by a recipe, a network by a method; compare after each step, yield the network."""
    rng = np.random.default_rng(0)
    shapes = list(zip(setting.widths[:-1], setting.widths[1:], strict=True))
    masks = [
        graph(rng, shape, some) if isinstance(some, int) else some
        for shape, some in zip(shapes, setting.edges, strict=True)
    ]
    values = [rng.standard_normal(shape) * 0.5 for shape in shapes]
    biases = [0.1 * rng.standard_normal(shape[1]) for shape in shapes]
    network = Network(values, masks, biases, setting.activation)
    made: list[layers.Layer] = []
    for mask, value, bias in zip(masks, values, biases, strict=True):
        if made:
            made.append(layers.Tanh() if setting.activation == "tanh" else layers.Relu())
        made.append(Linear(weights_of(mask, value), bias))
    data = batches(rng, setting.widths[0], setting.widths[-1], setting.steps)
    optimizer = training.sgd(setting.rate, momentum=setting.keep, weight_decay=setting.decay)
    model, loss, epochs = Chain(*made), losses.mse, setting.epochs
    parameters: Any = model.parameters()
    names = [name for name, some in parameters.items() if isinstance(some, Weights)]
    for step in training.train(
        model, data, loss=loss, optimizer=optimizer, rewiring=recipe, epochs=epochs, seed=seed
    ):
        at = step.index % setting.steps
        time = Time(step.index, setting.steps * epochs, step.epoch, epochs, at == setting.steps - 1)
        seen = [seen_of(parameters[name], step.state.slots[name]) for name in names]
        by_weight, by_bias = network.differentiate(*data[at])
        due = method.due(time)
        assert bool(step.changes) == due
        if not (due and method.replaces_update):
            network.update(by_weight, by_bias, setting.rate, setting.keep, setting.decay)
        method.watch(network, by_weight, time)
        if due:
            method.rewire(network, by_weight, time, seen)
        for k, (name, layer) in enumerate(zip(names, seen, strict=True)):
            where = f"step {step.index}, {name}"
            assert (layer.mask == network.masks[k]).all(), where
            close(layer.values, network.weights[k], where)
            close(layer.momentum, network.momentum[k] if setting.keep else 0.0, where)
            close(parameters[name.replace("weights", "bias")], network.biases[k], where)
        yield network


def close(ours: Array, theirs: Any, where: str) -> None:
    """Raise unless two arrays are equal up to rounding."""
    assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9), where


def moved(networks: Iterator[Network]) -> Network:
    """Go through a training and return the network; raise unless each layer's mask has changed often."""
    masks = []
    for network in networks:
        masks.append([mask.tobytes() for mask in network.masks])
    assert all(len(set(of_layer)) > 3 for of_layer in zip(*masks, strict=True))
    return network

"""Recipes whose density changes, step by step against dense masks: GMP, GraNet; and Top-KAST's two sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.dense_reference import (
    Method,
    Network,
    Seen,
    Setting,
    Time,
    agree,
    batches,
    close,
    cosine,
    graph,
    highest,
    lowest,
    seen_of,
    weights_of,
)

from gbnn import layers, losses, topology, training

Array = np.ndarray[Any, Any]


class Gmp(Method):
    """Zhu & Gupta, 2017, over all layers together: edges follow last + (first - last)·(1 - t)³.

    As the recipe says: the model's own density is the first, and numbers of edges are exact, to the nearest.
    """

    def __init__(self, density: float, every: int, begin: float, end: float):
        self.density, self.every, self.begin, self.end = density, every, begin, end
        self.first = 0

    def due(self, time: Time) -> bool:
        # The last pruning is the first multiple of `every` at or after the end.
        after = time.step >= self.end * time.total + self.every
        return time.step % self.every == 0 and max(1, self.begin * time.total) <= time.step and not after

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        now = sum(int(mask.sum()) for mask in network.masks)
        self.first = self.first or now
        last = self.density * sum(mask.size for mask in network.masks)
        t = (time.step / time.total - self.begin) / (self.end - self.begin)
        goal = round(last + (self.first - last) * (1 - min(t, 1)) ** 3)
        size = np.concatenate([np.abs(w).ravel() for w in network.weights])
        mask = np.concatenate([m.ravel() for m in network.masks])
        kept = np.split(highest(size, mask, goal), np.cumsum([m.size for m in network.masks])[:-1])
        for k, some in enumerate(kept):
            left = some.reshape(network.masks[k].shape)
            network.move(k, left, np.zeros_like(left))


FULL = (np.ones((14, 18), dtype=bool), np.ones((18, 12), dtype=bool), np.ones((12, 6), dtype=bool))


@pytest.mark.parametrize("edges", [FULL, (200, 150, 60)], ids=["dense", "sparse"])
@pytest.mark.parametrize(("begin", "end"), [(0.0, 0.75), (0.2, 0.61)])
def test_gmp(edges: Any, begin: float, end: float) -> None:
    recipe = topology.gmp(0.1, 4, begin=begin, end=end)
    *_, network = agree(Setting(edges=edges), recipe, Gmp(0.1, 4, begin, end))
    assert sum(int(mask.sum()) for mask in network.masks) == round(0.1 * (14 * 18 + 18 * 12 + 12 * 6))


class GraNet(Gmp):
    """Liu et al., 2021: prune as GMP, then in each layer exchange a share by |w| and |g|.

    An edge dropped and grown again at once keeps its weight, as in the authors' code. Otherwise than there,
    the share is rounded down and falls to 0 at the end of pruning, and exchange ends there, too.
    """

    def __init__(self, density: float, every: int, end: float, share: float):
        super().__init__(density, every, 0.0, end)
        self.share = share
        self.again = 0

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        super().rewire(network, gradients, time, seen)
        share = cosine(self.share, 0.0, time.step, self.end * time.total)
        for k, mask in enumerate(network.masks):
            gone = lowest(np.abs(network.weights[k]), mask, int(share * mask.sum()))
            grown = highest(np.abs(gradients[k]), ~mask | gone, gone.sum())
            network.move(k, mask & ~gone, grown)
            self.again += int((gone & grown).sum())


@pytest.mark.parametrize("edges", [FULL, (200, 150, 60)], ids=["dense", "sparse"])
def test_granet(edges: Any) -> None:
    method = GraNet(0.1, 4, 0.75, 0.5)
    *_, network = agree(Setting(edges=edges), topology.granet(0.1, 4), method)
    assert sum(int(mask.sum()) for mask in network.masks) == round(0.1 * (14 * 18 + 18 * 12 + 12 * 6))
    assert method.again > 0


class TopKast:
    """Jayakumar et al., 2020: the forward set A holds the strongest weights of the backward set B.

    Only A is used; all of B is trained, with the exploration loss λ/2·(Σ_A w² + Σ_{B-A} w²/D). As the recipe
    says: the rest of all weights is not kept; instead the weakest share of B - A is drawn anew.
    What has just come out of A may be among it.
    """

    def __init__(self, network: Network, reserve: Array, values: Array, penalty: float):
        self.network, self.forward, self.penalty = network, network.masks[0].copy(), penalty
        self.reserve = reserve
        self.values = np.where(self.forward, network.weights[0], np.where(reserve, values, 0.0))
        self.momentum = np.zeros_like(self.values)
        self.fell = self.fell_out = 0

    def step(self, x: Array, target: Array, rate: float, keep: float, decay: float) -> None:
        """Update B: A by the gradient through it, the others by what their gradient would be."""
        by_weight, by_bias = self.network.differentiate(x, target)
        by_weight[0] += self.penalty * self.values / np.where(self.reserve, self.forward.mean(), 1.0)
        step = by_weight[0] + decay * self.values
        self.momentum = np.where(self.forward | self.reserve, keep * self.momentum + step, 0.0)
        self.values = self.values - rate * self.momentum
        self.network.update(by_weight, by_bias, rate, keep, decay)
        self.network.weights[0] = np.where(self.forward, self.values, 0.0)

    def exchange(self, share: float, seen: Seen) -> None:
        """Choose A anew within B, and draw the weakest share of the others anew."""
        both, size = self.forward | self.reserve, np.abs(self.values)
        forward = highest(size, both, self.forward.sum())
        self.fell += int((self.forward & ~forward).sum())
        reserve = both & ~forward
        weakest = lowest(size, reserve, int(share * reserve.sum()))
        self.fell_out += int((weakest & self.forward).sum())
        fresh = seen.mask & ~reserve
        assert fresh.sum() == weakest.sum()
        assert not (fresh & both).any()
        self.forward, self.reserve = forward, (reserve & ~weakest) | fresh
        stays = both & ~weakest
        self.values, self.momentum = np.where(stays, self.values, 0.0), np.where(stays, self.momentum, 0.0)
        self.network.masks[0] = forward
        self.network.weights[0] = np.where(forward, self.values, 0.0)
        self.network.momentum[0] = np.where(forward, self.momentum, 0.0)


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("penalty", [0.0, 0.05])
def test_top_kast(share: float, penalty: float) -> None:
    rng, (rate, keep, decay) = np.random.default_rng(1), (0.1, 0.9, 5e-3)
    mask, out = graph(rng, (14, 18), 80), graph(rng, (18, 6), 60)
    reserve = ~mask & graph(rng, (14, 18), 60)
    values, last = rng.standard_normal((14, 18)) * 0.5, rng.standard_normal((18, 6)) * 0.5
    biases = [np.zeros(18), np.zeros(6)]
    first = layers.ReserveLinear(weights_of(mask, values), weights_of(reserve, values), biases[0], penalty)
    second = layers.Linear(weights_of(out, last), biases[1])
    model = layers.Chain(first, layers.Tanh(), second)
    network = Network([values, last], [mask, out], biases, "tanh")
    method = TopKast(network, reserve, values, penalty)
    data, epochs, every = batches(rng, 14, 6, 8), 5, 4
    recipe = topology.top_kast(every, share)
    optimizer = training.sgd(rate, momentum=keep, weight_decay=decay)
    for step in training.train(
        model, data, loss=losses.mse, optimizer=optimizer, rewiring=recipe, epochs=epochs
    ):
        method.step(*data[step.index % len(data)], rate, keep, decay)
        beside = seen_of(first.reserve, step.state.slots["0.reserve"])
        if step.index and step.index % every == 0:
            method.exchange(share, beside)
        used = seen_of(first.weights, step.state.slots["0.weights"])
        for name, seen, present in (("forward", used, method.forward), ("reserve", beside, method.reserve)):
            where = f"step {step.index}, {name}"
            assert (seen.mask == present).all(), where
            close(seen.values, np.where(present, method.values, 0.0), where)
            close(seen.momentum, np.where(present, method.momentum, 0.0), where)
        close(seen_of(second.weights, {}).values, network.weights[1], "the last layer")
    assert method.fell > 10
    assert (method.fell_out > 0) == (share > 0)

"""Recipes that grow by gradient, step by step against dense masks.

RigL, SNFS, sparse momentum, ITOP, GSE, SRigL.
"""

from __future__ import annotations

import math
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
    cosine,
    highest,
    lowest,
    moved,
    split,
)

from gbnn import topology
from gbnn.topology.grow import candidates

Array = np.ndarray[Any, Any]


class Rigl(Method):
    """Evci et al., 2020: drop ⌊f·n⌋ of smallest |w|, grow as many by |g| among all not kept.

    An edge dropped and grown at once keeps weight and momentum. That step's update is left out. As the recipe
    says: no noise on |w|, and nothing at step 0 (the authors' code rewires there, too).
    """

    replaces_update = True

    def __init__(self, every: int, share: float, until: float, output: bool = True):
        self.every, self.share, self.until, self.output = every, share, until, output
        self.again = 0

    def due(self, time: Time) -> bool:
        return 0 < time.step < self.until * time.total and time.step % self.every == 0

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        share = cosine(self.share, 0.0, time.step, self.until * time.total)
        for k, g in list(enumerate(self.scores(gradients)))[: len(gradients) - (not self.output)]:
            mask = network.masks[k]
            gone = lowest(np.abs(network.weights[k]), mask, int(share * mask.sum()))
            grown = highest(np.abs(g), ~mask | gone, gone.sum())
            self.again += int((grown & gone).sum())
            network.move(k, mask & ~gone, grown)

    def scores(self, gradients: list[Array]) -> list[Array]:
        """Return what edges grow by: the gradients of this batch."""
        return gradients


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("output", [True, False])
def test_rigl(activation: str, output: bool) -> None:
    method = Rigl(3, 0.5, 0.75, output)
    recipe = topology.rigl(3, 0.5, rewire_output=output)
    for _ in agree(Setting(activation=activation), recipe, method):
        pass
    assert method.again > 0


def test_rigl_in_nearly_full_layers() -> None:
    method = Rigl(3, 0.6, 0.75)
    moved(agree(Setting(edges=(240, 215, 60)), topology.rigl(3, 0.6), method))
    assert method.again > 100


class Snfs(Rigl):
    """As RigL's authors compare with it: RigL by the running mean gradient, which no rewiring resets.

    The recipe leaves the update out as RigL does; the authors' SparseMomentumOptimizer takes it and then
    rewires.
    """

    replaces_update = False

    def __init__(self, every: int, share: float, until: float, decay: float, steps: int):
        super().__init__(every, share, until)
        self.decay, self.steps = decay, steps
        self.past: list[list[Array]] = []

    def watch(self, network: Network, gradients: list[Array], time: Time) -> None:
        self.past.append(gradients)

    def scores(self, gradients: list[Array]) -> list[Array]:
        """Return the running means: the mean over time, each step of weight decay^age."""
        mean = [np.zeros_like(g) for g in gradients]
        for some in self.past[-self.steps :]:
            mean = [self.decay * m + (1 - self.decay) * g for m, g in zip(mean, some, strict=True)]
        return mean


@pytest.mark.parametrize("steps", [4, 16, 1000])
def test_snfs(steps: int) -> None:
    """Of the last 16 steps, as the recipe says, or of all steps, as in the authors' code (1000)."""
    method = Snfs(3, 0.5, 0.75, 0.9, steps)
    moved(agree(Setting(), topology.snfs(3, 0.5, decay=0.9, steps=min(steps, 100)), method))
    assert method.again > 0


class SparseMomentum(Method):
    """Dettmers & Zettlemoyer, 2019: what is dropped is divided by mean |momentum| and grown by |momentum|.

    The authors drop ⌈p·n⌉ by |w| in each layer (no more than is empty, where little is and much will grow)
    and fill no layer beyond 99 % of its room: what it gets less is spread evenly, again and again. As the
    recipe says: the total is exact, and new edges begin with momentum 0. The momentum of an absent edge is
    that of its gradients since training began; the authors set it, at each rewiring, to the mean of those of
    present edges. For an edge just dropped it is that of its gradients, too, without weight decay.
    """

    def __init__(self, share: float, low: float, keep: float):
        self.share, self.low, self.keep = share, low, keep
        self.absent: list[Array] = []
        self.guarded = self.full = 0

    def due(self, time: Time) -> bool:
        return time.last_in_epoch and time.epoch < time.epochs - 1

    def watch(self, network: Network, gradients: list[Array], time: Time) -> None:
        past = self.absent or [np.zeros_like(g) for g in gradients]
        self.absent = [self.keep * m + g for m, g in zip(past, gradients, strict=True)]

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        p = cosine(self.share, self.low, time.step, time.total)
        masks, count = [mask.copy() for mask in network.masks], len(network.masks)
        means = [float(np.abs(m[mask]).mean()) for m, mask in zip(network.momentum, masks, strict=True)]
        gone = []
        for k, mask in enumerate(masks):
            empty, growing = 1 - mask.mean(), means[k] / sum(means) > 1 / count
            self.guarded += bool(growing and empty < 0.2 and empty < p)
            rate = min(p, empty) if growing and empty < 0.2 else p
            removed = math.ceil(rate * mask.sum() - 1e-9)
            gone.append(lowest(np.abs(network.weights[k]), mask, removed))
        total = sum(int(some.sum()) for some in gone)
        most = [0.99 * int((~mask | some).sum()) for mask, some in zip(masks, gone, strict=True)]
        wishes = [total * mean / sum(means) for mean in means]
        for _ in range(200):
            left = sum(max(0.0, wish - room) for wish, room in zip(wishes, most, strict=True))
            self.full += left > 1e-9
            wishes = [min(wish, room) + left / count for wish, room in zip(wishes, most, strict=True)]
        for k, grows in enumerate(split(total, wishes)):
            kept = masks[k] & ~gone[k]
            network.move(k, kept, highest(np.abs(self.absent[k]), ~kept, grows))


@pytest.mark.parametrize(
    ("outputs", "edges", "fills"),
    [(40, (80, 60, 40), False), (6, (80, 60, 40), True), (16, (200, 150, 100), True)],
)
def test_sparse_momentum(outputs: int, edges: tuple[int, ...], fills: bool) -> None:
    """The output layer gets most, until the guard and the 99 % hold it."""
    setting = Setting(widths=(14, 18, 12, outputs), edges=edges, epochs=8, steps=5)
    method = SparseMomentum(0.5, 0.005, 0.9)
    moved(agree(setting, topology.sparse_momentum(steps=100), method))
    assert (method.full > 0, method.guarded > 0) == (fills, fills)


class Itop(Method):
    """Liu et al., 2021, RigL-ITOP: rewire after the update, to the end of training; regrown edges stay."""

    def __init__(self, every: int, share: float):
        self.every, self.share = every, share

    def due(self, time: Time) -> bool:
        return time.step > 0 and time.step % self.every == 0

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        share = cosine(self.share, 0.0, time.step, time.total)
        for k, mask in enumerate(network.masks):
            gone = lowest(np.abs(network.weights[k]), mask, int(share * mask.sum()))
            network.move(k, mask & ~gone, highest(np.abs(gradients[k]), ~mask | gone, gone.sum()))


def test_itop() -> None:
    moved(agree(Setting(), topology.itop(topology.gradient, every=5), Itop(5, 0.5)))


class Gse(Method):
    """Heddes et al., 2024: grow by |g| among pairs drawn by Σ|x| and Σ|δ|; drop the smallest |w| of before.

    The pairs are gbnn's draw. As `sampled_gradient` says: what they do not yield comes at random (the authors
    grow less then); a layer at least half full looks at all places. Per layer, as in the paper; the authors'
    code takes the largest of all layers together, unless asked.
    """

    def __init__(self, every: int, share: float, until: float, pairs: float):
        self.every, self.share, self.until, self.pairs = every, share, until, pairs
        self.draws: list[tuple[Any, Any, int]] = []
        self.filled = self.best = 0

    def due(self, time: Time) -> bool:
        return 0 < time.step < self.until * time.total and time.step % self.every == 0

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        share = cosine(self.share, 0.0, time.step, self.until * time.total)
        for k, mask in enumerate(network.masks):
            gone = lowest(np.abs(network.weights[k]), mask, int(share * mask.sum()))
            possible = ~mask
            if mask.mean() < 0.5:
                (of_sources, of_targets), (sources, targets), count = self.draws.pop(0)
                x, dy = network.signals[k]
                assert np.allclose(of_sources, np.abs(x).sum(axis=0))
                assert np.allclose(of_targets, np.abs(dy).sum(axis=0))
                assert count == len(sources) == int(self.pairs * mask.sum())
                possible = np.zeros_like(mask)
                possible[sources, targets] = True
                possible &= ~mask
            grown = highest(np.abs(gradients[k]), possible, gone.sum())
            self.best += int(grown.sum() < possible.sum())
            missing = gone.sum() - grown.sum()
            self.filled += int(missing)
            if missing:
                others = seen[k].mask & ~(mask & ~gone) & ~grown
                assert others.sum() == missing
                assert not (others & mask).any()
                grown |= others
            network.move(k, mask & ~gone, grown)
        assert not self.draws


@pytest.mark.parametrize("pairs", [0.1, 1.0, 3.0])
def test_gse(pairs: float, monkeypatch: pytest.MonkeyPatch) -> None:
    method, draw = Gse(3, 0.4, 0.75, pairs), candidates.drawn

    def noted(weights: Any, shape: Any, count: int, rng: np.random.Generator) -> Any:
        result = draw(weights, shape, count, rng)
        method.draws.append((weights, result, count))
        return result

    monkeypatch.setattr(candidates, "drawn", noted)
    moved(agree(Setting(edges=(80, 60, 40)), topology.gse(3, 0.4, candidates=pairs), method))
    assert (method.filled > 0) == (pairs == 0.1)
    assert method.best > 0


class Srigl(Method):
    """Lasby et al., 2024: RigL, but neurons that few salient edges enter are ablated, others share evenly.

    As `ConstantFanIn` says: salient are the largest |w| and as many absent edges as may go, of largest |g|
    (the authors' code ranks |g| over all places, kept ones too); k is the fan-in before any
    ablation. The kept edges of ablated neurons go (theirs: the next largest |w|
    of other neurons stay instead, before |g| decides). So many neurons stay, those most salient edges enter,
    that the edges find room (theirs: one more, and those that as many enter).
    """

    replaces_update = True

    def __init__(self, every: int, share: float, until: float, ablation: float):
        self.every, self.share, self.until, self.ablation = every, share, until, ablation
        self.planned: list[int] = []
        self.neurons: list[int] = []
        self.ablated = self.spared = self.trimmed = 0

    def due(self, time: Time) -> bool:
        return 0 < time.step < self.until * time.total and time.step % self.every == 0

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        self.planned = self.planned or [int(mask.sum()) for mask in network.masks]
        self.neurons = self.neurons or [int(mask.any(axis=0).sum()) for mask in network.masks]
        share = cosine(self.share, 0.0, time.step, self.until * time.total)
        for k, mask in enumerate(network.masks):
            size, slope = np.abs(network.weights[k]), np.abs(gradients[k])
            there = np.flatnonzero(mask.any(axis=0))
            prune = int(share * mask.sum())
            kept = highest(size, mask, mask.sum() - prune)
            salient = (kept | highest(slope, ~kept, prune)).sum(axis=0)
            if k == len(network.masks) - 1:
                active = [j for j in range(mask.shape[1]) if j in there or salient[j]]
            else:
                enough = max(1, int(self.ablation * (self.planned[k] // self.neurons[k])))
                active = [j for j in range(mask.shape[1]) if salient[j] >= enough]
            least = math.ceil(self.planned[k] / mask.shape[0])
            if len(active) < least:
                self.spared += 1
                active = sorted(np.argsort(-salient, kind="stable")[:least])
            self.ablated += mask.shape[1] - len(active)
            fan_in = min(mask.shape[0], self.planned[k] // len(active))
            stay, grown = np.zeros_like(mask), np.zeros_like(mask)
            for j in active:
                stay[:, j] = highest(size[:, j], kept[:, j], fan_in)
                self.trimmed += int(stay[:, j].sum() < kept[:, j].sum())
                grown[:, j] = highest(slope[:, j], ~stay[:, j], fan_in - stay[:, j].sum())
            network.move(k, stay, grown)


def constant_fan_in(rng: np.random.Generator, shape: tuple[int, int], fan_in: int) -> Array:
    """Return a mask with as many edges into each neuron."""
    return np.argsort(rng.random(shape), axis=0) < fan_in


@pytest.mark.parametrize("ablation", [0.0, 0.6, 0.95])
def test_srigl(ablation: float) -> None:
    rng = np.random.default_rng(5)
    edges = [constant_fan_in(rng, (14, 18), 4), constant_fan_in(rng, (18, 12), 5)]
    method = Srigl(3, 0.5, 0.75, ablation)
    recipe = topology.srigl(3, 0.5, ablation=ablation)
    moved(agree(Setting(edges=(*edges, constant_fan_in(rng, (12, 6), 6))), recipe, method))
    assert method.ablated > 0 or ablation == 0.0
    assert method.spared == 0 or ablation == 0.95


def test_srigl_from_a_random_graph() -> None:
    """Neurons with more edges than they get keep the strongest."""
    method = Srigl(3, 0.3, 0.75, 0.3)
    moved(agree(Setting(), topology.srigl(3, 0.3), method))
    assert method.trimmed > 0

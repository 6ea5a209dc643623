"""Recipes that grow at random, step by step against dense masks: SET, DSR, DEEP-R, MEST, ITOP.

Which edges come is gbnn's draw; how many, where they may be, what goes and every number is checked.
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
    drawn,
    highest,
    lowest,
    moved,
    split,
)

from gbnn import topology

Array = np.ndarray[Any, Any]


class Set(Method):
    """Mocanu et al., 2018: ζ of the positive weights nearest 0 and ζ of the negative ones, every epoch.

    As the recipe says: shares are rounded to the nearest edge (the authors' SciPy code rounds down).
    """

    def __init__(self, share: float, output: bool = True):
        self.share, self.output = share, output

    def due(self, time: Time) -> bool:
        return time.last_in_epoch and time.epoch < time.epochs - 1

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        for k in range(len(network.masks) - (not self.output)):
            mask, w = network.masks[k].copy(), network.weights[k]
            kept = mask.copy()
            for signed in (mask & (w > 0), mask & (w < 0)):
                kept &= ~lowest(np.abs(w), signed, math.floor(self.share * signed.sum() + 0.5))
            grown = drawn(seen[k], kept, mask, mask.sum() - kept.sum())
            network.move(k, kept, grown, keep_regrown=False)
            network.weights[k][grown] = seen[k].values[grown]  # normal numbers
            assert (network.weights[k][grown] != 0).all()


@pytest.mark.parametrize("output", [True, False])
def test_set(output: bool) -> None:
    recipe = topology.set_(0.3, rewire_output=output)
    networks = agree(Setting(epochs=6, steps=6), recipe, Set(0.3, output))
    final = [network.masks[-1].copy() for network in networks]
    assert (len({mask.tobytes() for mask in final}) == 6) == output
    assert output or (final[0] == final[-1]).all()


class Dsr(Method):
    """Mostafa & Wang, 2019: one threshold of all layers, halved and doubled; growth by surviving edges.

    As the recipe says: numbers of edges are exact by largest remainders (the authors round, and give what is
    left to any layer), a layer keeps its strongest edge, and one that is too full for all that it grows takes
    dropped edges again, from 0 (the authors grow what has found no room in other layers).
    """

    def __init__(self, aim: float, threshold: float, every: int):
        self.aim, self.threshold, self.every = aim, threshold, every
        self.history: list[str] = []
        self.again = 0

    def due(self, time: Time) -> bool:
        return time.step > 0 and time.step % self.every == 0

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        before = [mask.copy() for mask in network.masks]
        gone = [m & (np.abs(w) < self.threshold) for m, w in zip(before, network.weights, strict=True)]
        for k, mask in enumerate(before):
            if gone[k].sum() == mask.sum():
                gone[k] &= ~highest(np.abs(network.weights[k]), mask, 1)
        total = sum(int(some.sum()) for some in gone)
        kept = [mask & ~some for mask, some in zip(before, gone, strict=True)]
        counts = split(total, [float(mask.sum()) for mask in kept])
        for k, count in enumerate(counts):
            grown = drawn(seen[k], kept[k], before[k], count)
            self.again += int((grown & before[k]).sum())
            network.move(k, kept[k], grown, keep_regrown=False)
        if total > 1.1 * self.aim:
            self.threshold /= 2
            self.history.append("halved")
        elif total < 0.9 * self.aim:
            self.threshold *= 2
            self.history.append("doubled")


@pytest.mark.parametrize(("aim", "threshold"), [(20, 0.001), (20, 0.5), (20 / 180, 0.05)])
def test_dsr(aim: float, threshold: float) -> None:
    recipe = topology.dsr(aim, topology.every_steps(4, until=1.0), threshold=threshold)
    method = Dsr(20, threshold, 4)
    moved(agree(Setting(), recipe, method))
    assert ("doubled" if threshold == 0.001 else "halved") in method.history
    assert (method.again > 0) == (
        threshold == 0.5
    )  # so many go that some have no other place to come back to


class DeepR(Method):
    """Bellec et al., 2018: θ = s·w is pulled to 0 and shaken; edges of θ < 0 go, others come from 0.

    As `random_walk` says: new edges have a sign of their own at random (in the authors' code each place has
    one for good), and an edge that has just gone is not taken again. The first signs are those of the weights
    after the first update, which is where the edges are first seen (the authors': before it).
    """

    def __init__(self, rng: np.random.Generator, rate: float, l1: float, temperature: float):
        self.rng, self.rate, self.l1, self.temperature = rng, rate, l1, temperature
        self.copy = np.random.default_rng()
        self.copy.bit_generator.state = rng.bit_generator.state
        self.signs: list[Array] = []
        self.flips = 0

    def due(self, time: Time) -> bool:
        return True

    def watch(self, network: Network, gradients: list[Array], time: Time) -> None:
        if not self.signs:
            self.signs = [np.sign(w) for w in network.weights]
        for k, (mask, w) in enumerate(zip(network.masks, network.weights, strict=True)):
            new = mask & (self.signs[k] == 0)
            self.signs[k][new] = self.copy.choice(np.array([-1, 1], dtype=np.int8), new.sum())
            shaken = math.sqrt(2 * self.rate * self.temperature) * self.copy.standard_normal(mask.sum())
            theta = self.signs[k] * w
            theta[mask] += -self.rate * self.l1 + self.signs[k][mask] * shaken
            network.weights[k] = self.signs[k] * theta

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        for k, mask in enumerate(network.masks):
            dormant = mask & (self.signs[k] * network.weights[k] < 0)
            kept = mask & ~dormant
            network.move(k, kept, drawn(seen[k], kept, mask, dormant.sum()), keep_regrown=False)
            self.signs[k][~kept] = 0
            self.flips += int(dormant.sum())
        # What gbnn has drawn for growth came after this step's noise.
        self.copy.bit_generator.state = self.rng.bit_generator.state


@pytest.mark.parametrize("temperature", [None, 0.01])
def test_deep_r(temperature: float | None) -> None:
    rng, rate = np.random.default_rng(3), 0.2
    recipe = topology.deep_r(rate, l1=1e-2, temperature=temperature)
    method = DeepR(rng, rate, 1e-2, rate / 210 if temperature is None else temperature)
    moved(agree(Setting(rate=rate, keep=0.0, decay=0.0), recipe, method, seed=rng))
    assert method.flips > 40


class Mest(Method):
    """Yuan et al., 2021: the lowest |w| + λ·|g| go, others come at random, the share falls by steps.

    EM prunes a share more and grows back; EM&S (soft) prunes to the edges of the start, then grows a share
    more, at the very end none. As for all random growth here, an
    edge just dropped is not taken again (in the authors' code it may be), and rewiring is at the end of an
    epoch (there at the beginning of the next).
    """

    def __init__(self, soft: bool, weight: float, shares: list[tuple[float, float]]):
        self.soft, self.weight, self.shares = soft, weight, shares
        self.start: list[int] = []

    def due(self, time: Time) -> bool:
        return time.last_in_epoch and (self.soft or time.epoch < time.epochs - 1)

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        self.start = self.start or [int(mask.sum()) for mask in network.masks]
        share = [value for begin, value in self.shares if time.step >= begin * time.total][-1]
        for k, mask in enumerate(network.masks):
            score = np.abs(network.weights[k]) + self.weight * np.abs(gradients[k])
            more = int(share * self.start[k])
            gone = lowest(score, mask, int(mask.sum()) - self.start[k] if self.soft else more)
            grown = drawn(seen[k], mask & ~gone, mask, more)
            network.move(k, mask & ~gone, grown, keep_regrown=False)


@pytest.mark.parametrize("soft", [False, True])
def test_mest(soft: bool) -> None:
    setting = Setting(widths=(20, 16, 10), edges=(64, 32), epochs=10, steps=4)
    recipe = topology.mest(soft, gradient_weight=3.0, every=1, fractions=(0.25, 0.125, 0.0), steps=(0.4, 0.7))
    counts = []
    for network in agree(setting, recipe, Mest(soft, 3.0, [(0, 0.25), (0.4, 0.125), (0.7, 0.0)])):
        counts.append([int(mask.sum()) for mask in network.masks])
    assert counts[0] == counts[-1] == [64, 32]
    assert ([80, 40] in counts, [72, 36] in counts) == (soft, soft)


class Itop(Method):
    """Liu et al., 2021, SET-ITOP: a falling share of the smallest |w| goes, others come from 0.

    As the recipe says: numbers are exact, and the cosine ends at 0 (the authors round up, and end at 0.005).
    """

    def __init__(self, share: float, every: int):
        self.share, self.every = share, every

    def due(self, time: Time) -> bool:
        return time.step > 0 and time.step % self.every == 0

    def rewire(self, network: Network, gradients: list[Array], time: Time, seen: list[Seen]) -> None:
        share = cosine(self.share, 0.0, time.step, time.total)
        for k, mask in enumerate(network.masks):
            gone = lowest(np.abs(network.weights[k]), mask, int(share * mask.sum()))
            network.move(k, mask & ~gone, drawn(seen[k], mask & ~gone, mask, gone.sum()))


def test_itop() -> None:
    setting = Setting(activation="relu")
    ever: list[Array] = []
    for network in agree(setting, topology.itop(every=5), Itop(0.5, 5)):
        ever = [a | b for a, b in zip(ever, network.masks, strict=True)] if ever else list(network.masks)
    assert [int(some.sum()) > mask.sum() for some, mask in zip(ever, network.masks, strict=True)] == [
        True
    ] * 3

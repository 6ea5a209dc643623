"""Compiled loops of the Cannistraci-Hebb scores: one row of scores at a time, never a matrix of them.

The algebra is that of `gbnn.topology.grow.hebb_algebra`, S = Φ(A·Aᵀ)·A + A·Φ(Aᵀ·A)ᵀ, with the same bits. The
two SpGEMMs run here row by row into one accumulator that stays in cache, and only scores that beat the worst
chosen so far leave it; GraphBLAS writes each product to memory first (`benchmarks/hebb.py` compares).

All functions release the interpreter's lock: `gbnn.topology.grow.hebb_search` runs one a thread, worker `c`
of `step` taking rows c, c + step, ... They work on sources and targets numbered without gaps.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gbnn.engine import kept_on_disk

__all__ = ["Band", "Bipartite", "count_common", "fill_common", "scan"]

Array = np.ndarray[Any, Any]


_compiled = partial(kept_on_disk, nogil=True, error_model="numpy")


class Bipartite(NamedTuple):
    """A graph by both ends: source i has the targets `targets[out_starts[i]:out_starts[i + 1]]`."""

    out_starts: Array
    targets: Array
    in_starts: Array
    sources: Array


class Band(NamedTuple):
    """The targets `first` up to `first + width`, and how each other target is tied to them.

    Edges of source i into the band are `low[i]` up to `high[i]`. Target a shares sources with the targets
    `first + others[starts[a]:starts[a + 1]]` of the band, and adds `values` to the scores of those.
    """

    first: int
    width: int
    low: Array
    high: Array
    starts: Array
    others: Array
    values: Array


@_compiled
def share(internal, scale, common, degree):  # type: ignore[no-untyped-def]
    """Φ: what a neighbour of the target with `common` of its `degree` links inside the community adds."""
    inside = common + 1.0 if internal else 1.0
    return max(1.0, np.floor(scale * inside / max(degree - common, 1)))


@_compiled
def count_common(graph, first, width, low, high, counts, c, step):  # type: ignore[no-untyped-def]
    """counts[a] = how many targets of the band share a source with target a."""
    seen = np.full(width, -1, dtype=np.int32)
    for a in range(c, graph.in_starts.size - 1, step):
        n = 0
        for p in range(graph.in_starts[a], graph.in_starts[a + 1]):
            s = graph.sources[p]
            for q in range(low[s], high[s]):
                v = np.uint64(graph.targets[q] - first)
                if seen[v] != a:
                    seen[v] = a
                    n += 1
        counts[a] = n


@_compiled
def fill_common(graph, band, internal, scale, c, step):  # type: ignore[no-untyped-def]
    """Fill the band: row a of Φ(Aᵀ·A)ᵀ, restricted to the band's columns."""
    common = np.zeros(band.width, dtype=np.int32)
    for a in range(c, graph.in_starts.size - 1, step):
        end = band.starts[a]
        for p in range(graph.in_starts[a], graph.in_starts[a + 1]):
            s = graph.sources[p]
            for q in range(band.low[s], band.high[s]):
                v = np.uint64(graph.targets[q] - band.first)
                if common[v] == 0:
                    band.others[end] = v
                    end += 1
                common[v] += 1
        degree = graph.in_starts[a + 1] - graph.in_starts[a]
        for p in range(band.starts[a], end):
            v = np.uint64(band.others[p])
            band.values[p] = share(internal, scale, common[v], degree)
            common[v] = 0


@_compiled
def _siblings(graph, i, common, touched):  # type: ignore[no-untyped-def]
    """Row i of A·Aᵀ: `common` gets the entries, `touched` where they are; returns how many."""
    n = 0
    for p in range(graph.out_starts[i], graph.out_starts[i + 1]):
        a = graph.targets[p]
        for q in range(graph.in_starts[a], graph.in_starts[a + 1]):
            j = np.uint64(graph.sources[q])
            if common[j] == 0:
                touched[n] = j
                n += 1
            common[j] += 1
    return n


@_compiled
def _spread(targets, first, begin, end, value, scores):  # type: ignore[no-untyped-def]
    for q in range(begin, end):
        scores[np.uint64(targets[q] - first)] += value


@_compiled
def _gather(others, values, begin, end, scores):  # type: ignore[no-untyped-def]
    for q in range(begin, end):
        scores[np.uint64(others[q])] += values[q]


@_compiled
def _note(indices, first, begin, end, seen, listed, n):  # type: ignore[no-untyped-def]
    """List the band's targets that get a score and are not listed yet; returns how many are."""
    for q in range(begin, end):
        v = np.uint64(indices[q] - first)
        if seen[v] == 0:
            seen[v] = 1
            listed[n] = v
            n += 1
    return n


@_compiled
def _drawn(score, worst, seed, key):  # type: ignore[no-untyped-def]
    """Return score / E, E exponential and fixed by (seed, key); 0 where that is sure to be below `worst`."""
    z = seed + np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)  # SplitMix64 (Steele et al., 2014)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    u = (np.float64(z >> np.uint64(11)) + 0.5) * 2.0**-53
    # E = -log(u) is at least 1 - u: most places are passed over without a logarithm.
    if (1.0 - u) * worst > score * 1.000001:
        return 0.0
    return score / -math.log(u)


@_compiled
def _emit(scores, places, key, sampled, seed, worst, last, found, keys, n):  # type: ignore[no-untyped-def]
    """Write the scores at `places` that beat the worst to the output from place n; returns its new end."""
    for v in places:
        score = scores[v]
        scores[v] = 0.0
        if sampled and score > 0.0:
            score = _drawn(score, worst, seed, key + v)
        if score > worst or (score == worst and key + v < last):
            found[n] = score
            keys[n] = key + v
            n += 1
    return n


@_compiled
def scan(  # type: ignore[no-untyped-def]
    graph, band, internal, scale, sampled, seed, begin, stop, worst, last, found, keys, c, step
):
    """Score sources begin + c, begin + c + step, ... against the band; returns how many places were found.

    `found` and `keys` get score and source·targets + target of each place better than (`worst`, `last`).
    """
    columns = graph.in_starts.size - 1
    scores = np.zeros(band.width)
    seen = np.zeros(band.width, dtype=np.uint8)
    listed = np.empty(band.width, dtype=np.int32)
    common = np.zeros(graph.out_starts.size - 1, dtype=np.int32)
    touched = np.empty(graph.out_starts.size - 1, dtype=np.int32)
    n = 0
    for i in range(begin + c, stop, step):
        siblings = _siblings(graph, i, common, touched)
        work = 0
        for k in range(siblings):
            work += band.high[touched[k]] - band.low[touched[k]]
        for p in range(graph.out_starts[i], graph.out_starts[i + 1]):
            a = graph.targets[p]
            work += band.starts[a + 1] - band.starts[a]
        sparse = 4 * work < band.width  # then the places that get a score are listed, not all looked at
        m = 0
        for p in range(graph.out_starts[i], graph.out_starts[i + 1]):
            a = graph.targets[p]
            _gather(band.others, band.values, band.starts[a], band.starts[a + 1], scores)
            if sparse:
                m = _note(band.others, 0, band.starts[a], band.starts[a + 1], seen, listed, m)
        for k in range(siblings):
            j = touched[k]
            value = share(internal, scale, common[j], graph.out_starts[j + 1] - graph.out_starts[j])
            common[j] = 0
            _spread(graph.targets, band.first, band.low[j], band.high[j], value, scores)
            if sparse:
                m = _note(graph.targets, band.first, band.low[j], band.high[j], seen, listed, m)
        for q in range(band.low[i], band.high[i]):
            scores[graph.targets[q] - band.first] = 0.0  # an edge that is there
        key = i * columns + band.first
        if sparse:
            for k in range(m):
                seen[listed[k]] = 0
            n = _emit(scores, listed[:m], key, sampled, seed, worst, last, found, keys, n)
        else:
            n = _emit(scores, range(band.width), key, sampled, seed, worst, last, found, keys, n)
    return n

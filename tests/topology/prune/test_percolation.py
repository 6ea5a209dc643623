"""Percolation against its definition: drop dead ends until nothing changes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.errors import ArgumentError
from gbnn.sampling import distinct_edges
from gbnn.topology import Site
from gbnn.topology.prune.percolation import percolation
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]
NOTHING = np.empty(0, dtype=np.int64)


def site_of(index: int, sources: Any, targets: Any, shape: tuple[int, int]) -> Site:
    edges, _ = Edges.from_coo(sources, targets, shape)
    weights = Weights(edges, np.ones(edges.nnz))
    return Site(str(index), weights, index=index, follows=str(index - 1) if index else None)


def until_nothing_changes(sites: list[Site], dropped: list[Array]) -> list[list[int]]:
    """The definition, one edge at a time, for sites that are all linked in a row."""
    kept = [
        {
            k: (int(s), int(t))
            for k, (s, t) in enumerate(zip(site.weights.sources, site.weights.targets, strict=True))
            if k not in gone
        }
        for site, gone in zip(sites, dropped, strict=True)
    ]
    changed = True
    while changed:
        changed = False
        for n, edges in enumerate(kept):
            for k, (source, target) in list(edges.items()):
                no_way_in = n > 0 and source not in {t for _, t in kept[n - 1].values()}
                no_way_out = n + 1 < len(kept) and target not in {s for s, _ in kept[n + 1].values()}
                if no_way_in or no_way_out:
                    del edges[k]
                    changed = True
    return [
        sorted(set(range(site.weights.nnz)) - edges.keys()) for site, edges in zip(sites, kept, strict=True)
    ]


@settings(deadline=None)
@given(st.data())
def test_two_sweeps_reach_the_end(data: st.DataObject) -> None:
    widths = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    sites, dropped = [], []
    for index, shape in enumerate(pairwise(widths)):
        nnz = data.draw(st.integers(0, shape[0] * shape[1]))
        sites.append(site_of(index, *distinct_edges(rng, shape, nnz), shape))
        dropped.append(np.sort(rng.permutation(nnz)[: data.draw(st.integers(0, nnz))]))
    wanted = until_nothing_changes(sites, dropped)
    assert [gone.tolist() for gone in percolation(sites, dropped)] == wanted
    backwards = percolation(sites[::-1], dropped[::-1])
    assert [gone.tolist() for gone in backwards[::-1]] == wanted
    assert all(gone.dtype == np.int64 for gone in backwards)


def test_layers_that_are_not_linked_are_left_alone() -> None:
    first, apart = site_of(0, [0], [0], (1, 2)), site_of(2, [1], [0], (2, 1))
    branch = site_of(1, [1], [0], (2, 1))
    branch.follows = None
    for other in (apart, branch):
        assert [g.tolist() for g in percolation([first, other], [NOTHING, NOTHING])] == [[], []]
    after = site_of(1, [1], [0], (2, 1))
    assert [g.tolist() for g in percolation([first, after], [NOTHING, NOTHING])] == [[0], [0]]


def test_far_apart_neurons() -> None:
    wide = 2**60
    first = site_of(0, [3, 7], [2**59, 5], (wide, wide))
    after = site_of(1, [2**59, 6], [9, 9], (wide, wide))
    assert [g.tolist() for g in percolation([first, after], [NOTHING, NOTHING])] == [[1], [0]]


def test_bad_arguments_are_refused() -> None:
    site = site_of(0, [0], [0], (1, 1))
    assert percolation([], []) == []
    with pytest.raises(ArgumentError, match="1 arrays"):
        percolation([site], [])
    with pytest.raises(ArgumentError, match="dropped"):
        percolation([site], [np.array([1])])
    with pytest.raises(ArgumentError, match="names"):
        percolation([site, site], [NOTHING, NOTHING])

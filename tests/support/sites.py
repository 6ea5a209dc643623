"""Layers with edges, as hypothesis draws them, and what is known of each."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from gbnn.edges import Edges
from gbnn.semirings import EdgeGradient
from gbnn.topology import Site
from gbnn.weights import Weights

Array = np.ndarray[Any, Any]

# Few different numbers: ties abound, also between w and -w, and zeros of both signs.
COARSE = [-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0]


def site_of(mask: Any, seed: int = 0, *, coarse: bool = False, index: int = 0, count: int = 1) -> Site:
    """A float64 layer with edges where `mask`, (in, out), is true.

    Values, x and dy of a batch of 3 and two slots are random: floats, or a few numbers that tie.
    """
    present = np.asarray(mask, dtype=bool)
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> Array:
        return rng.choice(COARSE, size=shape) if coarse else rng.standard_normal(shape)

    sources, targets = np.nonzero(present)
    edges, _ = Edges.from_coo(sources, targets, present.shape)
    x, dy = np.asfortranarray(drawn(3, present.shape[0])), np.asfortranarray(drawn(3, present.shape[1]))
    slots = {"momentum": drawn(edges.nnz), "square": drawn(edges.nnz) ** 2}
    return Site(
        f"{index}.weights", Weights(edges, drawn(edges.nnz)), EdgeGradient(x, dy, edges), slots, index, count
    )


def _mask(rng: np.random.Generator, kind: int) -> Array:
    """Which edges exist: none, one, all but one, all, or any."""
    shape = rng.integers(1, 7, size=2)
    places = int(shape.prod())
    nnz = [0, 1, places - 1, places][kind] if kind < 4 else int(rng.integers(places + 1))
    return (rng.permutation(places) < nnz).reshape(shape)


KINDS = st.integers(0, 9)
"""Four kinds of layers at the edge of what there is; any layer is as likely as all of these together."""


@st.composite
def some_sites(draw: st.DrawFn, least: int = 0, most: int = 4) -> list[Site]:
    """The layers of a network, their index and count right."""
    kinds = draw(st.lists(KINDS, min_size=least, max_size=most))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    return [
        site_of(_mask(rng, kind), int(rng.integers(2**16)), coarse=kind % 2 > 0, index=k, count=len(kinds))
        for k, kind in enumerate(kinds)
    ]


def some_site() -> st.SearchStrategy[Site]:
    """One layer."""
    return some_sites(1, 1).map(lambda sites: sites[0])


@st.composite
def partly_dropped(draw: st.DrawFn) -> tuple[list[Site], list[Array], int]:
    """Layers, the positions each drops, and how many edges are to grow in all: also none, and all."""
    places, ways = draw(some_sites()), draw(st.integers(0, 2**16))
    rng, dropped = np.random.default_rng(ways), []
    for site in places:
        nnz = site.weights.nnz
        count = [0, nnz, *rng.integers(nnz + 1, size=2)][rng.integers(4)]
        dropped.append(np.sort(rng.permutation(nnz)[:count]))
    gone = sum(some.size for some in dropped)
    free = sum(site.free for site in places) + gone
    return places, dropped, [0, gone, free, *rng.integers(free + 1, size=3).tolist()][ways % 6]


def dense(site: Site, values: Any) -> Array:
    """One number an edge as an (in, out) array, NaN where there is no edge."""
    result = np.full(site.weights.shape, np.nan)
    result[site.weights.sources, site.weights.targets] = values
    return result

"""`percolation`: drop edges that cannot carry anything from input to output (CHT)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gbnn.edges import check_indices
from gbnn.errors import ArgumentError
from gbnn.topology.site import Site

__all__ = ["percolation"]

Array = np.ndarray[Any, Any]


def percolation(sites: Sequence[Site], dropped: Sequence[Array]) -> list[Array]:
    """Drop also the edges into hidden neurons that keep no way out, and out of those that keep no way in.

    One sweep from the last layer to the first, then one from the first to the last, as in the reference
    implementation of CHT. More sweeps would find nothing: the second drops only edges out of neurons that
    nothing enters, so a neuron that something enters keeps what leaves it.

    Parameters
    ----------
    sites : sequence of Site
        The layers. Two are linked if one follows the other (`Site.follows`): its inputs are the outputs of
        that layer alone. Neurons between layers that are not linked are left alone: the network's inputs and
        outputs, and what borders on a `Dense` layer or on branches (`Residual`, `Parallel`).
    dropped : sequence of ndarray of int64
        Positions of the edges that go already, for each layer.

    Returns
    -------
    list of ndarray of int64
        Positions of the edges that go, for each layer, ascending. It can be all of them, if nothing is left
        that leads from end to end: whoever asks grows them anew.

    Raises
    ------
    ArgumentError, KindError
        If there are not as many arrays as layers, a position is out of range, or two layers have one name.

    Notes
    -----
    Zhang et al., "Epitopological learning and Cannistraci-Hebb network shape intelligence", ICLR 2024. A bias
    counts as nothing here: a neuron that nothing enters is dead, though it may still put out a constant.
    Time and memory are those of sorting the edges.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.prune.percolation import percolation
    >>> from gbnn.weights import Weights
    >>> first = Site("0", Weights.from_coo([0, 0, 1], [0, 1, 1], 1.0, shape=(2, 2)))
    >>> second = Site("1", Weights.from_coo([0, 1], [0, 0], 1.0, shape=(2, 1)), follows="0")
    >>> nothing = np.empty(0, dtype=np.int64)
    >>> percolation([first, second], [nothing, np.array([0])])
    [array([0]), array([0])]
    """
    if len(dropped) != len(sites):
        raise ArgumentError("dropped", f"{len(sites)} arrays, one for each layer", len(dropped))
    kept = []
    for site, gone in zip(sites, dropped, strict=True):
        keep = np.ones(site.weights.nnz, dtype=bool)
        keep[check_indices(f"dropped, {site.name}", gone, site.weights.nnz)] = False
        kept.append(keep)
    pairs = _links(sites)
    for k, after in reversed(pairs):
        way_out = sites[after].weights.sources[kept[after]]
        kept[k] &= np.isin(sites[k].weights.targets, way_out)
    for before, k in pairs:
        way_in = sites[before].weights.targets[kept[before]]
        kept[k] &= np.isin(sites[k].weights.sources, way_in)
    return [np.flatnonzero(~keep) for keep in kept]


def _links(sites: Sequence[Site]) -> list[tuple[int, int]]:
    """Return the pairs of linked layers, the first of the network first."""
    at = {site.name: k for k, site in enumerate(sites)}
    if len(at) < len(sites):
        raise ArgumentError("sites", "layers of different names", [site.name for site in sites])
    pairs = [(at[site.follows], k) for k, site in enumerate(sites) if site.follows in at]
    return sorted(pairs, key=lambda pair: sites[pair[1]].index)

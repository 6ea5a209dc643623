"""Growth by Cannistraci-Hebb link prediction: edges that close many short paths (CHT, CHTs)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbnn.errors import check_int
from gbnn.sampling import distinct_edges
from gbnn.topology.grow.hebb_search import BLOCK, check_flag, strongest_links
from gbnn.topology.grow.places import check_room
from gbnn.topology.grow.rules import Grow
from gbnn.topology.site import Site

__all__ = ["cannistraci_hebb", "hebb"]

Array = np.ndarray[Any, Any]


def cannistraci_hebb(*, internal: bool = False, sampled: bool = False, block: int = BLOCK) -> Grow:
    """Grow edges between neurons of one local community: CH3-L3 or CH2-L3, in node form.

    The local community of an absent edge (u, v) is all neurons on paths u - a - j - v of length 3 through the
    layer's kept edges. Its neurons have i links inside it and e links to others, u and v not counted; the
    score is the sum over them of 1 / (1 + e) (CH3), or of (1 + i) / (1 + e) (CH2). In sparse algebra, A the
    graph: S = Φ(A·Aᵀ)·A + A·Φ(Aᵀ·A)ᵀ (`gbnn.topology.grow.hebb_algebra`).

    Parameters
    ----------
    internal : bool
        Whether links inside the community raise the score: CH2-L3 (True) or CH3-L3 (False).
    sampled : bool
        Whether edges are drawn without replacement with probability in proportion to the score (the soft rule
        of CHTs), or those of largest score taken (CHT), at a tie of smaller (source, target).
    block : int
        Entries of one block of the search. It changes time and memory, never the edges.

    Returns
    -------
    callable
        A grow rule. Edges just dropped compete like any other absent ones. When fewer than `count` have a
        score, the rest are uniform among the other free places, those of dropped edges included.

    Raises
    ------
    KindError, ArgumentError
        If an argument is of no use; from the rule, if `count` is more than the free places.

    Notes
    -----
    CHT (Zhang et al., "Epitopological learning and Cannistraci-Hebb network shape intelligence
    brain-inspired theory for ultra-sparse advantage in deep learning", ICLR 2024) takes the largest CH3-L3,
    CHTs (Zhang et al., "Brain-inspired sparse training enables transformers and LLMs to perform as fully
    connected", 2025) samples by CH2-L3. Both began with the path form, which sums
    1 / sqrt((1 + e_a)·(1 + e_j)) over paths; the node form, of CHTs, has its positive scores at the same
    places, not the same values. As in the reference implementation new edges are meant to start at 0, dropped
    ones that return to keep their weight, and `gbnn.topology.prune.percolation` to come before.

    Exact, without an in x out array: see `gbnn.topology.grow.hebb_search`. Scores are in fixed point, so that
    no order of summation can change one.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.hebb import cannistraci_hebb
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 1, 2], [0, 0, 1, 1], 1.0, shape=(3, 3))
    >>> grow = cannistraci_hebb(internal=True)
    >>> grow(Site("w", w), np.array([], dtype=int), 2, np.random.default_rng(0))
    (array([0, 2]), array([1, 0]))
    """
    check_flag("internal", internal)
    check_flag("sampled", sampled)
    check_int("block", block, 1)

    def grow(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        check_room(site, dropped, count)
        kept = site.kept(dropped)
        seed = int(rng.integers(2**64, dtype=np.uint64)) if sampled else None
        sources, targets, _ = strongest_links(kept, count, internal=internal, seed=seed, block=block)
        missing = count - sources.size
        if missing:
            taken, _, _ = kept.rewired([], sources, targets)
            more_sources, more_targets = distinct_edges(rng, kept.shape, missing, exclude=taken)
            sources, targets = np.append(sources, more_sources), np.append(targets, more_targets)
        return sources, targets

    return grow


def hebb(site: Site, dropped: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Grow the `count` edges of largest CH3-L3 score: `cannistraci_hebb()` (CHT; Zhang et al., ICLR 2024).

    Parameters and result are those of `gbnn.topology.random`.

    Examples
    --------
    >>> import numpy as np
    >>> from gbnn.topology import Site
    >>> from gbnn.topology.grow.hebb import hebb
    >>> from gbnn.weights import Weights
    >>> w = Weights.from_coo([0, 1, 1, 2], [0, 0, 1, 1], 1.0, shape=(3, 3))
    >>> hebb(Site("w", w), np.array([3]), 1, np.random.default_rng(0))
    (array([0]), array([1]))
    """
    return _hebb(site, dropped, count, rng)


_hebb = cannistraci_hebb()

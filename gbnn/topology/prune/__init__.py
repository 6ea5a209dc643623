"""Which edges of a layer go: rules (site, fraction, rng) -> positions."""

from gbnn.topology.prune.limits import SIGN, below, below_neuron, sign_flip
from gbnn.topology.prune.percolation import percolation
from gbnn.topology.prune.rules import (
    Prune,
    at_random,
    count_of,
    lowest,
    lowest_by_sign,
    magnitude,
    sampled,
    set_magnitude,
    smallest,
    union,
)
from gbnn.topology.prune.unused import tried, unused

__all__ = [
    "SIGN",
    "Prune",
    "at_random",
    "below",
    "below_neuron",
    "count_of",
    "lowest",
    "lowest_by_sign",
    "magnitude",
    "percolation",
    "sampled",
    "set_magnitude",
    "sign_flip",
    "smallest",
    "tried",
    "union",
    "unused",
]

"""Which edges a layer gets: rules (site, dropped, count, rng) -> (sources, targets)."""

from gbnn.topology.grow.attachment import preferential
from gbnn.topology.grow.blocks import expanded, gradient_blocks, random_blocks, weakest_blocks
from gbnn.topology.grow.candidates import Distribution, grabo, graest, sampled_gradient
from gbnn.topology.grow.groups import by_chance, by_gradient, in_groups, weakest_in_groups
from gbnn.topology.grow.hebb import cannistraci_hebb, hebb
from gbnn.topology.grow.neighbourhood import local, same_block, small_world
from gbnn.topology.grow.offers import Offer, fan_out, one_after_another, strongest
from gbnn.topology.grow.recent import recent, recent_gradient, remember
from gbnn.topology.grow.rules import Grow, gradient, random
from gbnn.topology.grow.strongest import Search, search_absent, strongest_absent
from gbnn.topology.grow.strongest_into import strongest_into
from gbnn.topology.grow.swaps import swapped

__all__ = [
    "Distribution",
    "Grow",
    "Offer",
    "Search",
    "by_chance",
    "by_gradient",
    "cannistraci_hebb",
    "expanded",
    "fan_out",
    "grabo",
    "gradient",
    "gradient_blocks",
    "graest",
    "hebb",
    "in_groups",
    "local",
    "one_after_another",
    "preferential",
    "random",
    "random_blocks",
    "recent",
    "recent_gradient",
    "remember",
    "same_block",
    "sampled_gradient",
    "search_absent",
    "small_world",
    "strongest",
    "strongest_absent",
    "strongest_into",
    "swapped",
    "weakest_blocks",
    "weakest_in_groups",
]

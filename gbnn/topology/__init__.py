"""Which edges exist: first graphs, allocation, and rewiring as prune x grow x when x fraction x allocate."""

from gbnn.topology import allocate, at_init, candidates, prune, rates, recipes, redistribute, scores, wire
from gbnn.topology.attachment import preferential
from gbnn.topology.blocks import gradient_blocks, random_blocks, weakest_blocks
from gbnn.topology.candidates import grabo, graest, sampled_gradient
from gbnn.topology.clock import Clock, When, always, doubling, every_epoch, every_steps, never, once
from gbnn.topology.exchange import Exchange
from gbnn.topology.fan_in import ConstantFanIn, strongest_into
from gbnn.topology.goals import Goal, from_start, relative, to_density
from gbnn.topology.groups import in_groups, weakest_in_groups
from gbnn.topology.grow import Grow, gradient, random
from gbnn.topology.hebb import cannistraci_hebb, hebb
from gbnn.topology.langevin import random_walk
from gbnn.topology.limits import sign_flip
from gbnn.topology.neighbourhood import local, same_block, small_world
from gbnn.topology.percolation import percolation
from gbnn.topology.prune import Prune, lowest, magnitude, set_magnitude
from gbnn.topology.rates import equal
from gbnn.topology.recent import recent, recent_gradient, remember
from gbnn.topology.recipes import *  # noqa: F403
from gbnn.topology.redistribute import same
from gbnn.topology.rewired import Rewired, explored
from gbnn.topology.rewiring import Rewirer, Rewiring, in_turn
from gbnn.topology.schedules import (
    Fraction,
    constant,
    cosine,
    cubic,
    inverse_power,
    linear,
    piecewise,
    sigmoid,
)
from gbnn.topology.site import Memory, Site, sites
from gbnn.topology.strongest import search_absent, strongest_absent
from gbnn.topology.swaps import swapped

__all__ = [
    *recipes.__all__,
    "Clock",
    "ConstantFanIn",
    "Exchange",
    "Fraction",
    "Goal",
    "Grow",
    "Memory",
    "Prune",
    "Rewired",
    "explored",
    "Rewirer",
    "Rewiring",
    "Site",
    "When",
    "allocate",
    "always",
    "at_init",
    "candidates",
    "cannistraci_hebb",
    "constant",
    "cosine",
    "cubic",
    "doubling",
    "equal",
    "every_epoch",
    "every_steps",
    "from_start",
    "grabo",
    "gradient",
    "gradient_blocks",
    "graest",
    "hebb",
    "in_groups",
    "in_turn",
    "inverse_power",
    "linear",
    "local",
    "lowest",
    "magnitude",
    "never",
    "once",
    "percolation",
    "piecewise",
    "preferential",
    "prune",
    "random",
    "random_blocks",
    "random_walk",
    "rates",
    "recent",
    "recent_gradient",
    "recipes",
    "redistribute",
    "relative",
    "remember",
    "same",
    "same_block",
    "sampled_gradient",
    "scores",
    "search_absent",
    "set_magnitude",
    "sigmoid",
    "sign_flip",
    "sites",
    "small_world",
    "strongest_absent",
    "strongest_into",
    "swapped",
    "to_density",
    "weakest_blocks",
    "weakest_in_groups",
    "wire",
]

"""Which edges exist: first graphs, allocation, and rewiring as prune x grow x when x fraction x allocate."""

from gbnn.topology import allocate, at_init, grow, prune, rates, recipes, redistribute, scores, wire
from gbnn.topology.clock import Clock, When, always, doubling, every_epoch, every_steps, never, once
from gbnn.topology.exchange import Exchange
from gbnn.topology.fan_in import ConstantFanIn
from gbnn.topology.goals import Goal, from_start, relative, to_density
from gbnn.topology.grow.attachment import preferential
from gbnn.topology.grow.blocks import gradient_blocks, random_blocks, weakest_blocks
from gbnn.topology.grow.candidates import grabo, graest, sampled_gradient
from gbnn.topology.grow.groups import in_groups, weakest_in_groups
from gbnn.topology.grow.hebb import cannistraci_hebb, hebb
from gbnn.topology.grow.neighbourhood import local, same_block, small_world
from gbnn.topology.grow.recent import recent, recent_gradient, remember
from gbnn.topology.grow.rules import Grow, gradient, random
from gbnn.topology.grow.strongest import search_absent, strongest_absent
from gbnn.topology.grow.strongest_into import strongest_into
from gbnn.topology.grow.swaps import swapped
from gbnn.topology.in_turn import InTurn, Rewirer, in_turn
from gbnn.topology.langevin import random_walk
from gbnn.topology.on_demand import OnDemand
from gbnn.topology.prune.limits import sign_flip
from gbnn.topology.prune.percolation import percolation
from gbnn.topology.prune.rules import Prune, lowest, magnitude, set_magnitude
from gbnn.topology.rates import equal
from gbnn.topology.recipes import *  # noqa: F403
from gbnn.topology.redistribute import same
from gbnn.topology.rewired import Rewired, explored
from gbnn.topology.rewiring import Rewiring
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
from gbnn.topology.seen import count_seen, seen
from gbnn.topology.site import Memory, Site, sites
from gbnn.topology.use import track_use

__all__ = [
    *recipes.__all__,
    "Clock",
    "ConstantFanIn",
    "Exchange",
    "Fraction",
    "Goal",
    "InTurn",
    "Grow",
    "Memory",
    "OnDemand",
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
    "grow",
    "cannistraci_hebb",
    "constant",
    "count_seen",
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
    "seen",
    "set_magnitude",
    "sigmoid",
    "sign_flip",
    "sites",
    "small_world",
    "strongest_absent",
    "strongest_into",
    "swapped",
    "to_density",
    "track_use",
    "weakest_blocks",
    "weakest_in_groups",
    "wire",
]

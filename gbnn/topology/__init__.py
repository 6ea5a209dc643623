"""Which edges exist: first graphs, allocation, and rewiring as prune x grow x when x fraction x allocate."""

from gbnn.topology import allocate, at_init, candidates, prune, rates, recipes, redistribute, scores, wire
from gbnn.topology.clock import Clock, When, always, doubling, every_epoch, every_steps, never, once
from gbnn.topology.exchange import Exchange
from gbnn.topology.fan_in import ConstantFanIn, strongest_into
from gbnn.topology.goals import Goal, from_start, relative, to_density
from gbnn.topology.grow import Grow, gradient, random
from gbnn.topology.langevin import random_walk
from gbnn.topology.limits import sign_flip
from gbnn.topology.prune import Prune, lowest, magnitude, set_magnitude
from gbnn.topology.rates import equal
from gbnn.topology.recent import recent, recent_gradient, remember
from gbnn.topology.recipes import *  # noqa: F403
from gbnn.topology.redistribute import same
from gbnn.topology.rewired import Rewired
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
from gbnn.topology.strongest import strongest_absent

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
    "Rewirer",
    "Rewiring",
    "Site",
    "When",
    "allocate",
    "always",
    "at_init",
    "candidates",
    "constant",
    "cosine",
    "cubic",
    "doubling",
    "equal",
    "every_epoch",
    "every_steps",
    "from_start",
    "gradient",
    "in_turn",
    "inverse_power",
    "linear",
    "lowest",
    "magnitude",
    "never",
    "once",
    "piecewise",
    "prune",
    "random",
    "random_walk",
    "rates",
    "recent",
    "recent_gradient",
    "recipes",
    "redistribute",
    "relative",
    "remember",
    "same",
    "scores",
    "set_magnitude",
    "sigmoid",
    "sign_flip",
    "sites",
    "strongest_absent",
    "strongest_into",
    "to_density",
    "wire",
]

"""Which edges exist: allocation, and rewiring as prune x grow x when x fraction x allocate."""

from gbnn.topology import allocate
from gbnn.topology.clock import Clock, When, doubling, every_epoch, every_steps, never, once
from gbnn.topology.grow import Grow, gradient, random, strongest_absent
from gbnn.topology.prune import Prune, magnitude, set_magnitude
from gbnn.topology.rates import equal
from gbnn.topology.recipes import rigl, set_
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
    to_density,
)
from gbnn.topology.site import Memory, Site, sites

__all__ = [
    "Clock",
    "Fraction",
    "Grow",
    "Memory",
    "Prune",
    "Rewired",
    "Rewirer",
    "Rewiring",
    "Site",
    "When",
    "allocate",
    "constant",
    "cosine",
    "cubic",
    "doubling",
    "equal",
    "every_epoch",
    "every_steps",
    "gradient",
    "in_turn",
    "inverse_power",
    "linear",
    "magnitude",
    "never",
    "once",
    "piecewise",
    "random",
    "rigl",
    "same",
    "set_",
    "set_magnitude",
    "sigmoid",
    "sites",
    "strongest_absent",
    "to_density",
]

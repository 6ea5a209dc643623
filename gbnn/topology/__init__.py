"""Which edges exist: allocation, and rewiring as prune x grow x when x fraction x allocate."""

from gbnn.topology import allocate
from gbnn.topology.clock import Clock, Fraction, When, constant, cosine, every_epoch, every_steps
from gbnn.topology.grow import Grow, gradient, random, strongest_absent
from gbnn.topology.prune import Prune, magnitude, set_magnitude
from gbnn.topology.recipes import rigl, set_
from gbnn.topology.rewiring import Rewired, Rewiring, same, sites
from gbnn.topology.site import Site

__all__ = [
    "Clock",
    "Fraction",
    "Grow",
    "Prune",
    "Rewired",
    "Rewiring",
    "Site",
    "When",
    "allocate",
    "constant",
    "cosine",
    "every_epoch",
    "every_steps",
    "gradient",
    "magnitude",
    "random",
    "rigl",
    "same",
    "set_",
    "set_magnitude",
    "sites",
    "strongest_absent",
]

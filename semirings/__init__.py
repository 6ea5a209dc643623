"""Semirings with adjoints: the algebra a layer computes in (`plus_times` is the ordinary network)."""

if __name__ != "gbnn.semirings":
    raise ImportError("this folder is the package gbnn.semirings: import it by that name")

from gbnn.semirings.active_gradient import ActiveGradient, ActiveProbe
from gbnn.semirings.boolean import any_pair, lor_land, plus_pair
from gbnn.semirings.gradients import EdgeGradient, Probe
from gbnn.semirings.log import log_plus
from gbnn.semirings.order import max_min, min_max, plus_min
from gbnn.semirings.real import max_times, min_times, plus_times
from gbnn.semirings.scalars import define
from gbnn.semirings.semiring import Semiring
from gbnn.semirings.touched import TouchedGradient
from gbnn.semirings.tropical import max_plus, min_plus

__all__ = [
    "ActiveGradient",
    "ActiveProbe",
    "EdgeGradient",
    "Probe",
    "Semiring",
    "TouchedGradient",
    "any_pair",
    "define",
    "log_plus",
    "lor_land",
    "max_min",
    "max_plus",
    "max_times",
    "min_max",
    "min_plus",
    "min_times",
    "plus_min",
    "plus_pair",
    "plus_times",
]

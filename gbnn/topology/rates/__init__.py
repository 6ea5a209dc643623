"""How much each layer drops: functions (sites, fraction) -> a fraction for each layer."""

from gbnn.topology.rates.adaptive import adaptive_threshold, momentum_guard, until_settled
from gbnn.topology.rates.fixed import Rates, down_to, equal, given, overall, rising, rounded_up

__all__ = [
    "Rates",
    "adaptive_threshold",
    "down_to",
    "equal",
    "given",
    "momentum_guard",
    "overall",
    "rising",
    "rounded_up",
    "until_settled",
]

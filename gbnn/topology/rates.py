"""How much each layer drops: functions (sites, fraction) -> a fraction for each layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gbnn.topology.site import Site

Rates = Callable[[Sequence[Site], float], list[float]]


def equal(sites: Sequence[Site], fraction: float) -> list[float]:
    """Let every layer drop the same share."""
    return [fraction] * len(sites)

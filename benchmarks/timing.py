"""Medians of alternating runs: both sides of a comparison see the same state of the machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def alternate(sides: dict[str, Callable[[], object]], rounds: int = 15) -> dict[str, float]:
    """Run every side once a round, in turn, and return each one's median in seconds.

    One unmeasured round comes first, for compilation and caches.
    """
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, run in sides.items():
            start = time.perf_counter()
            run()
            if turn:
                taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}

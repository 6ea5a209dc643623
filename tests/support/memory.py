"""How much memory something takes."""

from __future__ import annotations

import gc
import tracemalloc


def peak_while(function):
    """Bytes at most allocated above the level before, by NumPy and GraphBLAS alike; what it returned."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = function()
        return tracemalloc.get_traced_memory()[1] - before, result
    finally:
        tracemalloc.stop()

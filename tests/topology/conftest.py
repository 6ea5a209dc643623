"""What all tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import pytest


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny networks: where other work keeps the cores busy, waiting for a second thread takes far longer."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)

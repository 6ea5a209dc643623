"""Settings of the engines that compute, and which GraphBLAS kernel an operation ran (see `gbnn.storage`)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import graphblas as gb
from numba import njit

from gbnn.errors import check_int

__all__ = ["KernelReport", "kept_on_disk", "kernel_report", "set_threads", "threads"]


def kept_on_disk(function: Callable[..., Any], **options: Any) -> Any:
    """Compile by numba, and keep the result for later processes where there is a folder to keep it in.

    Parameters
    ----------
    function : callable
    **options
        Those of `numba.njit`.

    Examples
    --------
    >>> from gbnn.engine import kept_on_disk
    >>> type(kept_on_disk(lambda x: x + 1, nogil=True)).__name__
    'CPUDispatcher'
    """
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # numba's "no locator available": installation and home are both read-only
        return njit(**options)(function)


def threads() -> int:
    """Return the number of threads GraphBLAS uses.

    Examples
    --------
    >>> from gbnn import storage
    >>> storage.threads() >= 1
    True
    """
    return int(gb.ss.config["nthreads"])


def set_threads(count: int) -> None:
    """Use `count` threads in GraphBLAS and in compiled kernels, in this process.

    Parameters
    ----------
    count : int
        From 1 to the number the machine gave numba at start (`numba.config.NUMBA_NUM_THREADS`).

    Raises
    ------
    ArgumentError
        If `count` is outside that range.

    Examples
    --------
    >>> from gbnn import storage
    >>> before = storage.threads()
    >>> storage.set_threads(1)
    >>> storage.threads()
    1
    >>> storage.set_threads(before)
    """
    import numba

    count = check_int("threads", count, 1, int(vars(numba.config)["NUMBA_NUM_THREADS"]))
    gb.ss.config["nthreads"] = count
    numba.set_num_threads(count)


class KernelReport:
    """What GraphBLAS said about the operations it ran: filled when the `kernel_report` block ends."""

    text: str = ""

    @property
    def kernels(self) -> list[str]:
        """The kernel of each matrix product in order: ``["saxpy5"]``; "other" for the slower general ones."""
        products = re.findall(r"GrB_(?:mxm|mxv|vxm)(.*?)sec \]", self.text, re.DOTALL)
        # A kernel may be tried and give up: "(saxpy5: F += F*S) (punt)".
        done = [re.sub(r"\([^()]*\) \(punt\)", "", product) for product in products]
        names = [re.search(r"saxpy[0-9]|dot[0-9]|rowscale|colscale", product) for product in done]
        return [name[0] if name else "other" for name in names]

    @property
    def in_place(self) -> bool:
        """Whether every product wrote into the matrix that was there."""
        return self.text.count("GrB_mxm") == self.text.count("(C in place)") > 0


@contextlib.contextmanager
def kernel_report() -> Iterator[KernelReport]:
    """Record which GraphBLAS kernels run inside the block (for tests: it redirects the process's stdout).

    Examples
    --------
    >>> import numpy as np
    >>> from graphblas import monoid, semiring
    >>> from gbnn import storage
    >>> x = storage.lend_full(np.asfortranarray(np.ones((2, 3), dtype=np.float32)))
    >>> c, s, r = (np.array(a, dtype=np.int64) for a in ([1], [0, 2], [0, 2]))
    >>> w = storage.lend_columns(c, s, r, np.array([1.0, 2.0], dtype=np.float32), (3, 4))
    >>> out = storage.Output(2, 4, np.float32)
    >>> with storage.kernel_report() as report:
    ...     out.matrix(monoid.plus) << semiring.plus_times(x @ w)
    >>> report.kernels, report.in_place
    (['saxpy5'], True)
    """
    report = KernelReport()
    libc = ctypes.CDLL(None)
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        libc.fflush(None)
        saved = os.dup(1)
        before = bool(gb.ss.config["burble"])
        try:
            os.dup2(file.fileno(), 1)
            gb.ss.config["burble"] = True
            yield report
        finally:
            gb.ss.config["burble"] = before
            libc.fflush(None)
            os.dup2(saved, 1)
            os.close(saved)
            file.seek(0)
            report.text = file.read().decode(errors="replace")

"""The same work on many blocks, by threads or processes: in order, and never far ahead of who consumes it."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

from gbnn.errors import ArgumentError

__all__ = ["in_order"]


def in_order(
    work: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], workers: int, processes: bool
) -> Iterator[Any]:
    """Yield ``work(*job)`` for each job, in the order of the jobs, whoever has done it.

    At most three jobs a worker are taken ahead of what was yielded, so memory does not grow with the number
    of jobs. With one worker everything happens here.

    Parameters
    ----------
    work : callable
        For processes, a function or a method that can be pickled.
    jobs : iterable of tuples
    workers : int
    processes : bool
        Processes by spawn: after a GraphBLAS product has run, a fork would hang.

    Raises
    ------
    ArgumentError
        If a process cannot be started, or dies. What `work` raises comes through.
    """
    if workers == 1:
        for job in jobs:
            yield work(*job)
        return
    executor: Executor
    if processes:
        executor = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    else:
        executor = ThreadPoolExecutor(workers)
    waiting: deque[Future[Any]] = deque()
    try:
        for job in jobs:
            waiting.append(executor.submit(work, *job))
            if len(waiting) >= 3 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenExecutor as error:
        wanted = "processes that can start (the main module guarded by if __name__ == '__main__') and live"
        raise ArgumentError("workers", wanted, error) from None
    finally:  # also where the consumer stops early, or a job fails
        executor.shutdown(cancel_futures=True)

"""Work in pieces on any executor of `concurrent.futures`: processes, Dask, MPI."""

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any, Protocol

from ._errors import Error, UsageError
from ._progress import shown

# A chunk should take this long: what the executor costs is then a few thousandths of it.
CHUNK_SECONDS = 2.0
CHUNK_MAX = 4096
# Chunks in flight for each worker, so that none waits for the next one.
AHEAD = 2


class Plan(Protocol):
    """Work whose pieces are numbered."""

    @property
    def worker(self) -> str: ...
    def __len__(self) -> int: ...
    def pending(self) -> Sequence[int]: ...
    def chunk(self, numbers: Sequence[int]) -> str: ...
    def keep(self, lines: str) -> None: ...


def fill(plan: Plan, executor: Executor, jobs: int | None, progress: Any) -> None:
    """Runs what is pending on `executor`, and keeps each answer as soon as it comes."""
    if not callable(getattr(executor, "submit", None)):
        raise UsageError(
            f"executor={executor!r} has no method submit",
            "Argument",
            "give an executor of concurrent.futures, or client.get_executor() of Dask",
        )
    show, total = shown(progress), len(plan)
    pending = deque(plan.pending())
    in_flight: dict[Future[tuple[str, float]], int] = {}
    known, size, most = total - len(pending), 1, AHEAD * (jobs or workers(executor))
    try:
        while pending or in_flight:
            while pending and len(in_flight) < most:
                # The last chunks are small, so that no worker is left alone with a long one.
                count = max(1, min(size, CHUNK_MAX, len(pending) // most))
                numbers = [pending.popleft() for _ in range(count)]
                future = executor.submit(timed, worker_of(plan), plan.chunk(numbers))
                in_flight[future] = count
            done, _ = wait(in_flight, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in done:
                count = in_flight.pop(future)
                lines, seconds = answer(future, known, total)
                plan.keep(lines)
                known += count
                size = max(1, round(count * CHUNK_SECONDS / max(seconds, 1e-6)))
            if show is not None and done:
                show(known, total)
    finally:
        for future in in_flight:
            future.cancel()


def worker_of(plan: Plan) -> Callable[[str], str]:
    """The function that runs a chunk of this plan."""
    from . import _freewheel

    worker: Callable[[str], str] = getattr(_freewheel, plan.worker)
    return worker


def timed(work: Callable[[str], str], chunk: str) -> tuple[str, float]:
    """An answer, with the seconds that it took."""
    begun = time.perf_counter()
    return work(chunk), time.perf_counter() - begun


def answer(future: Future[tuple[str, float]], known: int, total: int) -> tuple[str, float]:
    """What a worker answered. What executors raise themselves becomes an error that says how to go on."""
    try:
        return future.result()
    except Error:
        raise
    except Exception as error:
        raise Error(
            f"a worker failed: {type(error).__name__}: {error}; {known} of {total} are done",
            "Worker",
            "call again with the same output: what is done is not run again",
        ) from error


def workers(executor: Any) -> int:
    """The number of an executor's workers; this machine's cores where it does not say."""
    client: Any = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):
        threads: int = sum(client.nthreads().values())
        return max(1, threads)
    most = getattr(executor, "_max_workers", None)
    return most if isinstance(most, int) else os.cpu_count() or 1

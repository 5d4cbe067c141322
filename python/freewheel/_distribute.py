"""Work in pieces on any executor of `concurrent.futures`: processes, Dask, MPI."""

import os
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from typing import TYPE_CHECKING, Any

from ._errors import Error, UsageError
from ._progress import shown

if TYPE_CHECKING:
    from ._freewheel import JobPlan

# A chunk should take this long: what the executor costs is then a few thousandths of it.
CHUNK_SECONDS = 2.0
CHUNK_MAX = 4096
# Chunks in flight for each worker, so that none waits for the next one.
AHEAD = 2


def fill(plan: "JobPlan", executor: Executor, jobs: int | None, progress: Any) -> None:
    """Runs what is pending on `executor`, and keeps each answer as soon as it comes."""
    if callable(getattr(executor, "get_executor", None)):
        # A client of Dask, whose own futures are others.
        executor = executor.get_executor()  # type: ignore[attr-defined]
    if not callable(getattr(executor, "submit", None)):
        raise UsageError(
            f"executor={executor!r} has no method submit",
            "Argument",
            "give an executor of concurrent.futures, or client.get_executor() of Dask",
        )
    filling = Filling(plan, executor, AHEAD * (jobs or workers(executor)))
    show = shown(progress)
    try:
        while filling.goes_on():
            filling.take(filling.submit())
            if show is not None:
                show(filling.known, filling.total)
    finally:
        filling.cancel()
    if filling.failure is not None:
        raise told(filling.failure, filling.known, filling.total)


class Filling:
    """A plan that is being filled: chunks in flight, and what has come of them."""

    def __init__(self, plan: "JobPlan", executor: Executor, most: int) -> None:
        self.plan, self.executor, self.most = plan, executor, most
        self.pending = deque(plan.pending())
        self.in_flight: dict[Future[tuple[str, float]], int] = {}
        self.total = len(plan)
        self.known = self.total - len(self.pending)
        self.size = 1
        self.failure: Exception | None = None

    def goes_on(self) -> bool:
        """Whether answers may still come. After a failure nothing more is submitted."""
        return bool(self.in_flight) or (bool(self.pending) and self.failure is None)

    def submit(self) -> set[Future[tuple[str, float]]]:
        """Keeps the workers busy, and waits for answers for a moment."""
        try:
            while self.pending and self.failure is None and len(self.in_flight) < self.most:
                # The last chunks are small, so that no worker is left alone with a long one.
                count = max(1, min(self.size, CHUNK_MAX, len(self.pending) // self.most))
                chunk = self.plan.chunk([self.pending[at] for at in range(count)])
                self.in_flight[self.executor.submit(timed, worker_of(self.plan), chunk)] = count
                for _ in range(count):
                    self.pending.popleft()
        except Exception as error:
            self.failure = error
        return wait(self.in_flight, timeout=0.1, return_when=FIRST_COMPLETED).done

    def take(self, done: set[Future[tuple[str, float]]]) -> None:
        """Keeps what has been answered, also beside a failure."""
        for future in done:
            count = self.in_flight.pop(future)
            try:
                lines, seconds = future.result()
            except (Exception, CancelledError) as error:
                self.failure = self.failure or error
                self.cancel()
                continue
            self.plan.keep(lines)
            self.known += count
            self.size = max(1, round(count * CHUNK_SECONDS / max(seconds, 1e-6)))

    def cancel(self) -> None:
        """Takes back what no worker has begun."""
        for future in self.in_flight:
            future.cancel()


def worker_of(plan: "JobPlan") -> Callable[[str], str]:
    """The function that runs a chunk of this plan."""
    from . import _freewheel

    worker: Callable[[str], str] = getattr(_freewheel, plan.worker)
    return worker


def timed(work: Callable[[str], str], chunk: str) -> tuple[str, float]:
    """An answer, with the seconds that it took."""
    begun = time.perf_counter()
    return work(chunk), time.perf_counter() - begun


def told(failure: Exception, known: int, total: int) -> Exception:
    """A failure with how to go on; what the library says itself stays as it is."""
    if isinstance(failure, Error):
        return failure
    error = Error(
        f"a worker failed: {type(failure).__name__}: {failure}; {known} of {total} are done",
        "Worker",
        "call again with the same output: what is done is not run again",
    )
    error.__cause__ = failure
    return error


def workers(executor: Any) -> int:
    """The number of an executor's workers; this machine's cores where it does not say."""
    client: Any = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):
        threads: int = sum(client.nthreads().values())
        return max(1, threads)
    most = getattr(executor, "_max_workers", None)
    return most if isinstance(most, int) else os.cpu_count() or 1

"""Work that must not delay or change the result of a tool: reports, and answers that came too late."""

from __future__ import annotations

import atexit
import heapq
import itertools
import logging
import threading
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from .clock import clock
from .http import IO, ConnectionFailed, SyncIO, run

log = logging.getLogger("agent_authority")

#: Seconds for which a job is repeated.
_PATIENCE = 30.0
#: Seconds that the end of the process waits for jobs.
_AT_EXIT = 5.0
_MAX_JOBS = 10_000

#: Seconds after which a thread without jobs ends.
_IDLE = 2.0
#: More threads are started only while others wait for an answer.
_MAX_THREADS = 8

#: Makes one attempt, the first of which has number 1, within the seconds that are left. Returns the pause before the
#: next attempt; None when done.
Attempt = Callable[[IO, int, float], Coroutine[Any, Any, "float | None"]]


@dataclass(order=True)
class _Job:
    due: float
    order: int
    name: str = field(compare=False)
    attempt: Attempt = field(compare=False)
    ends: float = field(compare=False)
    number: int = field(compare=False, default=0)


class Background:
    """Runs jobs in daemon threads, which exist while there are jobs."""

    def __init__(self) -> None:
        self._io = SyncIO()
        self._jobs: list[_Job] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._running = 0
        # A weak reference: an unused authority can then be collected.
        here = weakref.ref(self)
        atexit.register(lambda: (found := here()) and found.flush(_AT_EXIT))

    def add(self, name: str, attempt: Attempt) -> None:
        """Adds a job. ``name`` describes it in logs."""
        with self._changed:
            if len(self._jobs) >= _MAX_JOBS:
                log.warning("%s is dropped: too many are waiting", name)
                return
            heapq.heappush(self._jobs, _Job(clock(), next(self._order), name, attempt, clock() + _PATIENCE))
            # After a fork, the threads do not exist in the child.
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if not self._threads:
                self._running = 0
            if len(self._threads) < min(self._running + len(self._jobs), _MAX_THREADS):
                thread = threading.Thread(target=self._work, name="agent-authority", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Waits until no job is left; returns whether that was in time."""
        with self._changed:
            alive = any(thread.is_alive() for thread in self._threads)
            return not alive or self._changed.wait_for(lambda: not self._jobs and not self._running, timeout)

    def close(self) -> None:
        """Closes connections. Later jobs open new ones."""
        self._io.close()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._jobs or (pause := self._jobs[0].due - clock()) > 0:
                    if not self._changed.wait(pause if self._jobs else _IDLE) and not self._jobs:
                        self._threads.remove(threading.current_thread())
                        return
                job = heapq.heappop(self._jobs)
                self._running += 1
            again = self._attempt(job)
            with self._changed:
                if again:
                    heapq.heappush(self._jobs, job)
                self._running -= 1
                self._changed.notify_all()

    def _attempt(self, job: _Job) -> bool:
        """Makes one attempt; returns whether another is needed."""
        job.number += 1
        try:
            pause = run(job.attempt(self._io, job.number, max(job.ends - clock(), 1.0)))
        except ConnectionFailed as error:
            log.debug("%s: %s", job.name, error)
            pause = min(0.05 * 2**job.number, 5.0)
        except Exception as error:
            log.warning("%s failed: %s", job.name, error)
            return False
        if pause is None:
            return False
        job.due = clock() + pause
        if job.due > job.ends:
            log.warning("%s failed for %g s and is given up", job.name, _PATIENCE)
            return False
        return True

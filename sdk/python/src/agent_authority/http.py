"""Calls of the service over httpx, which is imported on the first call.

The core is written once, as coroutines over ``IO``. ``SyncIO`` never suspends, so ``run`` drives the same
coroutines without an event loop.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ._version import __version__
from .clock import clock

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

#: The largest answer that is read, in bytes.
_MAX_BODY = 8 * 2**20
#: Seconds in which the time-outs of httpx, which say more, come first.
_GRACE = 0.1
#: The most calls that go on, unused, after their time.
_MAX_LATE = 32
_SHUT_RDWR = 2  # as in the module socket, which is slow to import


@dataclass(frozen=True)
class Call:
    """A request to the service, or to the address of its keys."""

    method: str
    url: str
    #: With the API key, which must not be in logs.
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = None


@dataclass(frozen=True)
class Answer:
    """A complete response."""

    status: int
    #: By lower-case name.
    headers: Mapping[str, str]
    body: bytes


class ConnectionFailed(Exception):
    """No complete response. ``sent`` is false if the request certainly did not reach the service."""

    def __init__(self, error: Exception, sent: bool) -> None:
        super().__init__(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        self.sent = sent


class StreamRefused(Exception):
    """The service refused a stream."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"status {answer.status}")
        self.answer = answer


class Canceller:
    """Ends a stream that another thread reads."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self._end: Callable[[], None] | None = None

    def follow(self, end: Callable[[], None]) -> None:
        """Takes the function that ends the stream."""
        self._end = end
        if self.cancelled.is_set():
            end()

    def cancel(self) -> None:
        self.cancelled.set()
        if self._end is not None:
            self._end()


class IO(Protocol):
    """The two ways to call the service: blocking, and on an event loop."""

    def prepare(self) -> None:
        """Makes the client. The first time, this takes longer than a decision."""

    async def send(self, call: Call, timeout: float) -> Answer:
        """Sends a call.

        :raises ConnectionFailed: There is no complete answer within ``timeout`` seconds.
        """

    def lines(self, call: Call, silence: float) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        """Opens a stream of lines.

        :raises ConnectionFailed: The stream broke, or had no whole line for ``silence`` seconds.
        :raises StreamRefused: The service refused it.
        """

    async def sleep(self, seconds: float) -> None:
        """Waits."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never suspends, as over ``SyncIO``."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise RuntimeError("a synchronous call can't wait for an async function; use AsyncAuthority")


def backoff(attempt: int) -> float:
    """Returns the seconds before the next attempt, at random."""
    import random  # this import takes longer than a decision

    return random.uniform(0, 0.05 * 2 ** min(attempt, 10))


def step(ends: float) -> float:
    """Returns the seconds to wait before the next look at the clock: a longer wait does not count the machine's sleep."""
    return min(max(ends - clock(), 0.001), 1.0)


def load_httpx() -> Any:
    """Imports httpx, which receivers of webhooks and verifiers don't need."""
    try:
        import httpx
    except ImportError:
        raise ImportError('decisions need httpx: pip install "agent-authority-sdk[client]"') from None
    return httpx


def client_options() -> dict[str, Any]:
    """Returns the options of both httpx clients."""
    httpx = load_httpx()
    agent = f"agent-authority-python/{__version__} (httpx/{httpx.__version__})"
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    return {"headers": {"user-agent": agent}, "limits": limits}


def answered(response: httpx.Response, body: bytes) -> Answer:
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()}, body)


@contextmanager
def httpx_failures() -> Iterator[None]:
    """Turns the errors of httpx into ``ConnectionFailed``."""
    httpx = load_httpx()
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise ConnectionFailed(error, sent=False) from error
    except (httpx.RequestError, httpx.StreamError) as error:
        raise ConnectionFailed(error, sent=True) from error


class _Stream:
    """Lines that a thread reads, so that the wait for each has an end."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[str | Exception | None] = queue.SimpleQueue()
        self._socket: Any = None
        self._is_over = False

    def read(self, opened: Any) -> None:
        try:
            with httpx_failures(), opened as response:
                network = response.extensions.get("network_stream")
                self._socket = network.get_extra_info("socket") if network else None
                if self._is_over:
                    return
                if response.status_code != 200:
                    raise StreamRefused(answered(response, response.read()))
                self._items.put("")  # it is open
                for line in response.iter_lines():
                    self._items.put(line)
            self._items.put(None)
        except Exception as error:
            self._items.put(error)

    def next(self, silence: float) -> str | None:
        """Returns the next line; None at the end."""
        ends = clock() + silence
        while True:
            try:
                item = self._items.get(timeout=step(ends))
                break
            except queue.Empty:
                if clock() >= ends:
                    raise ConnectionFailed(TimeoutError("the stream is silent"), sent=True) from None
        if isinstance(item, Exception):
            raise item
        return item

    async def each(self, silence: float) -> AsyncIterator[str]:
        while (line := self.next(silence)) is not None:
            yield line

    def end(self) -> None:
        self._is_over = True
        self._items.put(None)
        if self._socket is not None:
            try:
                self._socket.shutdown(_SHUT_RDWR)  # wakes the reader
            except OSError:
                pass


def _start(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=copy_context().run, args=(work,), name="agent-authority-call", daemon=True)
    thread.start()
    return thread


class SyncIO:
    """Blocking calls. It can be used by several threads, and after a fork."""

    def __init__(self, canceller: Canceller | None = None) -> None:
        self._canceller = canceller
        self._client: httpx.Client | None = None
        self._process = 0
        self._late: list[threading.Thread] = []

    @property
    def client(self) -> httpx.Client:
        httpx = load_httpx()
        if self._client is None or self._process != os.getpid():
            self._client, self._process = httpx.Client(**client_options()), os.getpid()
        return self._client

    async def send(self, call: Call, timeout: float) -> Answer:
        """Sends in a thread: httpx limits the time of each step of a call, but not of all together."""
        self._late = [thread for thread in self._late if thread.is_alive()]
        if len(self._late) >= _MAX_LATE:
            raise ConnectionFailed(TimeoutError("too many calls have no answer"), sent=False)
        results: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()

        def work() -> None:
            try:
                results.put(self._send(call, timeout))
            except BaseException as error:
                results.put(error)

        try:
            thread = _start(work)
        except RuntimeError:  # at the end of the process there are no new threads
            return self._send(call, timeout)
        try:
            result = results.get(timeout=max(timeout, 0.001) + _GRACE)
        except queue.Empty:
            self._late.append(thread)
            raise ConnectionFailed(TimeoutError("the answer is too slow"), sent=True) from None
        if isinstance(result, BaseException):
            raise result
        return result

    def _send(self, call: Call, timeout: float) -> Answer:
        ends, body = clock() + timeout, bytearray()
        with httpx_failures(), self._open(call, timeout) as response:
            for chunk in response.iter_bytes():
                body += chunk
                if clock() > ends or len(body) > _MAX_BODY:
                    raise ConnectionFailed(TimeoutError("the answer is too long or too slow"), sent=True)
            return answered(response, bytes(body))

    def prepare(self) -> None:
        _ = self.client

    def ended_by(self, canceller: Canceller) -> SyncIO:
        """Returns an IO with the same connections, and streams that the canceller ends."""
        other = SyncIO(canceller)
        other._client, other._process = self.client, os.getpid()
        return other

    def _open(self, call: Call, timeout: float) -> Any:
        return self.client.stream(
            call.method, call.url, headers=dict(call.headers), content=call.body, timeout=max(timeout, 0.001)
        )

    @asynccontextmanager
    async def lines(self, call: Call, silence: float) -> AsyncIterator[AsyncIterator[str]]:
        stream, opened = _Stream(), self._open(call, silence)
        try:
            _start(lambda: stream.read(opened))
        except RuntimeError as error:
            raise ConnectionFailed(error, sent=False) from error
        try:
            if self._canceller:
                self._canceller.follow(stream.end)
            if stream.next(silence) is None:
                raise ConnectionFailed(EOFError("the stream was ended"), sent=True)
            yield stream.each(silence)
        finally:
            stream.end()

    async def sleep(self, seconds: float) -> None:
        if self._canceller:
            self._canceller.cancelled.wait(seconds)
        else:
            time.sleep(max(seconds, 0))

    def close(self) -> None:
        if self._client is not None and self._process == os.getpid():
            self._client.close()
        self._client = None

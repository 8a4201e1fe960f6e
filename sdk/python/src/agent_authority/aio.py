"""The client for asyncio."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from .authority import Base
from .clock import clock
from .core import Core, log
from .decision import Decision
from .errors import Held
from .http import (
    _MAX_BODY, Answer, Call, ConnectionFailed, StreamRefused, answered, client_options, httpx_failures, load_httpx, step,
)  # fmt: skip
from .permit import _current, After, Before, Permit, Terms, Wait, close_permit, open_permit, watch_stops
from .question import Question

if TYPE_CHECKING:
    import httpx

    from .verification import VerifiedPermit


class AsyncIO:
    """Calls on the event loops that use it, with a client for each loop."""

    def __init__(self) -> None:
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient]
        self._clients = weakref.WeakKeyDictionary()

    @property
    def client(self) -> httpx.AsyncClient:
        httpx = load_httpx()
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = httpx.AsyncClient(**client_options())
        return self._clients[loop]

    def prepare(self) -> None:
        _ = self.client

    async def send(self, call: Call, timeout: float) -> Answer:
        try:
            return await asyncio.wait_for(self._send(call, timeout), max(timeout, 0.001))
        except (asyncio.TimeoutError, TimeoutError) as error:
            raise ConnectionFailed(error, sent=True) from error

    async def _send(self, call: Call, timeout: float) -> Answer:
        body = bytearray()
        with httpx_failures():
            async with self._open(call, timeout) as response:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _MAX_BODY:
                        raise ConnectionFailed(ValueError("the answer is too long"), sent=True)
                return answered(response, bytes(body))

    def _open(self, call: Call, timeout: float) -> Any:
        return self.client.stream(
            call.method, call.url, headers=dict(call.headers), content=call.body, timeout=max(timeout, 0.001)
        )

    @asynccontextmanager
    async def lines(self, call: Call, silence: float) -> AsyncIterator[AsyncIterator[str]]:
        with httpx_failures():
            async with AsyncExitStack() as stack:
                response = await _within(silence, stack.enter_async_context(self._open(call, silence)))
                if response.status_code != 200:
                    raise StreamRefused(answered(response, await _within(silence, response.aread())))
                yield _each(response, silence)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0))

    async def close(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()


async def _within(seconds: float, work: Coroutine[Any, Any, Any]) -> Any:
    """Waits for a step of a stream."""
    task, ends = asyncio.ensure_future(work), clock() + seconds
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=step(ends))
            if not task.done() and clock() >= ends:
                raise ConnectionFailed(TimeoutError("the stream is silent"), sent=True)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
            task.cancelled() or task.exception()


async def _each(response: httpx.Response, silence: float) -> AsyncIterator[str]:
    """Iterates over the lines, none of which may take longer than ``silence`` seconds."""
    lines = response.aiter_lines()

    async def following() -> str | None:
        return await anext(lines, None)

    while (line := await _within(silence, following())) is not None:
        yield line


_ios: weakref.WeakKeyDictionary[Core, AsyncIO] = weakref.WeakKeyDictionary()


def io_of(core: Core) -> AsyncIO:
    """Returns the asynchronous IO of an authority."""
    return _ios.setdefault(core, AsyncIO())


class AsyncAuthority(Base):
    """Decides whether actions are permitted, for asyncio."""

    async def decide(self, question: Question) -> Decision:
        """Returns the permission for a question. The caller acts before its deadline, and reports.

        :raises Denied: The action is denied.
        :raises Held: The action waits for people.
        :raises Unavailable: There is no usable answer.
        """
        return await self.core.decide(io_of(self.core), self.question(question))

    def permit(
        self,
        question: Question,
        wait: Wait = None,
        watch: bool = False,
        *,
        before: Mapping[str, Before] | None = None,
        after: Mapping[str, After] | None = None,
        shadow: bool | None = None,
    ) -> AsyncPermitScope:
        """Returns a scope, ``async with authority.permit(question) as permit:``, in which the action may run.

        Entering the scope decides, waits up to ``wait`` while people decide, and raises what ``decide``
        raises. Leaving it reports the outcome. When the permission ends, the body is cancelled, and
        ``Denied`` with code ``stopped`` is raised.
        """
        return self.async_scope(question, self._terms(wait, watch, before, after, shadow))

    def resume(self, held: Held, wait: Wait = None, watch: bool = False) -> AsyncPermitScope:
        """Returns the scope of a held question, possibly in another process. See ``permit``."""
        return self.async_scope(held.question, self._terms(wait, watch, held=held))

    @overload
    async def verify(self, evidence: Any, question: Question, *, tenant_id: str | None = None) -> VerifiedPermit: ...
    @overload
    async def verify(self, evidence: Any) -> str: ...
    async def verify(self, evidence: Any, question: Question | None = None, *, tenant_id: str | None = None) -> Any:
        """Verifies evidence against the trusted keys. See ``Authority.verify``."""
        return self._verified(await self.core.keyring.keys(io_of(self.core)), evidence, question, tenant_id)

    async def close(self) -> None:
        """Waits up to 30 s for reports, and closes connections."""
        await asyncio.to_thread(self.flush)
        self.core.background.close()
        await io_of(self.core).close()

    async def __aenter__(self) -> AsyncAuthority:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncPermitScope:
    """The scope of a permitted action. It can be entered once. Its body is cancelled at a stop."""

    def __init__(self, core: Core, io: AsyncIO, question: Question, terms: Terms) -> None:
        self._core, self._io, self._question, self._terms = core, io, question, terms
        self._permit: Permit | None = None
        self._token: Token[Permit | None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._over = False

    async def __aenter__(self) -> Permit:
        if self._permit is not None:
            raise RuntimeError("a permit can be used once; ask again")
        permit = self._permit = await open_permit(self._core, self._io, self._question, self._terms)
        self._token = _current.set(permit)
        if permit.decision is not None and not self._terms.shadow:
            owner = asyncio.current_task()
            self._watcher = asyncio.create_task(self._watch(permit, owner))
        return permit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        permit = self._permit
        assert permit is not None and self._token is not None
        self._over = True
        if self._watcher is not None:
            self._watcher.cancel()
        _current.reset(self._token)
        is_cancelled = permit.stopped.is_set() and await _take_back_cancel(error)
        await close_permit(self._core, permit, self._terms, error)
        if is_cancelled:
            raise asyncio.CancelledError
        if permit.stopped.is_set() and isinstance(error, asyncio.CancelledError):
            raise permit.stop_error() from None

    async def _watch(self, permit: Permit, owner: asyncio.Task[Any] | None) -> None:
        try:
            if not self._terms.watch:
                await asyncio.sleep(self._core.config.watch_after)
            condition = await watch_stops(self._core, self._io, permit, lambda: self._over)
        except Exception:
            log.exception("watching stop conditions failed")
            condition = "authority.unavailable"
        if condition is not None and not self._over:
            permit.stop(condition)
            if owner is not None:
                owner.cancel()


async def _take_back_cancel(error: BaseException | None) -> bool:
    """Takes back the cancellation of the body, delivered or not. Returns whether the task is cancelled otherwise."""
    if not isinstance(error, asyncio.CancelledError):
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            pass
    task: Any = asyncio.current_task()
    return hasattr(task, "uncancel") and task.uncancel() > 0  # since Python 3.11

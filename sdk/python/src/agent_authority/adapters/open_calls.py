"""Permissions of tools that a framework runs between two of its hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..aio import io_of
from ..clock import clock
from ..errors import Denied
from ..permit import Permit, close_permit, log, open_permit, watch_stops
from .calls import Calls, ToolFailed, check_unchanged, freeze

#: A call: the session's id, and the call's own id in it.
Key = tuple[str, str]


@dataclass
class _Open:
    """The permission of a call that may run."""

    permit: Permit
    #: The canonical text of the arguments.
    asked: bytes
    agent_id: str | None
    watch: asyncio.Task[None] | None = None

    def end_watch(self) -> None:
        if self.watch is not None:
            self.watch.cancel()


class OpenCalls:
    """The permissions of an adapter whose tools run now.

    ``on_stop`` is called when the permission of a running tool has ended.
    """

    def __init__(self, calls: Calls, on_stop: Callable[[], Awaitable[None]]) -> None:
        self._calls, self._on_stop = calls, on_stop
        self._open: dict[Key, _Open] = {}
        #: Calls with an ended permission. Their tools must not begin.
        self._ended: set[Key] = set()

    async def open(self, key: Key, name: str, arguments: Any, agent_id: str | None) -> None:
        """Asks for a call, and watches its permission.

        :raises AuthorityError: The tool must not run.
        """
        question, core = self._calls.question(name, arguments), self._calls.authority.core
        asked = freeze(arguments)
        permit = await open_permit(core, io_of(core), question, self._calls.terms)
        opened = self._open[key] = _Open(permit, asked, agent_id)
        self._ended.discard(key)
        opened.watch = asyncio.create_task(self._watch(key, permit))

    async def _watch(self, key: Key, permit: Permit) -> None:
        """Watches the permission of a tool that runs. Reports and calls ``on_stop`` when it ends."""
        core = self._calls.authority.core
        try:
            await asyncio.sleep(0 if self._calls.terms.watch else core.config.watch_after)
            if permit.decision is None or self._calls.terms.shadow:
                return
            condition = await watch_stops(core, io_of(core), permit, lambda: False)
        except Exception:
            log.exception("watching stop conditions failed")
            condition = None
        permit.stop(condition or "authority.unavailable")
        self._ended.add(key)
        del self._open[key]  # an interrupted tool has no later hook
        await close_permit(core, permit, self._calls.terms, None)
        await self._on_stop()

    async def close(self, key: Key, arguments: Any, result: Any, error: str | None) -> None:
        """Reports the outcome of a tool that has run. ``error`` is its failure.

        :raises AuthorityError: It ran with other arguments, or an obligation was not met.
        """
        if (opened := self._open.pop(key, None)) is None:
            return
        opened.end_watch()
        failure: Exception | None = None if error is None else ToolFailed(error)
        try:
            check_unchanged(arguments, opened.asked)
        except Denied as changed:
            failure = changed
        opened.permit.result = result
        await close_permit(self._calls.authority.core, opened.permit, self._calls.terms, failure)
        if isinstance(failure, Denied):
            raise failure

    def give_back(self, session: str, agent_id: str | None) -> None:
        """Gives back the permissions of an agent's tools that did not run, such as when a person denied them."""
        for key, opened in list(self._open.items()):
            if key[0] == session and opened.agent_id == agent_id:
                del self._open[key]
                opened.end_watch()
                if opened.permit.decision is not None:
                    self._calls.authority.report(opened.permit.decision, "abandoned", "the tool did not run")

    def is_late(self, session: str | None, call_id: str | None) -> bool:
        """Whether the permission of a call has ended before the tool began. Without a session, in any of them."""

        def is_it(key: Key) -> bool:
            return key[1] == call_id and session in (None, key[0])

        if any(map(is_it, self._ended)):
            return True
        decisions = [opened.permit.decision for key, opened in self._open.items() if is_it(key)]
        return any(decision and clock() >= decision.deadline for decision in decisions)

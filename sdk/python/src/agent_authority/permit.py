"""The scope in which a permitted action runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Union

from .clock import clock
from .core import BUILT_IN_OBLIGATIONS, Core, is_retryable, segment
from .decision import Decision
from .errors import AuthorityError, Denied, Held
from .http import IO, ConnectionFailed, StreamRefused
from .jcs import parse
from .question import Question

log = logging.getLogger("agent_authority")


class StreamBroken(Exception):
    """A stream ended with an error."""


#: A time to wait: a timedelta, or seconds.
Wait = Union[timedelta, float, None]
#: Meets an obligation before the action: gets the permit. Its exception denies the action.
Before = Callable[["Permit"], Union[None, Awaitable[None]]]
#: Meets an obligation after the action: gets the permit and the action's result. Its exception withholds it.
After = Callable[["Permit", Any], Union[None, Awaitable[None]]]

_current: ContextVar[Permit | None] = ContextVar("agent_authority_permit", default=None)


def current_permit() -> Permit | None:
    """Returns the permit of the guarded function that runs now. None outside of one."""
    return _current.get()


def seconds(wait: Wait) -> float:
    """Returns a time to wait in seconds."""
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait or 0)


@dataclass(frozen=True)
class Terms:
    """The options of a scope."""

    wait: float = 0.0
    watch: bool = False
    before: Mapping[str, Before] = field(default_factory=dict)
    after: Mapping[str, After] = field(default_factory=dict)
    shadow: bool = False
    #: The held question that is resumed.
    held: Held | None = None

    def resuming(self, held: Held) -> Terms:
        """Returns the same terms for a held question."""
        return replace(self, held=held)

    @property
    def handled(self) -> frozenset[str]:
        """The obligations that have a handler."""
        return frozenset(self.before) | frozenset(self.after)


class Permit:
    """A permission whose action runs now.

    ``decision`` is None only in shadow mode, where ``refusal`` then has the reason.
    """

    def __init__(self, question: Question, decision: Decision | None, refusal: AuthorityError | None = None) -> None:
        self.question = question
        self.decision = decision
        self.refusal = refusal
        #: Set when the permission has ended. A long action should stop then.
        self.stopped = threading.Event()
        #: The stop condition, such as ``actor.stop_signal``; ``authority.unavailable`` without a heartbeat.
        self.stop_condition: str | None = None
        #: The result for handlers of obligations after the action.
        self.result: Any = None

    def raise_if_stopped(self) -> None:
        """Raises ``Denied`` with code ``stopped`` if the permission has ended."""
        if self.stopped.is_set():
            raise self.stop_error()

    def stop_error(self) -> Denied:
        """The failure of an action whose permission has ended."""
        return Denied("stopped", f"the permission has ended: {self.stop_condition}", self.decision)

    def stop(self, condition: str) -> None:
        """Marks the permission as ended."""
        self.stop_condition = condition
        self.stopped.set()
        log.warning("the permission for %s has ended: %s", self.question.action, condition)


async def open_permit(core: Core, io: IO, question: Question, terms: Terms) -> Permit:
    """Gets the permission, and meets the obligations before the action.

    :raises AuthorityError: The action must not run.
    """
    if terms.shadow:
        return await _open_shadow(core, io, question, terms)
    decision = await core.permitted(io, question, terms.wait, terms.held)
    permit = Permit(question, decision)
    try:
        for name in decision.obligations:
            await _meet_before(permit, name, terms)
        if clock() >= decision.deadline:
            raise Denied("late", "the permission ended before the action began; ask again", decision)
    except BaseException:
        core.report(decision, "abandoned", "the action did not begin")
        raise
    return permit


async def _open_shadow(core: Core, io: IO, question: Question, terms: Terms) -> Permit:
    log.warning("shadow mode: %s runs whatever the service answers", question.action)
    try:
        return Permit(question, await core.permitted(io, question, 0, terms.held))
    except AuthorityError as error:
        log.warning("shadow mode: %s would not have run: %s", question.action, error)
        return Permit(question, None, error)


async def _meet_before(permit: Permit, name: str, terms: Terms) -> None:
    if name in BUILT_IN_OBLIGATIONS:
        log.log(logging.DEBUG if name == "audit.emit" else logging.WARNING, "%s: %s", permit.question.action, name)
    if (handler := terms.before.get(name)) is not None:
        await _handle(name, handler, permit)
    elif name not in BUILT_IN_OBLIGATIONS and name not in terms.after:
        raise Denied("obligation_unsupported", f"no handler meets the obligation {name}", permit.decision)


async def _handle(name: str, handler: Callable[..., Any], *arguments: Any) -> None:
    try:
        done = handler(*arguments)
        if isinstance(done, Awaitable):
            await done
    except Exception as error:
        log.exception("the handler of the obligation %s failed", name)
        raise Denied("obligation_failed", f"the obligation {name} was not met", arguments[0].decision) from error


async def close_permit(core: Core, permit: Permit, terms: Terms, error: BaseException | None) -> None:
    """Meets the obligations after the action, and reports the outcome.

    :raises Denied: An obligation was not met.
    """
    decision, detail = permit.decision, "shadow" if terms.shadow else None
    if decision is None:
        return
    if permit.stopped.is_set():
        core.report(decision, "abandoned", f"stopped: {permit.stop_condition}")
    elif error is not None:
        text = f"{type(error).__name__}: {error}" if core.config.error_messages else type(error).__name__
        core.report(decision, "failed", f"{detail}: {text}" if detail else text)
    else:
        try:
            for name in decision.obligations:
                if not terms.shadow and (handler := terms.after.get(name)) is not None:
                    await _handle(name, handler, permit, permit.result)
        except Denied as failed:
            detail = failed.message
            raise
        finally:
            core.report(decision, "executed", detail)


async def watch_stops(core: Core, io: IO, permit: Permit, is_over: Callable[[], bool]) -> str | None:
    """Watches the permission until the scope is over; returns the stop condition if it ends before."""
    assert permit.decision is not None
    path = f"/v1/decisions/{segment(permit.decision.decision_id)}:watch-stop-conditions"
    call, silence = core.call("GET", path), core.config.heartbeat
    seen = clock()
    while not is_over():
        left = seen + silence - clock()
        if left <= 0:
            return "authority.unavailable"
        try:
            async with io.lines(call, left) as lines:
                async for line in lines:
                    if (condition := _condition(line)) is not None:
                        return condition
                    seen = clock()
        except StreamRefused as refused:
            if refused.answer.status == 429 or not is_retryable(refused.answer):
                return None if is_over() else "authority.unavailable"
        except (ConnectionFailed, StreamBroken) as error:
            log.debug("the stream of stop conditions ended: %s", error)
        await io.sleep(min(0.2, max(seen + silence - clock(), 0)))
    return None


def _condition(line: str) -> str | None:
    """Returns the stop condition of an event; None for a heartbeat. An unknown event is a stop.

    :raises StreamBroken: The service ends the stream for a reason of its own, such as a restart.
    """
    try:
        event = parse(line)
        if "kind" not in event and "error" in event:
            raise StreamBroken(str(event["error"]))
        if event["kind"] == "heartbeat":
            return None
        return str(event.get("stop_condition") or "authority.unavailable")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "authority.unavailable"

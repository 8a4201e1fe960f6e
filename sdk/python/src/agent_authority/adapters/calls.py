"""The calls of an agent's tools as questions: what all adapters have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypedDict

from ..aio import AsyncPermitScope, io_of
from ..authority import Base
from ..core import Core
from ..decision import Decision
from ..errors import AuthorityError, Denied, Held, Unavailable
from ..guard import CallMapping
from ..jcs import canonical
from ..permit import Permit, Terms, Wait, log
from ..question import Question
from ..values import freeze_members
from .tools import Arguments, Tool, default_action

#: The code of a failure in an adapter or a mapping.
FAILED = "adapter_failed"


class ToolFailed(Exception):
    """The tool itself raised an exception, which is the cause of this one. It is not a refusal."""


class Options(TypedDict, total=False):
    """The parameters that all adapters have."""

    #: How calls become questions, by the tool's name.
    tools: Mapping[str, Tool] | None
    #: The purpose of tools that name none; by default the authority's.
    purpose: str | None
    #: Names of tools that run without a permission.
    unguarded: Collection[str]
    #: How long a held call waits for people.
    wait: Wait
    #: Watches stop conditions from the start, not only after a second.
    watch: bool


class Calls:
    """Asks for the calls of tools. ``Options`` describes the parameters."""

    def __init__(
        self,
        authority: Base,
        tools: Mapping[str, Tool] | None = None,
        purpose: str | None = None,
        unguarded: Collection[str] = (),
        wait: Wait = None,
        watch: bool = False,
    ) -> None:
        if isinstance(unguarded, str):
            raise TypeError("unguarded is a list of names")
        self.authority, self.tools, self.purpose = authority, dict(tools or {}), purpose
        self.unguarded = frozenset(unguarded)
        self.terms = authority._terms(wait, watch)

    def question(self, name: str, arguments: Arguments) -> Question:
        """Returns the question for a call.

        :raises Denied: The call can't be asked for, such as when a mapping fails.
        """
        tool = self.tools.get(name, Tool())
        try:
            action, members = tool.action or default_action(name), tool.members(self.purpose)
            mapping = CallMapping(action, members, tool.redact, (), self.authority.core.config.redact_key)
            if tool.redact and mapping.redact_key is None:
                raise ValueError("redact needs the authority's redact_key")
            return self.authority.question(mapping.question(arguments))
        except Exception as error:
            text = f"the question for the tool {name} can't be made: {type(error).__name__}: {error}"
            raise Denied("invalid_question", text) from error

    async def decide(self, question: Question, held: Held | None = None) -> Decision | None:
        """Returns the permission for a later ``run``. None in shadow mode, where ``run`` asks."""
        terms, core = self._resuming(question, held), self.authority.core
        return None if terms.shadow else await core.permitted(io_of(core), question, terms.wait, terms.held)

    @asynccontextmanager
    async def permit(
        self, question: Question, held: Held | None = None, sync: bool = False, decision: Decision | None = None
    ) -> AsyncIterator[Permit]:
        """Opens the scope in which the tool may run. ``held`` is this question, held before."""
        terms = self._resuming(question, held)
        if decision is not None:
            core: Any = _Decided(self.authority.core, decision)
            async with AsyncPermitScope(core, io_of(self.authority.core), question, terms) as permit:
                yield permit
        elif sync:
            with self.authority.scope(question, terms) as permit:
                yield permit
                permit.raise_if_stopped()
        else:
            async with self.authority.async_scope(question, terms) as permit:
                yield permit

    async def run(
        self, question: Question, held: Held | None, tool: Callable[[], Awaitable[Any]], **options: Any
    ) -> Any:
        """Runs a tool in the scope of its permission, and returns its result.

        :raises ToolFailed: The tool raised the exception that is its cause.
        """
        failure: Exception | None = None
        try:
            async with self.permit(question, held, **options) as permit:
                try:
                    permit.result = await tool()
                except Exception as error:
                    failure = error
                    raise
        except Exception as error:
            if error is failure and not isinstance(error, AuthorityError):
                raise ToolFailed() from error
            raise
        return permit.result

    def _resuming(self, question: Question, held: Held | None) -> Terms:
        if held is None:
            return self.terms
        handled = frozenset(held.question.supported_obligations or ())
        if question.replace(supported_obligations=handled).digest != held.digest:
            raise Denied("arguments_changed", "the call differs from the held question")
        return self.terms.resuming(held)

    def refuse_provider_tools(self, names: Iterable[str]) -> None:
        """Refuses tools that run at the model's provider, where no permission is asked for.

        :raises Denied: A tool is not in ``unguarded``.
        """
        if unknown := sorted(set(names) - self.unguarded):
            text = f"these tools run without a permission: {', '.join(unknown)}; remove them, or list them in unguarded"
            raise Denied("provider_tool", text)


class _Decided:
    """The core of an authority, for a scope that has its decision already."""

    def __init__(self, core: Core, decision: Decision) -> None:
        self._core, self._decision = core, decision

    async def permitted(self, *_: Any) -> Decision:
        return self._decision

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)


def freeze(arguments: Any) -> bytes:
    """Returns the canonical text of a call's arguments, to compare them with what runs.

    :raises Denied: They have no exact JSON form.
    """
    try:
        return canonical(freeze_members(arguments, "arguments"))
    except Exception as error:
        raise Denied("invalid_question", f"the arguments can't be part of a question: {error}") from error


def check_unchanged(arguments: Any, asked: bytes) -> None:
    """Checks that a tool gets the arguments of the question, whose canonical text is ``asked``.

    :raises Denied: They differ.
    """
    if freeze(arguments) != asked:
        raise Denied("arguments_changed", "the arguments were changed after the question")


def refused(error: BaseException) -> AuthorityError:
    """Returns a failure as a refusal: whatever fails before the tool runs denies it."""
    if isinstance(error, AuthorityError):
        return error
    log.error("a tool was refused because of an error", exc_info=error)
    return Denied(FAILED, type(error).__name__)


def refusal_text(error: AuthorityError) -> str:
    """Describes a refusal to the model."""
    if isinstance(error, Held):
        return f"The tool did not run. {error}. Do not repeat the call before it is approved."
    if isinstance(error, Unavailable):
        return f"The tool did not run: there is no permission. {error.message}"
    if isinstance(error, Denied) and error.code in ("stopped", "obligation_failed"):
        return f"The tool was stopped: {error}"
    return f"The tool did not run: {error}"

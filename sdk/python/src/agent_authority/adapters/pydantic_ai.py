"""Pydantic AI: a capability that asks before each tool call. Tested with pydantic-ai-slim 2.66.0."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ApprovalRequired, SkipToolExecution
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from ..authority import Base
from ..errors import Denied, Held
from .calls import Calls, Options, ToolFailed, check_unchanged, freeze, refusal_text, refused
from .tools import provider_tools

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The member of a deferred call's metadata that has the held question.
METADATA = "agent_authority"
#: The guard of the tool that runs now. It also guards agents that run within the tool.
_outer: ContextVar[AuthorityCapability | None] = ContextVar("agent_authority_pydantic_ai", default=None)


class AuthorityCapability(AbstractCapability[Any]):
    """Asks before each tool call: ``Agent(…, capabilities=[AuthorityCapability(authority)])``.

    A refused call skips the tool, and its result is the reason. ``Options`` describes the parameters.

    :param pause: Ends the run with the held call among ``DeferredToolRequests.approvals``, instead of refusing
        it. Go on with ``requests.build_results(approve_all=True, metadata=requests.metadata)``; people approve
        at the service.
    """

    def __init__(self, authority: Base, *, pause: bool = False, **options: Unpack[Options]) -> None:
        self.id, self.description, self.defer_loading = None, None, False
        self._calls, self._pause = Calls(authority, **options), pause
        _guard_nested_runs()

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        inner: Any = toolset
        while isinstance(inner, WrapperToolset):
            if not type(inner).__module__.startswith("pydantic_ai."):
                raise Denied("arguments_changed", f"{type(inner).__name__} comes after the guard; list it before")
            inner = inner.wrapped
        return _Guarded(toolset, self)

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        self._calls.refuse_provider_tools(_provider_tools(request_context))
        return request_context

    async def wrap_output_process(self, ctx: Any, *, output_context: Any, output: Any, handler: Any) -> Any:
        if output_context.has_function:
            call = output_context.tool_call
            name = output_context.function_name or (call.tool_name if call else "output function")
            self._calls.refuse_provider_tools([name])
        return await handler(output)

    async def call(self, name: str, arguments: dict[str, Any], ctx: Any, tool: Any) -> Any:
        """Runs the tool, if it is permitted. ``tool`` gets the arguments."""
        if name in self._calls.unguarded:
            return await tool(arguments)
        try:
            asked = copy.deepcopy(arguments)
            text, question = freeze(asked), self._calls.question(name, asked)

            async def run() -> Any:
                check_unchanged(asked, text)
                outer = _outer.set(self)
                try:
                    return await tool(asked)
                finally:
                    _outer.reset(outer)

            return await self._calls.run(question, _held(ctx), run)
        except ToolFailed as error:
            assert error.__cause__ is not None
            raise error.__cause__ from None
        except Held as error:
            if self._pause and error.eligible != "none":
                raise ApprovalRequired({"message": str(error), METADATA: error.to_json()}) from error
            raise SkipToolExecution(refusal_text(error)) from error
        except Exception as error:
            raise SkipToolExecution(refusal_text(refused(error))) from error

    def within(self) -> AuthorityCapability:
        """Returns the capability for agents within a tool, which can't pause."""
        inner = copy.copy(self)
        inner._pause = False
        return inner


@dataclass
class _Guarded(WrapperToolset[Any]):
    """The tools of an agent, guarded, whichever they are."""

    guard: AuthorityCapability

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        async def run(arguments: dict[str, Any]) -> Any:
            return await self.wrapped.call_tool(name, arguments, ctx, tool)

        return await self.guard.call(name, tool_args, ctx, run)


def _held(ctx: Any) -> Held | None:
    """Returns the held question with which the run goes on."""
    metadata = ctx.tool_call_metadata if ctx.tool_call_approved else None
    return Held.from_json(metadata[METADATA]) if isinstance(metadata, Mapping) and METADATA in metadata else None


def _provider_tools(request: Any) -> Iterator[str]:
    """Lists the tools of a model call that run at the provider, or that the application runs by itself."""
    parameters = request.model_request_parameters
    yield from (tool.kind for tool in parameters.native_tools)
    yield from (tool.name for tool in parameters.function_tools if tool.kind == "external")
    yield from provider_tools([request.model_settings])


def _guard_nested_runs() -> None:
    """Guards the agents that run within a guarded tool, though they don't have the capability."""
    original: Any = Agent.iter
    if hasattr(original, "is_guarded"):
        return

    @functools.wraps(original)
    def iter_(self: Agent[Any, Any], *arguments: Any, capabilities: Any = None, **options: Any) -> Any:
        found: list[Any] = list(capabilities or ())
        self.root_capability.apply(found.append)
        if (outer := _outer.get()) is not None and not any(isinstance(one, AuthorityCapability) for one in found):
            capabilities = [*(capabilities or ()), outer.within()]
        return original(self, *arguments, capabilities=capabilities, **options)

    iter_.is_guarded = True  # type: ignore[attr-defined]
    Agent.iter = iter_  # type: ignore[method-assign]

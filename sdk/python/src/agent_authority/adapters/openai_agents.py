"""OpenAI Agents SDK: asks before each call of a function tool. Tested with openai-agents 0.24.0."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agents import Agent, FunctionTool, RunState, ToolGuardrailFunctionOutput, ToolInputGuardrail
from agents import tool as framework
from agents.run import get_default_agent_runner, set_default_agent_runner
from agents.tool_context import ToolContext

from ..authority import Base
from ..errors import Denied, Held
from .calls import Calls, Options, ToolFailed, refusal_text, refused
from .pending import Pending
from .tools import provider_tools

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The member of the run's context that has the held questions of a paused run.
CONTEXT = "agent_authority"


class AuthorityGuard:
    """Asks before each call of a function tool: ``AuthorityGuard(authority).install()``.

    A refused call is rejected with the reason, as by a guardrail. ``Options`` describes the parameters.

    :param pause: Interrupts the run for a held call. The held question is in the run's context, which must be
        a dict, and so in its ``RunState``. After ``state.approve(item)`` the run goes on with the question;
        people approve at the service. Without their approval, ``approve`` permits nothing.
    """

    def __init__(self, authority: Base, *, pause: bool = False, **options: Unpack[Options]) -> None:
        self.calls, self.pause = Calls(authority, **options), pause
        self._pending = Pending(self.calls)

    def install(self) -> None:
        """Guards every run of this process, and the agents that run within tools."""
        set_default_agent_runner(_Runner(self, get_default_agent_runner()))  # type: ignore[arg-type]

    def protect(self, agent: Agent[Any]) -> Agent[Any]:
        """Guards an agent, its copies, and the agents to which it hands off, whichever tools they have.

        :raises Denied: A tool runs at the provider, and is not in ``unguarded``.
        """
        self.calls.refuse_provider_tools(_provider_tools(agent, agent.tools))
        if not hasattr(agent, "authority_guard"):
            agent.__class__ = _guarded_class(type(agent))
            setattr(agent, "authority_guard", self)
            self._protect_handoffs(agent)
        return agent

    def guarded_tools(self, agent: Agent[Any], tools: list[Any]) -> list[Any]:
        """Returns the tools of a turn, guarded."""
        self.calls.refuse_provider_tools(_provider_tools(agent, tools))
        self._protect_handoffs(agent)
        for inner in filter(None, (getattr(tool, "_agent_instance", None) for tool in tools)):
            self.protect(inner)
        return [tool if tool.name in self.calls.unguarded else self._guarded(tool) for tool in tools]

    def _protect_handoffs(self, agent: Agent[Any]) -> None:
        for item in agent.handoffs:
            if isinstance(item, Agent):
                self.protect(item)
            elif not isinstance(item.on_invoke_handoff, _GuardedHandoff):
                item.on_invoke_handoff = _GuardedHandoff(self, item.on_invoke_handoff)
                if (target := cast(Any, item._agent_ref and item._agent_ref())) is not None:
                    self.protect(target)

    def _guarded(self, tool: FunctionTool) -> FunctionTool:
        guarded, inner = copy.copy(tool), copy.copy(tool)
        framework.set_function_tool_failure_error_function(inner, None)

        def call(ctx: Any, call_id: str, arguments: str) -> Any:
            return ctx.usage, call_id, tool.name, arguments, lambda: _held(ctx, call_id)

        async def needs_approval(ctx: Any, arguments: dict[str, Any], call_id: str) -> bool:
            needed: Any = tool.needs_approval
            needed = needed(ctx, arguments, call_id) if callable(needed) else needed
            if await needed if inspect.isawaitable(needed) else needed:
                return True
            refusal = (await self._pending.ask(*call(ctx, call_id, json.dumps(arguments)))).refusal
            return isinstance(refusal, Held) and self._keep(ctx, call_id, tool.name, refusal)

        async def ask(data: Any) -> ToolGuardrailFunctionOutput:
            ctx = data.context
            refusal = (await self._pending.ask(*call(ctx, ctx.tool_call_id, ctx.tool_arguments))).refusal
            if refusal is not None:
                self._pending.take(ctx.usage, ctx.tool_call_id, tool.name)
                return ToolGuardrailFunctionOutput.reject_content(refusal_text(refusal))
            return ToolGuardrailFunctionOutput.allow()

        async def invoke(ctx: ToolContext[Any], arguments: str) -> Any:
            try:
                asked = await self._pending.begin(*call(ctx, ctx.tool_call_id, arguments))
                return await self.calls.run(
                    asked.question, None, lambda: inner.on_invoke_tool(ctx, asked.arguments), decision=asked.decision
                )
            except ToolFailed as error:
                failed: Any = error.__cause__
                handle = framework.maybe_invoke_function_tool_failure_error_function
                if (text := await handle(function_tool=tool, context=ctx, error=failed)) is None:
                    raise failed from None
                return text
            except Exception as error:
                return refusal_text(refused(error))

        guarded.on_invoke_tool = invoke
        guarded.tool_input_guardrails = [*(tool.tool_input_guardrails or ()), ToolInputGuardrail(ask, "authority")]
        if self.pause:
            guarded.needs_approval = needs_approval
        return guarded

    def _keep(self, ctx: Any, call_id: str, name: str, held: Held) -> bool:
        """Keeps a held question in the run's context. Returns whether the run can pause."""
        if not isinstance(ctx.context, MutableMapping) or held.eligible == "none":
            return False
        ctx.context.setdefault(CONTEXT, {})[call_id] = held.to_json()
        self._pending.take(ctx.usage, call_id, name)
        return True


@dataclass
class _GuardedHandoff:
    """A handoff that guards the agent to which it hands off."""

    guard: AuthorityGuard
    invoke: Any

    async def __call__(self, ctx: Any, arguments: str) -> Any:
        return self.guard.protect(await self.invoke(ctx, arguments))


class _Runner:
    """The default runner, which guards the agents that it runs."""

    def __init__(self, guard: AuthorityGuard, inner: Any) -> None:
        self._guard, self._inner = guard, inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def run(agent: Any, start: Any, **options: Any) -> Any:
            if isinstance(start, RunState) and not hasattr(agent, "authority_guard"):
                raise Denied("unguarded_tool", "call protect(agent) before RunState.from_json or from_string")
            settings = _member(options.get("run_config"), "model_settings")
            self._guard.calls.refuse_provider_tools(_tools_in_settings(settings))
            if self._guard.pause and not isinstance(start, RunState) and options.get("context") is None:
                options["context"] = {}
            return method(self._guard.protect(agent), start, **options)

        return run


def _guarded_class(base: type[Any]) -> type[Any]:
    """Makes a subclass of agents with guarded tools. As a field, the guard is part of each copy."""

    async def get_all_tools(self: Any, run_context: Any) -> Any:
        return self.authority_guard.guarded_tools(self, await base.get_all_tools(self, run_context))

    field: Any = ("authority_guard", Any, dataclasses.field(default=None))
    return dataclasses.make_dataclass(base.__name__, [field], bases=(base,), namespace={"get_all_tools": get_all_tools})


def _provider_tools(agent: Any, tools: list[Any]) -> Iterator[str]:
    """Lists the tools that run at the provider, or without the functions that can be guarded."""
    yield from (tool.name for tool in tools if not isinstance(tool, FunctionTool))
    yield from ["prompt"] if agent.prompt is not None else []
    yield from _tools_in_settings(agent.model_settings)


def _tools_in_settings(settings: Any) -> Iterator[str]:
    return provider_tools([_member(settings, "extra_body"), _member(settings, "extra_args")])


def _member(options: Any, name: str) -> Any:
    return options.get(name) if isinstance(options, Mapping) else getattr(options, name, None)


def _held(ctx: Any, call_id: str) -> Held | None:
    """Takes the held question of a call from the run's context."""
    kept = ctx.context.get(CONTEXT) if isinstance(ctx.context, MutableMapping) else None
    return Held.from_json(kept.pop(call_id)) if kept and call_id in kept else None

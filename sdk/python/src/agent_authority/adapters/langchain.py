"""LangChain and LangGraph: a middleware that asks before each tool call. Tested with langchain 1.5.2."""

from __future__ import annotations

import copy
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables.config import merge_configs
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from ..authority import Base
from ..errors import Denied, Held
from ..http import run
from .calls import Calls, Options, ToolFailed, check_unchanged, freeze, refusal_text, refused
from .tools import provider_tools

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The names of the tools that may start within the tool that runs now; None before its own start.
_started: ContextVar[dict[str, Any]] = ContextVar("agent_authority_langchain")


class AuthorityMiddleware(AgentMiddleware[Any, Any, Any]):
    """Asks before each tool call: ``create_agent(…, middleware=[…, AuthorityMiddleware(authority)])``.

    It must be the last middleware. A refused call is a tool message with status ``error``. ``Options``
    describes the parameters. In a graph of one's own:
    ``ToolNode(tools, wrap_tool_call=it.wrap_tool_call, awrap_tool_call=it.awrap_tool_call)``.

    :param pause: Interrupts the graph with the held question, instead of refusing the call. It goes on with
        ``Command(resume={id: …})`` with the id of each interrupt, whatever the values are; people approve at the
        service. Needs a checkpointer.
    """

    def __init__(self, authority: Base, *, pause: bool = False, **options: Unpack[Options]) -> None:
        super().__init__()
        if sys.hexversion < 0x030B0000:  # asyncio's tasks don't pass callbacks on
            raise RuntimeError("tools within tools can only be guarded with Python 3.11 or newer")
        self._calls = Calls(authority, **options)
        self._pause = pause

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self._calls.refuse_provider_tools(_provider_tools(request))
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        self._calls.refuse_provider_tools(_provider_tools(request))
        return await handler(request)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        async def handle(checked: Any) -> Any:
            return handler(checked)

        return run(self._wrap(request, handle, sync=True))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await self._wrap(request, handler)

    async def _wrap(self, request: Any, handler: Callable[[Any], Awaitable[Any]], sync: bool = False) -> Any:
        if request.tool_call["name"] in self._calls.unguarded:
            return await handler(request)
        try:
            call = _Call(request, self._calls)
            held = await call.held_before(sync) if self._pause and call.saver else None
            while True:
                if held is not None:
                    call.interrupt(held)
                try:
                    return await self._calls.run(call.question, held, lambda: call.run(handler), sync=sync)
                except Held as again:
                    if not (self._pause and call.may_pause()) or again.eligible == "none":
                        raise
                    held = again
        except GraphBubbleUp:
            raise
        except ToolFailed as error:
            assert error.__cause__ is not None
            raise error.__cause__ from None
        except Exception as error:
            text = refusal_text(refused(error))
            names = {"name": request.tool_call["name"], "tool_call_id": request.tool_call["id"]}
            return ToolMessage(text, status="error", **names)


class _Call:
    """One call: its question, and a tool that runs once, with the arguments of the question."""

    def __init__(self, request: Any, calls: Calls) -> None:
        self._name, self._id = request.tool_call["name"], request.tool_call["id"]
        if request.tool is None:
            raise Denied("unknown_tool", f"there is no tool {self._name}")
        self._arguments = copy.deepcopy(request.tool_call["args"])
        self._asked, self._unguarded = freeze(self._arguments), calls.unguarded
        self.question = calls.question(self._name, self._arguments)
        self._runtime, self._messages = request.runtime, request.state
        self._has_paused, self._has_started = False, False
        asked = {**request.tool_call, "args": copy.deepcopy(self._arguments)}
        self.request = request.override(tool=self._checked(request.tool), tool_call=asked)

    @property
    def saver(self) -> Any:
        """The checkpointer of the graph."""
        return self._runtime.config.get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER)

    def may_pause(self) -> bool:
        """Whether the graph can be interrupted here. Other calls of the same node would run twice."""
        path = self._runtime.config.get("metadata", {}).get("langgraph_path") or [""]
        return bool(self.saver) and (path[0] == "__pregel_push" or len(self._messages["messages"][-1].tool_calls) == 1)

    async def held_before(self, sync: bool) -> Held | None:
        """Returns the question for which the graph was interrupted at this call."""
        info = self._runtime.execution_info
        graph = "|".join(info.checkpoint_ns.split("|")[:-1])
        names = {"thread_id": info.thread_id, "checkpoint_id": info.checkpoint_id, "checkpoint_ns": graph}
        at = {"configurable": names}
        saved = self.saver.get_tuple(at) if sync else await self.saver.aget_tuple(at)
        for task, channel, interrupts in (saved.pending_writes or ()) if saved else ():
            for item in interrupts if (task, channel) == (info.task_id, "__interrupt__") else ():
                if isinstance(item.value, Mapping) and item.value.get("tool_call_id") == self._id:
                    return Held.from_json(item.value["held"])
        return None

    def interrupt(self, held: Held) -> None:
        """Interrupts the graph. Returns when the graph has been resumed."""
        self._has_paused = True
        interrupt({"message": str(held), "tool_call_id": self._id, "held": held.to_json()})

    async def run(self, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Runs the tool through the middleware that follow, if any."""
        try:
            result = await handler(self.request)
        except GraphBubbleUp as error:
            if self._has_paused:
                raise Denied("interrupted", "a tool that was held can't interrupt the graph itself") from error
            raise
        if not self._has_started and getattr(result, "status", None) != "error":
            raise Denied("tool_changed", "another tool ran; make AuthorityMiddleware the last middleware")
        return result

    def _checked(self, tool: Any) -> Any:
        """Returns a copy of the tool that refuses other arguments, and tools within it that are not guarded."""

        def start(call: Any, config: Any) -> tuple[Any, Any]:
            names = {*self._arguments, *tool.args}
            given = {name: value for name, value in call["args"].items() if name in names}
            if self._has_started:
                raise Denied("arguments_changed", "the tool was started twice with one permission")
            check_unchanged(given, self._asked)
            self._has_started = True
            _started.set({"own": True, "unguarded": self._unguarded})
            return call, merge_configs(config, {"callbacks": [_WITHIN]})

        async def ainvoke(call: Any, config: Any = None, **options: Any) -> Any:
            return await tool.ainvoke(*start(call, config), **options)

        checked = tool.model_copy()
        object.__setattr__(checked, "invoke", lambda call, config=None, **o: tool.invoke(*start(call, config), **o))
        object.__setattr__(checked, "ainvoke", ainvoke)
        return checked


class _Within(BaseCallbackHandler):
    """Refuses tools that start within a guarded tool without a permission of their own."""

    raise_error = run_inline = True

    def on_tool_start(self, serialized: Any, input_str: str, **_: Any) -> None:
        name, started = (serialized or {}).get("name"), _started.get({})
        if not started.pop("own", False) and name not in started.get("unguarded", ()):
            raise Denied("unguarded_tool", f"the tool {name} started without a permission; guard its agent, too")


_WITHIN = _Within()


def _provider_tools(request: Any) -> Iterator[str]:
    """Lists the tools of a model call that run at the provider."""
    yield from (str(tool.get("name") or tool.get("type")) for tool in request.tools if isinstance(tool, dict))
    of_model = (getattr(request.model, name, None) for name in ("kwargs", "model_kwargs", "extra_body"))
    yield from provider_tools([request.model_settings, *of_model])

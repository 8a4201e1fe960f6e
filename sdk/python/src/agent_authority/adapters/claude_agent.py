"""Claude Agent SDK: hooks that ask before each tool call. Tested with claude-agent-sdk 0.2.189."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, PermissionResultAllow, PermissionResultDeny

from ..aio import io_of
from ..authority import Base
from ..clock import clock
from ..errors import AuthorityError, Denied
from ..permit import Permit, Wait, close_permit, log, open_permit, seconds, watch_stops
from .calls import Calls, ToolFailed, freeze, refusal_text, refused
from .tools import Tool

#: Seconds for a decision, on top of the time to wait for people.
_MARGIN = 30.0
#: Arguments of Claude Code that could avoid the hooks, or change a call after them.
_FORBIDDEN = {"bare", "settings", "managed-settings", "permission-prompt-tool"}
_SHELL = "PreSkillShellCommand"
_CHANGED = "another hook changed the arguments after the question"


class AuthorityHooks:
    """Asks before each tool call, of sub-agents too: ``ClaudeSDKClient(AuthorityHooks(authority).options(options))``.

    A refused call is denied with the reason. A permitted one gets no opinion, so that permission rules and
    prompts still apply. Hooks of settings and plugins are turned off, because they could change a call
    after the question. Shell commands in skills do not run unless ``PreSkillShellCommand`` is in ``unguarded``,
    because no permission is asked for them. ``Calls`` describes the parameters.

    :param on_stop: Called when the permission of a running tool has ended, such as ``client.interrupt``.
    """

    def __init__(
        self,
        authority: Base,
        *,
        tools: Mapping[str, Tool] | None = None,
        purpose: str | None = None,
        unguarded: Collection[str] = (),
        wait: Wait = None,
        watch: bool = False,
        on_stop: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._calls = Calls(authority, tools, purpose, unguarded, wait, watch)
        self._timeout, self.on_stop = seconds(wait) + _MARGIN, on_stop
        self._open: dict[tuple[str, str], _Open] = {}
        #: Calls whose permission has ended. Their tools must not begin.
        self._ended: set[tuple[str, str]] = set()

    def options(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        """Returns the options of a session, guarded.

        :raises Denied: An option could avoid the hooks, or has tools that run at the provider.
        """
        settings = {**_settings(options), "disableAllHooks": True}
        given = {*options.extra_args, "permission-prompt-tool" if options.permission_prompt_tool_name else ""}
        if forbidden := sorted(_FORBIDDEN & given):
            raise Denied("unsafe_option", f"--{forbidden[0]} could avoid the hooks, or change a call after them")
        if settings.get("advisorModel") or "advisor" in options.extra_args:
            self._calls.refuse_provider_tools(["advisor"])
        env = {**options.env, "CLAUDE_CODE_SIMPLE": "0"}
        if "advisor" not in self._calls.unguarded:
            env["CLAUDE_CODE_DISABLE_ADVISOR_TOOL"] = "1"
        hooks: Any = {event: list(matchers) for event, matchers in (options.hooks or {}).items()}
        for event in ("PreToolUse", "PermissionRequest"):
            hooks[event] = [replace(m, hooks=list(map(self._unchanging, m.hooks))) for m in hooks.get(event, ())]
        before = HookMatcher(matcher=None, hooks=[self._before], timeout=self._timeout, on_failure="block")
        hooks["PreToolUse"].append(before)
        if _SHELL not in self._calls.unguarded:
            settings["disableSkillShellExecution"] = True
            shell = HookMatcher(matcher=None, hooks=[self._refuse_shell], timeout=_MARGIN, on_failure="block")
            hooks[_SHELL] = [shell, *hooks.get(_SHELL, ())]
        for event in ("PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop"):
            own = self._after if "Tool" in event else self._end
            hooks[event] = [*hooks.get(event, ()), HookMatcher(hooks=[own], timeout=_MARGIN)]
        prompt: Any = options.can_use_tool and self._unchanging_prompt(options.can_use_tool)
        return replace(options, hooks=hooks, env=env, settings=json.dumps(settings), can_use_tool=prompt)

    async def _before(self, call: Any, tool_use_id: str | None, context: Any) -> Any:
        if call.get("tool_name") in self._calls.unguarded:
            return {}
        try:
            opened = self._open[_key(call)] = await self._opened(call)
            self._ended.discard(_key(call))
            opened.watch = asyncio.create_task(self._watch(_key(call), opened.permit))
            return {}
        except Exception as error:
            return _denial(refusal_text(refused(error)))

    async def _refuse_shell(self, call: Any, tool_use_id: str | None, context: Any) -> Any:
        return _denial("shell commands in skills are not guarded", _SHELL)

    async def _opened(self, call: Any) -> _Open:
        question = self._calls.question(call["tool_name"], call["tool_input"])
        core = self._calls.authority.core
        permit = await open_permit(core, io_of(core), question, self._calls.terms)
        return _Open(permit, freeze(call["tool_input"]), call.get("agent_id"))

    async def _watch(self, key: tuple[str, str], permit: Permit) -> None:
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
        if self.on_stop is not None:
            await self.on_stop()

    async def _after(self, call: Any, tool_use_id: str | None, context: Any) -> Any:
        """Reports the outcome of a tool that has run."""
        if (opened := self._open.pop(_key(call), None)) is None:
            return {}
        has_changed = freeze(call["tool_input"]) != opened.arguments
        error = _CHANGED if has_changed else call.get("error")
        opened.watch and opened.watch.cancel()
        opened.permit.result, failure = call.get("tool_response"), None if error is None else ToolFailed(error)
        try:
            await close_permit(self._calls.authority.core, opened.permit, self._calls.terms, failure)
        except AuthorityError as failed:
            return {"continue_": False, "stopReason": refusal_text(failed)}
        return {"continue_": False, "stopReason": _CHANGED} if has_changed else {}

    async def _end(self, call: Any, tool_use_id: str | None, context: Any) -> Any:
        """Gives back the permissions of tools that did not run, such as when a person denied them."""
        for key, opened in list(self._open.items()):
            if key[0] == call["session_id"] and opened.agent_id == call.get("agent_id"):
                del self._open[key]
                opened.watch and opened.watch.cancel()
                if opened.permit.decision is not None:
                    self._calls.authority.report(opened.permit.decision, "abandoned", "the tool did not run")
        return {}

    def _is_late(self, session: str | None, tool_use_id: str | None) -> bool:
        """Whether the permission of a call has ended before the tool began."""
        if any(key[1] == tool_use_id and session in (None, key[0]) for key in self._ended):
            return True
        found = (opened for key, opened in self._open.items() if key[1] == tool_use_id and session in (None, key[0]))
        return any(opened.permit.decision and clock() >= opened.permit.decision.deadline for opened in found)

    def _unchanging(self, hook: Any) -> Any:
        """Wraps another hook: it can deny a call, but neither change it nor delay it beyond its permission."""

        async def checked(call: Any, tool_use_id: str | None, context: Any) -> Any:
            asked = copy.deepcopy(call["tool_input"])
            output = await hook(call, tool_use_id, context)
            specific = (output or {}).get("hookSpecificOutput") or {}
            inner = specific.get("decision")
            for part in (specific, inner if isinstance(inner, Mapping) else {}):
                changed = part.get("updatedInput")
                if changed is not None and freeze(changed) != freeze(asked):
                    return _denial(_CHANGED, call["hook_event_name"])
            if self._is_late(call.get("session_id"), call.get("tool_use_id")):
                return _denial("the permission ended before the tool began", call["hook_event_name"])
            return output

        return checked

    def _unchanging_prompt(self, can_use_tool: Any) -> Any:
        """Wraps the permission prompt like a hook."""

        async def checked(name: str, asked: dict[str, Any], context: Any) -> Any:
            text = freeze(asked)
            result = await can_use_tool(name, asked, context)
            if isinstance(result, PermissionResultAllow):
                if freeze(asked if result.updated_input is None else result.updated_input) != text:
                    return PermissionResultDeny(message=_CHANGED)
                if self._is_late(None, context.tool_use_id):
                    return PermissionResultDeny(message="the permission ended before the tool began")
            return result

        return checked


@dataclass
class _Open:
    """The permission of a call that may run."""

    permit: Permit
    arguments: bytes
    agent_id: str | None
    watch: asyncio.Task[None] | None = None


def _key(call: Any) -> tuple[str, str]:
    return call["session_id"], call["tool_use_id"]


def _denial(reason: str, event: str = "PreToolUse") -> dict[str, Any]:
    if event == "PermissionRequest":
        decision = {"behavior": "deny", "message": reason}
        return {"hookSpecificOutput": {"hookEventName": event, "decision": decision}}
    specific = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": specific}


def _settings(options: ClaudeAgentOptions) -> Any:
    """Reads the session's own settings: JSON, or a file relative to its folder."""
    text = (options.settings or "{}").strip()
    if not text.startswith("{"):
        text = (Path(options.cwd or "") / text).read_text("utf-8-sig")
    return json.loads(text)

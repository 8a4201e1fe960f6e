"""Claude Agent SDK: hooks that ask before each tool call. Tested with claude-agent-sdk 0.2.189."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, PermissionResultAllow, PermissionResultDeny

from ..authority import Base
from ..errors import AuthorityError, Denied
from .calls import Calls, Options, freeze, refusal_text, refused
from .open_calls import OpenCalls

if TYPE_CHECKING:
    from typing_extensions import Unpack

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
    because no permission is asked for them. ``Options`` describes the parameters.

    :param on_stop: Called when the permission of a running tool has ended, such as ``client.interrupt``.
    """

    def __init__(
        self, authority: Base, *, on_stop: Callable[[], Awaitable[None]] | None = None, **options: Unpack[Options]
    ) -> None:
        self._calls = Calls(authority, **options)
        self._timeout = self._calls.terms.wait + _MARGIN
        self._open, self.on_stop = OpenCalls(self._calls, self._stopped), on_stop

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
            await self._open.open(_key(call), call["tool_name"], call["tool_input"], call.get("agent_id"))
            return {}
        except Exception as error:
            return _denial(refusal_text(refused(error)))

    async def _refuse_shell(self, call: Any, tool_use_id: str | None, context: Any) -> Any:
        return _denial("shell commands in skills are not guarded", _SHELL)

    async def _after(self, call: Any, tool_use_id: str | None, context: Any) -> Any:
        """Reports the outcome of a tool that has run."""
        try:
            await self._open.close(_key(call), call["tool_input"], call.get("tool_response"), call.get("error"))
        except AuthorityError as failed:
            return {"continue_": False, "stopReason": str(failed)}
        return {}

    async def _stopped(self) -> None:
        if self.on_stop is not None:
            await self.on_stop()

    async def _end(self, call: Any, tool_use_id: str | None, context: Any) -> Any:
        self._open.give_back(call["session_id"], call.get("agent_id"))
        return {}

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
            if self._open.is_late(call.get("session_id"), call.get("tool_use_id")):
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
                if self._open.is_late(None, context.tool_use_id):
                    return PermissionResultDeny(message="the permission ended before the tool began")
            return result

        return checked


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

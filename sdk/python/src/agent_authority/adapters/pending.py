"""Answers for calls that have not begun: asked for at one hook of a framework, used at a later one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..clock import clock
from ..decision import Decision
from ..errors import AuthorityError, Held
from .calls import Calls, check_unchanged, freeze, refused


@dataclass
class Answer:
    """The answer for a call that has not begun. Without ``refusal``, it may begin."""

    #: The run that makes the call, kept so that no other object gets its identity.
    run: Any
    #: The canonical text of the arguments, which the tool gets.
    arguments: str
    #: The ``Question``; None if it can't be made.
    question: Any = None
    decision: Decision | None = None
    refusal: AuthorityError | None = None


class Pending:
    """The answers of an adapter."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._answers: dict[tuple[int, str, str], Answer] = {}

    async def ask(self, run: Any, call_id: str, name: str, arguments: str, held: Callable[[], Held | None]) -> Answer:
        """Asks for a call, once. ``held`` returns the question with which a paused run goes on."""
        key, answer = (id(run), call_id, name), Answer(run, "")
        try:
            values = json.loads(arguments or "{}")
            answer.arguments = freeze(values).decode()
            if (known := self._answers.get(key)) is not None and known.arguments == answer.arguments:
                return known
            answer.question = self._calls.question(name, values)
            answer.decision = await self._calls.decide(answer.question, held())
        except Exception as error:
            answer.refusal = refused(error)
        self._forget_unused()
        self._answers[key] = answer
        return answer

    def take(self, run: Any, call_id: str, name: str) -> Answer | None:
        """Removes the answer for a call. Calls of two tools may have one id."""
        return self._answers.pop((id(run), call_id, name), None)

    async def begin(self, run: Any, call_id: str, name: str, arguments: str, held: Callable[[], Held | None]) -> Answer:
        """Takes the permission for a call. Asks only if nothing was asked before, as when an agent's tool goes on.

        :raises AuthorityError: The call must not run.
        """
        answer = self.take(run, call_id, name)
        if answer is None:
            answer = await self.ask(run, call_id, name, arguments, held)
            self.take(run, call_id, name)
        else:
            check_unchanged(json.loads(arguments or "{}"), answer.arguments.encode())
        if answer.refusal is not None:
            raise answer.refusal
        return answer

    def _forget_unused(self) -> None:
        for key, answer in list(self._answers.items()):
            if answer.decision is not None and clock() >= answer.decision.deadline:
                del self._answers[key]
                self._calls.authority.report(answer.decision, "abandoned", "the tool did not begin")

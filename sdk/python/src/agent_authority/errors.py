"""The reasons why an action must not run. Every failure of a decision is one of these three."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .question import Question

if TYPE_CHECKING:
    from .decision import Decision

_HELD = "agent-authority.held.v1"


class AuthorityError(Exception):
    """The action is not permitted now."""


class Denied(AuthorityError):
    """The action is denied.

    ``code`` is the reason code of the decision (``decision`` is then set), the error code of the service,
    or one of this library: ``declined``, ``expired``, ``void``, ``used`` (the approval), ``stopped``, ``late``
    (the permission ended before the action began), ``unverified``, ``replayed``, ``unknown_decision``,
    ``obligation_unsupported``, ``obligation_failed``, ``invalid_question``, ``arguments_changed``.
    """

    def __init__(self, code: str, message: str, decision: Decision | None = None) -> None:
        super().__init__(code, message, decision)
        self.code = code
        self.message = message
        self.decision = decision

    def __str__(self) -> str:
        return f"denied ({self.code}): {self.message}"


class Held(AuthorityError):
    """The action waits for people. ``resume`` continues with it, in this or another process.

    It contains the whole question as it was sent, but neither a credential nor a redacted value.
    """

    def __init__(
        self,
        approval_id: str | None,
        verify_url: str,
        digest: str,
        eligible: str | None,
        question: Question,
        decision_id: str = "",
        reason_code: str = "",
    ) -> None:
        super().__init__(approval_id, verify_url, digest, eligible, question, decision_id, reason_code)
        #: The approval request; None if approvals don't help, but another state of the world does.
        self.approval_id = approval_id
        #: The receipt page of the held decision.
        self.verify_url = verify_url
        #: The digest of the question, as people sign it: ``request_digest`` of the approval.
        self.digest = digest
        #: ``none`` if no registered person can approve the question.
        self.eligible = eligible
        self.question = question
        self.decision_id = decision_id
        self.reason_code = reason_code

    def __str__(self) -> str:
        action, eligible = self.question.action, "; no registered person can approve it" if self.eligible == "none" else ""
        waits = f"waits for approval {self.approval_id}" if self.approval_id else f"waits ({self.reason_code})"
        return f"{action} {waits}{eligible}: {self.verify_url}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Held.from_json, (self.to_json(),)

    def to_json(self) -> dict[str, Any]:
        """Returns a JSON object for ``from_json``, possibly in another process."""
        return {
            "kind": _HELD,
            "approval_id": self.approval_id,
            "verify_url": self.verify_url,
            "digest": self.digest,
            "eligible": self.eligible,
            "question": self.question.to_json(),
            "decision_id": self.decision_id,
            "reason_code": self.reason_code,
        }

    @classmethod
    def from_json(cls, held: Mapping[str, Any] | str) -> Held:
        """Reads what ``to_json`` returned, as an object or as text. Unknown members are ignored.

        :raises ValueError: It is not a held question, or its question was changed.
        """
        members: Any = json.loads(held) if isinstance(held, str) else held
        if not isinstance(members, Mapping) or members.get("kind") != _HELD:
            raise ValueError("this is not a held question")
        question = Question.from_json(members["question"])
        if question.digest != members["digest"]:
            raise ValueError("the held question was changed: its digest differs")
        read = members.get
        return cls(
            read("approval_id"), str(read("verify_url", "")), question.digest, read("eligible"), question,
            str(read("decision_id", "")), str(read("reason_code", "")),
        )


class Unavailable(AuthorityError):
    """No usable answer: the service could not be reached, or could not answer. This is never a permission."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

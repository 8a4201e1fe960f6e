"""The answer to a question."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PERMITS = ("allow", "allow_with_constraints")


@dataclass(frozen=True)
class CitedApproval:
    """The approval that the question cites, and its state."""

    id: str
    state: str


@dataclass(frozen=True)
class Signature:
    """A signature over canonical JSON."""

    alg: str
    canonicalization: str
    kid: str
    value: str


@dataclass(frozen=True)
class Decision:
    """A decision of the service. ``members`` has the whole answer, also what this library does not know."""

    #: ``allow``, ``require_approval`` or ``deny``.
    decision: str
    reason_code: str
    decision_id: str
    #: The receipt page for people.
    verify_url: str = ""
    obligations: tuple[str, ...] = ()
    stop_conditions: tuple[str, ...] = ()
    approval_id: str | None = None
    ready_approval_id: str | None = None
    eligible: str | None = None
    cited_approval: CitedApproval | None = None
    authority_revision: int | None = None
    #: The time before which the action must begin (RFC 3339).
    valid_until: str | None = None
    tool_id: str | None = None
    #: The signed record (RFC 8785), and the salt of its ``context_digest``.
    record: str | None = None
    context_salt: str | None = None
    record_digest: str | None = None
    signature: Signature | None = None
    members: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False, repr=False)
    #: The end of the permission on the clock of this process (``agent_authority.clock``); 0 without one.
    deadline: float = dataclasses.field(default=0.0, compare=False)

    @property
    def permits(self) -> bool:
        """Whether the action is permitted."""
        return self.decision in PERMITS

    def proof(self) -> dict[str, Any]:
        """Returns what a tool's own server needs to verify this permission: record, signature and salt."""
        pack = self.members.get("evidence_pack") or {}
        return {"record": self.record, "signature": pack.get("signature"), "context_salt": self.context_salt}

    @classmethod
    def from_json(cls, members: Any) -> Decision:
        """Reads an answer of the service.

        :raises ValueError: A member that this library needs is absent or of another type.
        """
        answer = _Reader(members)
        pack = _Reader(answer.members.get("evidence_pack") or {})
        signature, cited = pack.members.get("signature"), answer.members.get("cited_approval")
        return cls(
            decision=answer.optional("decision") or "",
            reason_code=answer.text("reason_code"),
            decision_id=answer.text("decision_id"),
            verify_url=answer.optional("verify_url") or "",
            obligations=answer.texts("obligations"),
            stop_conditions=answer.texts("stop_conditions"),
            approval_id=answer.optional("approval_id"),
            ready_approval_id=answer.optional("ready_approval_id"),
            eligible=answer.optional("eligible"),
            cited_approval=_part(CitedApproval, cited),
            authority_revision=answer.integer("authority_revision"),
            valid_until=answer.optional("valid_until"),
            tool_id=answer.optional("tool_id"),
            record=answer.optional("record"),
            context_salt=answer.optional("context_salt"),
            record_digest=pack.optional("record_digest"),
            signature=_part(Signature, signature),
            members=answer.members,
        )


class _Reader:
    """Reads typed members of an object."""

    def __init__(self, members: Any) -> None:
        if not isinstance(members, dict):
            raise ValueError("the answer is not an object")
        self.members: dict[str, Any] = members

    def optional(self, name: str) -> str | None:
        value = self.members.get(name)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} is not text")
        return value

    def text(self, name: str) -> str:
        value = self.optional(name)
        if value is None:
            raise ValueError(f"{name} is missing")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        values = self.members.get(name) or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(f"{name} is not a list of texts")
        return tuple(values)

    def integer(self, name: str) -> int | None:
        value = self.members.get(name)
        if value is not None and type(value) is not int:
            raise ValueError(f"{name} is not an integer")
        return value


def _part(kind: type[Any], members: Any) -> Any:
    """Reads an object of texts; None if it is absent."""
    if members is None:
        return None
    reader = _Reader(members)
    return kind(**{field.name: reader.text(field.name) for field in dataclasses.fields(kind)})

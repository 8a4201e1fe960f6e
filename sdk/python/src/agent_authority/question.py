"""The question whether an action is permitted."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .jcs import canonical
from .values import FrozenContext, freeze_context, freeze_members

#: Members that are not part of the question that people approve.
_NOT_ASKED = ("justification", "at_least_revision")


@dataclass(frozen=True)
class Question:
    """The question whether a subject may perform an action.

    ``context`` is copied and converted when the question is made: Decimals become numbers, dates RFC 3339
    texts, bytes ``{"sha256": …}``; ``amount`` must be a Decimal, an integer or text, never a float.

    :raises ValueError: A value has no exact JSON form.
    """

    #: A dotted name such as ``payment.execute``.
    action: str
    #: The acting agent; the authority's own subject when left out.
    subject: str | None = None
    #: The slug of the purpose; the authority's own purpose when left out.
    purpose: str | None = None
    context: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    resource_id: str | None = None
    tool_id: str | None = None
    #: The digest of the tool's definition that the caller sees, for tools of an MCP server.
    tool_definition_digest: str | None = None
    workspace_id: str | None = None
    project_id: str | None = None
    delegation_id: str | None = None
    on_behalf_of: str | None = None
    action_declaration: Mapping[str, Any] | None = None
    action_risk_classification: Mapping[str, Any] | None = None
    #: The obligations that the caller can meet; those with a handler when left out.
    supported_obligations: Iterable[str] | None = None
    #: The agent's own reason, shown to approvers.
    justification: str | None = None
    at_least_revision: int | None = None

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        put("context", freeze_context(self.context))
        for name in ("action_declaration", "action_risk_classification"):
            if (given := getattr(self, name)) is not None:
                present = {word: value for word, value in given.items() if value is not None}
                put(name, freeze_members(present, name) or None)
        if isinstance(self.supported_obligations, str):
            raise ValueError("supported_obligations must be a list")
        if self.supported_obligations is not None:
            put("supported_obligations", tuple(sorted(set(self.supported_obligations))))

    def replace(self, **changes: Any) -> Question:
        """Returns a question with other members."""
        return dataclasses.replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """Returns the members that are set, as JSON values."""
        members = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        members = {name: value for name, value in members.items() if value is not None}
        if self.supported_obligations is not None:
            members["supported_obligations"] = list(self.supported_obligations)
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Question:
        """Reads what ``to_json`` returned.

        :raises ValueError: A member is unknown or missing.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(members) - known):
            raise ValueError(f"unknown members of a question: {', '.join(unknown)}")
        if not isinstance(members.get("action"), str):
            raise ValueError("a question needs an action")
        return cls(**{**members, "context": FrozenContext(members.get("context", {}))})

    @property
    def tenant_id(self) -> str:
        """The tenant of the subject. Empty if the subject is not the id of an agent or principal."""
        parts = (self.subject or "").split(":")
        return f"svc:tenant:{parts[2]}" if len(parts) > 3 and parts[0] == "svc" else ""

    @property
    def digest(self) -> str:
        """The digest of the question that people approve: ``request_digest`` of an approval."""
        members = {name: value for name, value in self.to_json().items() if name not in _NOT_ASKED}
        text = canonical({"tenant_id": self.tenant_id, **members})
        return f"sha256:{hashlib.sha256(text).hexdigest()}"

"""How the calls of an agent's tools become questions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Union

Arguments = Mapping[str, Any]
#: A fixed value, or a function of the tool's arguments.
Mapped = Union[Any, Callable[[Arguments], Any]]


@dataclass(frozen=True)
class Tool:
    """How the calls of a tool become questions.

    ``amount``, ``currency``, ``resource_id`` and ``context`` may be functions of the tool's arguments. The
    purpose, the delegation and the tool's id are fixed, because the arguments are the model's words.
    """

    #: By default ``tool.`` and the tool's name in lower case.
    action: str | None = None
    purpose: str | None = None
    amount: Mapped = None
    currency: Mapped = None
    resource_id: Mapped = None
    #: Further facts for policies, such as ``jurisdiction``.
    context: Mapped = None
    tool_id: str | None = None
    delegation_id: str | None = None
    #: Arguments that the question has only as ``{"hmac": …}``.
    redact: Collection[str] = ()

    def __post_init__(self) -> None:
        for name in ("action", "purpose", "tool_id", "delegation_id"):
            if not isinstance(getattr(self, name), (str, type(None))):
                raise TypeError(f"{name} must be text: it can't depend on the model's arguments")

    def members(self, purpose: str | None) -> dict[str, Any]:
        """Returns the members of its questions, besides the action. ``purpose`` is for tools that name none."""
        members = {
            "purpose": self.purpose or purpose, "amount": self.amount, "currency": self.currency,
            "resource_id": self.resource_id, "context": self.context, "tool_id": self.tool_id,
            "delegation_id": self.delegation_id,
        }  # fmt: skip
        if callable(self.amount):
            members["amount"] = lambda asked: _exact(self.amount(asked))
        return {name: value for name, value in members.items() if value is not None}


def default_action(name: str) -> str:
    """Returns the action of a tool without one in the table."""
    action = f"tool.{name.lower()}"
    if not re.fullmatch(r"tool(\.[a-z0-9_-]+)+", action) or len(action) > 128:
        raise ValueError(f"the name {name!r} has no action; name one in tools")
    return action


def provider_tools(settings: Iterable[Any]) -> Iterator[str]:
    """Lists the members of a model's settings that make tools run at the provider."""
    for options in settings:
        if not isinstance(options, Mapping):
            continue
        for name, value in options.items():
            if value and (name in ("tools", "mcp_servers") or str(name).endswith(("_native_tools", "_builtin_tools"))):
                yield f"model setting {name}"
        yield from provider_tools([options.get(name) for name in ("extra_body", "extra_args", "model_kwargs")])


def _exact(amount: Any) -> Any:
    """A model's number arrives as a float. Its shortest decimal form is what the model wrote."""
    return Decimal(repr(amount)) if isinstance(amount, float) else amount

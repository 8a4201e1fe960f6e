"""Agent Authority: guards an agent's actions, and verifies permissions, evidence and webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__
from .authority import Authority, PermitScope
from .clock import clock
from .decision import CitedApproval, Decision, Signature
from .errors import AuthorityError, Denied, Held, Unavailable
from .guard import Guarded
from .keys import KeySet
from .permit import Permit, current_permit
from .question import Question
from .verification import VerifiedPermit, verify_permit

if TYPE_CHECKING:
    from .aio import AsyncAuthority, AsyncPermitScope
    from .webhook import Suite, WebhookError, verify_webhook

#: Modules of names that are imported on first use: asyncio and cryptography take longer than all modules here.
_LATER = {
    "AsyncAuthority": "aio", "AsyncPermitScope": "aio",
    "Suite": "webhook", "WebhookError": "webhook", "verify_webhook": "webhook",
}  # fmt: skip

__all__ = [
    "AsyncAuthority", "AsyncPermitScope", "Authority", "AuthorityError", "CitedApproval", "Decision", "Denied",
    "Guarded", "Held", "KeySet", "Permit", "PermitScope", "Question", "Signature", "Suite", "Unavailable",
    "VerifiedPermit", "WebhookError", "__version__", "clock", "current_permit", "verify_permit", "verify_webhook",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)

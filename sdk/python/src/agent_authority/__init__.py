"""For receivers of Agent Authority's webhooks."""

from .webhook import Suite, WebhookError, verify_webhook

__all__ = ["Suite", "WebhookError", "verify_webhook"]

"""Verification of Agent Authority's webhooks, for receivers."""

from .webhook import Suite, WebhookError, verify_webhook

__all__ = ["Suite", "WebhookError", "verify_webhook"]

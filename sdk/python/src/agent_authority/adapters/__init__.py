"""Adapters for agent frameworks. Each needs the extra of its name, such as ``agent-authority-sdk[langchain]``."""

from .tools import Tool

__all__ = ["Tool"]

"""Times: a clock that no setting of the machine's time changes, and RFC 3339 texts."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta

_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1)
# While the machine sleeps, CLOCK_MONOTONIC of Linux and time.monotonic() of macOS stop. These clocks do not. On Windows,
# time.monotonic() counts the sleep.
_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def clock() -> float:
    """Returns seconds of a monotonic clock. Deadlines of permissions are on this clock."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


def microseconds(moment: str) -> int:
    """Returns the microseconds since 1970 of an RFC 3339 time in UTC, rounded down.

    :raises ValueError: The text is not such a time, or its day does not exist.
    """
    found = _MOMENT.fullmatch(moment)
    if not found:
        raise ValueError("must be a time since 1970, in UTC with Z")
    at = datetime.fromisoformat(found[1])
    # Formatting it again detects 24:00, which some versions read as the next day.
    if at.isoformat() != found[1] or at < _EPOCH:
        raise ValueError("must be a time since 1970, in UTC with Z")
    return (at - _EPOCH) // timedelta(microseconds=1) + int((found[2] or "").ljust(6, "0")[:6])

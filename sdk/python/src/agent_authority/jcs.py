"""Canonical JSON (RFC 8785): one text for each value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

#: Integers beyond this value are not exact in every JSON parser (RFC 7493).
MAX_INTEGER = 2**53 - 1


def canonical(value: Any) -> bytes:
    """Returns the canonical text of a JSON value, in UTF-8.

    :raises ValueError: The value is not JSON, or has a number or text that JSON cannot represent exactly.
    """
    parts: list[str] = []
    _write(value, parts)
    try:
        return "".join(parts).encode()
    except UnicodeEncodeError:
        raise ValueError("a text has a lone surrogate") from None


def parse(text: str | bytes) -> Any:
    """Parses JSON. Refuses texts that two parsers could read differently.

    :raises ValueError: The text is not JSON, an object has a member twice, or a number is not finite.
    """
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a member twice")
    return members


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _write(value: Any, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(json.dumps(value, ensure_ascii=False))
    elif value is None or isinstance(value, bool):
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise ValueError(f"{value} is beyond 2^53-1")
        parts.append(str(int(value)))
    elif isinstance(value, float):
        parts.append(_double(value))
    elif isinstance(value, Mapping):
        _write_object(value, parts)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            parts.append("," if index else "[")
            _write(item, parts)
        parts.append("]" if value else "[]")
    else:
        raise ValueError(f"a {type(value).__name__} is not a JSON value")


def _write_object(value: Mapping[Any, Any], parts: list[str]) -> None:
    if not all(isinstance(name, str) for name in value):
        raise ValueError("the name of a member must be text")
    # RFC 8785 sorts names by their UTF-16 code units.
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    for index, name in enumerate(names):
        parts.append("," if index else "{")
        parts.append(json.dumps(name, ensure_ascii=False))
        parts.append(":")
        _write(value[name], parts)
    parts.append("}" if names else "{}")


def _double(value: float) -> str:
    """Formats a double as ECMAScript does (ECMA-262, Number::toString)."""
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{value} is not a JSON number")
    if value == 0:
        return "0"
    # Python and ECMAScript choose the same digits, the shortest that parse to the same double.
    sign, digit_values, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    digits, minus = "".join(map(str, digit_values)), "-" if sign else ""
    point = len(digits) + exponent
    if 0 < point <= 21:
        whole, rest = digits[:point].ljust(point, "0"), digits[point:]
        return minus + whole + (f".{rest}" if rest else "")
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{minus}{digits[0]}{rest}e{'+' if point > 0 else '-'}{abs(point - 1)}"

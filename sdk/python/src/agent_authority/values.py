"""Conversion of Python values to the JSON values of a question."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import hashlib
import re
from collections.abc import Collection, Mapping
from decimal import Decimal, localcontext
from typing import Any

from .jcs import MAX_INTEGER, canonical

_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", re.ASCII)
_MAX_DECIMALS = 4


def freeze(value: Any, path: str = "value") -> Any:
    """Returns a copy of the value that has only JSON types.

    Decimals become numbers, dates RFC 3339 texts (with time zone in UTC), bytes ``{"sha256": …}``,
    dataclasses and Pydantic models objects. The same value gives the same JSON in every process.

    :param path: The name of the value in error messages.
    :raises ValueError: The value, or a part of it, has no exact JSON form.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return freeze(value.value, path)
    if isinstance(value, str):
        value = str.__str__(value)  # a subclass may have its own __str__
        if any("\ud800" <= letter <= "\udfff" or letter == "\0" for letter in value):
            raise ValueError(f"{path}: the text has a lone surrogate or U+0000")
        return value
    if isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise ValueError(f"{path}: the integer is beyond 2^53-1; use text")
        return int(value)
    if isinstance(value, float):
        if not abs(value) <= MAX_INTEGER:
            raise ValueError(f"{path}: {value} has no exact JSON form; use text")
        return float(value)
    if isinstance(value, Decimal):
        return _number(format(value, "f"), path)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"sha256": hashlib.sha256(value).hexdigest()}
    if isinstance(value, (datetime.date, datetime.time)):
        return _moment(value, path)
    return _collection(value, path)


def _collection(value: Any, path: str) -> Any:
    if isinstance(value, Mapping):
        return freeze_members(value, path)
    if isinstance(value, (list, tuple)):
        return [freeze(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if other := sorted(getattr(value, "__dict__", {}).keys() - members.keys()):
            raise ValueError(f"{path}: {other[0]} is not a field of the dataclass")
        return freeze_members(members, path)
    if type(value).__module__ == "uuid":
        return str(value)
    if isinstance(fields := getattr(type(value), "model_fields", None), Mapping):
        return _model(value, fields, path)
    raise ValueError(f"{path}: a {type(value).__name__} can't be part of a question; exclude it or map it to JSON")


def _model(value: Any, fields: Mapping[str, Any], path: str) -> Any:
    """Freezes a Pydantic model. ``model_dump`` would leave out what the model excludes or hides."""
    if getattr(type(value), "__pydantic_root_model__", False):
        return freeze(value.root, path)
    members = {name: getattr(value, name) for name in fields}
    return freeze_members({**members, **(getattr(value, "model_extra", None) or {})}, path)


def freeze_members(values: Mapping[Any, Any], path: str) -> dict[str, Any]:
    """Freezes each value of a mapping."""
    for name in values:
        if not isinstance(name, str):
            raise ValueError(f"{path}: the name {name!r} must be text")
    return {freeze(name, path): freeze(item, f"{path}.{name}") for name, item in values.items()}


class FrozenContext(dict[str, Any]):
    """A context that has only JSON values."""


def freeze_context(context: Mapping[str, Any]) -> FrozenContext:
    """Freezes the context of a question: its members that are not null, with ``amount`` as a number."""
    if isinstance(context, FrozenContext):
        return FrozenContext(freeze_members(context, "context"))
    present = {name: value for name, value in context.items() if value is not None}
    if (amount := present.pop("amount", None)) is not None:
        amount = freeze_amount(amount, "context.amount")
    frozen = FrozenContext(freeze_members(present, "context"))
    return frozen if amount is None else FrozenContext({**frozen, "amount": amount})


def freeze_amount(value: Any, path: str = "amount") -> int | float:
    """Returns an amount as a JSON number.

    :param value: A Decimal, an integer, or text such as ``"1200.50"``; at most 4 decimals. A float is
        refused, because it may differ from the amount that was meant.
    :raises ValueError: The amount is not exact.
    """
    if isinstance(value, Decimal):
        value = format(value, "f")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(int(value))
    if not isinstance(value, str):
        raise ValueError(f"{path}: must be a Decimal, an integer or text, not a {type(value).__name__}")
    return _number(value, path)


def _number(text: str, path: str) -> int | float:
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{path}: {text!r} is not a decimal number such as 1200.50")
    whole, _, decimals = text.partition(".")
    if len(decimals.rstrip("0")) > _MAX_DECIMALS:
        raise ValueError(f"{path}: {text} has more than {_MAX_DECIMALS} decimals")
    if not decimals.rstrip("0"):
        integer = int(whole) if len(whole) < 20 else MAX_INTEGER + 1
        if abs(integer) > MAX_INTEGER:
            raise ValueError(f"{path}: {text} is beyond 2^53-1")
        return integer
    double = float(text)
    with localcontext() as exact:
        exact.prec = len(text) + 20
        if Decimal(repr(double)) != Decimal(text):
            raise ValueError(f"{path}: {text} can't be sent exactly; the nearest number is {double!r}")
    return double


def _moment(value: datetime.date | datetime.time, path: str) -> str:
    if isinstance(value, datetime.time):
        raise ValueError(f"{path}: a time without a date can't be part of a question; use text")
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    if value.utcoffset() is None:
        raise ValueError(f"{path}: the date and time needs a time zone")
    utc = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='microseconds').rstrip('0').rstrip('.')}Z"


def redact(arguments: Mapping[str, Any], names: Collection[str], key: bytes) -> dict[str, Any]:
    """Replaces arguments by ``{"hmac": …}``: HMAC-SHA256 over their canonical JSON.

    :param names: Names of arguments, or JSON pointers into them, such as ``/customer/iban``.
    """
    import hmac

    pointers = {name if name.startswith("/") else f"/{_escaped(name)}" for name in names}

    def code(value: Any, path: str) -> Any:
        if isinstance(value, dict):
            value = {name: code(item, f"{path}/{_escaped(name)}") for name, item in value.items()}
        elif isinstance(value, list):
            value = [code(item, f"{path}/{index}") for index, item in enumerate(value)]
        if path in pointers:
            return {"hmac": hmac.new(key, canonical(value), "sha256").hexdigest()}
        return value

    return {name: code(value, f"/{_escaped(name)}") for name, value in arguments.items()}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")

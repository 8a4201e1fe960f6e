"""Reads and changes an answer of the service: JSON over REST, or a message over gRPC-Web."""

from __future__ import annotations

import json
import struct
from datetime import datetime
from typing import Any

# The numbers of the fields of `authority.runtime.v1.EvaluateResponse` and of
# `EvaluateDecisionResponse`.
EVALUATE: dict[str, list[int]] = {
    "decision": [1],
    "decision_id": [3],
    "evidence_pack.record_digest": [6, 1],
    "evidence_pack.signature.kid": [6, 2, 3],
    "evidence_pack.signature.value": [6, 2, 4],
    "obligations": [7],
    "approval_id": [9],
    "valid_until": [11],
    "record": [25],
    "context_salt": [26],
}
EVALUATE_DECISION = EVALUATE | {
    "decision_id": [4],
    "evidence_pack.record_digest": [10, 1],
    "evidence_pack.signature.kid": [10, 2, 3],
    "evidence_pack.signature.value": [10, 2, 4],
    "obligations": [5],
    "approval_id": [7],
    "valid_until": [13],
}
DECISIONS = ["", "allow", "allow_with_constraints", "require_approval", "deny"]
UNKNOWN_DECISION = 77
VARINT, TEXT = 0, 2


class Rest:
    """A JSON object."""

    def __init__(self, body: bytes):
        self.members = json.loads(body)

    def get(self, name: str) -> Any:
        value = self.members
        for part in name.split("."):
            value = (value or {}).get(part)
        return value

    def set(self, name: str, value: Any) -> None:
        *parents, last = name.split(".")
        members = self.members
        for part in parents:
            members = members[part]
        members[last] = value

    def body(self) -> bytes:
        return json.dumps(self.members).encode()


class GrpcWeb:
    """A message in the first frame, then the frame of the trailers."""

    def __init__(self, body: bytes, fields: dict[str, list[int]]):
        self.fields = fields
        size = struct.unpack(">xI", body[:5])[0]
        self.message, self.trailers = body[5 : 5 + size], body[5 + size :]

    def get(self, name: str) -> Any:
        value = self.message
        for number in self.fields[name]:
            found = [field for field in fields(value) if field[0] == number]
            if not found:
                return None
            value = found[-1][2]
        if name == "decision":
            return DECISIONS[value] if value < len(DECISIONS) else value
        return value.decode()

    def set(self, name: str, value: Any) -> None:
        self.message = replaced(self.message, self.fields[name], encoded(name, value))

    def body(self) -> bytes:
        return struct.pack(">xI", len(self.message)) + self.message + self.trailers


def encoded(name: str, value: Any) -> list[int | bytes]:
    """Returns the values of a field, none for null."""
    if value is None:
        return []
    if name == "decision":
        return [DECISIONS.index(value) if value in DECISIONS else UNKNOWN_DECISION]
    if name == "valid_until":
        seconds = int(datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp())
        return [b"\x08" + varint(seconds)]
    return [text.encode() for text in (value if isinstance(value, list) else [value])]


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data: bytes) -> list[tuple[int, int, Any]]:
    """Returns number, wire type and value of each field of a message."""
    found, at = [], 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, at = read_varint(data, at)
        elif wire == TEXT:
            size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size = {1: 8, 5: 4}[wire]
            value, at = data[at : at + size], at + size
        found.append((number, wire, value))
    return found


def written(found: list[tuple[int, int, Any]]) -> bytes:
    """Returns the message with these fields."""
    out = bytearray()
    for number, wire, value in found:
        out += varint(number << 3 | wire)
        if wire == VARINT:
            out += varint(value)
        else:
            out += (varint(len(value)) if wire == TEXT else b"") + value
    return bytes(out)


def replaced(data: bytes, path: list[int], values: list[int | bytes]) -> bytes:
    """Returns the message with other values at the path."""
    found, (number, *rest) = fields(data), path
    if rest:
        return written([
            (n, wire, replaced(value, rest, values) if n == number else value)
            for n, wire, value in found
        ])
    kept = [field for field in found if field[0] != number]
    wire = {int: VARINT, bytes: TEXT}
    return written(kept + [(number, wire[type(value)], value) for value in values])


def read(path: str, body: bytes, is_grpc: bool) -> Rest | GrpcWeb:
    """Reads the answer of the operation at this path."""
    if not is_grpc:
        return Rest(body)
    return GrpcWeb(body, EVALUATE_DECISION if path.endswith("/EvaluateDecision") else EVALUATE)

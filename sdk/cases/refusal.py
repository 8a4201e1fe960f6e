"""Errors in the form of the service, over REST and over gRPC-Web."""

from __future__ import annotations

import base64
import json

from answer import TEXT, VARINT, written
from http1 import Message

# Error word: HTTP status, gRPC status.
ERRORS = {
    "invalid_request": (400, 3),
    "unauthenticated": (401, 16),
    "forbidden": (403, 7),
    "not_found": (404, 5),
    "decision_stopped": (409, 10),
    "idempotency_in_progress": (409, 10),
    "idempotency_key_reused": (422, 3),
    "rate_limited": (429, 8),
    "internal": (500, 13),
    "unavailable": (503, 14),
}


def refusal(word: str, is_grpc: bool, retry_after: str | None) -> Message:
    status, code = ERRORS[word]
    if is_grpc:
        return over_grpc(word, code, retry_after)
    headers = [("content-type", "application/json")]
    if retry_after:
        headers.append(("retry-after", retry_after))
    body = json.dumps({"error": word, "message": f"it is {word}"}).encode()
    return Message(f"HTTP/1.1 {status} Fault", headers, body)


def over_grpc(word: str, code: int, retry_after: str | None) -> Message:
    """The status is in the headers of a response without messages."""
    info = [(1, TEXT, word.encode()), (2, TEXT, b"authority")]
    if retry_after:
        info.append((3, TEXT, written([(1, TEXT, b"retry_after"), (2, TEXT, retry_after.encode())])))
    details = [(1, TEXT, b"type.googleapis.com/google.rpc.ErrorInfo"), (2, TEXT, written(info))]
    text = f"it is {word}".encode()
    whole = written([(1, VARINT, code), (2, TEXT, text), (3, TEXT, written(details))])
    return Message("HTTP/1.1 200 OK", [
        ("content-type", "application/grpc-web+proto"),
        ("grpc-status", str(code)),
        ("grpc-message", text.decode().replace(" ", "%20")),
        ("grpc-status-details-bin", base64.b64encode(whole).decode().rstrip("=")),
    ])


def of_a_gateway(status: int) -> Message:
    """The page of a proxy or load balancer in front of the service."""
    page = f"<html><body><h1>{status}</h1></body></html>".encode()
    return Message(f"HTTP/1.1 {status} Fault", [("content-type", "text/html")], page)

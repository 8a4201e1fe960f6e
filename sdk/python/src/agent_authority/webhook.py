"""Verifies that a webhook delivery is genuine and addressed to this receiver."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Suite = Literal["rfc9421", "jwt", "standard-webhooks/v1"]

_MESSAGES = {
    "no_signature": "no accepted suite has signed the delivery",
    "malformed": "a header of the signature is absent, repeated or unreadable",
    "unknown_key": "the key is not a webhook key of the JWKS; fetch the JWKS again",
    "signature": "the signature does not match the request",
    "time": "the signature is too old, from the future, or has expired",
    "digest": "the body differs from the signed body",
    "url": "the delivery is for another URL: url must be the endpoint's URL exactly as the service shows it "
    "(scheme, host, final slash)",
    "envelope": "the body is not an event",
    "event_id": "the signature is for another event",
    "tenant_id": "the event belongs to another tenant",
}


#: The message for a signature that covers the URL and the content type.
_NOT_THIS_REQUEST = (
    "the signature does not match the request: url must be the endpoint's URL exactly as the service shows it "
    "(scheme, host, final slash), and content-type as it was sent"
)


class WebhookError(Exception):
    """The reason for rejecting a delivery.

    ``code`` ``configuration`` is a mistake of the receiver itself: respond with 5xx, and the delivery is
    repeated. Respond with 4xx for any other code.
    """

    def __init__(self, code: str, message: str | None = None) -> None:
        super().__init__(message or _MESSAGES[code])
        self.code = code


class _Delivery(NamedTuple):
    body: bytes
    headers: dict[str, list[str]]
    jwks: Mapping[str, Any] | None
    secrets: Sequence[str]
    url: str
    tolerance: float
    now: float

    def one(self, name: str) -> str:
        """Returns the value of a header that occurs exactly once."""
        values = self.headers.get(name, [])
        if len(values) != 1:
            raise WebhookError("malformed")
        return values[0].strip(" \t")

    def check_time(self, made: int) -> None:
        if abs(made - self.now) > self.tolerance:
            raise WebhookError("time")


def verify_webhook(
    envelope: bytes,
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
    *,
    url: str,
    tenant_id: str,
    jwks: Mapping[str, Any] | None = None,
    secrets: Sequence[str] | None = None,
    accept: Sequence[Suite] | None = None,
    tolerance: float | None = None,
    now: float | None = None,
) -> dict[str, Any]:
    """Verifies a delivery and returns its event.

    Only the first suite of ``accept`` that signed the delivery is verified; other suites are not tried. A
    delivery can be repeated: store the ``event_id``s that you have handled.

    :param envelope: The request's raw body, before any parsing.
    :param headers: Its headers, as a mapping or as pairs. The case of their names does not matter.
    :param url: The endpoint's URL as the service shows it.
    :param tenant_id: The tenant of the expected events. Other tenants can also send to any URL.
    :param jwks: ``<service>/.well-known/jwks.json``, for the suites ``rfc9421`` and ``jwt``. Fetch it again
        when a key is unknown (``unknown_key``), and drop keys that were removed from it.
    :param secrets: ``whsec_…``, for the suite ``standard-webhooks/v1``. During a rotation, both secrets.
    :param accept: The suites to accept, the preferred one first. Default: the suites that have keys.
    :param tolerance: The accepted clock difference and delay of a delivery, in seconds; 300 by default.
        Signatures of ``rfc9421`` and ``jwt`` also expire after 300 seconds.
    :param now: Seconds since 1970; by default the time of the machine.
    :raises WebhookError: The delivery is rejected.
    """
    tolerance = 300 if tolerance is None else tolerance
    accepted = _accepted(jwks, secrets, accept, url, tenant_id, tolerance)
    now = time.time() if now is None else now
    named = _by_name(headers)
    delivery = _Delivery(bytes(envelope), named, jwks, secrets or [], url, tolerance, now)
    suite = next((suite for suite in accepted if _SUITES[suite][0] in named), None)
    if suite is None:
        raise WebhookError("no_signature")
    event_id = _SUITES[suite][1](delivery)
    event = _object(delivery.body)
    if event is None:
        raise WebhookError("envelope")
    if event.get("event_id") != event_id:
        raise WebhookError("event_id")
    if event.get("tenant_id") != tenant_id:
        raise WebhookError("tenant_id")
    return event


def _accepted(
    jwks: Mapping[str, Any] | None,
    secrets: Sequence[str] | None,
    accept: Sequence[Suite] | None,
    url: str,
    tenant_id: str,
    tolerance: float,
) -> list[str]:
    def wrong(why: str) -> WebhookError:
        return WebhookError("configuration", why)

    def has_keys(suite: str) -> bool:
        return bool(secrets) if suite == "standard-webhooks/v1" else jwks is not None

    if not url or not tenant_id:
        raise wrong("url and tenant_id are required")
    if not tolerance >= 0:
        raise wrong("tolerance must be a number of seconds, 0 or more")
    if isinstance(secrets, str):
        raise wrong("secrets must be a list")
    if any(suite not in _SUITES for suite in accept or []):
        raise wrong(f"accept may only contain {', '.join(_SUITES)}")
    if not all(map(has_keys, accept or [])):
        raise wrong(
            "accept names a suite without keys: rfc9421 and jwt need jwks, standard-webhooks/v1 needs secrets"
        )
    accepted = list(accept or filter(has_keys, _SUITES))
    if not accepted:
        raise wrong("give jwks, secrets, or both")
    return accepted


def _standard_webhooks(delivery: _Delivery) -> str:
    event_id, timestamp = delivery.one("webhook-id"), delivery.one("webhook-timestamp")
    made = _seconds(timestamp)
    signed = _utf8(f"{event_id}.{timestamp}.") + delivery.body
    # Versions other than v1 come from other services.
    parts = delivery.one("webhook-signature").split(" ")
    codes = [_base64(part[3:]) for part in parts if part.startswith("v1,")]
    fits = False
    for secret in delivery.secrets:
        key = _decoded(secret[6:]) if secret.startswith("whsec_") else None
        if key is None or len(key) != 32:
            raise WebhookError("configuration", "a secret is whsec_ and base64 of 32 bytes")
        own = hmac.digest(key, signed, "sha256")
        fits |= any([hmac.compare_digest(own, code) for code in codes])
    if not fits:
        raise WebhookError("signature")
    delivery.check_time(made)
    return str(event_id)


# The service writes the parameters in one form only.
_PARAMETERS = re.compile(
    r'\("@method" "@target-uri" "content-digest" "content-type" "webhook-id" "webhook-timestamp"\)'
    r';created=([0-9]{1,15});expires=([0-9]{1,15});keyid="([^"]*)";alg="ed25519";tag="svc-webhook-v1"'
)


def _message_signature(delivery: _Delivery) -> str:
    signature_input = _member(delivery.one("signature-input"))
    parameters = _PARAMETERS.fullmatch(signature_input)
    encoded = re.fullmatch(":(.*):", _member(delivery.one("signature")))
    if parameters is None or encoded is None:
        raise WebhookError("malformed")
    created, expires, kid = parameters.groups()
    signature = _base64(encoded[1])
    event_id, content_digest = delivery.one("webhook-id"), delivery.one("content-digest")
    base = "\n".join(
        [
            '"@method": POST',
            f'"@target-uri": {delivery.url}',
            f'"content-digest": {content_digest}',
            f'"content-type": {delivery.one("content-type")}',
            f'"webhook-id": {event_id}',
            f'"webhook-timestamp": {delivery.one("webhook-timestamp")}',
            f'"@signature-params": {signature_input}',
        ]
    )
    _check_signature(delivery.jwks, kid, _utf8(base), signature, _NOT_THIS_REQUEST)
    delivery.check_time(int(created))
    if delivery.now > int(expires):
        raise WebhookError("time")
    digest = base64.b64encode(hashlib.sha256(delivery.body).digest()).decode()
    if content_digest != f"sha-256=:{digest}:":
        raise WebhookError("digest")
    return str(event_id)


def _member(dictionary: str) -> str:
    """Returns the service's only member of a dictionary (RFC 9651, 3.2)."""
    members, start, quoted = [], 0, False
    for at, letter in enumerate(dictionary + ","):
        quoted ^= letter == '"'
        if at == len(dictionary) or (letter == "," and not quoted):
            members.append(dictionary[start:at].strip(" \t"))
            start = at + 1
    ours = [member[4:] for member in members if member.startswith("svc=")]
    if len(ours) != 1:
        raise WebhookError("malformed")
    return ours[0]


def _token(delivery: _Delivery) -> str:
    parts = delivery.one("webhook-jwt").split(".")
    decoded = [_decoded_url(part) for part in parts]
    if len(parts) != 3 or None in decoded:
        raise WebhookError("malformed")
    header, claims = _object(decoded[0] or b"") or {}, _object(decoded[1] or b"") or {}
    kid: Any = header.get("kid")
    named: list[Any] = [claims.get(name) for name in ("iat", "exp", "aud", "jti", "body_sha256")]
    issued, expires, audience, event_id, digest = named
    fits = header.get("alg") == "EdDSA" and header.get("typ") == "svc-webhook+jwt" and "crit" not in header
    times = all(type(value) is int and 0 <= value < 2**53 for value in (issued, expires))
    texts = all(isinstance(value, str) for value in (kid, audience, event_id, digest))
    if not (fits and times and texts):
        raise WebhookError("malformed")
    _check_signature(delivery.jwks, kid, _utf8(f"{parts[0]}.{parts[1]}"), decoded[2] or b"")
    delivery.check_time(issued)
    if delivery.now > expires:
        raise WebhookError("time")
    if digest != hashlib.sha256(delivery.body).hexdigest():
        raise WebhookError("digest")
    if audience != delivery.url:
        raise WebhookError("url")
    return str(event_id)


#: Suites with published keys come first: with a leaked secret, anyone could sign.
_SUITES = {
    "rfc9421": ("signature-input", _message_signature),
    "jwt": ("webhook-jwt", _token),
    "standard-webhooks/v1": ("webhook-signature", _standard_webhooks),
}


def _check_signature(
    jwks: Mapping[str, Any] | None, kid: str, signed: bytes, signature: bytes, message: str | None = None
) -> None:
    """Checks that a webhook key of the JWKS signed these bytes (Ed25519, RFC 8032)."""
    keys = [key for key in (jwks or {}).get("keys", []) if key.get("kid") == kid]
    if len(keys) != 1 or not kid.startswith("svc-webhook-"):
        raise WebhookError("unknown_key")
    key = keys[0]
    fits = key.get("kty") == "OKP" and key.get("crv") == "Ed25519" and isinstance(key.get("x"), str)
    fits = fits and key.get("alg", "EdDSA") == "EdDSA" and key.get("use", "sig") == "sig"
    public = _decoded_url(key["x"]) if fits else None
    if public is None or len(public) != 32:
        raise WebhookError("unknown_key")
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, signed)
    except InvalidSignature:
        raise WebhookError("signature", message) from None


def _by_name(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name.lower(), []).append(value)
    return found


def _seconds(text: str) -> int:
    if not re.fullmatch("[0-9]{1,15}", text):
        raise WebhookError("malformed")
    return int(text)


def _utf8(text: str) -> bytes:
    # The service signs only valid text. Other text therefore fails the check.
    return text.encode("utf-8", "backslashreplace")


def _object(data: bytes) -> dict[str, Any] | None:
    """Returns the members of a JSON object; None if the bytes are not one."""
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _base64(text: str) -> bytes:
    decoded = _decoded(text)
    if decoded is None:
        raise WebhookError("malformed")
    return decoded


def _decoded(text: str) -> bytes | None:
    """Decodes base64 with padding; None unless the text is the only encoding of its bytes."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None
    return decoded if base64.b64encode(decoded).decode() == text else None


def _decoded_url(text: str) -> bytes | None:
    if not re.fullmatch("[A-Za-z0-9_-]*", text):
        return None
    return _decoded(text.translate({45: "+", 95: "/"}) + "=" * (-len(text) % 4))

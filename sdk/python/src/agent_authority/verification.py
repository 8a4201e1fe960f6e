"""Checks that a permission was really given: by the service, for this question, for this call."""

from __future__ import annotations

import base64
import binascii
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .clock import microseconds
from .decision import PERMITS, Decision
from .errors import Denied
from .jcs import canonical, parse
from .keys import Key, KeySet, signed_by
from .question import Question

#: With ``cite_ready_approval``, the record names an approval that was not sent.
_NOT_COMPARED = ("approval_id", "explain", "context_digest")
#: Members that a tool's own server may not know: compared only if its question has them.
_OF_THE_CALLER = (
    "subject", "purpose", "delegation_id", "on_behalf_of", "action_declaration", "action_risk_classification",
    "supported_obligations", "at_least_revision", "client_nonce",
)  # fmt: skip


@dataclass(frozen=True)
class VerifiedPermit:
    """A permission of somebody else that a tool's own server has verified."""

    decision_id: str
    subject: str
    purpose: str | None
    #: The time before which the action must begin (RFC 3339).
    valid_until: str
    #: The signed record.
    record: Mapping[str, Any]


def unverified(problem: str, decision: Decision | None = None) -> Denied:
    """The error for a permission that can't be trusted."""
    return Denied("unverified", f"the permission can't be trusted: {problem}", decision)


def signing_key_id(signature: Any) -> str:
    """Returns the id of the key that a signature names.

    :raises Denied: The signature has another form.
    """
    if not isinstance(signature, Mapping) or not isinstance(signature.get("kid"), str):
        raise unverified("it has no signature")
    if (signature.get("alg"), signature.get("canonicalization")) != ("Ed25519", "RFC8785"):
        raise unverified("its signature has an unknown form")
    return str(signature["kid"])


def verify_decision(decision: Decision, question: Question, nonce: str, key: Key) -> float:
    """Verifies a permission of this library's own call. Returns its validity in seconds.

    :raises Denied: ``unverified``.
    """
    try:
        pack = decision.members.get("evidence_pack") or {}
        record, digest = _signed_record(decision.record, pack.get("signature"), key)
        if decision.record_digest != f"sha256:{digest}":
            raise unverified("record_digest is not the record's")
        if decision.decision_id != _decision_id(record, digest):
            raise unverified("decision_id is not the record's")
        expected = {**_recorded(question), "client_nonce": nonce}
        _check_request(record["request"], expected, question, decision.context_salt)
        if record["tenant_id"] != question.tenant_id:
            raise unverified("it is of another tenant")
        _check_verdict(decision, record)
        return _validity(record) / 1e6
    except Denied as error:
        raise Denied(error.code, error.message, decision) from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise unverified(f"its record is malformed: {error}", decision) from None


def verify_permit(
    proof: Mapping[str, Any], question: Question, keys: KeySet, tenant_id: str, *, now: float | None = None
) -> VerifiedPermit:
    """Verifies somebody else's permission for exactly this call, on a tool's own server.

    Keep the ``decision_id`` of each call until its ``valid_until``, and refuse it a second time.

    :param proof: The caller's ``decision.proof()``: record, signature and salt.
    :param question: The call as this server sees it. Who asks, for which purpose and under which delegation
        is only compared if it is set here; every other member must be equal.
    :param keys: The pinned keys of the service.
    :param tenant_id: The expected tenant, such as ``svc:tenant:acme``.
    :param now: Seconds since 1970; by default the time of the machine.
    :raises Denied: ``unverified``, or ``late`` after ``valid_until``.
    """
    try:
        key = keys.get(signing_key_id(proof.get("signature")))
        if key is None:
            raise unverified("its key is not pinned")
        record, digest = _signed_record(proof.get("record"), proof.get("signature"), key)
        if record["tenant_id"] != tenant_id:
            raise unverified("it is of another tenant")
        request = record["request"]
        known = _recorded(question)
        ours = {name: value for name, value in request.items() if name not in _OF_THE_CALLER or name in known}
        _check_request(ours, known, question, proof.get("context_salt"))
        if record["verdict"]["decision"] not in PERMITS:
            raise unverified("the action was not permitted")
        if record["verdict"]["tool_id"] not in (None, question.tool_id):
            raise unverified("it is only for another tool")
        _validity(record)
        if (time.time() if now is None else now) * 1e6 >= microseconds(record["valid_until"]):
            raise Denied("late", "the permission has ended; ask again")
        return VerifiedPermit(
            _decision_id(record, digest), request["subject"], request.get("purpose"), record["valid_until"], record
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise unverified(f"its record is malformed: {error}") from None


def _signed_record(text: Any, signature: Any, key: Key) -> tuple[dict[str, Any], str]:
    """Returns a record with a genuine signature, and the SHA-256 of its text."""
    if not isinstance(text, str):
        raise unverified("it has no record")
    record = parse(text)
    signed = canonical(record)
    if signed != text.encode():
        raise unverified("its record is not canonical")
    if record["kind"] != "svc.decision.record.v1":
        raise unverified("its record is of an unknown kind")
    if not key.is_for("evidence"):
        raise unverified("its key is not for evidence")
    if key.revoked_at is not None:  # whoever stole the key can also write an earlier time
        raise unverified("its key is revoked")
    if not signed_by(key.raw, _base64(signature["value"]), signed):
        raise unverified("its signature is not valid")
    assert isinstance(record, dict)
    return record, hashlib.sha256(signed).hexdigest()


def _decision_id(record: Mapping[str, Any], digest: str) -> str:
    millis = microseconds(record["evaluated_at"]) // 1000
    return f"svc:decision:{millis:012x}{digest[:52]}"


def _recorded(question: Question) -> dict[str, Any]:
    """Returns the question as a record has it, without the digest of its context."""
    members = question.to_json()
    return {name: value for name, value in members.items() if name not in ("context", "justification")}


def _check_request(
    request: Mapping[str, Any], expected: Mapping[str, Any], question: Question, salt: Any
) -> None:
    for name in sorted({*request, *expected} - {*_NOT_COMPARED}):
        if (name in request) != (name in expected) or request[name] != expected[name]:
            raise unverified(f"it is for another request: {name} differs")
    if not isinstance(salt, str):
        raise unverified("it has no context_salt")
    salted = hashlib.sha256(_base64(salt) + canonical(question.context)).hexdigest()
    if request["context_digest"] != f"sha256:{salted}":
        raise unverified("it is for another request: the context differs")


def _check_verdict(decision: Decision, record: Mapping[str, Any]) -> None:
    verdict = record["verdict"]
    answered: dict[str, Any] = {
        "reason_code": decision.reason_code,
        "obligations": list(decision.obligations),
        "stop_conditions": list(decision.stop_conditions),
        "tool_id": decision.tool_id,
    }
    if verdict["decision"] not in PERMITS:
        raise unverified("its record does not permit the action")
    for name, value in answered.items():
        if verdict[name] != value:
            raise unverified(f"{name} of the answer is not the record's")
    whole: dict[str, Any] = {"valid_until": decision.valid_until, "authority_revision": decision.authority_revision}
    for name, value in whole.items():
        if record[name] != value:
            raise unverified(f"{name} of the answer is not the record's")


def _validity(record: Mapping[str, Any]) -> int:
    return microseconds(record["valid_until"]) - microseconds(record["evaluated_at"])


def _base64(text: str) -> bytes:
    """Decodes the only encoding of some bytes: the spare bits of the last letter are zero."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("a text is not base64") from None
    if base64.b64encode(decoded).decode() != text:
        raise ValueError("a text is not base64")
    return decoded

"""Verifies an evidence pack, an evidence bundle or a replay proof offline, by EVIDENCE.md."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Union

from .clock import microseconds
from .jcs import canonical
from .keys import KeySet, signed_by, thumbprint

# Base64 of this many bytes. The last letter's spare bits are zero: any bytes have exactly one text.
B16, B64 = (f"[A-Za-z0-9+/]{{{n}}}[AQgw]==" for n in (21, 85))
B32, B68 = (f"[A-Za-z0-9+/]{{{n}}}[AEIMQUYcgkosw048]=" for n in (42, 90))
TEXT, HEX, ORIGIN, NUMBER = r"[\s\S]*", "[0-9a-f]{64}", "[!-*,-~]+", "0|[1-9][0-9]{0,15}"
DIGEST, DECISION, EVIDENCE = f"sha256:{HEX}", f"svc:decision:{HEX}", f"svc:evidence:{HEX}"
VKEY = rf"({ORIGIN})\+([0-9a-f]{{8}})\+(A[Q-Za-f][A-Za-z0-9+/]{{42}})"
NOTE = (rf"c2sp\.org/tlog-proof@v1\nindex ({NUMBER})\n((?:{B32}\n)*)\n"
        rf"(({ORIGIN})\n({NUMBER})\n({B32})\n)\n— ({ORIGIN}) ({B68})\n")

# Shapes. A text: a pattern of the whole string; dict, list: any object, any array; int: an integer from
# 0; None: anything; (shape,): that or null; [shape]: an array of it; {…}: an object with exactly these
# members or, with "*" among them, at least these.
SIGNATURE = {"alg": "Ed25519", "canonicalization": "RFC8785", "kid": TEXT, "value": B64}
RECORD = {"kind": r"svc\.decision\.record\.v1", "evaluated_at": TEXT, "facts_digest": DIGEST,
          "request": {"context_digest": DIGEST, "*": None}, "*": None}
PACK = {"kind": r"svc\.evidence\.pack\.v1", "id": EVIDENCE, "decision_id": DECISION, "record": RECORD,
        "record_digest": DIGEST, "sealed_at": TEXT, "issuer": TEXT, "signature": SIGNATURE,
        "log": {"origin": ORIGIN, "index": int, "leaf_hash": DIGEST, "proof": TEXT}}
KEY = {"alg": "EdDSA", "crv": "Ed25519", "kid": TEXT, "kty": "OKP", "use": "sig",
       "x": "[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]"}
# A name with `?` may be absent.
FACTS = {"approval": (dict,), "declined?": dict, "gathered": DIGEST, "open_requests?": dict, "reality": (DIGEST,),
         "spent": list, "zones?": list}
BUNDLE = {"kind": TEXT, "pack": PACK, "context": {"salt": B16, "value": dict}, "facts": {"salt": B16, "value": FACTS},
          "blobs": [dict], "keys": [KEY], "log_key": VKEY, "bundle_digest": DIGEST}
GATHERED = {"policies": [{"sha256": HEX, "*": None}], "observing?": [{"sha256": HEX, "*": None}],
            "schemas?": [{"sha256": HEX}], "*": None}
PROOF = {"kind": TEXT, "id": "svc:replay:[0-9a-f]{32}", "evidence_id": EVIDENCE, "decision_id": DECISION,
         "mode": "historical_state_snapshot|current_state|policy_pin", "semantics": TEXT,
         "policy": ({"id": TEXT, "version": int, "sha256": DIGEST},), "result": "match|mismatch|indeterminate",
         "recomputed_decision_id": (DECISION,), "diff": [{"member": TEXT, "sealed": None, "recomputed": None}],
         "detail": (TEXT,), "replayed_at": TEXT, "issuer": TEXT, "signature": SIGNATURE}


class Invalid(Exception):
    """The file is not genuine, or was changed. The text names the member."""


class Unreadable(Exception):
    """The file is not evidence, or two parsers could read it differently."""


class _Pairs(list[Any]):
    """An object with a duplicate member, of which a dict would drop the first."""


class LogKey(NamedTuple):
    """A key of a transparency log."""

    origin: str
    key_id: bytes
    key: bytes


#: The trusted key of the log, or the keys of purpose `log` in a JWK set. None: any.
TrustedLog = Union[LogKey, list[bytes], None]


def verify_document(
    evidence: Mapping[str, Any] | bytes | str | Path, keys: KeySet | None, checkpoint_key: str | None = None
) -> str:
    """Verifies a pack, a bundle or a replay proof. Returns ``valid``, or what was not checked.

    :param evidence: Its path, its bytes or its parsed JSON.
    :param keys: The trusted keys. Without them, only the consistency of a bundle can be checked.
    :param checkpoint_key: The trusted key of the log, as a vkey; by default those in ``keys``.
    :raises Invalid: It is not genuine.
    :raises Unreadable: It is not evidence.
    """
    log_key: TrustedLog = None if checkpoint_key is None else read_vkey(checkpoint_key)
    if checkpoint_key is not None and not log_key:
        raise Unreadable("the checkpoint key is not a vkey")
    log_key = log_key or [key.raw for key in (keys.of("log") if keys else ())] or None
    document = read(evidence)
    kind = document.get("kind") if isinstance(document, dict) else None
    pinned = keys or KeySet({"keys": []})
    if kind == "svc.evidence.pack.v1":
        fit(document, PACK, "")
        check_pack(document, pinned, log_key)
        return "valid" if log_key else "valid; checkpoint signature not checked"
    if kind == "svc.replay.proof.v1":
        fit(document, PROOF, "")
        check_proof(document, pinned)
        return "valid"
    if kind != "svc.evidence.bundle.v1":
        raise Unreadable("its kind must be that of a pack, a bundle or a replay proof")
    fit(document, BUNDLE, "")
    check_bundle(document, keys, log_key)
    if keys is None:
        named = base64.urlsafe_b64encode(thumbprint(document["keys"][0]["x"])).decode().rstrip("=")
        return f"consistent; issuer not pinned: {named}"
    return "valid" if log_key else "valid; log key not pinned"


def read(evidence: Mapping[str, Any] | bytes | str | Path) -> Any:
    """Reads JSON. Refuses what two parsers could understand differently."""
    try:
        if isinstance(evidence, Mapping):
            value: Any = json.loads(canonical(evidence))
        else:
            text = evidence if isinstance(evidence, bytes) else Path(evidence).read_bytes()
            value = json.loads(
                text.decode(),
                parse_constant=_no_json,
                parse_int=lambda digits: float(digits) if len(digits) > 17 or digits == "-0" else int(digits),
                object_pairs_hook=lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else _Pairs(pairs),
            )
        if _depth(value) > 127:
            raise ValueError("nested too deeply")
    except (OSError, ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from error
    inspect(value, "")
    return value


def read_keys(file: str | Path) -> KeySet:
    """Reads the trusted keys from a saved ``/.well-known/jwks.json``.

    :raises Unreadable: It is not a JWK set.
    """
    try:
        return KeySet(read(file))
    except (Invalid, ValueError) as error:
        raise Unreadable(f"{file} is no JWK set: {error}") from error


def _no_json(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _depth(value: Any) -> int:
    if isinstance(value, _Pairs):
        inside: Iterable[Any] = [item for _, item in value]
    elif isinstance(value, (dict, list)):
        inside = value.values() if isinstance(value, dict) else value
    else:
        return 0
    return 1 + max(map(_depth, inside), default=0)


def need(holds: object, path: str, what: str) -> None:
    """Raises ``Invalid`` unless the condition holds."""
    if not holds:
        raise Invalid(f"{path or 'the file'}: {what}")


def under(path: str, name: str) -> str:
    """Returns the path of a member."""
    if not re.fullmatch("[A-Za-z0-9_]+", name):
        return f"{path}[{json.dumps(name)}]"  # no name can look like a path
    return f"{path}.{name}" if path else name


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def digest(data: bytes) -> str:
    return "sha256:" + sha256(data).hex()


def without(members: Mapping[str, Any], name: str) -> bytes:
    """Returns the canonical text of an object without one member."""
    return canonical({n: v for n, v in members.items() if n != name})


def inspect(value: Any, path: str) -> None:
    """Checks that every parser reads the value alike."""
    if isinstance(value, str):
        need(not re.search("[\ud800-\udfff]", value), path, "holds a lone surrogate")
    elif type(value) in (int, float):
        need(abs(value) < 2**53, path, "is beyond 2^53-1")
        need(type(value) is int or re.match(r"context\.value\b", path), path, "must be an integer")
    elif isinstance(value, (dict, _Pairs)):
        seen: set[str] = set()
        for name, item in value.items() if isinstance(value, dict) else value:
            need(name not in seen, under(path, name), "occurs twice")
            seen.add(name)
            inspect(name, under(path, name))
            inspect(item, under(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            inspect(item, f"{path}[{index}]")


def fit(value: Any, shape: Any, path: str) -> None:
    """Checks a value against a shape."""
    if isinstance(shape, tuple):
        if value is not None:
            fit(value, shape[0], path)
    elif isinstance(shape, str):
        need(isinstance(value, str) and re.fullmatch(shape, value), path, f"must be text like {shape}")
    elif shape is int:
        need(type(value) is int and value >= 0, path, "must be an integer from 0")
    elif shape is dict or isinstance(shape, dict):
        need(isinstance(value, dict), path, "must be an object")
        allowed: Any = {"*": None} if shape is dict else shape
        members = {name: inner for name, inner in allowed.items() if name != "*"}
        for name in sorted(value.keys() - {name.rstrip("?") for name in members}):
            need("*" in allowed, under(path, name), "is unknown")
        for name, inner in members.items():
            if name.endswith("?") and name[:-1] not in value:
                continue
            name = name.rstrip("?")
            need(name in value, under(path, name), "is missing")
            fit(value[name], inner, under(path, name))
    elif shape is not None:
        need(isinstance(value, list), path, "must be an array")
        for index, item in enumerate(() if shape is list else value):
            fit(item, shape[0], f"{path}[{index}]")


def milliseconds(moment: str, path: str) -> int:
    try:
        return microseconds(moment) // 1000
    except ValueError as error:
        raise Invalid(f"{path}: {error}") from None


def check_signature(signature: dict[str, Any], purpose: str, signed: bytes, keys: KeySet, path: str) -> None:
    """Checks a signature by a key for this purpose."""
    kid = signature["kid"]
    named = re.fullmatch("svc-([a-z]+)-[0-9]{4}-([0-9a-f]{8})", kid)
    need(named and named[1] == purpose, f"{path}.kid", f"names no key for {purpose}")
    key = keys.get(kid)
    if key is None:
        raise Invalid(f"{path}.kid: no key for {kid}")
    need(key.is_for(purpose), f"{path}.kid", "does not fit its key")
    need(signed_by(key.raw, base64.b64decode(signature["value"]), signed), f"{path}.value", "is not valid")


def read_vkey(text: str) -> LogKey | None:
    """Reads a vkey. None if its parts do not match."""
    if found := re.fullmatch(VKEY, text):
        typed = base64.b64decode(found[3])
        key_id = sha256(found[1].encode() + b"\n" + typed)[:4]
        if typed[0] == 1 and key_id.hex() == found[2]:
            return LogKey(found[1], key_id, typed[1:])
    return None


def log_key_of(origin: str, keys: list[bytes], key_id: bytes) -> LogKey | None:
    """Returns the log key with this id under this origin."""
    ids = ((sha256(origin.encode() + b"\n\1" + key)[:4], key) for key in keys)
    return next((LogKey(origin, found, key) for found, key in ids if found == key_id), None)


def root_over(leaf: bytes, index: int, size: int, siblings: Iterable[bytes]) -> bytes | None:
    """Returns the root from the siblings (RFC 9162, 2.1.3.2); None if there are too few or too many."""
    last = size - 1
    for sibling in siblings:
        if last == 0:
            return None
        if index % 2 or index == last:
            leaf = sha256(b"\1" + sibling + leaf)
            while index and index % 2 == 0:
                index, last = index // 2, last // 2
        else:
            leaf = sha256(b"\1" + leaf + sibling)
        index, last = index // 2, last // 2
    return leaf if last == 0 else None


def check_log(pack: dict[str, Any], log_key: TrustedLog, path: str) -> None:
    """Checks that the pack is in the log, and the signature of the checkpoint."""
    log = pack["log"]
    leaf = sha256(b"\0" + without(pack, "log"))
    need(log["leaf_hash"] == "sha256:" + leaf.hex(), f"{path}.leaf_hash", "is not the pack's")
    found = re.fullmatch(NOTE, log["proof"])
    if found is None:
        raise Invalid(f"{path}.proof: is not a tlog-proof@v1 with a checkpoint and one signature")
    index, siblings, signed, origin, size, root, signer, signed_text = found.groups()
    need(origin == log["origin"], f"{path}.origin", "is not the checkpoint's")
    need(signer == origin, f"{path}.proof", "the checkpoint is signed by another log")
    need(int(index) == log["index"], f"{path}.index", "is not the proof's")
    need(int(index) < int(size) < 2**53, f"{path}.proof", "the index is not within the checkpoint's size")
    reached = root_over(leaf, int(index), int(size), map(base64.b64decode, siblings.split()))
    need(reached == base64.b64decode(root), f"{path}.proof", "does not lead to the checkpoint's root")
    signature = base64.b64decode(signed_text)
    if isinstance(log_key, list):  # any key of the JWK set
        log_key = log_key_of(origin, log_key, signature[:4])
        need(log_key, f"{path}.proof", "the checkpoint is signed with no log key of the JWK set")
    if log_key:
        assert isinstance(log_key, LogKey)
        name, key_id, key = log_key
        need(name == origin, f"{path}.origin", "is not the log of the checkpoint key")
        need(signature[:4] == key_id, f"{path}.proof", "the checkpoint is signed with another key")
        need(signed_by(key, signature[4:], signed.encode()), f"{path}.proof", "the checkpoint's signature is not valid")


def check_pack(pack: dict[str, Any], keys: KeySet, log_key: TrustedLog, at: str = "") -> None:
    """Checks digest, ids and signatures of a pack."""
    record = canonical(pack["record"])
    time = milliseconds(pack["record"]["evaluated_at"], f"{at}record.evaluated_at")
    name = f"{time:012x}{sha256(record).hex()[:52]}"
    need(pack["record_digest"] == digest(record), f"{at}record_digest", "is not the record's")
    need(pack["decision_id"] == f"svc:decision:{name}", f"{at}decision_id", "is not the record's")
    need(pack["id"] == f"svc:evidence:{name}", f"{at}id", "is not the record's")
    check_signature(pack["signature"], "evidence", record, keys, f"{at}signature")
    check_log(pack, log_key, f"{at}log")


def check_bundle(bundle: dict[str, Any], pinned: KeySet | None, pinned_log: TrustedLog) -> None:
    """Checks a bundle: its pack, and the digests of its parts."""
    pack = bundle["pack"]
    need(len(bundle["keys"]) == 1, "keys", "must hold one key")
    key, log_key = bundle["keys"][0], read_vkey(bundle["log_key"])
    kid = key["kid"]
    trusted = pinned.get(kid) if pinned else None
    need(kid == pack["signature"]["kid"], "keys[0].kid", "is not the signature's")
    need(pinned is None or trusted, "pack.signature.kid", f"no key for {json.dumps(kid)[1:-1]}")
    need(trusted is None or key["x"] == trusted.x, "keys[0].x", "is not the pinned key")
    if log_key is None:
        raise Invalid("log_key: its id does not fit its key")
    if isinstance(pinned_log, list):
        need(log_key.key in pinned_log, "log_key", "is not a log key of the JWK set")
    else:
        need(pinned_log in (None, log_key), "log_key", "is not the pinned key")
    check_pack(pack, KeySet({"keys": [key]}), log_key, "pack.")
    record = pack["record"]
    for part, named in (("context", record["request"]["context_digest"]), ("facts", record["facts_digest"])):
        salted = base64.b64decode(bundle[part]["salt"]) + canonical(bundle[part]["value"])
        need(digest(salted) == named, part, "does not have the record's digest")
    check_blobs(bundle["blobs"], bundle["facts"]["value"])
    need(bundle["bundle_digest"] == digest(without(bundle, "bundle_digest")), "bundle_digest", "is not the bundle's")


def check_blobs(blobs: list[Any], parts: dict[str, Any]) -> None:
    """Checks that every blob has its digest and is named, and that every name has a blob."""
    for index, blob in enumerate(blobs):
        body: dict[str, Any] = {"json": dict} if "json" in blob else {"text": TEXT}
        fit(blob, {"sha256": DIGEST} | body, f"blobs[{index}]")
        need(not index or blobs[index - 1]["sha256"] < blob["sha256"], f"blobs[{index}].sha256", "is not in order")
        hashed = canonical(blob["json"]) if "json" in blob else blob["text"].encode()
        need(digest(hashed) == blob["sha256"], f"blobs[{index}].sha256", "is not the body's")
    places = {blob["sha256"]: index for index, blob in enumerate(blobs)}
    gathered, reality = parts["gathered"], parts["reality"]
    place = places.get(gathered, -1)
    need(place >= 0 and "json" in blobs[place], "facts.value.gathered", "no json blob has it")
    facts, at, named = blobs[place]["json"], f"blobs[{place}].json", {gathered}
    if reality is not None:
        need(reality in places and "json" in blobs[places[reality]], "facts.value.reality", "no json blob has it")
        named.add(reality)
    fit(facts, GATHERED, at)
    for kind in ("policies", "observing", "schemas"):
        for index, one in enumerate(facts.get(kind, [])):
            name = "sha256:" + one["sha256"]
            text = name in places and "text" in blobs[places[name]]
            need(text, f"{at}.{kind}[{index}].sha256", "no text blob has it")
            named.add(name)
    for index, blob in enumerate(blobs):
        need(blob["sha256"] in named, f"blobs[{index}]", "is named by nothing")


def check_proof(proof: dict[str, Any], keys: KeySet) -> None:
    """Checks a replay proof."""
    need(proof["evidence_id"][-64:] == proof["decision_id"][-64:], "evidence_id", "is not of the decision")
    need((proof["result"] == "mismatch") == bool(proof["diff"]), "diff", "does not fit the result")
    need(proof["result"] != "indeterminate" or proof["detail"], "detail", "must say what is indeterminate")
    free = (proof["mode"], proof["result"]) != ("historical_state_snapshot", "match")
    same = proof["recomputed_decision_id"] == proof["decision_id"]
    need(free or same, "recomputed_decision_id", "is not the decision's")
    check_signature(proof["signature"], "replay", without(proof, "signature"), keys, "signature")

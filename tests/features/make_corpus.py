"""Creates the corpus for testing the verifiers: 40 good and 40 tampered files.

Usage: python make_corpus.py [FOLDER]      (`cases` by default)
Writes FOLDER/NN-name.json, the JWK sets, and FOLDER/manifest.json, which contains each file's verifier
options and expected result. Keys, salts and files are the same in every run.
"""
import json
import sys
from datetime import datetime
from pathlib import Path

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tamper import b64, b64url, digest, dumped, key_named, salted, sha256, tampered, without

ISSUER, YEAR = "https://authority.example", "2026"
EVIDENCE, REPLAY = (key_named(purpose.encode(), purpose, YEAR) for purpose in ("evidence", "replay"))
POLICIES = {
    "threshold": '@id("threshold")\n@reason("approval_threshold_breach")\n@decision("require_approval")\n'
                 'forbid(principal, action, resource)\nwhen { context.amount.greaterThan(decimal("10000.0")) };\n',
    "sanctions": 'forbid(principal, action, resource) when { context.input.country == "élan vital ☂" };\n',
}


class Log:
    """A tenant's log: hashes of leaves, the tree over them (RFC 6962, 2.1), and signed checkpoints."""

    def __init__(self, tenant: str):
        self.origin = f"authority.example/log/{tenant}"
        self.key = Ed25519PrivateKey.from_private_bytes(sha256(self.origin.encode()))
        typed = b"\1" + self.key.public_key().public_bytes_raw()
        self.key_id = sha256(self.origin.encode() + b"\n" + typed)[:4]
        self.vkey = f"{self.origin}+{self.key_id.hex()}+{b64(typed)}"

    def root(self, leaves: list[bytes]) -> bytes:
        if len(leaves) == 1:
            return leaves[0]
        half = split(leaves)
        return sha256(b"\1" + self.root(leaves[:half]) + self.root(leaves[half:]))

    def path(self, index: int, leaves: list[bytes]) -> list[bytes]:
        if len(leaves) == 1:
            return []
        half = split(leaves)
        if index < half:
            return [*self.path(index, leaves[:half]), self.root(leaves[half:])]
        return [*self.path(index - half, leaves[half:]), self.root(leaves[:half])]

    def checkpoint(self, size: int, root: bytes) -> str:
        note = f"{self.origin}\n{size}\n{b64(root)}\n"
        return f"{note}\n— {self.origin} {b64(self.key_id + self.key.sign(note.encode()))}\n"

    def proof(self, index: int, leaf: bytes, size: int) -> str:
        leaves = [sha256(b"\0neighbour %d" % place) for place in range(size)]
        leaves[index] = leaf
        lines = ["c2sp.org/tlog-proof@v1", f"index {index}", *map(b64, self.path(index, leaves))]
        return "\n".join(lines) + "\n\n" + self.checkpoint(size, self.root(leaves))


def split(leaves: list[bytes]) -> int:
    """Returns the largest power of two below the number of leaves."""
    return 1 << (len(leaves) - 1).bit_length() - 1


ACME, OTHER = Log("acme"), Log("other")


def verdict(decision: str, reason: str) -> dict:
    allowed = decision.startswith("allow")
    return {
        "approvals_needed": {"count": 1, "roles": ["approver"]} if decision == "require_approval" else None,
        "authority": {"chain": ["svc:delegation:7c1e"], "id": "svc:delegation:7c1e", "kind": "delegation"},
        "decision": decision,
        "obligations": ["audit.emit"] if allowed else [],
        "reason_code": reason,
        "reasons": [reason, "reality_review_required"] if decision == "require_approval" else [reason],
        "stop_conditions": ["actor.stop_signal", "delegation.revoked"] if allowed else [],
    }


ALLOW = verdict("allow", "permission_granted")
HOLD = verdict("require_approval", "approval_threshold_breach")
DENY = verdict("deny", "jurisdiction_unsupported")


def references(names):
    """Returns references to policies' texts."""
    return [{"applies_to": [], "effective": {}, "id": f"svc:policy:{place}{name}", "version": 1,
             "sha256": sha256(POLICIES[name].encode()).hex()} for place, name in enumerate(names)]


def sealed(context=None, answer=ALLOW, at="2026-01-05T10:30:00.123456Z", valid_until="2026-01-05T10:31:00Z",
           policies=("threshold", "sanctions"), observing=(), approval=None, spent=(), reality=None, more=None,
           asked=None, **sealing):
    """Returns a complete bundle. Its field `pack` is what sealing returns."""
    gathered = {"tenant": {"id": "svc:tenant:acme", "slug": "acme"}, "delegations": [],
                "policies": references(policies)}
    if observing:
        gathered["observing"] = references(observing)
    observed = [] if reality is None else [{"json": reality}]
    bodies = [{"json": gathered}, *observed, *({"text": POLICIES[name]} for name in sorted({*policies, *observing}))]
    blobs = sorted(({"sha256": blob_digest(body)} | body for body in bodies), key=lambda blob: blob["sha256"])
    context = {"salt": b64(sha256(b"context salt")[:16]),
               "value": {"amount": 1200, "currency": "EUR", "jurisdiction": "DE"} if context is None else context}
    facts = {"salt": b64(sha256(b"facts salt")[:16]),
             "value": {"approval": approval, "gathered": blob_digest({"json": gathered}),
                       "reality": blob_digest(observed[0]) if observed else None, "spent": list(spent)} | (asked or {})}
    record = {
        "authority_revision": 7, "operation": "evaluate", "evaluated_at": at, "facts_digest": salted(facts),
        "facts_index": [{"id": "svc:agent:acme:invoice-bot", "kind": "principal"},
                        {"absent": True, "id": "invoice-settlement", "kind": "purpose"}],
        "kind": "svc.decision.record.v1", "nonce": "5f3a6a0a51bb",
        "request": {"action": "payment.execute", "context_digest": salted(context), "explain": False,
                    "subject": "svc:agent:acme:invoice-bot"},
        "semantics": "authority/1", "tenant_id": "svc:tenant:acme", "valid_until": valid_until, "verdict": answer,
    } | (more or {})
    return {"kind": "svc.evidence.bundle.v1", "pack": packed(record, **sealing), "context": context, "facts": facts,
            "blobs": blobs, "keys": [EVIDENCE[1]], "log_key": ACME.vkey, "bundle_digest": None}


def blob_digest(body: dict) -> str:
    return digest(rfc8785.dumps(body["json"]) if "json" in body else body["text"].encode())


def packed(record: dict, index=3, size=7, log=ACME, signer=EVIDENCE, change=None) -> dict:
    body = rfc8785.dumps(record)
    name = f"{milliseconds(record['evaluated_at']):012x}{sha256(body).hex()[:52]}"
    pack = {"kind": "svc.evidence.pack.v1", "id": f"svc:evidence:{name}", "decision_id": f"svc:decision:{name}",
            "record": record, "record_digest": digest(body), "sealed_at": "2026-01-05T10:30:02Z", "issuer": ISSUER,
            "signature": signature(signer, body)} | (change or {})
    leaf = sha256(b"\0" + rfc8785.dumps(pack))
    return pack | {"log": {"origin": log.origin, "index": index, "leaf_hash": "sha256:" + leaf.hex(),
                           "proof": log.proof(index, leaf, size)}}


def milliseconds(moment: str) -> int:
    whole, _, fraction = moment.removesuffix("Z").partition(".")
    days = (datetime.fromisoformat(whole[:8] + "01") - datetime(1970, 1, 1)).days + int(whole[8:10]) - 1
    clock = datetime.fromisoformat("1970-01-01" + whole[10:]) - datetime(1970, 1, 1)
    return (days * 86400 + clock.seconds) * 1000 + int(fraction.ljust(3, "0")[:3])


def signature(signer, body: bytes) -> dict:
    key, jwk = signer
    return {"alg": "Ed25519", "canonicalization": "RFC8785", "kid": jwk["kid"], "value": b64(key.sign(body))}


def bundle(**differences) -> dict:
    made = sealed(**differences)
    return made | {"bundle_digest": digest(without(made, "bundle_digest"))}


def pack(**differences) -> dict:
    return sealed(**differences)["pack"]


def proof(signer=REPLAY, **differences) -> dict:
    of = pack()
    made = {"kind": "svc.replay.proof.v1", "id": "svc:replay:" + sha256(b"replay").hex()[:32],
            "evidence_id": of["id"], "decision_id": of["decision_id"], "mode": "historical_state_snapshot",
            "semantics": "authority/1", "policy": None, "result": "match",
            "recomputed_decision_id": of["decision_id"], "diff": [], "detail": None,
            "replayed_at": "2026-01-06T08:00:00Z", "issuer": ISSUER} | differences
    return made | {"signature": signature(signer, rfc8785.dumps(made))}


DIFF = [{"member": "verdict.decision", "sealed": "allow", "recomputed": "deny"},
        {"member": "verdict.approvals_needed", "sealed": None, "recomputed": {"count": 2, "roles": ["legal"]}}]
PIN = {"id": "svc:policy:0threshold", "version": 4, "sha256": digest(b"a candidate")}
ASKED = {"declined": {"approval_id": "svc:approval:01a1", "at": "2026-01-05T10:20:00Z"},
         "open_requests": {"limit": 500, "pending": 500}}
ZONES = {"zones": [{"data": "2026f", "name": "America/New_York", "offset_seconds": -18000},
                   {"data": "2026f", "name": "Europe/Berlin", "offset_seconds": 7200,
                    "next": {"at": "2026-10-25T01:00:00Z", "offset_seconds": 3600}}]}
APPROVAL = {"id": "svc:approval:01a1", "state": "approved", "signatures": [{"role": "approver"}]}
REALITY = {"anchors": [{"id": "svc:reality_anchor:7d2f", "newest": None}], "drifts": [], "overrides": []}
SPENT = [{"counts": "amount", "holder_id": "svc:delegation:7c1e", "used": 2**53 - 1, "window_seconds": 86400,
          "window_start": 1767571200}]
NUMBERS = {"amount": 0.1, "half": 4503599627370495.5, "least": 5e-324, "list": [1e-7, 1.5e-10, 123456.789, -0.5],
           "most": 2**53 - 1, "whole": 5.0}
TEXTS = {"": "no name", "1": "a digit", "__proto__": {"constructor": None}, "a.b": [[], {}], "é": "e\u0301",
         "\ufb33": "last in UTF-16 units", "\U0001f600": "last in code points",
         "quote\"\\": "\u0000\u001f\x7f\u2028"}
MANY = [
    {"kid": "svc-general-2026-00000000", "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "use": "sig"},
    EVIDENCE[1] | {"revoked_at": "2026-06-01T00:00:00Z"}, REPLAY[1]]
def log_jwk(log: Log, kid: str | None = None) -> dict:
    """The key that signs checkpoints, as the service publishes it."""
    jwk = {"crv": "Ed25519", "kty": "OKP", "x": b64url(log.key.public_key().public_bytes_raw())}
    print_ = sha256(rfc8785.dumps(jwk)).hex()[:8]
    return jwk | {"alg": "EdDSA", "kid": kid or f"svc-log-{YEAR}-{print_}", "use": "sig"}


MISNAMED = f"svc-evidence-{YEAR}-00000000"
PINNED = {"jwks": "jwks.json", "checkpoint_key": ACME.vkey}
UNPINNED = "consistent; issuer not pinned: "


def plain(document: dict) -> str:
    return rfc8785.dumps(document).decode()


def turned(value):
    """The same document with the members of every object in reverse order."""
    if isinstance(value, dict):
        return {name: turned(value[name]) for name in sorted(value, reverse=True)}
    return [turned(item) for item in value] if isinstance(value, list) else value


def good():
    """Yields good files: name, text, the verifier's options, and its expected output."""
    unchecked, unpinned = "valid; checkpoint signature not checked", "valid; log key not pinned"
    jwks = {"jwks": "jwks.json"}
    of_key = UNPINNED + thumbprint(EVIDENCE[1])
    log = {"jwks": "jwks-log.json", "require_trust": True}
    yield "pack-jwks-with-log-keys", plain(pack()), log, "valid"
    yield "bundle-jwks-with-log-keys", plain(bundle()), log, "valid"
    misnamed = {"jwks": "jwks-log-misnamed.json"}
    yield "pack-jwks-with-misnamed-log-key", plain(pack()), misnamed, unchecked
    yield "bundle-jwks-with-misnamed-log-key", plain(bundle()), misnamed, unpinned
    yield "pack", plain(pack()), PINNED, "valid"
    yield "pack-checkpoint-key-not-given", plain(pack()), jwks, unchecked
    for index, size in ((0, 1), (0, 2), (1, 2), (6, 7), (4, 5), (7, 8), (8, 9), (777, 1000)):
        yield f"pack-{index}-of-{size}", plain(pack(index=index, size=size)), PINNED, "valid"
    yield "pack-held", plain(pack(answer=HOLD, valid_until=None)), PINNED, "valid"
    yield "pack-denied", plain(pack(answer=DENY, valid_until=None)), PINNED, "valid"
    yield "pack-whole-second", plain(pack(at="2026-01-05T10:30:00Z")), PINNED, "valid"
    yield "pack-one-digit-of-a-second", plain(pack(at="2028-02-29T23:59:59.9Z")), PINNED, "valid"
    yield "pack-indented", json.dumps(pack(), indent=4), PINNED, "valid"
    yield "pack-members-turned", json.dumps(turned(pack())), PINNED, "valid"
    yield "pack-record-with-more", plain(pack(more={"later": [True, {"x": -1}]})), PINNED, "valid"
    yield "pack-jwks-of-many", plain(pack()), PINNED | {"jwks": "jwks-many.json"}, "valid"
    yield "pack-trusted", plain(pack()), PINNED | {"require_trust": True}, "valid"
    yield "bundle", plain(bundle()), PINNED, "valid"
    yield "bundle-no-key-given", plain(bundle()), {}, of_key
    yield "bundle-jwks-alone", plain(bundle()), jwks, unpinned
    yield "bundle-checkpoint-key-alone", plain(bundle()), {"checkpoint_key": ACME.vkey}, of_key
    yield "bundle-trusted", plain(bundle()), PINNED | {"require_trust": True}, "valid"
    yield "bundle-indented", json.dumps(bundle(), indent=2).replace("\n", "\r\n\t "), PINNED, "valid"
    yield "bundle-members-turned", json.dumps(turned(bundle())), PINNED, "valid"
    yield "bundle-all-escaped", escaped(bundle(context=TEXTS)), PINNED, "valid"
    yield "bundle-texts", plain(bundle(context=TEXTS)), PINNED, "valid"
    yield "bundle-numbers", json.dumps(bundle(context=NUMBERS)), PINNED, "valid"
    exponents = plain(bundle(context={"amount": 1200, "zero": 0})).replace('"amount":1200', '"amount":1.20E+3')
    yield "bundle-numbers-in-other-words", exponents.replace('"zero":0', '"zero":-0'), PINNED, "valid"
    yield "bundle-empty-context", plain(bundle(context={})), PINNED, "valid"
    yield "bundle-no-policy", plain(bundle(policies=())), PINNED, "valid"
    yield "bundle-policies-of-one-text", plain(bundle(policies=("threshold", "threshold"))), PINNED, "valid"
    yield "bundle-observing", plain(bundle(policies=("threshold",), observing=("sanctions",))), PINNED, "valid"
    yield "bundle-reality", plain(bundle(reality=REALITY)), PINNED, "valid"
    yield "bundle-approval-and-counters", plain(bundle(approval=APPROVAL, spent=SPENT)), PINNED, "valid"
    yield "bundle-asked-before", plain(bundle(asked=ASKED | ZONES)), PINNED, "valid"
    yield "proof-match", plain(proof()), jwks, "valid"
    yield "proof-mismatch", plain(proof(result="mismatch", diff=DIFF, recomputed_decision_id=None)), jwks, "valid"
    lacking = proof(result="indeterminate", recomputed_decision_id=None, detail="the policy's text was not sealed")
    yield "proof-indeterminate", plain(lacking), jwks, "valid"
    present = pack(at="2026-01-06T08:00:00Z")["decision_id"]
    now = proof(mode="current_state", recomputed_decision_id=present)
    yield "proof-current-state", plain(now), PINNED | {"require_trust": True}, "valid"
    pin = proof(mode="policy_pin", policy=PIN, result="mismatch", diff=DIFF, detail="stricter")
    yield "proof-policy-pin", json.dumps(turned(pin), indent=1), jwks, "valid"
    yield "proof-checkpoint-key-not-needed", plain(proof()), PINNED, "valid"


def thumbprint(jwk: dict) -> str:
    return b64url(sha256(rfc8785.dumps({name: jwk[name] for name in ("crv", "kty", "x")})))


def escaped(document: dict) -> str:
    """Returns the document with every letter of every text as a \\u escape."""
    def units(text: str) -> str:
        return "".join(f"\\u{unit:04X}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))

    out, rest = "", json.dumps(document)
    while rest:
        if rest[0] == '"':
            text, end = json.JSONDecoder().raw_decode(rest)
            out, rest = out + f'"{units(text)}"', rest[end:]
        else:
            out, rest = out + rest[0], rest[1:]
    return out


PICKED = (
    ("pack", "one byte 7", 1, None),
    ("pack", "removed kind", 2, None),
    ("pack", "added to log", 1, "log.added"),
    ("pack", "removed signature.alg", 1, "signature.alg"),
    ("pack", "changed log.index", 1, "log.index"),
    ("pack", "reversed record.verdict.reasons, digests made anew", 1, "signature.value"),
    ("pack", "twice record.request.action, the good one last", 1, "record.request.action"),
    ("pack", "upper-case hex record_digest", 1, "record_digest"),
    ("pack", "with a fraction log.index", 1, "log.index"),
    ("pack", "beyond 2^53-1 record.authority_revision", 1, "record.authority_revision"),
    ("pack", "proof: path shortened", 1, "log.proof"),
    ("pack", "proof: signature with spare bits", 1, "log.proof"),
    ("bundle", "changed context.value.amount, digests made anew", 1, "pack.signature.value"),
    ("bundle", "changed context.value.amount, bundle digest made anew", 1, "context"),
    ("bundle", "changed facts.value.gathered, bundle digest made anew", 1, "facts"),
    ("bundle", "reversed blobs, bundle digest made anew", 1, "blobs[1].sha256"),
    ("bundle", "emptied blobs, bundle digest made anew", 1, "facts.value.gathered"),
    ("bundle", "spare bits facts.salt", 1, "facts.salt"),
    ("bundle", "another key under the good kid", 1, "keys[0].x"),
    ("bundle", "whole bundle forged", 1, "pack.signature.kid"),
    ("proof", "reversed diff", 1, "signature.value"),
)


def bad():
    """Yields bad files: name, bytes, exit code, the member at fault, and the verifier's options."""
    files = {"pack": pack(answer=HOLD), "bundle": bundle(answer=HOLD), "proof": proof(result="mismatch", diff=DIFF)}
    found = {of: dict(tampered(document, plain(document))) for of, document in files.items()}
    for of, name, code, where in PICKED:
        yield f"{of} {name}", found[of][name], code, where, PINNED
    for name, document, where, how in faulty():
        yield name, dumped(document), 1, where, {to: key for to, key in (PINNED | how).items() if key}


def faulty():
    """Invalid files signed with good keys, and good files verified with wrong keys."""
    yield "pack no key given", pack(), "signature.kid", {"jwks": "jwks-empty.json"}
    other = {"jwks": "jwks-log-other.json", "checkpoint_key": None}
    yield "pack of a log key that the JWK set lacks", pack(), "log.proof", other
    yield "bundle of a log key that the JWK set lacks", bundle(), "log_key", other
    yield "pack of the replay key", pack(signer=REPLAY), "signature.kid", {}
    misnamed = (EVIDENCE[0], EVIDENCE[1] | {"kid": MISNAMED})
    yield "pack kid that does not fit its key", pack(signer=misnamed), "signature.kid", {"jwks": "jwks-misnamed.json"}
    yield "pack of the 30th of February", pack(at="2026-02-30T10:30:00Z"), "record.evaluated_at", {}
    for member in ("record_digest", "decision_id", "id"):
        yield f"pack another {member}", pack(change={member: pack()[member][:-64] + 64 * "0"}), member, {}
    yield "pack in another tenant's log", pack(log=OTHER), "log.origin", {}
    yield "pack index not within the size", beyond(pack(index=0, size=1)), "log.proof", {}
    # The log did sign this checkpoint, but before the log contained the leaf.
    truncated = pack(index=6, size=7)
    earlier = ACME.checkpoint(6, ACME.root([sha256(b"\0neighbour %d" % place) for place in range(6)]))
    log = truncated["log"] | {"proof": truncated["log"]["proof"].split("\n\n")[0] + "\n\n" + earlier}
    yield "pack with a checkpoint of before", truncated | {"log": log}, "log.proof", {}
    yield "bundle of another log than the pinned", bundle(), "log_key", {"checkpoint_key": OTHER.vkey}
    renamed = bundle() | {"log_key": ACME.vkey.replace(ACME.key_id.hex(), "00000000")}
    renamed["bundle_digest"] = digest(without(renamed, "bundle_digest"))
    yield "bundle log key that does not fit its id", renamed, "log_key", {"checkpoint_key": None}
    extra = {"sha256": digest(b"unasked"), "text": "unasked"}
    more = bundle()
    more["blobs"] = sorted([*more["blobs"], extra], key=lambda blob: blob["sha256"])
    more["bundle_digest"] = digest(without(more, "bundle_digest"))
    yield "bundle blob that nothing names", more, f"blobs[{more['blobs'].index(extra)}]", {}
    lost = bundle(reality=REALITY)
    lost["blobs"] = [blob for blob in lost["blobs"] if blob["sha256"] != lost["facts"]["value"]["reality"]]
    lost["bundle_digest"] = digest(without(lost, "bundle_digest"))
    yield "bundle whose reality is missing", lost, "facts.value.reality", {}
    another = proof(recomputed_decision_id="svc:decision:" + 64 * "0")
    yield "proof match of another decision", another, "recomputed_decision_id", {}
    yield "proof evidence of another decision", proof(evidence_id="svc:evidence:" + 64 * "0"), "evidence_id", {}
    yield "proof mismatch in nothing", proof(result="mismatch"), "diff", {}
    yield "proof indeterminate without detail", proof(result="indeterminate"), "detail", {}
    yield "proof policy version below 0", proof(policy=PIN | {"version": -1}), "policy.version", {}
    yield "proof of the evidence key", proof(signer=EVIDENCE), "signature.kid", {}


def beyond(pack: dict) -> dict:
    """In a tree of one leaf the path is empty whatever the index."""
    log = pack["log"] | {"index": 1, "proof": pack["log"]["proof"].replace("index 0", "index 1")}
    return pack | {"log": log}


def main(folder: Path):
    folder.mkdir(exist_ok=True)
    for name, keys in {"jwks": [EVIDENCE[1], REPLAY[1]], "jwks-empty": [], "jwks-many": MANY,
                       "jwks-misnamed": [EVIDENCE[1] | {"kid": MISNAMED}],
                       "jwks-log": [EVIDENCE[1], log_jwk(OTHER), log_jwk(ACME)],
                       "jwks-log-other": [EVIDENCE[1], log_jwk(OTHER)],
                       "jwks-log-misnamed": [EVIDENCE[1], log_jwk(ACME, f"svc-log-{YEAR}-00000000")]}.items():
        (folder / f"{name}.json").write_text(json.dumps({"keys": keys}, indent=2))
    cases = []

    def case(name: str, data: bytes, how: dict, **expected):
        file = f"{len(cases) + 1:02}-{'-'.join(''.join(c if c.isalnum() else ' ' for c in name).split())}.json"
        (folder / file).write_bytes(data)
        cases.append({"file": file} | how | expected)

    for name, text, how, output in good():
        case(f"good-{name}", text.encode(), how, exit=0, output=output)
    for name, data, code, where, how in bad():
        case(f"bad-{name}", data, how, exit=code, **({"member": where} if where else {}))
    (folder / "manifest.json").write_text(json.dumps(cases, indent=2))
    print(f"{len(cases)} files in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "cases"))

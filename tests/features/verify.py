"""Verifies an evidence pack, an evidence bundle or a replay proof offline, by EVIDENCE.md.

Usage: python verify.py FILE [--jwks FILE] [--checkpoint-key VKEY] [--require-trust]
Needs Python 3.11 and `pip install cryptography rfc8785`. Exit code: 0 valid, 1 invalid, 2 unreadable.
"""
import argparse, base64, hashlib, json, re, sys
from datetime import datetime, timedelta
from pathlib import Path
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from rfc8785 import dumps

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
GATHERED = {"policies": [{"sha256": HEX, "*": None}], "schemas?": [{"sha256": HEX}], "*": None}
PROOF = {"kind": TEXT, "id": "svc:replay:[0-9a-f]{32}", "evidence_id": EVIDENCE, "decision_id": DECISION,
         "mode": "historical_state_snapshot|current_state|policy_pin", "semantics": TEXT,
         "policy": ({"id": TEXT, "version": int, "sha256": DIGEST},), "result": "match|mismatch|indeterminate",
         "recomputed_decision_id": (DECISION,), "diff": [{"member": TEXT, "sealed": None, "recomputed": None}],
         "detail": (TEXT,), "replayed_at": TEXT, "issuer": TEXT, "signature": SIGNATURE}

class Invalid(Exception): pass
class Unreadable(Exception): pass
class Pairs(list): """An object with a duplicate member, of which a dict would drop the first."""

def need(holds, path, what):
    if not holds:
        raise Invalid(f"{path or 'the file'}: {what}")

def under(path, name):
    if not re.fullmatch("[A-Za-z0-9_]+", name):
        return f"{path}[{json.dumps(name)}]"  # no name can look like a path
    return f"{path}.{name}" if path else name

def sha256(data): return hashlib.sha256(data).digest()
def digest(data): return "sha256:" + sha256(data).hex()
def without(members, name): return dumps({n: v for n, v in members.items() if n != name})
def thumbprint(x): return sha256(dumps({"crv": "Ed25519", "kty": "OKP", "x": x}))

def holds(key, signature, signed):
    try:
        return Ed25519PublicKey.from_public_bytes(key).verify(signature, signed) is None
    except InvalidSignature:
        return False

def read(file):
    """A file's JSON; refused if two parsers could understand it differently."""
    def no_json(text): raise ValueError(f"{text} is not JSON")
    def inside(value):
        return [v for _, v in value] if isinstance(value, Pairs) else getattr(value, "values", lambda: value)()
    def depth(value): return 1 + max(map(depth, inside(value)), default=0) if isinstance(value, (dict, list)) else 0
    try:
        value = json.loads(Path(file).read_bytes().decode(), parse_constant=no_json,
                           parse_int=lambda t: float(t) if len(t) > 17 or t == "-0" else int(t),
                           object_pairs_hook=lambda p: dict(p) if len(dict(p)) == len(p) else Pairs(p))
        if depth(value) > 127:
            raise ValueError("nested too deeply")
    except (OSError, ValueError, RecursionError) as error:
        raise Unreadable(f"{file}: {error}") from error
    inspect(value, "")
    return value

def inspect(value, path):
    if isinstance(value, str):
        need(not re.search("[\ud800-\udfff]", value), path, "holds a lone surrogate")
    elif type(value) in (int, float):
        need(abs(value) < 2**53, path, "is beyond 2^53-1")
        need(type(value) is int or re.match(r"context\.value\b", path), path, "must be an integer")
    elif isinstance(value, (dict, Pairs)):
        seen = set()
        for name, item in value.items() if isinstance(value, dict) else value:
            need(name not in seen, under(path, name), "occurs twice")
            seen.add(name)
            inspect(name, under(path, name))
            inspect(item, under(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            inspect(item, f"{path}[{index}]")

def fit(value, shape, path):
    if isinstance(shape, tuple):
        return value is None or fit(value, shape[0], path)
    if isinstance(shape, str):
        need(isinstance(value, str) and re.fullmatch(shape, value), path, f"must be text like {shape}")
    elif shape is int:
        need(type(value) is int and value >= 0, path, "must be an integer from 0")
    elif shape is dict or isinstance(shape, dict):
        need(isinstance(value, dict), path, "must be an object")
        members = {} if shape is dict else {name: inner for name, inner in shape.items() if name != "*"}
        for name in sorted(value.keys() - {name.rstrip("?") for name in members}):
            need(shape is dict or "*" in shape, under(path, name), "is unknown")
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

def milliseconds(moment, path):
    found = re.fullmatch(r"([0-9T:-]{19})(?:\.([0-9]{1,9}))?Z", moment)
    try:
        at = datetime.fromisoformat(found[1])
        since = at - datetime(1970, 1, 1)
        # Formatting it again detects 24:00, which some versions read as the next day.
        need(at.isoformat() == found[1] and since >= timedelta(), path, "")
    except (TypeError, ValueError, Invalid):
        raise Invalid(f"{path}: must be a time since 1970, in UTC with Z") from None
    return since // timedelta(seconds=1) * 1000 + int((found[2] or "").ljust(3, "0")[:3])

def check_signature(signature, purpose, signed, keys, path):
    kid = signature["kid"]
    named = re.fullmatch("svc-([a-z]+)-[0-9]{4}-([0-9a-f]{8})", kid)
    need(named and named[1] == purpose, f"{path}.kid", f"names no key for {purpose}")
    need(kid in keys, f"{path}.kid", f"no key for {kid}")
    need(thumbprint(keys[kid]).hex()[:8] == named[2], f"{path}.kid", "does not fit its key")
    key = base64.urlsafe_b64decode(keys[kid] + "=")
    need(holds(key, base64.b64decode(signature["value"]), signed), f"{path}.value", "is not valid")

def read_vkey(text):
    """Origin, key id and key, or None if they do not match."""
    if found := re.fullmatch(VKEY, text):
        typed = base64.b64decode(found[3])
        key_id = sha256(found[1].encode() + b"\n" + typed)[:4]
        return (found[1], key_id, typed[1:]) if typed[0] == 1 and key_id.hex() == found[2] else None

def log_keys(jwks):
    """The keys of purpose `log` in a JWK set."""
    named = ((re.fullmatch("svc-log-[0-9]{4}-([0-9a-f]{8})", kid), x) for kid, x in (jwks or {}).items())
    fitting = (x for kid, x in named if kid and thumbprint(x).hex()[:8] == kid[1])
    return [base64.urlsafe_b64decode(x + "=") for x in fitting]

def log_key_of(origin, keys, key_id):
    """The log key with this id under this origin, as `read_vkey` returns it."""
    ids = ((sha256(origin.encode() + b"\n\1" + key)[:4], key) for key in keys)
    return next(((origin, found, key) for found, key in ids if found == key_id), None)

def root_over(leaf, index, size, siblings):
    """The root from the siblings (RFC 9162, 2.1.3.2); None if there are too few or too many."""
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

def check_log(pack, log_key, path):
    log = pack["log"]
    leaf = sha256(b"\0" + without(pack, "log"))
    need(log["leaf_hash"] == "sha256:" + leaf.hex(), f"{path}.leaf_hash", "is not the pack's")
    found = re.fullmatch(NOTE, log["proof"])
    need(found, f"{path}.proof", "is not a tlog-proof@v1 with a checkpoint and one signature")
    index, siblings, signed, origin, size, root, signer, signature = found.groups()
    need(origin == log["origin"], f"{path}.origin", "is not the checkpoint's")
    need(signer == origin, f"{path}.proof", "the checkpoint is signed by another log")
    need(int(index) == log["index"], f"{path}.index", "is not the proof's")
    need(int(index) < int(size) < 2**53, f"{path}.proof", "the index is not within the checkpoint's size")
    reached = root_over(leaf, int(index), int(size), map(base64.b64decode, siblings.split()))
    need(reached == base64.b64decode(root), f"{path}.proof", "does not lead to the checkpoint's root")
    signature = base64.b64decode(signature)
    if isinstance(log_key, list):  # any key of the JWK set
        log_key = log_key_of(origin, log_key, signature[:4])
        need(log_key, f"{path}.proof", "the checkpoint is signed with no log key of the JWK set")
    if log_key:
        name, key_id, key = log_key
        need(name == origin, f"{path}.origin", "is not the log of the checkpoint key")
        need(signature[:4] == key_id, f"{path}.proof", "the checkpoint is signed with another key")
        need(holds(key, signature[4:], signed.encode()), f"{path}.proof", "the checkpoint's signature is not valid")

def check_pack(pack, keys, log_key, at=""):
    record = dumps(pack["record"])
    time = milliseconds(pack["record"]["evaluated_at"], f"{at}record.evaluated_at")
    name = f"{time:012x}{sha256(record).hex()[:52]}"
    need(pack["record_digest"] == digest(record), f"{at}record_digest", "is not the record's")
    need(pack["decision_id"] == f"svc:decision:{name}", f"{at}decision_id", "is not the record's")
    need(pack["id"] == f"svc:evidence:{name}", f"{at}id", "is not the record's")
    check_signature(pack["signature"], "evidence", record, keys, f"{at}signature")
    check_log(pack, log_key, f"{at}log")

def check_bundle(bundle, pinned, pinned_log):
    pack, key = bundle["pack"], bundle["keys"][0] if len(bundle["keys"]) == 1 else None
    need(key, "keys", "must hold one key")
    kid, log_key = key["kid"], read_vkey(bundle["log_key"])
    need(kid == pack["signature"]["kid"], "keys[0].kid", "is not the signature's")
    need(pinned is None or kid in pinned, "pack.signature.kid", f"no key for {json.dumps(kid)[1:-1]}")
    need(pinned is None or key["x"] == pinned[kid], "keys[0].x", "is not the pinned key")
    need(log_key, "log_key", "its id does not fit its key")
    if isinstance(pinned_log, list):
        need(log_key[2] in pinned_log, "log_key", "is not a log key of the JWK set")
    else:
        need(pinned_log in (None, log_key), "log_key", "is not the pinned key")
    check_pack(pack, {kid: key["x"]}, log_key, "pack.")
    record = pack["record"]
    for part, named in (("context", record["request"]["context_digest"]), ("facts", record["facts_digest"])):
        salted = base64.b64decode(bundle[part]["salt"]) + dumps(bundle[part]["value"])
        need(digest(salted) == named, part, "does not have the record's digest")
    check_blobs(bundle["blobs"], bundle["facts"]["value"])
    need(bundle["bundle_digest"] == digest(without(bundle, "bundle_digest")), "bundle_digest", "is not the bundle's")

def check_blobs(blobs, parts):
    for index, blob in enumerate(blobs):
        body = {"json": dict} if "json" in blob else {"text": TEXT}
        fit(blob, {"sha256": DIGEST} | body, f"blobs[{index}]")
        need(not index or blobs[index - 1]["sha256"] < blob["sha256"], f"blobs[{index}].sha256", "is not in order")
        hashed = dumps(blob["json"]) if "json" in blob else blob["text"].encode()
        need(digest(hashed) == blob["sha256"], f"blobs[{index}].sha256", "is not the body's")
    places = {blob["sha256"]: index for index, blob in enumerate(blobs)}
    gathered, reality = parts["gathered"], parts["reality"]
    place = places.get(gathered)
    need(place is not None and "json" in blobs[place], "facts.value.gathered", "no json blob has it")
    facts, at, named = blobs[place]["json"], f"blobs[{place}].json", {gathered}
    if reality is not None:
        need(reality in places and "json" in blobs[places[reality]], "facts.value.reality", "no json blob has it")
        named.add(reality)
    fit(facts, GATHERED, at)
    for kind in ("policies", "schemas"):
        for index, one in enumerate(facts.get(kind, [])):
            name = "sha256:" + one["sha256"]
            text = name in places and "text" in blobs[places[name]]
            need(text, f"{at}.{kind}[{index}].sha256", "no text blob has it")
            named.add(name)
    for index, blob in enumerate(blobs):
        need(blob["sha256"] in named, f"blobs[{index}]", "is named by nothing")

def check_proof(proof, keys):
    need(proof["evidence_id"][-64:] == proof["decision_id"][-64:], "evidence_id", "is not of the decision")
    need((proof["result"] == "mismatch") == bool(proof["diff"]), "diff", "does not fit the result")
    need(proof["result"] != "indeterminate" or proof["detail"], "detail", "must say what is indeterminate")
    free = (proof["mode"], proof["result"]) != ("historical_state_snapshot", "match")
    same = proof["recomputed_decision_id"] == proof["decision_id"]
    need(free or same, "recomputed_decision_id", "is not the decision's")
    check_signature(proof["signature"], "replay", without(proof, "signature"), keys, "signature")

def read_jwks(file):
    """The Ed25519 keys of a JWK set by kid; others in it do not sign evidence."""
    try:
        whole = read(file)
        if whole.get("kind") is not None:
            raise Invalid("it is an evidence file, and cannot vouch for itself")
        keys = [key for key in whole["keys"] if key.get("crv") == "Ed25519"]
        for key in keys:
            fit(key, {"kty": "OKP", "kid": TEXT, "x": KEY["x"], "*": None}, "key")
    except (Invalid, TypeError, KeyError, AttributeError) as error:
        raise Unreadable(f"{file} is no JWK set: {error}") from error
    if len({key["kid"] for key in keys}) < len(keys):
        raise Unreadable(f"{file} has two keys of one kid")
    return {key["kid"]: key["x"] for key in keys}

def verify(file, jwks, checkpoint_key):
    """The output for a file without faults."""
    pinned = None if jwks is None else read_jwks(jwks)
    log_key = None if checkpoint_key is None else read_vkey(checkpoint_key)
    if checkpoint_key is not None and not log_key:
        raise Unreadable("--checkpoint-key is no vkey")
    log_key = log_key or log_keys(pinned) or None
    document = read(file)
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "svc.evidence.pack.v1":
        fit(document, PACK, "")
        check_pack(document, pinned or {}, log_key)
        return "valid" if log_key else "valid; checkpoint signature not checked"
    if kind == "svc.replay.proof.v1":
        fit(document, PROOF, "")
        check_proof(document, pinned or {})
        return "valid"
    if kind != "svc.evidence.bundle.v1":
        raise Unreadable(f"{file}: its kind must be that of a pack, a bundle or a replay proof")
    fit(document, BUNDLE, "")
    check_bundle(document, pinned, log_key)
    if pinned is None:
        named = base64.urlsafe_b64encode(thumbprint(document["keys"][0]["x"])).decode().rstrip("=")
        return f"consistent; issuer not pinned: {named}"
    return "valid" if log_key else "valid; log key not pinned"

def main():
    arguments = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_argument("file")
    arguments.add_argument("--jwks")
    arguments.add_argument("--checkpoint-key")
    arguments.add_argument("--require-trust", action="store_true")
    asked = arguments.parse_args()
    try:
        found = verify(asked.file, asked.jwks, asked.checkpoint_key)
    except Invalid as error:
        print(f"invalid: {error}")
        return 1
    except Unreadable as error:
        print(f"unreadable: {error}")
        return 2
    print(found)
    return int(asked.require_trust and found != "valid")

if __name__ == "__main__":
    sys.exit(main())

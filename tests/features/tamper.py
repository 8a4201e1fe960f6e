"""Tampered versions of a good evidence pack, bundle or replay proof.

`tampered(document, text)` takes a good file, parsed and as text, and returns (name, bytes) pairs. A verifier
with the signing keys of the good file must refuse every version.

A name states the change and its place: `changed pack.record.operation`. The suffix `, digests made anew` means
that every digest and id that needs no key was recomputed, as an attacker would. The suffix
`, bundle digest made anew` means that only that digest was recomputed.
"""
import base64
import copy
import hashlib
import json
import re

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SPARE_BITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
TWICE = "\x00twice"  # stands for a member's name until the document is text: a dict can't have a name twice


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def digest(data: bytes) -> str:
    return "sha256:" + sha256(data).hex()


def without(members: dict, name: str) -> bytes:
    return rfc8785.dumps({n: v for n, v in members.items() if n != name})


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def tampered(document: dict, text: str) -> list[tuple[str, bytes]]:
    made = [*bytes_changed(text), *members(document), *twice(document), *spellings(document)]
    if document["kind"] != "svc.replay.proof.v1":
        made += [*proofs(document), *wrong_log(document)]
    made += wrong_keys(document)
    named = {}
    for name, data in made:
        # Making the digests match can restore the good file. Such a version is not tampered with.
        if not same(data, document):
            named.setdefault(name, data)
    return list(named.items())


def same(data: bytes, document: dict) -> bool:
    def read(text: str):
        return json.loads(text, object_pairs_hook=lambda pairs: sorted(pairs, key=lambda pair: pair[0]))

    try:
        # repr, since 1 == 1.0 == True
        return repr(read(data.decode())) == repr(read(json.dumps(document)))
    except (ValueError, RecursionError):
        return False


def dumped(document: dict) -> bytes:
    return json.dumps(document).encode()


def bytes_changed(text: str):
    """Changes of single bytes spread over the file, and changes of the file as a whole."""
    data = text.encode()
    places = [place for place, byte in enumerate(data) if chr(byte).isalnum() and byte < 128]
    for number, place in enumerate(places[:: len(places) // 24 + 1]):
        byte = data[place : place + 1]
        other = b"7" if byte == b"3" else b"3" if byte.isdigit() else b"e" if byte == b"d" else b"d"
        yield f"one byte {number}", data[:place] + other + data[place + 1 :]
    yield "cut in half", data[: len(data) // 2]
    yield "last byte gone", data.rstrip()[:-1]
    yield "one byte more", data + b"}"
    yield "empty", b""
    yield "in an array", b"[" + data + b"]"
    yield "byte order mark", b"\xef\xbb\xbf" + data
    yield "UTF-16", text.encode("utf-16")
    yield "no UTF-8", data.replace(b'"kind"', b'"kin\xff"', 1)


def places(value, path=()):
    """Yields every value within the document, with its path. Outer values come first."""
    if path:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from places(item, (*path, name))


def shown(path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".") or "the file"


def edited(document: dict, path, edit) -> dict:
    """Returns a copy of the document after `edit(parent, name)` at the path."""
    document = copy.deepcopy(document)
    parent = document
    for part in path[:-1]:
        parent = parent[part]
    edit(parent, path[-1])
    return document


def put(document: dict, path, value) -> dict:
    return edited(document, path, lambda parent, name: parent.__setitem__(name, value))


def other(value):
    """A similar but different value."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        letter = re.search("[0-9a-z](?=[^0-9a-z]*$)", value)
        if not letter:
            return value + "a"
        swap = "1" if letter[0] == "0" else "0" if letter[0].isdigit() else "b" if letter[0] == "a" else "a"
        return value[: letter.start()] + swap + value[letter.end() :]
    return "null" if value is None else None


def members(document: dict):
    """At each level: a member changed, of another type, removed, added; an array in another order."""
    yield "added to the file", dumped(document | {"added": True})
    for path, value in places(document):
        where = shown(path)
        yield from attempts(f"changed {where}", put(document, path, other(value)))
        if isinstance(path[-1], str):
            yield from attempts(f"removed {where}", edited(document, path, lambda parent, name: parent.pop(name)))
        if isinstance(value, dict):
            yield from attempts(f"added to {where}", put(document, path, value | {"added": True}))
        if isinstance(value, list):
            for what, array in arrays(value):
                yield from attempts(f"{what} {where}", put(document, path, array), order=False)


def attempts(name: str, document: dict, order: bool = True):
    """Yields the document as it is, and with digests that match it."""
    yield name, dumped(document)
    yield f"{name}, digests made anew", dumped(made_anew(document, order))
    if document.get("bundle_digest"):
        fitting = document | {"bundle_digest": digest_without(document, "bundle_digest")}
        yield f"{name}, bundle digest made anew", dumped(fitting)


def digest_without(document: dict, name: str):
    """Returns the canonical form, or None if there is none."""
    try:
        return digest(without(document, name))
    except ValueError:
        return None


def arrays(value: list):
    yield "reversed", value[::-1]
    yield "added to", [*value, {"added": True}]
    if value:
        yield "emptied", []
        yield "last taken from", value[:-1]
        yield "last doubled in", [*value, value[-1]]


def made_anew(document: dict, order: bool = True) -> dict:
    """Recomputes every digest that needs no key. A document that is too broken for this stays unchanged."""
    document = copy.deepcopy(document)
    try:
        if document["kind"] == "svc.evidence.bundle.v1":
            remake_bundle(document, order)
        elif document["kind"] == "svc.evidence.pack.v1":
            remake_pack(document)
    except (KeyError, TypeError, AttributeError, ValueError):
        pass
    return document


def remake_bundle(bundle: dict, order: bool):
    blobs, facts = bundle["blobs"], bundle["facts"]["value"]
    bodies = [blob for blob in blobs if blob["sha256"] == facts["gathered"]]
    for gathered in bodies[:1]:
        naming = [one for kind in ("policies", "observing", "schemas") for one in gathered["json"].get(kind, [])]
        rename_texts([blob for blob in blobs if "text" in blob], naming)
        gathered["sha256"] = facts["gathered"] = digest(rfc8785.dumps(gathered["json"]))
    if order:
        blobs.sort(key=lambda blob: blob["sha256"])
    record = bundle["pack"]["record"]
    record["request"]["context_digest"] = salted(bundle["context"])
    record["facts_digest"] = salted(bundle["facts"])
    remake_pack(bundle["pack"])
    bundle["bundle_digest"] = digest(without(bundle, "bundle_digest"))


def rename_texts(blobs: list, naming: list):
    """Recomputes digests of texts, in their own place and in references to them."""
    for blob in blobs:
        renamed = digest(blob["text"].encode())
        for one in naming:
            if "sha256:" + one["sha256"] == blob["sha256"]:
                one["sha256"] = renamed.removeprefix("sha256:")
        blob["sha256"] = renamed


def salted(part: dict) -> str:
    return digest(base64.b64decode(part["salt"]) + rfc8785.dumps(part["value"]))


def remake_pack(pack: dict):
    pack["record_digest"] = digest(rfc8785.dumps(pack["record"]))
    # The twelve digits of the time stay as they are. Another test changes only these digits.
    time = pack["id"].removeprefix("svc:evidence:")[:12]
    name = time + pack["record_digest"].removeprefix("sha256:")[:52]
    pack["id"], pack["decision_id"] = f"svc:evidence:{name}", f"svc:decision:{name}"
    pack["log"]["leaf_hash"] = digest(b"\0" + without(pack, "log"))


def twice(document: dict):
    """A duplicate member, with the good value first or last: parsers differ in which one they keep."""
    for path, value in [((), document), *places(document)]:
        if isinstance(value, dict) and value:
            name = next(iter(value))
            pairs = {
                "the same": [(name, value[name]), (TWICE, value[name])],
                "the good one last": [(TWICE, other(value[name])), (name, value[name])],
                "the good one first": [(name, value[name]), (TWICE, other(value[name]))],
            }
            for what, first in pairs.items():
                members = dict(first) | {n: v for n, v in value.items() if n != name}
                changed = put(document, path, members) if path else members
                data = dumped(changed).replace(json.dumps(TWICE).encode(), json.dumps(name).encode())
                yield f"twice {shown((*path, name))}, {what}", data


def spellings(document: dict):
    """Equal content in forms that no verifier may accept, and numbers that no double can represent."""
    for path, value in places(document):
        where = shown(path)
        for what, spelled in spelled_otherwise(value, path):
            yield from attempts(f"{what} {where}", put(document, path, spelled))
    yield "beyond 2^53-1 in a member added", dumped(document | {"added": 2**53})


def spelled_otherwise(value, path):
    exact = path[:2] != ("context", "value")
    if type(value) is int:
        yield "beyond 2^53-1", 2**53
        yield "below -(2^53-1)", -(2**53)
        yield "far beyond 2^53-1", 10**400
        if exact:
            yield "with a fraction", float(value)
        yield "as text", str(value)
    if type(value) is str:
        yield "lone surrogate", value + "\ud800"
        yield "as an array", [value]
        if re.search("[0-9a-f]{64}$", value):
            yield "upper-case hex", value[:-64] + value[-64:].upper()
            yield "a digit less", value[:-1]
            yield "newline after", value + "\n"
        if path[-1] == "log_key":
            name, key_id, key = value.split("+", 2)
            yield "upper-case hex", f"{name}+{key_id.upper()}+{key}"
        if path[-1] in ("salt", "value") and isinstance(value, str) and value.endswith("="):
            yield from base64_otherwise(value)
        if path[-1] == "x":
            yield "spare bits", spare_bits(value)
            yield "padding", value + "="


def base64_otherwise(value: str):
    yield "spare bits", spare_bits(value)
    yield "no padding", value.rstrip("=")
    yield "newline within", value[:8] + "\n" + value[8:]
    yield "URL alphabet", value.replace("+", "-").replace("/", "_")


def spare_bits(value: str) -> str:
    """Sets the last letter's lowest bit, which represents no bit of the data."""
    body = value.rstrip("=")
    letter = body[-1].replace("-", "+").replace("_", "/")
    return body[:-1] + SPARE_BITS[SPARE_BITS.index(letter) + 1] + value[len(body) :]


def pack_of(document: dict):
    return (document["pack"], ("pack",)) if "pack" in document else (document, ())


def proofs(document: dict):
    """The inclusion proof's text: its path, its numbers, its checkpoint, its signature."""
    pack, at = pack_of(document)
    text = pack["log"]["proof"]
    head, note, seal = text.split("\n\n")
    index, siblings = head.split("\n")[1], head.split("\n")[2:]
    origin, size, root = note.split("\n")
    version = "c2sp.org/tlog-proof@v1"

    def shape(index=index, path=siblings, note=note, seal=seal):
        return "\n".join([version, index, *path]) + "\n\n" + note + "\n\n" + seal

    longer = b64(sha256(b"longer"))
    changes = {
        "longer path": shape(path=[*siblings, longer]),
        "extra line": text.replace(version, version + "\nextra AAAA"),
        "another version": text.replace("@v1", "@v2"),
        "other index": shape(index="index 1" if index == "index 0" else "index 0"),
        "leading zero in the index": shape(index=index.replace("index ", "index 0")),
        "sign before the index": shape(index=index.replace("index ", "index +")),
        "checkpoint of a smaller size": shape(note=f"{origin}\n{max(1, int(size) - 1)}\n{root}"),
        "checkpoint of a larger size": shape(note=f"{origin}\n{int(size) + 1}\n{root}"),
        "checkpoint of size 0": shape(note=f"{origin}\n0\n{root}"),
        "checkpoint beyond 2^53-1": shape(note=f"{origin}\n{2**53}\n{root}"),
        "checkpoint's other root": shape(note=f"{origin}\n{size}\n{longer}"),
        "checkpoint with an extension": shape(note=f"{note}\nextension"),
        "root with spare bits": shape(note=f"{origin}\n{size}\n{spare_bits(root)}"),
        "signature with spare bits": shape(seal=spare_bits(seal.rstrip("\n")) + "\n"),
        "signature gone": shape(seal=""),
        "signature twice": shape(seal=seal * 2),
        "a signature by another name": shape(seal=seal + f"— other.example {b64(b'spare')}\n"),
        "hyphen for the dash": shape(seal=seal.replace("—", "-")),
        "no newline at the end": text[:-1],
        "newline more at the end": text + "\n",
        "carriage returns": text.replace("\n", "\r\n"),
        "key id of another key": shape(seal=with_key_id(seal)),
    }
    if siblings:
        changes |= {
            "path shortened": shape(path=siblings[:-1]),
            "path without its first": shape(path=siblings[1:]),
            "path empty": shape(path=[]),
            "path line with spare bits": shape(path=[spare_bits(siblings[0]), *siblings[1:]]),
            "path reversed": shape(path=siblings[::-1]),
        }
    for what, changed in changes.items():
        yield from attempts(f"proof: {what}", put(document, (*at, "log", "proof"), changed))


def with_key_id(seal: str) -> str:
    dash, name, signature = seal.rstrip("\n").split(" ")
    data = bytearray(base64.b64decode(signature))
    data[0] ^= 1
    return f"{dash} {name} {b64(data)}\n"


def wrong_log(document: dict):
    """The same leaf in another tenant's log, with its origin changed everywhere."""
    pack, at = pack_of(document)
    origin = pack["log"]["origin"]
    moved = put(document, (*at, "log", "origin"), origin + "2")
    yield "another log's origin", dumped(made_anew(moved))
    moved = put(moved, (*at, "log", "proof"), pack["log"]["proof"].replace(origin, origin + "2"))
    yield "another log's origin, in the checkpoint too", dumped(made_anew(moved))
    seal = pack["log"]["proof"].replace(f"— {origin} ", f"— {origin}2 ")
    yield "signed by another log", dumped(made_anew(put(document, (*at, "log", "proof"), seal)))


def key_named(seed: bytes, purpose: str, year: str):
    """A foreign key, with the kid and JWK that a key of the service would have."""
    key = Ed25519PrivateKey.from_private_bytes(sha256(seed))
    x = b64url(key.public_key().public_bytes_raw())
    thumbprint = sha256(rfc8785.dumps({"crv": "Ed25519", "kty": "OKP", "x": x})).hex()
    return key, {"alg": "EdDSA", "crv": "Ed25519", "kid": f"svc-{purpose}-{year}-{thumbprint[:8]}",
                 "kty": "OKP", "use": "sig", "x": x}


def wrong_keys(document: dict):
    """Signed with a foreign key: under the good kid, under the key's own kid, and with its own log."""
    if document["kind"] == "svc.replay.proof.v1":
        kid = document["signature"]["kid"]
        key, jwk = key_named(b"another replay key", "replay", kid.split("-")[2])
        sign = b64(key.sign(without(document, "signature")))
        yield "signed with another key", dumped(put(document, ("signature", "value"), sign))
        signature = document["signature"] | {"kid": jwk["kid"], "value": sign}
        yield "signed with another key, by its own kid", dumped(document | {"signature": signature})
        for purpose in ("evidence", "log", "webhook"):
            named = put(document, ("signature", "kid"), kid.replace("replay", purpose))
            yield f"kid of purpose {purpose}", dumped(named)
        return
    pack, at = pack_of(document)
    kid = pack["signature"]["kid"]
    key, jwk = key_named(b"another evidence key", "evidence", kid.split("-")[2])
    sign = b64(key.sign(rfc8785.dumps(pack["record"])))
    yield "signed with another key", dumped(made_anew(put(document, (*at, "signature", "value"), sign)))
    own = put(document, (*at, "signature"), pack["signature"] | {"kid": jwk["kid"], "value": sign})
    yield "signed with another key, by its own kid", dumped(made_anew(own))
    for purpose in ("replay", "log", "webhook"):
        named = put(document, (*at, "signature", "kid"), kid.replace("evidence", purpose))
        yield f"kid of purpose {purpose}", dumped(made_anew(named))
    if not at:
        yield "whole pack forged", dumped(forged(own))
        return
    own["keys"] = [jwk]
    yield "signed with another key, the key with it", dumped(made_anew(own))
    yield "whole bundle forged", dumped(forged(own))
    good_kid = put(document, ("pack", "signature", "value"), sign)
    good_kid["keys"] = [jwk | {"kid": kid}]
    yield "another key under the good kid", dumped(made_anew(good_kid))
    yield "a second key", dumped(made_anew(document | {"keys": [*document["keys"], jwk]}))
    yield "no key", dumped(made_anew(document | {"keys": []}))


def forged(document: dict) -> dict:
    """With a log of one leaf under the same origin: only the signing keys are wrong."""
    document = made_anew(document)
    pack, _ = pack_of(document)
    log, origin = pack["log"], pack["log"]["origin"]
    key = Ed25519PrivateKey.from_private_bytes(sha256(b"another log key"))
    typed = b"\1" + key.public_key().public_bytes_raw()
    key_id = sha256(origin.encode() + b"\n" + typed)[:4]
    root = b64(bytes.fromhex(log["leaf_hash"].removeprefix("sha256:")))
    note = f"{origin}\n1\n{root}\n"
    seal = b64(key_id + key.sign(note.encode()))
    log["index"], log["proof"] = 0, f"c2sp.org/tlog-proof@v1\nindex 0\n\n{note}\n— {origin} {seal}\n"
    if "log_key" in document:
        document["log_key"] = f"{origin}+{key_id.hex()}+{b64(typed)}"
    return made_anew(document)

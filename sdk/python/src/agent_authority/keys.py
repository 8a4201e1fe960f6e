"""The public keys that a verifier trusts."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .clock import microseconds
from .jcs import canonical

_X = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]", re.ASCII)


def thumbprint(x: str) -> bytes:
    """Returns the SHA-256 thumbprint of an Ed25519 key (RFC 7638)."""
    return hashlib.sha256(canonical({"crv": "Ed25519", "kty": "OKP", "x": x})).digest()


def signed_by(key: bytes, signature: bytes, signed: bytes) -> bool:
    """Whether the Ed25519 key made this signature."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, signed)
    except InvalidSignature:
        return False
    return True


@dataclass(frozen=True)
class Key:
    """An Ed25519 public key."""

    kid: str
    x: str
    #: The time of its revocation, in microseconds since 1970.
    revoked_at: int | None = None

    @property
    def raw(self) -> bytes:
        """Its 32 bytes."""
        return base64.urlsafe_b64decode(self.x + "=")

    def is_for(self, purpose: str) -> bool:
        """Whether its id names this purpose and matches the key."""
        named = re.fullmatch("svc-([a-z]+)-[0-9]{4}-([0-9a-f]{8})", self.kid, re.ASCII)
        return bool(named and named[1] == purpose and named[2] == thumbprint(self.x).hex()[:8])


class KeySet:
    """The Ed25519 keys of a JWK set (``/.well-known/jwks.json``), by their id.

    :raises ValueError: The document is not a JWK set, or has two keys with one id.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        if not isinstance(document, Mapping) or not isinstance(document.get("keys"), list):
            raise ValueError("this is not a JWK set")
        if document.get("kind") is not None:
            raise ValueError("this is an evidence file, and can't vouch for itself")
        self._keys: dict[str, Key] = {}
        for jwk in document["keys"]:
            if not isinstance(jwk, Mapping):
                raise ValueError("this is not a JWK set")
            if jwk.get("crv") == "Ed25519":
                self._add(jwk)

    def _add(self, jwk: Mapping[str, Any]) -> None:
        kid, x = jwk.get("kid"), jwk.get("x")
        if jwk.get("kty") != "OKP" or not isinstance(kid, str) or not isinstance(x, str) or not _X.fullmatch(x):
            raise ValueError("an Ed25519 key of the JWK set is not valid")
        if kid in self._keys:
            raise ValueError(f"the JWK set has two keys with the id {kid}")
        revoked = jwk.get("revoked_at")
        at = microseconds(str(revoked)) if revoked is not None else 0 if jwk.get("revoked") else None
        self._keys[kid] = Key(kid, x, at)

    def get(self, kid: str) -> Key | None:
        """Returns the key with this id."""
        return self._keys.get(kid)

    def of(self, purpose: str) -> list[Key]:
        """Returns the keys for this purpose."""
        return [key for key in self._keys.values() if key.is_for(purpose)]

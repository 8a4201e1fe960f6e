"""Verifies webhook deliveries using only released libraries: standardwebhooks, http-message-signatures, PyJWT.

Reads a list of {suite, body, headers, url, secret, jwks} and prints whether each is genuine.
"""

import base64
import hashlib
import json
import sys
from types import SimpleNamespace

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, MappingKeyResolver, algorithms
from standardwebhooks import Webhook

COMPONENTS = ("@method", "@target-uri", "content-digest", "content-type", "webhook-id", "webhook-timestamp")


def ed25519(jwks):
    keys = [key for key in jwks["keys"] if key.get("crv") == "Ed25519"]
    decoded = {key["kid"]: base64.urlsafe_b64decode(key["x"] + "=") for key in keys}
    return {kid: Ed25519PublicKey.from_public_bytes(bytes) for kid, bytes in decoded.items()}


def standard_webhooks(case):
    Webhook(case["secret"]).verify(case["body"], case["headers"])


def rfc9421(case):
    request = SimpleNamespace(method="POST", url=case["url"], headers=case["headers"])
    keys = MappingKeyResolver(public_keys=ed25519(case["jwks"]), private_keys={})
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=keys)
    verifier.verify(
        request, expect_tag="svc-webhook-v1", require_components=COMPONENTS, body=case["body"].encode()
    )


def token(case):
    text = case["headers"]["webhook-jwt"]
    key = ed25519(case["jwks"])[jwt.get_unverified_header(text)["kid"]]
    claims = jwt.decode(
        text,
        key,
        algorithms=["EdDSA"],
        audience=case["url"],
        options={"require": ["iss", "aud", "iat", "exp", "jti"]},
    )
    if claims["body_sha256"] != hashlib.sha256(case["body"].encode()).hexdigest():
        raise ValueError("the token is of another body")


SUITES = {"standard-webhooks/v1": standard_webhooks, "rfc9421": rfc9421, "jwt": token}


def genuine(case):
    try:
        SUITES[case["suite"]](case)
        return True
    except Exception as why:
        print(f"{case['suite']}: {type(why).__name__}: {why}", file=sys.stderr)
        return False


print(json.dumps([genuine(case) for case in json.load(sys.stdin)]))

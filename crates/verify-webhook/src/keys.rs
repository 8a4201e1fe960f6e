//! Keys of the JWKS.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;

use crate::VerifyError;

/// The prefix of the ids of webhook keys. Keys with another prefix have another purpose and must
/// not sign deliveries.
const KID_PREFIX: &str = "svc-webhook-";

/// Checks that the webhook key `kid` has signed these bytes (Ed25519, RFC 8032).
pub(crate) fn verify(
    jwks: Option<&Value>,
    kid: &str,
    signed: &[u8],
    signature: &[u8],
) -> Result<(), VerifyError> {
    let public = public_key(jwks, kid).ok_or(VerifyError::UnknownKey)?;
    let key = UnparsedPublicKey::new(&ED25519, public);
    key.verify(signed, signature).map_err(|_| VerifyError::Signature)
}

fn public_key(jwks: Option<&Value>, kid: &str) -> Option<Vec<u8>> {
    if !kid.starts_with(KID_PREFIX) {
        return None;
    }
    let keys = jwks?.get("keys")?.as_array()?;
    let text = |key: &'_ Value, member: &str| key.get(member)?.as_str().map(str::to_owned);
    let mut named = keys.iter().filter(|key| text(key, "kid").as_deref() == Some(kid));
    let (key, None) = (named.next()?, named.next()) else { return None };
    let is = |member: &str, word: &str| text(key, member).as_deref() == Some(word);
    let fits = is("kty", "OKP")
        && is("crv", "Ed25519")
        && (key.get("alg").is_none() || is("alg", "EdDSA"))
        && (key.get("use").is_none() || is("use", "sig"));
    let public = URL_SAFE_NO_PAD.decode(text(key, "x")?).ok()?;
    (fits && public.len() == 32).then_some(public)
}

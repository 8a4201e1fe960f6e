//! Checks signatures by the service's keys, and the kid, purpose and thumbprint of each key.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::{
    fault::{Fault, need, need_key},
    trust::KeySet,
};
use crate::is_hex;
use authority_crypto::{sha256, verify_with_jwk};

/// Returns the RFC 7638 thumbprint of an Ed25519 key.
fn thumbprint(x: &str) -> [u8; 32] {
    sha256(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#).as_bytes())
}

pub(super) fn thumbprint_text(x: &str) -> String {
    URL_SAFE_NO_PAD.encode(thumbprint(x))
}

/// Returns the keys with the purpose `log` in their kid. The kid must match the key's thumbprint.
pub(super) fn log_keys(known: &KeySet) -> Vec<[u8; 32]> {
    let fits = |kid: &str, x: &str| {
        print_of(kid, "log").is_some_and(|print| hex::encode(thumbprint(x)).starts_with(print))
    };
    let keys = known.iter().filter(|(kid, x)| fits(kid, x));
    keys.filter_map(|(_, x)| URL_SAFE_NO_PAD.decode(x).ok()?.try_into().ok()).collect()
}

/// Checks a signature.
///
/// # Errors
/// The key is not for this purpose, is unknown, or did not sign the bytes.
pub(super) fn check(
    signature: &Value,
    purpose: &str,
    signed: &[u8],
    known: &KeySet,
    path: &str,
) -> Result<(), Fault> {
    let text = |member: &str| signature[member].as_str().unwrap_or_default();
    let kid = text("kid");
    let at = format!("{path}.kid");
    let print = print_of(kid, purpose);
    need(print.is_some(), &at, &format!("names no key for {purpose}"))?;
    need_key(known.contains_key(kid), &at, kid)?;
    let x = known.get(kid).map(String::as_str).unwrap_or_default();
    let fits = print.is_some_and(|print| hex::encode(thumbprint(x)).starts_with(print));
    need(fits, &at, "does not fit its key")?;
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": x});
    let value = STANDARD.decode(text("value")).unwrap_or_default();
    let holds = verify_with_jwk(&jwk, signed, &value).is_ok();
    need(holds, &format!("{path}.value"), "is not valid")
}

/// Returns the start of the thumbprint in `svc-<purpose>-<year>-<8 hex>`.
fn print_of<'a>(kid: &'a str, purpose: &str) -> Option<&'a str> {
    let rest = kid.strip_prefix("svc-")?.strip_prefix(purpose)?.strip_prefix('-')?;
    let (year, print) = rest.split_once('-')?;
    let dated = year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit());
    (dated && is_hex(print, 8)).then_some(print)
}

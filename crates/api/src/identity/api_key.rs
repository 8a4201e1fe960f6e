//! API keys: `svc_<env>_<public id>_<secret>_<checksum>`.
//!
//! The public id finds the record (`svc:api_key:<public id>`). The secret is 256 random bits in
//! base 62. The checksum (CRC-32) detects mistyped keys and other text before any look-up, and lets
//! scanners find leaked keys. Only a message authentication code of the key is stored.

use std::net::IpAddr;

use chrono::{DateTime, Utc};

use super::{
    caller::{Caller, CallerKind, SecretCode},
    error::{ADDRESS_NOT_ALLOWED, Error},
};
use authority_graph::{ApiKey, Unusable};
use authority_keys::Keys;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The number of base-62 digits of 256 bits.
const SECRET: usize = 43;
const PUBLIC_ID: usize = 32;
const LONGEST_ENV: usize = 16;

/// Every scope that a key can have.
pub const SCOPES: [&str; 10] = [
    "runtime:read",
    "runtime:write",
    "runtime:stop",
    "evidence:read",
    "evidence:write",
    "delegations:write",
    "events:read",
    "webhooks:write",
    "reality:write",
    "tools:observe",
];

/// A new key: `text` is shown once, `code` is stored.
pub struct Issued {
    pub text: String,
    pub code: [u8; 32],
}

/// Builds a key from 32 random bytes.
///
/// # Errors
/// The env is not 1 to 16 lower-case letters and digits, or the id is not 32 lower-case hex digits.
pub fn issue(keys: &Keys, env: &str, public_id: &str, random: [u8; 32]) -> Result<Issued, Error> {
    let body = format!("{}_{}", prefix(env, public_id), base62(random));
    let text = format!("{body}_{:08x}", crc32(body.as_bytes()));
    let code = code(keys, &parse(&text)?);
    Ok(Issued { text, code })
}

/// Returns the start of a key's text, which lists show: the environment and the public id.
pub fn prefix(env: &str, public_id: &str) -> String {
    format!("svc_{env}_{public_id}")
}

/// Computes the message authentication code of a key, which is stored instead of the key.
pub fn code(keys: &Keys, key: &Presented<'_>) -> [u8; 32] {
    keys.api_key_mac(key.body.as_bytes())
}

/// A presented key: well formed, not yet verified.
pub struct Presented<'a> {
    pub env: &'a str,
    pub public_id: &'a str,
    /// The key without its checksum.
    body: &'a str,
}

/// Whether a credential is intended as an API key.
pub fn looks_like_key(credential: &str) -> bool {
    credential.starts_with("svc_")
}

/// Parses a key and verifies its checksum.
///
/// # Errors
/// [`Error::MalformedKey`], without a look-up.
pub fn parse(text: &str) -> Result<Presented<'_>, Error> {
    let (body, checksum) = text.rsplit_once('_').ok_or(Error::MalformedKey)?;
    if !is_hex_of(checksum, crc32(body.as_bytes())) {
        return Err(Error::MalformedKey);
    }
    let mut parts = body.split('_');
    let (Some("svc"), Some(env), Some(public_id), Some(secret), None) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Error::MalformedKey);
    };
    let slug = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let sound = (1..=LONGEST_ENV).contains(&env.len())
        && slug(env)
        && public_id.len() == PUBLIC_ID
        && public_id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        && secret.len() == SECRET
        && secret.bytes().all(|b| b.is_ascii_alphanumeric());
    if sound { Ok(Presented { env, public_id, body }) } else { Err(Error::MalformedKey) }
}

/// Whether the text is the number in eight lower-case hex digits.
fn is_hex_of(text: &str, number: u32) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 8 && text.bytes().all(is_hex) && u32::from_str_radix(text, 16) == Ok(number)
}

/// Checks that a presented key is the key of `facts` and may be used from `peer` now.
pub(super) fn check(
    keys: &Keys,
    key: &Presented<'_>,
    facts: &ApiKey,
    peer: Option<IpAddr>,
    now: DateTime<Utc>,
) -> Result<Caller, Error> {
    let code = code(keys, key);
    facts.check(&code, now).map_err(|why| match why {
        Unusable::Unknown => Error::Key("it is unknown"),
        Unusable::Revoked => Error::Key("it was revoked"),
        Unusable::Expired => Error::Key("it has expired"),
    })?;
    if !facts.allows(peer) {
        return Err(ADDRESS_NOT_ALLOWED);
    }
    Ok(Caller {
        actor: facts.id.to_string(),
        kind: CallerKind::Key {
            tenant_id: facts.tenant_id.clone(),
            key_id: facts.id.clone(),
            scopes: facts.scopes.clone(),
            principal_ids: facts.principal_ids.clone(),
            secret: SecretCode(code),
            peer,
        },
        until: None,
        authenticated_at: None,
    })
}

/// A 256-bit number in base 62, padded with zeros to 43 digits.
fn base62(mut number: [u8; 32]) -> String {
    let mut digits = [b'0'; SECRET];
    for digit in digits.iter_mut().rev() {
        let mut rest = 0_u16;
        for byte in &mut number {
            let value = (rest << 8) | u16::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            rest = value % 62;
        }
        *digit = DIGITS[usize::from(rest)];
    }
    digits.iter().copied().map(char::from).collect()
}

/// Computes CRC-32 (IEEE 802.3), four bits at a time. It is computed for each call with a key.
fn crc32(bytes: &[u8]) -> u32 {
    /// The remainders of all values of four bits.
    const TABLE: [u32; 16] = [
        0x0000_0000,
        0x1DB7_1064,
        0x3B6E_20C8,
        0x26D9_30AC,
        0x76DC_4190,
        0x6B6B_51F4,
        0x4DB2_6158,
        0x5005_713C,
        0xEDB8_8320,
        0xF00F_9344,
        0xD6D6_A3E8,
        0xCB61_B38C,
        0x9B64_C2B0,
        0x86D3_D2D4,
        0xA00A_E278,
        0xBDBD_F21C,
    ];
    let four = |crc: u32| (crc >> 4) ^ TABLE[usize::from((crc & 0xf) as u8)];
    !bytes.iter().fold(u32::MAX, |crc, byte| four(four(crc ^ u32::from(*byte))))
}

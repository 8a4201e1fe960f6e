//! An identity provider's public keys: parsing a JWKS, and its source.

use std::{collections::HashMap, sync::Arc};

use jsonwebtoken::DecodingKey;
use parking_lot::RwLock;
use serde_json::Value;

use super::{Error, JwksClient};

/// The most keys that are read; no provider publishes more.
const MOST_KEYS: usize = 100;
/// The base64url length of the smallest accepted modulus, 2048 bits (RFC 7518, 3.3).
const SHORTEST_MODULUS: usize = 342;
/// The base64url length of the largest: more would only cost time.
const LONGEST_MODULUS: usize = 1366;

/// Keys by kid.
pub(super) type KeySet = HashMap<String, DecodingKey>;

/// Parses a JWKS (RFC 7517) and keeps the keys that may verify RS256. Keys that are unreadable, of
/// another kind, for another use, revoked or without a kid are skipped.
///
/// # Errors
/// The document is not a JWKS.
pub(super) fn read(document: &[u8]) -> Result<KeySet, &'static str> {
    keys(document, usable)
}

/// The same for keys that sign documents: `EdDSA`, `ES256`, `ES384` and `RS256`.
///
/// # Errors
/// The document is not a JWKS.
pub(super) fn read_signing(document: &[u8]) -> Result<HashMap<String, Value>, &'static str> {
    keys(document, signing)
}

fn keys<K>(
    document: &[u8],
    usable: fn(&Value) -> Option<(String, K)>,
) -> Result<HashMap<String, K>, &'static str> {
    let document: Value = serde_json::from_slice(document).map_err(|_| "it is not JSON")?;
    let keys = document.get("keys").and_then(Value::as_array).ok_or("it has no `keys`")?;
    if keys.len() > MOST_KEYS {
        return Err("it has over 100 keys");
    }
    let mut set = HashMap::new();
    for (kid, key) in keys.iter().filter_map(usable) {
        // Of two keys with one kid only the first counts.
        set.entry(kid).or_insert(key);
    }
    Ok(set)
}

fn signing(jwk: &Value) -> Option<(String, Value)> {
    let word = |member: &str| jwk.get(member).and_then(Value::as_str);
    let revoked = jwk.get("revoked").is_some() || jwk.get("revoked_at").is_some();
    let kid = word("kid").filter(|kid| !kid.is_empty() && !revoked)?.to_owned();
    word("use").is_none_or(|word| word == "sig").then_some(())?;
    let implied = match (word("kty"), word("crv")) {
        (Some("OKP"), Some("Ed25519")) => Some("EdDSA"),
        (Some("EC"), Some("P-256")) => Some("ES256"),
        (Some("EC"), Some("P-384")) => Some("ES384"),
        _ => None,
    };
    let alg = word("alg").or(implied)?.to_owned();
    let mut jwk = jwk.clone();
    jwk["alg"] = alg.into();
    Some((kid, jwk))
}

fn usable(jwk: &Value) -> Option<(String, DecodingKey)> {
    let word = |member: &str| jwk.get(member).and_then(Value::as_str);
    let fits = |member: &str, wanted: &str| word(member).is_none_or(|word| word == wanted);
    let revoked = jwk.get("revoked").is_some() || jwk.get("revoked_at").is_some();
    if revoked || word("kty") != Some("RSA") || !fits("use", "sig") || !fits("alg", "RS256") {
        return None;
    }
    let (kid, modulus, exponent) = (word("kid")?, word("n")?, word("e")?);
    if kid.is_empty() || !(SHORTEST_MODULUS..=LONGEST_MODULUS).contains(&modulus.len()) {
        return None;
    }
    Some((kid.to_owned(), DecodingKey::from_rsa_components(modulus, exponent).ok()?))
}

/// The source of an issuer's keys.
#[derive(Clone)]
pub enum KeySource {
    /// Over the network.
    Remote(JwksClient),
    /// From this process: the development identity provider's.
    Local(Arc<LocalJwks>),
}

impl KeySource {
    /// Keys from `document`, which is called each time.
    pub fn local(document: impl Fn() -> Arc<str> + Send + Sync + 'static) -> Self {
        Self::Local(Arc::new(LocalJwks {
            document: Box::new(document),
            read: RwLock::new((Arc::from(""), Arc::default())),
        }))
    }

    /// The key of that kid.
    ///
    /// # Errors
    /// [`Error::Token`] if the issuer has no such key; [`Error::Unavailable`] if that is unknown at
    /// present.
    pub(super) async fn key(&self, kid: &str) -> Result<DecodingKey, Error> {
        match self {
            Self::Remote(client) => client.key(kid).await,
            Self::Local(local) => local.key(kid),
        }
    }
}

pub struct LocalJwks {
    document: Box<dyn Fn() -> Arc<str> + Send + Sync>,
    /// The last document, and its keys.
    read: RwLock<(Arc<str>, Arc<KeySet>)>,
}

impl LocalJwks {
    fn key(&self, kid: &str) -> Result<DecodingKey, Error> {
        let document = (self.document)();
        let known = {
            let (of, set) = &*self.read.read();
            (*of == document).then(|| Arc::clone(set))
        };
        let set = if let Some(set) = known {
            set
        } else {
            let set = Arc::new(read(document.as_bytes()).map_err(|_| Error::Unavailable)?);
            *self.read.write() = (document, Arc::clone(&set));
            set
        };
        set.get(kid).cloned().ok_or(Error::Token("no key of its issuer has its `kid`"))
    }
}

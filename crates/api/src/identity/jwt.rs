//! Access tokens: JWTs (RFC 7519, RFC 7518), verified as RFC 8725 recommends.
//!
//! The token chooses neither algorithm nor key. Its `iss` selects one issuer, and only the keys that
//! this issuer publishes can verify it. Each key verifies one algorithm, which must be an algorithm
//! of the issuer. `jwk`, `jku` and `x5c` of the header are ignored.

use std::{collections::HashMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::{Header, Validation, dangerous, decode, decode_header};
use parking_lot::RwLock;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    claims::{Claims, LEEWAY, TokenClaims, misread},
    error::{Error, NEEDS_EMAIL},
    issuer::Issuer,
    jwks::VerifyingKey,
    jwks_client::JwksClient,
    key_source::KeySource,
    role::Role,
};
use crate::unique_json::Unique;
use authority_process::clock::Clock;

/// How long a verified token is cached, in seconds. For this long, a token is still accepted after
/// its issuer has withdrawn the key.
const CACHE_SECONDS: i64 = 300;
const MOST_CACHED: usize = 10_000;

/// Verifies tokens of the configured issuers.
pub(super) struct Verifier {
    issuers: Vec<Issuer>,
    /// The beginnings of the subjects of further issuers, with the `|`.
    prefixes: Vec<String>,
    clock: Clock,
    cache: RwLock<HashMap<[u8; 32], CachedToken>>,
}

struct CachedToken {
    claims: Arc<Claims>,
    until: DateTime<Utc>,
}

impl Verifier {
    pub(super) fn new(issuers: Vec<Issuer>, clock: Clock) -> Self {
        let prefixes = issuers.iter().filter_map(|issuer| issuer.people.prefix.as_ref());
        let prefixes = prefixes.map(|prefix| format!("{prefix}|")).collect();
        Self { issuers, prefixes, clock, cache: RwLock::default() }
    }

    pub(super) fn remote_keys(&self) -> Vec<JwksClient> {
        let remote = |issuer: &Issuer| match &issuer.keys {
            KeySource::Remote(client) => Some(client.clone()),
            KeySource::Local(_) => None,
        };
        self.issuers.iter().filter_map(remote).collect()
    }

    /// Verifies an access token. `digest` is its SHA-256, the cache key of verified tokens.
    pub(super) async fn verify(&self, token: &str, digest: [u8; 32]) -> Result<Arc<Claims>, Error> {
        if let Some(claims) = self.cached(&digest) {
            claims.check_times(self.clock.now())?;
            return Ok(claims);
        }
        let claims = Arc::new(self.verify_uncached(token).await?);
        let now = self.clock.now();
        claims.check_times(now)?;
        self.store(digest, &claims, now);
        Ok(claims)
    }

    async fn verify_uncached(&self, token: &str) -> Result<Claims, Error> {
        let (issuer, key) = self.key_of(token, &ACCESS_TYPES).await?;
        let mut claims: Claims = if issuer.claims.are_default() {
            verified::<TokenClaims>(token, issuer, &issuer.audiences, &key)?.into()
        } else {
            match verified(token, issuer, &issuer.audiences, &key)? {
                Unique(Value::Object(claims)) => issuer.claims.read(&claims)?,
                Unique(_) => return Err(Error::Token("its claims are not an object")),
            }
        };
        if claims.role == Role::Owner {
            may_name_owner(issuer, &key)?;
        }
        self.check_subject(issuer, &claims.sub)?;
        if issuer.needs_email && !claims.has_email() {
            return Err(NEEDS_EMAIL);
        }
        (claims.iss, claims.sub) = issuer.person(&claims.sub);
        claims.tenants.clone_from(&issuer.tenants);
        claims.check_texts()?;
        Ok(claims)
    }

    /// Refuses a `sub` that would be the subject of another issuer's person, or of none.
    fn check_subject(&self, issuer: &Issuer, sub: &str) -> Result<(), Error> {
        if sub.is_empty() {
            return Err(Error::Token("its `sub` is empty"));
        }
        let is_others = issuer.people.prefix.is_none()
            && self.prefixes.iter().any(|prefix| sub.starts_with(prefix));
        if is_others {
            return Err(Error::Token(
                "its `sub` begins with the name of another issuer of this service",
            ));
        }
        Ok(())
    }

    /// Returns the issuer and the subject that identify the person with this `sub` at a trusted
    /// issuer.
    pub(super) fn person(&self, issuer: &str, sub: &str) -> (String, String) {
        match self.issuers.iter().find(|known| known.issuer == issuer) {
            Some(known) => known.person(sub),
            None => (issuer.to_owned(), sub.to_owned()),
        }
    }

    /// Verifies a token of this issuer for this audience, such as an ID token. Its `typ` must be in
    /// `types`. The token is not an access token, and is therefore neither cached nor counted as a
    /// credential.
    pub(super) async fn verify_for<T: Timed>(
        &self,
        token: &str,
        (issued_by, audience): (&str, &str),
        types: &[&str],
    ) -> Result<T, Error> {
        let (issuer, key) = self.key_of(token, types).await?;
        if issuer.issuer != issued_by {
            return Err(Error::Token("it is a token of another issuer"));
        }
        let claims: T = verified(token, issuer, &[audience.to_owned()], &key)?;
        let now = self.clock.now().timestamp();
        if claims.expires() + LEEWAY <= now {
            return Err(Error::Token("it has expired"));
        }
        if claims.issued() > now + LEEWAY {
            return Err(Error::Token("it is not valid yet"));
        }
        Ok(claims)
    }

    /// Returns the token's issuer, and the issuer's key with the `kid` and the `alg` from the token's
    /// header.
    async fn key_of(&self, token: &str, types: &[&str]) -> Result<(&Issuer, VerifyingKey), Error> {
        let header = header(token, types)?;
        let issuer = self.issuer_of(token)?;
        if !issuer.algorithms.contains(&header.alg) {
            return Err(Error::Token("its `alg` is not an algorithm of its issuer"));
        }
        let key = issuer.keys.key(&header.kid.unwrap_or_default()).await?;
        if key.algorithm != header.alg {
            return Err(Error::Token("its `alg` is not the algorithm of its key"));
        }
        Ok((issuer, key))
    }

    /// Returns the trusted issuer in the token's `iss`.
    ///
    /// The signature is not yet verified. Use the result only to find the key to verify it with.
    fn issuer_of(&self, token: &str) -> Result<&Issuer, Error> {
        #[derive(Deserialize)]
        struct Unverified {
            iss: String,
        }
        let unverified = dangerous::insecure_decode::<Unverified>(token)
            .map_err(|_| Error::Token("its claims are unreadable or lack `iss`"))?;
        self.issuers
            .iter()
            .find(|issuer| issuer.issuer == unverified.claims.iss)
            .ok_or(Error::Token("its issuer is not trusted by this service"))
    }

    fn cached(&self, digest: &[u8; 32]) -> Option<Arc<Claims>> {
        let cache = self.cache.read();
        let found = cache.get(digest).filter(|found| self.clock.now() < found.until)?;
        Some(Arc::clone(&found.claims))
    }

    fn store(&self, digest: [u8; 32], claims: &Arc<Claims>, now: DateTime<Utc>) {
        let until = now + TimeDelta::seconds(CACHE_SECONDS);
        let mut cache = self.cache.write();
        if cache.len() >= MOST_CACHED {
            cache.retain(|_, found| now < found.until);
        }
        if cache.len() >= MOST_CACHED {
            cache.clear();
        }
        cache.insert(digest, CachedToken { claims: Arc::clone(claims), until });
    }
}

/// The claims for the times of issue and expiry, in seconds since 1970.
pub(super) trait Timed: DeserializeOwned {
    fn issued(&self) -> i64;
    fn expires(&self) -> i64;
}

/// The accepted `typ` of access tokens: the types of RFC 9068, and `JWT` for earlier providers.
const ACCESS_TYPES: [&str; 3] = ["JWT", "at+jwt", "application/at+jwt"];

/// Refuses the role `owner` from an issuer that may not give it, or not with this key's algorithm.
fn may_name_owner(issuer: &Issuer, key: &VerifyingKey) -> Result<(), Error> {
    if issuer.owner_algorithms.is_empty() {
        return Err(Error::Forbidden("the token's issuer may not give the role `owner`"));
    }
    if !issuer.owner_algorithms.contains(&key.algorithm) {
        return Err(Error::Token("its `alg` is not accepted for the role `owner`"));
    }
    Ok(())
}

/// Checks the header and returns it, with a `kid`.
fn header(token: &str, types: &[&str]) -> Result<Header, Error> {
    let header = decode_header(token)
        .map_err(|_| Error::Token("it is not a JWT that this service reads"))?;
    let typ = header.typ.as_deref().unwrap_or("JWT");
    if !types.iter().any(|ours| ours.eq_ignore_ascii_case(typ)) {
        return Err(Error::Token("its `typ` is not accepted here"));
    }
    // A token with a critical extension must be rejected, because this service supports none
    // (RFC 7515, 4.1.11).
    if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
        return Err(Error::Token(
            "its header uses an extension that this service does not support",
        ));
    }
    if header.kid.as_ref().is_none_or(String::is_empty) {
        return Err(Error::Token("its header lacks `kid`"));
    }
    Ok(header)
}

/// Verifies signature, issuer and audience. [`Claims::check_times`] checks the times by our clock.
fn verified<T: DeserializeOwned>(
    token: &str,
    issuer: &Issuer,
    audiences: &[String],
    key: &VerifyingKey,
) -> Result<T, Error> {
    use jsonwebtoken::errors::ErrorKind;
    let mut wanted = Validation::new(key.algorithm);
    // `exp` is not listed: `T` itself requires it, and also accepts it as text.
    wanted.set_required_spec_claims(&["iss", "aud"]);
    wanted.set_issuer(&[&issuer.issuer]);
    wanted.set_audience(audiences);
    wanted.validate_exp = false;
    wanted.validate_nbf = false;
    let verified = decode::<T>(token, &key.key, &wanted).map_err(|error| {
        Error::Token(match error.kind() {
            ErrorKind::InvalidSignature => "its signature is wrong",
            ErrorKind::InvalidAudience => "it is meant for another audience",
            ErrorKind::InvalidIssuer => "its issuer is not trusted by this service",
            ErrorKind::MissingRequiredClaim(_) => "`exp`, `iss`, `aud` or `sub` is missing",
            _ => misread_claim(token),
        })
    })?;
    Ok(verified.claims)
}

/// Describes the claim that makes a token unreadable.
fn misread_claim(token: &str) -> &'static str {
    let payload = token.split('.').nth(1).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    misread(&payload.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default())
}

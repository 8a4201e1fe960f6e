//! Access tokens: JWTs signed with RS256 (RFC 7519, RFC 7518), verified as RFC 8725 recommends.
//!
//! The token chooses neither algorithm nor key. The algorithm is RS256, the keys are published by
//! the configured issuer, and `jwk`, `jku` and `x5c` of the header are ignored.

use std::{collections::HashMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, dangerous, decode, decode_header};
use parking_lot::RwLock;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    dev_provider, error::Error, jwks_client::JwksClient, key_source::KeySource,
    numeric_date::NumericDate,
};
use authority_ids::{IdParts, TenantRef};
use authority_process::clock::Clock;
use authority_store::SERVICE;

/// The tolerated difference of clocks, in seconds.
const LEEWAY: i64 = 30;
/// How long a verified token is cached, in seconds. For this long, a token is still accepted after
/// its issuer has withdrawn the key.
const CACHE_SECONDS: i64 = 300;
const MOST_CACHED: usize = 10_000;

/// A trusted identity provider.
pub struct Issuer {
    /// The value of `iss`.
    pub issuer: String,
    /// The accepted values of `aud`.
    pub audiences: Vec<String>,
    pub keys: KeySource,
}

/// The claims of a verified token.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Claims {
    pub iss: String,
    pub sub: String,
    exp: NumericDate,
    nbf: Option<NumericDate>,
    /// Any value: a value that is not a time counts as absent and does not invalidate the token.
    auth_time: Option<Value>,
    pub org_id: Option<String>,
    pub email: Option<String>,
    #[serde(default)]
    pub public_metadata: PublicMetadata,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PublicMetadata {
    pub role: Option<String>,
    pub tenant_id: Option<TenantRef>,
}

impl Claims {
    /// The person's name in the history: the e-mail address, or `sub` if the token has none. A name
    /// that is reserved for the service (an id, or the service's own name) gets the prefix
    /// `person:`, because a person must not look like an API key in the history.
    pub fn actor(&self) -> String {
        let name = self.email.as_deref().filter(|email| !email.is_empty()).unwrap_or(&self.sub);
        let is_reserved = IdParts::begins(name)
            || name.starts_with("database:")
            || [SERVICE, "anonymous", "receipt"].contains(&name);
        // In the development provider's token for the service itself, the reserved name is correct.
        let is_own = (self.iss.as_str(), self.sub.as_str()) == (dev_provider::ISSUER, SERVICE);
        if is_reserved && !is_own { format!("person:{name}") } else { name.to_owned() }
    }

    /// The time from which the token is refused. An `exp` beyond the range of dates becomes the
    /// last date.
    pub fn until(&self) -> DateTime<Utc> {
        let latest = DateTime::<Utc>::MAX_UTC.timestamp();
        let expired = self.exp.floor().clamp(0, latest).saturating_add(LEEWAY);
        DateTime::from_timestamp(expired, 0).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// When the person signed in; `None` if the token has no such claim.
    pub fn authenticated_at(&self) -> Option<DateTime<Utc>> {
        let seconds = NumericDate::of(self.auth_time.as_ref()?)?;
        DateTime::from_timestamp(seconds.floor(), 0)
    }

    /// Checks that texts are of reasonable length without control characters: they are stored,
    /// logged and compared.
    fn are_storable(&self) -> bool {
        let PublicMetadata { role, tenant_id } = &self.public_metadata;
        let optional = [self.org_id.as_deref(), self.email.as_deref(), role.as_deref()];
        let optional = optional.into_iter().chain([tenant_id.as_deref()]).flatten();
        !self.sub.is_empty()
            && optional
                .chain([self.sub.as_str()])
                .all(|text| text.len() <= 320 && !text.chars().any(char::is_control))
    }
}

/// Verifies tokens of the configured issuers.
pub(super) struct Verifier {
    issuers: Vec<Issuer>,
    clock: Clock,
    cache: RwLock<HashMap<[u8; 32], CachedToken>>,
}

struct CachedToken {
    claims: Arc<Claims>,
    until: DateTime<Utc>,
}

impl Verifier {
    pub(super) fn new(issuers: Vec<Issuer>, clock: Clock) -> Self {
        Self { issuers, clock, cache: RwLock::default() }
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
            within_time(&claims, self.clock.now())?;
            return Ok(claims);
        }
        let claims = Arc::new(self.verify_uncached(token).await?);
        let now = self.clock.now();
        within_time(&claims, now)?;
        self.store(digest, &claims, now);
        Ok(claims)
    }

    async fn verify_uncached(&self, token: &str) -> Result<Claims, Error> {
        let (issuer, key) = self.key_of(token, &ACCESS_TYPES).await?;
        let claims: Claims = verified(token, issuer, &issuer.audiences, &key)?;
        if !claims.are_storable() {
            return Err(Error::Token("a claim is empty, is too long or has control characters"));
        }
        Ok(claims)
    }

    /// Verifies a token for `audience`, such as an ID token. Its `typ` must be in `types`. The
    /// token is not an access token, and is therefore neither cached nor counted as a credential.
    pub(super) async fn verify_for<T: Timed>(
        &self,
        token: &str,
        audience: &str,
        types: &[&str],
    ) -> Result<T, Error> {
        let (issuer, key) = self.key_of(token, types).await?;
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

    /// Returns the token's issuer, and the issuer's key with the `kid` from the token's header.
    async fn key_of(&self, token: &str, types: &[&str]) -> Result<(&Issuer, DecodingKey), Error> {
        let kid = kid(token, types)?;
        let issuer = self.issuer_of(token)?;
        Ok((issuer, issuer.keys.key(&kid).await?))
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

/// Checks the header and returns its kid.
fn kid(token: &str, types: &[&str]) -> Result<String, Error> {
    let header = decode_header(token)
        .map_err(|_| Error::Token("it is not a JWT that this service reads"))?;
    if header.alg != Algorithm::RS256 {
        return Err(Error::Token("it is not signed with RS256"));
    }
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
    header.kid.filter(|kid| !kid.is_empty()).ok_or(Error::Token("its header lacks `kid`"))
}

/// Verifies signature, issuer and audience; [`within_time`] checks the times by our clock.
fn verified<T: DeserializeOwned>(
    token: &str,
    issuer: &Issuer,
    audiences: &[String],
    key: &DecodingKey,
) -> Result<T, Error> {
    use jsonwebtoken::errors::ErrorKind;
    let mut wanted = Validation::new(Algorithm::RS256);
    // `exp` is not listed: `T` itself requires it, and also accepts it as text.
    wanted.set_required_spec_claims(&["iss", "aud"]);
    wanted.set_issuer(&[&issuer.issuer]);
    wanted.set_audience(audiences);
    wanted.validate_exp = false;
    wanted.validate_nbf = false;
    let verified = decode::<T>(token, key, &wanted).map_err(|error| {
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
    let claims: Value =
        payload.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
    let is_time = |name: &str| claims.get(name).is_none_or(|time| NumericDate::of(time).is_some());
    let is_text = |value: &Value, name: &str| {
        value.get(name).is_none_or(|text| text.is_string() || text.is_null())
    };
    let metadata = claims.get("public_metadata").unwrap_or(&Value::Null);
    match () {
        () if claims.get("exp").is_none() => "it lacks `exp`",
        () if !is_time("exp") => "its `exp` is not a time in seconds since 1970",
        () if !is_time("nbf") => "its `nbf` is not a time in seconds since 1970",
        () if !is_time("iat") => "its `iat` is not a time in seconds since 1970",
        () if !is_time("auth_time") => "its `auth_time` is not a time in seconds since 1970",
        () if claims.get("sub").is_none() => "it lacks `sub`",
        () if !claims["sub"].is_string() => "its `sub` is not a text",
        () if !is_text(&claims, "email") => "its `email` is not a text",
        () if !is_text(&claims, "org_id") => "its `org_id` is not a text",
        () if claims.get("public_metadata").is_some_and(|value| !value.is_object()) => {
            "its `public_metadata` is not an object"
        }
        () if !is_text(metadata, "role") => "the `role` in its `public_metadata` is not a text",
        () if !is_text(metadata, "tenant_id") => {
            "the `tenant_id` in its `public_metadata` is not a text"
        }
        () => "a claim has the wrong type",
    }
}

fn within_time(claims: &Claims, now: DateTime<Utc>) -> Result<(), Error> {
    if claims.until() <= now {
        return Err(Error::Token("it has expired"));
    }
    let latest = now.timestamp() + LEEWAY;
    if claims.nbf.is_some_and(|start| start.ceil() > latest) {
        return Err(Error::Token("it is not valid yet"));
    }
    Ok(())
}

//! Access tokens: JWTs signed with RS256 (RFC 7519, RFC 7518), verified as RFC 8725 recommends.
//!
//! The token chooses neither algorithm nor key: the algorithm is RS256, keys are those that the
//! configured issuer publishes, and `jwk`, `jku` and `x5c` of its header are ignored.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, dangerous, decode, decode_header};
use parking_lot::RwLock;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Error, JwksClient, KeySource, dev_provider};
use authority_core::{clock::Clock, store::SERVICE};

/// The tolerated difference of clocks, in seconds.
const LEEWAY: i64 = 30;
/// How long a verified token is cached, in seconds. A key that its issuer has withdrawn stops
/// counting after this time at the latest.
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
    exp: f64,
    nbf: Option<f64>,
    /// Any value: one that is not a time counts as none, and refuses no token.
    auth_time: Option<Value>,
    pub org_id: Option<String>,
    pub email: Option<String>,
    #[serde(default)]
    pub public_metadata: PublicMetadata,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PublicMetadata {
    pub role: Option<String>,
    pub tenant_id: Option<String>,
}

impl Claims {
    /// The name in the history: the e-mail address if the token has one. A name that only the service
    /// gives (an id, its own) is marked as a person's: a token must not pass for an API key.
    pub fn actor(&self) -> String {
        let name = self.email.as_deref().filter(|email| !email.is_empty()).unwrap_or(&self.sub);
        let is_reserved = name.starts_with("svc:")
            || name.starts_with("database:")
            || [SERVICE, "anonymous", "receipt"].contains(&name);
        // The development provider's token for the service itself.
        let is_own = (self.iss.as_str(), self.sub.as_str()) == (dev_provider::ISSUER, SERVICE);
        if is_reserved && !is_own { format!("person:{name}") } else { name.to_owned() }
    }

    /// The time from which the token is refused. An `exp` beyond the range of dates becomes the
    /// last date.
    #[expect(clippy::cast_possible_truncation, reason = "it saturates, and is held within dates")]
    pub fn until(&self) -> DateTime<Utc> {
        let latest = DateTime::<Utc>::MAX_UTC.timestamp();
        let expired = (self.exp.ceil() as i64).clamp(0, latest).saturating_add(LEEWAY);
        DateTime::from_timestamp(expired, 0).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// When the person proved who they are; `None` if the token does not say.
    pub fn authenticated_at(&self) -> Option<DateTime<Utc>> {
        let seconds = self.auth_time.as_ref()?.as_i64()?;
        DateTime::from_timestamp(seconds, 0)
    }

    /// Checks that texts are of reasonable length without control characters: they are stored,
    /// logged and compared.
    fn are_storable(&self) -> bool {
        let metadata = &self.public_metadata;
        let optional =
            [&self.org_id, &self.email, &metadata.role, &metadata.tenant_id].into_iter().flatten();
        !self.sub.is_empty()
            && optional
                .chain([&self.sub])
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

    /// `digest` is the token's SHA-256, the cache key of verified tokens.
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
            return Err(Error::Token("a claim is empty, too long or has control characters"));
        }
        Ok(claims)
    }

    /// The claims of a token that is for `audience` and of one of these types, such as an ID token. It is not
    /// an access token, so it is neither cached nor counted as a credential.
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

    /// The token's issuer, and the key of its header.
    async fn key_of(&self, token: &str, types: &[&str]) -> Result<(&Issuer, DecodingKey), Error> {
        let kid = kid(token, types)?;
        let issuer = self.issuer_of(token)?;
        Ok((issuer, issuer.keys.key(&kid).await?))
    }

    /// The issuer whose keys to try. It is read before the signature is verified, so it is used for
    /// nothing else.
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
            .ok_or(Error::Token("its issuer is not one that this service trusts"))
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

/// Claims that say when their token was issued and when it ends, in seconds since 1970.
pub(super) trait Timed: DeserializeOwned {
    fn issued(&self) -> i64;
    fn expires(&self) -> i64;
}

/// `typ` of access tokens (RFC 9068, and providers from before it).
const ACCESS_TYPES: [&str; 3] = ["JWT", "at+jwt", "application/at+jwt"];

/// The header's kid, after the header was checked.
fn kid(token: &str, types: &[&str]) -> Result<String, Error> {
    let header = decode_header(token)
        .map_err(|_| Error::Token("it is not a JWT that this service reads"))?;
    if header.alg != Algorithm::RS256 {
        return Err(Error::Token("it is not signed with RS256"));
    }
    let typ = header.typ.as_deref().unwrap_or("JWT");
    if !types.iter().any(|ours| ours.eq_ignore_ascii_case(typ)) {
        return Err(Error::Token("its `typ` is not that of a token for this"));
    }
    // No extension is supported, so none may be critical (RFC 7515, 4.1.11).
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
    wanted.set_required_spec_claims(&["exp", "iss", "aud"]);
    wanted.set_issuer(&[&issuer.issuer]);
    wanted.set_audience(audiences);
    wanted.validate_exp = false;
    wanted.validate_nbf = false;
    let verified = decode::<T>(token, key, &wanted).map_err(|error| {
        Error::Token(match error.kind() {
            ErrorKind::InvalidSignature => "its signature is wrong",
            ErrorKind::InvalidAudience => "it is meant for another audience",
            ErrorKind::InvalidIssuer => "its issuer is not one that this service trusts",
            ErrorKind::MissingRequiredClaim(_) => "it lacks one of `exp`, `iss`, `aud` and `sub`",
            _ => "it lacks `exp` or `sub`, or a claim is not of its type",
        })
    })?;
    Ok(verified.claims)
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^53")]
fn within_time(claims: &Claims, now: DateTime<Utc>) -> Result<(), Error> {
    if claims.until() <= now {
        return Err(Error::Token("it has expired"));
    }
    let latest = now.timestamp() + LEEWAY;
    if claims.nbf.is_some_and(|start| start > latest as f64) {
        return Err(Error::Token("it is not valid yet"));
    }
    Ok(())
}

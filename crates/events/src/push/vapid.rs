//! Voluntary Application Server Identification (VAPID, RFC 8292): a token for each push service.

use std::collections::HashMap;

use authority_crypto::Es256Signer;
use authority_webhook::destination::EndpointUrl;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderValue;
use parking_lot::Mutex;
use serde_json::json;

/// How long a token is valid. Push services accept 24 hours at most (RFC 8292, 2).
const VALID: TimeDelta = TimeDelta::hours(12);
/// The least remaining time of a token that is reused.
const LEAST_LEFT: TimeDelta = TimeDelta::hours(1);
/// The most tokens that are kept. People choose their push services, and there may be many of them.
const MOST: usize = 1000;

/// How this installation identifies itself to push services.
#[derive(Debug)]
pub struct PushSettings {
    /// Where the installation's operator can be reached: a `mailto:` or an `https:` URI.
    pub subject: String,
    pub signer: Es256Signer,
}

/// Creates tokens, and caches them for further pushes to the same service.
pub(super) struct Vapid {
    signer: Es256Signer,
    subject: String,
    public_key: String,
    /// The cached tokens by the origin of the push service.
    tokens: Mutex<HashMap<String, Token>>,
}

struct Token {
    header: HeaderValue,
    until: DateTime<Utc>,
}

/// Why a token could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Crypto(#[from] authority_crypto::Error),
    #[error(transparent)]
    Header(#[from] http::header::InvalidHeaderValue),
}

impl Vapid {
    pub(super) fn new(settings: PushSettings) -> Self {
        let PushSettings { subject, signer } = settings;
        let public_key = URL_SAFE_NO_PAD.encode(signer.public_point());
        Self { signer, subject, public_key, tokens: Mutex::default() }
    }

    /// Returns the public key: the uncompressed point in base64url.
    pub(super) fn public_key(&self) -> &str {
        &self.public_key
    }

    /// Returns the `Authorization` header for the URL's push service (RFC 8292, 3).
    pub(super) fn authorization(
        &self,
        url: &EndpointUrl,
        now: DateTime<Utc>,
    ) -> Result<HeaderValue, Error> {
        let origin = url.origin();
        let mut tokens = self.tokens.lock();
        if let Some(token) = tokens.get(&origin).filter(|token| token.until - LEAST_LEFT > now) {
            return Ok(token.header.clone());
        }
        let until = now + VALID;
        let header = self.header(&origin, until)?;
        tokens.retain(|_, token| token.until - LEAST_LEFT > now);
        if tokens.len() >= MOST {
            tokens.clear();
        }
        tokens.insert(origin, Token { header: header.clone(), until });
        Ok(header)
    }

    fn header(&self, origin: &str, until: DateTime<Utc>) -> Result<HeaderValue, Error> {
        let head = json!({"typ": "JWT", "alg": "ES256"});
        let claims = json!({"aud": origin, "exp": until.timestamp(), "sub": self.subject});
        let [head, claims] = [head, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{head}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(self.signer.sign(signed.as_bytes())?);
        let text = format!("vapid t={signed}.{signature}, k={}", self.public_key);
        let mut header = HeaderValue::from_str(&text)?;
        header.set_sensitive(true);
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use authority_crypto::{Algorithm, Pair};

    use super::*;

    fn url(text: &str) -> EndpointUrl {
        EndpointUrl::of_record(text).unwrap()
    }

    #[test]
    fn a_token_is_for_one_service_and_used_until_near_its_end() {
        let pair = Pair::inventory(Algorithm::Es256).unwrap();
        let signer = Es256Signer::read(&pair.private).unwrap();
        let vapid = Vapid::new(PushSettings { subject: "mailto:ops@example.org".into(), signer });
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let of = |text: &str, hours| {
            vapid.authorization(&url(text), now + TimeDelta::hours(hours)).unwrap()
        };
        let first = of("https://push.example/a", 0);
        assert!(first.is_sensitive());
        assert_eq!(of("https://push.example/b", 10), first);
        assert_ne!(of("https://push.example:8443/a", 0), first);
        assert_ne!(of("https://push.example/a", 11), first);
        for n in 0..2 * MOST {
            of(&format!("https://p{n}.example/"), 0);
        }
        assert!(vapid.tokens.lock().len() <= MOST);

        let text = first.to_str().unwrap();
        let (token, key) = text.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
        assert_eq!(key, vapid.public_key());
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        authority_crypto::verify(&pair.public_jwk, Algorithm::Es256, signed.as_bytes(), &signature)
            .unwrap();
        let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        let expected = json!({"aud": "https://push.example", "exp": 1_800_000_000 + 12 * 3600,
                              "sub": "mailto:ops@example.org"});
        assert_eq!(claims, expected);
    }
}

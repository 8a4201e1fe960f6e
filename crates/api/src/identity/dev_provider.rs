//! The development identity provider. It issues tokens, so that trying this service needs no
//! account elsewhere. The same verifier checks its tokens.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::authenticate::OWNER;
use authority_core::{clock::Clock, store::SERVICE};

/// `iss` of its tokens.
pub const ISSUER: &str = "https://dev-idp.authority.localhost";
/// `aud` of its tokens.
pub const AUDIENCE: &str = "authority";

/// Its RS256 key.
pub trait TokenKey: Send + Sync + 'static {
    fn kid(&self) -> String;
    /// RSASSA-PKCS1-v1_5 with SHA-256; `None` when it fails.
    fn sign(&self, bytes: &[u8]) -> Option<Vec<u8>>;
}

/// The holder of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    Owner {
        email: String,
    },
    /// The service itself as the owner: commands, the demonstration's seed. Not a person.
    Service,
    Member {
        tenant_id: String,
        role: String,
        email: String,
    },
}

#[derive(Clone)]
pub struct DevProvider {
    key: Arc<dyn TokenKey>,
    clock: Clock,
}

impl DevProvider {
    pub fn new(key: Arc<dyn TokenKey>, clock: Clock) -> Self {
        Self { key, clock }
    }

    /// A token for `holder`, or `None` if it cannot be signed. A tenant's member never gets the
    /// owner's role.
    pub fn issue(&self, holder: &Holder, lifetime: TimeDelta) -> Option<String> {
        if matches!(holder, Holder::Member { role, .. } if role == OWNER) {
            return None;
        }
        let (email, metadata) = match holder {
            Holder::Service => (None, json!({"role": OWNER})),
            Holder::Owner { email } => (Some(email), json!({"role": OWNER})),
            Holder::Member { tenant_id, role, email } => {
                (Some(email), json!({"role": role, "tenant_id": tenant_id}))
            }
        };
        let subject = email.map_or_else(|| SERVICE.to_owned(), |email| format!("dev|{email}"));
        let now = self.clock.now();
        let claims = json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": subject, "email": email,
            "iat": now.timestamp(), "nbf": now.timestamp(), "exp": (now + lifetime).timestamp(),
            "public_metadata": metadata,
        });
        self.sign(&claims)
    }

    fn sign(&self, claims: &Value) -> Option<String> {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.key.kid()});
        let text = format!("{}.{}", encode(&header), encode(claims));
        let signature = self.key.sign(text.as_bytes())?;
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

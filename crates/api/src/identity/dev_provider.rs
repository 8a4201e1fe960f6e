//! The development identity provider. It issues tokens for trying this service without an account
//! at an identity provider. Its tokens are verified in the same way as tokens of other issuers.

use authority_ids::TenantRef;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::role::Role;
use authority_keys::Keys;
use authority_process::clock::Clock;
use authority_store::SERVICE;

/// `iss` of its tokens.
pub const ISSUER: &str = "https://dev-idp.authority.localhost";
/// `aud` of its tokens.
pub const AUDIENCE: &str = "authority";

/// The holder of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    Owner {
        email: String,
    },
    /// The service itself with the owner's role, for commands and the demonstration's seed. It is
    /// not a person.
    Service,
    Member {
        tenant_id: TenantRef,
        role: String,
        email: String,
    },
}

#[derive(Clone)]
pub struct DevProvider {
    /// Provides the RS256 key that signs the tokens.
    keys: Keys,
    clock: Clock,
}

impl DevProvider {
    pub fn new(keys: Keys, clock: Clock) -> Self {
        Self { keys, clock }
    }

    /// Returns a token for `holder`. Returns `None` if the token cannot be signed, or for a
    /// tenant's member with the owner's role.
    pub fn issue(&self, holder: &Holder, lifetime: TimeDelta) -> Option<String> {
        self.issue_with(holder, lifetime, &Value::Null)
    }

    /// Like [`issue`](Self::issue), with additional or replaced claims: an object, or null for
    /// none.
    pub fn issue_with(
        &self,
        holder: &Holder,
        lifetime: TimeDelta,
        claims: &Value,
    ) -> Option<String> {
        let mut all = self.claims(holder, lifetime)?;
        if let (Some(all), Some(claims)) = (all.as_object_mut(), claims.as_object()) {
            all.extend(claims.clone());
        }
        self.sign(&all)
    }

    fn claims(&self, holder: &Holder, lifetime: TimeDelta) -> Option<Value> {
        if matches!(holder, Holder::Member { role, .. } if role == Role::Owner.as_str()) {
            return None;
        }
        let (email, metadata) = match holder {
            Holder::Service => (None, json!({"role": Role::Owner.as_str()})),
            Holder::Owner { email } => (Some(email), json!({"role": Role::Owner.as_str()})),
            Holder::Member { tenant_id, role, email } => {
                (Some(email), json!({"role": role, "tenant_id": tenant_id}))
            }
        };
        let subject = email.map_or_else(|| SERVICE.to_owned(), |email| format!("dev|{email}"));
        let now = self.clock.now();
        // The time of issue counts as the time of sign-in.
        let auth_time = email.map(|_| now.timestamp());
        Some(json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": subject, "email": email,
            "iat": now.timestamp(), "nbf": now.timestamp(), "exp": (now + lifetime).timestamp(),
            "public_metadata": metadata, "auth_time": auth_time,
        }))
    }

    fn sign(&self, claims: &Value) -> Option<String> {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signer = self.keys.token_signer()?;
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": signer.kid()});
        let text = format!("{}.{}", encode(&header), encode(claims));
        let signature = signer.sign(text.as_bytes()).ok()?;
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

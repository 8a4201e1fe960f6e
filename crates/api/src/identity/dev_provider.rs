//! The development identity provider. It issues tokens, so that trying this service needs no
//! account elsewhere. The same verifier checks its tokens.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::Role;
use authority_core::{clock::Clock, keys::Keys, store::SERVICE};

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
    /// They have an RS256 key for tokens.
    keys: Keys,
    clock: Clock,
}

impl DevProvider {
    pub fn new(keys: Keys, clock: Clock) -> Self {
        Self { keys, clock }
    }

    /// A token for `holder`, or `None` if it cannot be signed. A tenant's member never gets the
    /// owner's role.
    pub fn issue(&self, holder: &Holder, lifetime: TimeDelta) -> Option<String> {
        self.issue_with(holder, lifetime, &Value::Null)
    }

    /// The same with further claims, or others in place of the usual ones: an object, or null for none.
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
        // Whoever gets a token is taken to have signed in for it.
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

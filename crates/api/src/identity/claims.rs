//! The claims of an access token, with the defaults for role and tenant. `claim_rules.rs` reads
//! them from other places.

use std::sync::Arc;

use authority_ids::{IdParts, TenantId, TenantRef};
use authority_store::SERVICE;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::{dev_provider, error::Error, numeric_date::NumericDate, role::Role};

/// The tolerated difference of clocks, in seconds.
pub(super) const LEEWAY: i64 = 30;

/// The claims of a verified token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claims {
    /// The issuer of the person. Together with `sub`, it identifies the person.
    pub(super) iss: String,
    pub(super) sub: String,
    exp: NumericDate,
    nbf: Option<NumericDate>,
    /// Any value: a value that is not a time counts as absent and does not invalidate the token.
    auth_time: Option<Value>,
    pub(super) email: Option<String>,
    pub(super) role: Role,
    /// The organisation, which determines the tenant.
    pub(super) org: Option<String>,
    /// The tenant of a person of an organisation without a tenant.
    pub(super) tenant_id: Option<TenantRef>,
    /// The tenants that the issuer's tokens may name; `None` for all.
    pub(super) tenants: Option<Arc<[TenantId]>>,
}

/// The claims as they are in the token, with the default places of role and tenant.
#[derive(Deserialize)]
pub(super) struct TokenClaims {
    iss: String,
    sub: String,
    exp: NumericDate,
    nbf: Option<NumericDate>,
    auth_time: Option<Value>,
    email: Option<String>,
    org_id: Option<String>,
    /// The organisation in version 2 of Clerk's session tokens. Other providers may use this name
    /// for any value.
    o: Option<Value>,
    #[serde(default)]
    public_metadata: PublicMetadata,
}

#[derive(Default, Deserialize)]
struct PublicMetadata {
    role: Option<String>,
    tenant_id: Option<TenantRef>,
}

impl From<TokenClaims> for Claims {
    fn from(read: TokenClaims) -> Self {
        let org = read.org_id.filter(|org| !org.is_empty()).or_else(|| {
            let id = read.o.as_ref().and_then(|o| o.get("id")).and_then(Value::as_str)?;
            Some(id.to_owned())
        });
        Self {
            iss: read.iss,
            sub: read.sub,
            exp: read.exp,
            nbf: read.nbf,
            auth_time: read.auth_time,
            email: read.email,
            role: Role::from(read.public_metadata.role.as_deref().unwrap_or_default()),
            org,
            tenant_id: read.public_metadata.tenant_id,
            tenants: None,
        }
    }
}

impl Claims {
    /// The person's name in the history: the e-mail address, or `sub` if the token has none. A name
    /// that is reserved for the service (an id, or the service's own name) gets the prefix
    /// `person:`, because a person must not look like an API key in the history.
    pub(super) fn actor(&self) -> String {
        let name = self.email.as_deref().filter(|email| !email.is_empty()).unwrap_or(&self.sub);
        let is_reserved = IdParts::begins(name)
            || name.starts_with("database:")
            || [SERVICE, "anonymous", "receipt"].contains(&name);
        // In the development provider's token for the service itself, the reserved name is correct.
        let is_own = (self.iss.as_str(), self.sub.as_str()) == (dev_provider::ISSUER, SERVICE);
        if is_reserved && !is_own { format!("person:{name}") } else { name.to_owned() }
    }

    pub(super) fn has_email(&self) -> bool {
        self.email.as_deref().is_some_and(|email| !email.trim().is_empty())
    }

    /// The time from which the token is refused. An `exp` beyond the range of dates becomes the
    /// last date.
    pub(super) fn until(&self) -> DateTime<Utc> {
        let latest = DateTime::<Utc>::MAX_UTC.timestamp();
        let expired = self.exp.floor().clamp(0, latest).saturating_add(LEEWAY);
        DateTime::from_timestamp(expired, 0).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// When the person signed in; `None` if the token has no such claim.
    pub(super) fn authenticated_at(&self) -> Option<DateTime<Utc>> {
        let seconds = NumericDate::of(self.auth_time.as_ref()?)?;
        DateTime::from_timestamp(seconds.floor(), 0)
    }

    /// Whether the issuer's tokens may name the tenant.
    pub(super) fn may_name(&self, tenant_id: &TenantId) -> bool {
        self.tenants.as_ref().is_none_or(|tenants| tenants.contains(tenant_id))
    }

    /// Checks that texts are of reasonable length without control characters: they are stored,
    /// logged and compared.
    pub(super) fn check_texts(&self) -> Result<(), Error> {
        let optional = [self.org.as_deref(), self.email.as_deref(), self.tenant_id.as_deref()];
        let are_storable = !self.sub.is_empty()
            && optional
                .into_iter()
                .flatten()
                .chain([self.sub.as_str(), self.role.as_str()])
                .all(|text| text.len() <= 320 && !text.chars().any(char::is_control));
        if are_storable {
            return Ok(());
        }
        Err(Error::Token("a claim is empty, is too long or has control characters"))
    }

    pub(super) fn check_times(&self, now: DateTime<Utc>) -> Result<(), Error> {
        if self.until() <= now {
            return Err(Error::Token("it has expired"));
        }
        let latest = now.timestamp() + LEEWAY;
        if self.nbf.is_some_and(|start| start.ceil() > latest) {
            return Err(Error::Token("it is not valid yet"));
        }
        Ok(())
    }
}

/// Describes the claim that makes a token unreadable.
pub(super) fn misread(claims: &Value) -> &'static str {
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
        () if !is_text(claims, "email") => "its `email` is not a text",
        () if !is_text(claims, "org_id") => "its `org_id` is not a text",
        () if claims.get("public_metadata").is_some_and(|value| !value.is_object()) => {
            "its `public_metadata` is not an object"
        }
        () if !is_text(metadata, "role") => "the `role` in its `public_metadata` is not a text",
        () if !is_text(metadata, "tenant_id") => {
            "the `tenant_id` in its `public_metadata` is not a text"
        }
        () => "a claim has the wrong type or is given twice",
    }
}

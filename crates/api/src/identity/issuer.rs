//! A trusted identity provider: its keys, and the people and tenants that its tokens may name.

use std::sync::Arc;

use authority_ids::TenantId;
use jsonwebtoken::Algorithm;

use super::{claim_rules::ClaimRules, key_source::KeySource};

/// A trusted identity provider.
pub struct Issuer {
    /// The value of `iss`.
    pub issuer: String,
    /// The accepted values of `aud`.
    pub audiences: Vec<String>,
    pub keys: KeySource,
    /// The accepted values of `alg`.
    pub algorithms: Vec<Algorithm>,
    /// The accepted values of `alg` for the role `owner`. Empty if this issuer may not give it.
    pub owner_algorithms: Vec<Algorithm>,
    /// The tenants that its tokens may name; `None` for all.
    pub tenants: Option<Arc<[TenantId]>>,
    /// How role and tenant are read from its tokens.
    pub claims: ClaimRules,
    pub people: People,
    /// Whether its tokens need an e-mail address. The address identifies a person with an account
    /// at another issuer. Rules for several people would otherwise count this person twice.
    pub needs_email: bool,
}

/// How the people of an issuer are identified.
///
/// Records, triggers and approvals know a person by the subject. The same `sub` at two issuers is
/// therefore two subjects: the subject of further issuers begins with the name of the issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    /// Another issuer with the same people, if there is one: a person with the same `sub` there is
    /// the same person.
    pub of: Option<String>,
    /// The name before the `sub`, without the `|`.
    pub prefix: Option<String>,
}

impl Issuer {
    /// Creates an issuer that may name each tenant and the owner, with RS256.
    pub fn new(issuer: impl Into<String>, audiences: Vec<String>, keys: KeySource) -> Self {
        Self {
            issuer: issuer.into(),
            audiences,
            keys,
            algorithms: vec![Algorithm::RS256],
            owner_algorithms: vec![Algorithm::RS256],
            tenants: None,
            claims: ClaimRules::default(),
            people: People::default(),
            needs_email: false,
        }
    }

    /// Returns the issuer and the subject that identify the person with this `sub`.
    pub(super) fn person(&self, sub: &str) -> (String, String) {
        let People { of, prefix } = &self.people;
        let subject = match prefix {
            Some(prefix) => format!("{prefix}|{sub}"),
            None => sub.to_owned(),
        };
        (of.as_ref().unwrap_or(&self.issuer).clone(), subject)
    }
}

//! The caller, as handlers find it in the request's extensions.

use std::{fmt, net::IpAddr, sync::Arc};

use authority_ids::{ApiKeyId, PrincipalRef, TenantId};
use chrono::{DateTime, Utc};

use super::{dev_provider, role::Role};
use crate::error::{ApiError, ErrorCode};
use authority_store::{SERVICE, Scope};

/// A caller with a checked credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The caller's name in the history: a person's e-mail address (or the token's subject), an API
    /// key's id, or `anonymous`.
    pub actor: String,
    pub kind: CallerKind,
    /// The time from which the token is refused, and at which its streams end; `None` if the
    /// credential is not a token.
    pub until: Option<DateTime<Utc>>,
    /// When the person signed in, from their token's `auth_time`. `None` without that claim, and
    /// for callers that are not people.
    pub authenticated_at: Option<DateTime<Utc>>,
}

/// The kind of caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerKind {
    /// No credential.
    Anonymous,
    /// The installation's owner. Issuer and subject together identify the person.
    Owner { issuer: String, subject: String, email: Option<String> },
    /// A person of one tenant. Issuer and subject together identify the person; an e-mail address
    /// may change.
    Member {
        tenant_id: TenantId,
        role: Role,
        issuer: String,
        subject: String,
        email: Option<String>,
    },
    /// An API key of one tenant. If `principal_ids` is not empty, the key may act only for these
    /// principals.
    Key {
        tenant_id: TenantId,
        key_id: ApiKeyId,
        scopes: Arc<[String]>,
        principal_ids: Arc<[PrincipalRef]>,
        secret: SecretCode,
        /// The address that the call came from, if it is known.
        peer: Option<IpAddr>,
    },
}

/// The authentication code of the presented secret. A stream that was opened with a secret ends
/// when that secret becomes invalid, even if the key has a new secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretCode(pub [u8; 32]);

impl fmt::Debug for SecretCode {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("SecretCode")
    }
}

impl Caller {
    pub fn anonymous() -> Self {
        Self {
            actor: "anonymous".to_owned(),
            kind: CallerKind::Anonymous,
            until: None,
            authenticated_at: None,
        }
    }

    /// The tenant that the caller is confined to; `None` for the owner and for anonymous callers.
    pub fn tenant(&self) -> Option<&TenantId> {
        match &self.kind {
            CallerKind::Anonymous | CallerKind::Owner { .. } => None,
            CallerKind::Member { tenant_id, .. } | CallerKind::Key { tenant_id, .. } => {
                Some(tenant_id)
            }
        }
    }

    /// The scope of the caller's database transactions.
    pub fn scope(&self) -> Scope {
        let api_key = match &self.kind {
            CallerKind::Key { key_id, .. } => Some(key_id.clone()),
            _ => None,
        };
        Scope { tenant: self.tenant().cloned(), actor: self.actor.clone(), api_key }
    }

    /// A stable identity: a person's issuer and subject, or an API key's id.
    pub fn identity(&self) -> String {
        match &self.kind {
            CallerKind::Anonymous => String::new(),
            CallerKind::Owner { issuer, subject, .. }
            | CallerKind::Member { issuer, subject, .. } => {
                format!("{issuer}|{subject}")
            }
            CallerKind::Key { key_id, .. } => key_id.to_string(),
        }
    }

    /// The e-mail address in the caller's token.
    pub fn email(&self) -> Option<&str> {
        match &self.kind {
            CallerKind::Anonymous | CallerKind::Key { .. } => None,
            CallerKind::Owner { email, .. } | CallerKind::Member { email, .. } => email.as_deref(),
        }
    }

    /// The person, as in [`Self::identity`]; `None` for API keys, anonymous callers, and the
    /// service's own calls (the command line, the demonstration's seed).
    pub fn person(&self) -> Option<String> {
        match &self.kind {
            CallerKind::Anonymous | CallerKind::Key { .. } => None,
            CallerKind::Owner { issuer, subject, .. }
            | CallerKind::Member { issuer, subject, .. } => {
                let is_own = (issuer.as_str(), subject.as_str()) == (dev_provider::ISSUER, SERVICE);
                (!is_own).then(|| self.identity())
            }
        }
    }

    pub fn is_owner(&self) -> bool {
        matches!(self.kind, CallerKind::Owner { .. })
    }

    /// The principals that the caller is confined to: data of other principals is hidden. Only API
    /// keys can be confined.
    pub fn bound_to(&self) -> Option<&[PrincipalRef]> {
        match &self.kind {
            CallerKind::Key { principal_ids, .. } if !principal_ids.is_empty() => {
                Some(principal_ids)
            }
            _ => None,
        }
    }

    /// Refuses API keys that are bound to principals, for a response that also covers other
    /// principals.
    ///
    /// # Errors
    /// The caller is such a key; `what` describes the refused operation.
    pub fn unbound(&self, what: &str) -> Result<(), ApiError> {
        if self.bound_to().is_none() {
            return Ok(());
        }
        let text = format!(
            "an API key that is bound to principals may not {what}; use a key without `principal_ids`"
        );
        Err(ApiError::new(ErrorCode::Forbidden, text))
    }

    /// Whether the caller may act for `principal`. An API key that is bound to principals may act
    /// only for these; anonymous callers may not act for any.
    pub fn acts_for(&self, principal: &str) -> bool {
        let mine = |own: &[PrincipalRef]| own.iter().any(|id| *id == principal);
        self.kind != CallerKind::Anonymous && self.bound_to().is_none_or(mine)
    }
}

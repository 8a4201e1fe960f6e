//! Who calls: what every handler finds in the request's extensions.

use std::sync::Arc;

use crate::store::Scope;

/// A caller whose credential was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// As the history names them: a person's e-mail address (or the token's subject), an API key's
    /// id, `anonymous`.
    pub actor: String,
    pub standing: Standing,
}

/// In which capacity they call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No credential.
    Anonymous,
    /// The installation's owner: issuer and subject are the person.
    Owner { issuer: String, subject: String },
    /// A person of one tenant. Issuer and subject together are the person; an address may change.
    Member { tenant_id: String, role: String, issuer: String, subject: String },
    /// An API key of one tenant. With `principal_ids` it acts for these alone.
    Key {
        tenant_id: Arc<str>,
        key_id: Arc<str>,
        scopes: Arc<[String]>,
        principal_ids: Arc<[String]>,
    },
}

impl Caller {
    pub fn anonymous() -> Self {
        Self { actor: "anonymous".to_owned(), standing: Standing::Anonymous }
    }

    /// The tenant they are confined to; `None` for the owner and for nobody.
    pub fn tenant(&self) -> Option<&str> {
        match &self.standing {
            Standing::Anonymous | Standing::Owner { .. } => None,
            Standing::Member { tenant_id, .. } => Some(tenant_id),
            Standing::Key { tenant_id, .. } => Some(tenant_id),
        }
    }

    /// For whom their transactions run.
    pub fn scope(&self) -> Scope {
        Scope { tenant: self.tenant().map(str::to_owned), actor: self.actor.clone() }
    }

    /// Who they are, whatever they are called: a person's issuer and subject, an API key's id.
    pub fn identity(&self) -> String {
        match &self.standing {
            Standing::Anonymous => String::new(),
            Standing::Owner { issuer, subject } | Standing::Member { issuer, subject, .. } => {
                format!("{issuer}|{subject}")
            }
            Standing::Key { key_id, .. } => key_id.to_string(),
        }
    }

    pub fn is_owner(&self) -> bool {
        matches!(self.standing, Standing::Owner { .. })
    }

    /// Whether they may act for `principal`: only a bound API key is confined.
    pub fn acts_for(&self, principal: &str) -> bool {
        match &self.standing {
            Standing::Key { principal_ids, .. } => {
                principal_ids.is_empty() || principal_ids.iter().any(|id| id == principal)
            }
            Standing::Anonymous => false,
            Standing::Owner { .. } | Standing::Member { .. } => true,
        }
    }
}

//! The callers who pass on a part of their own authority: API keys for their agents, and a tenant's
//! admins for their own principals. The installation's owner is not limited to own authority.
//!
//! A person's principals are found by `external_subject` alone. An e-mail address in a token may be
//! unverified.

use authority_api::identity::CallerKind;
use authority_model::{proto::delegation::Delegation, schema::principals, state::PrincipalState};
use chrono::{DateTime, Utc};

use super::delegating_key::DelegatingKey;
use crate::flow::prelude::*;

/// The class of principals that are people.
const HUMAN: &str = "human";

/// A caller who may delegate only authority that the caller's principals received.
pub(crate) enum Party {
    Key(DelegatingKey),
    /// The active principals of a person.
    Person(Vec<String>),
}

impl Party {
    /// Returns `None` for the installation's owner. Call this before locking delegations.
    ///
    /// # Errors
    /// The caller is an API key that may not delegate now, or is not a person.
    pub(crate) async fn of(
        db: &mut Db,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Result<Option<Self>, Error> {
        match &caller.kind {
            CallerKind::Owner { .. } => Ok(None),
            CallerKind::Key { .. } => Ok(DelegatingKey::of(db, caller, now).await?.map(Self::Key)),
            CallerKind::Member { tenant_id, subject, .. } => {
                Ok(Some(Self::Person(own_principals(db, tenant_id, subject).await?)))
            }
            CallerKind::Anonymous => Err(Error::Refused(ErrorCode::Unauthenticated)),
        }
    }

    /// Whether the caller may see a delegation between these two principals. A tenant's admin sees
    /// every delegation.
    pub(crate) fn sees(&self, delegator_id: &str, delegate_id: &str) -> bool {
        match self {
            Self::Key(key) => key.sees(delegator_id, delegate_id),
            Self::Person(_) => true,
        }
    }

    /// Refuses to delegate the authority of a principal that is not the caller's own, or that is not
    /// active.
    pub(crate) fn check(&self, principal_id: &str) -> Result<(), Error> {
        match self {
            Self::Key(key) => key.check(principal_id),
            Self::Person(own) if own.iter().any(|id| id == principal_id) => Ok(()),
            Self::Person(_) => Err(Error::Role(format!(
                "`{principal_id}` is not your own principal; you can only delegate a part of a \
                 delegation that it received, and only the installation's owner delegates for others"
            ))),
        }
    }

    /// Refuses a delegation that no principal of the caller gave.
    pub(crate) fn check_gave(&self, row: &Delegation) -> Result<(), Error> {
        match self {
            Self::Key(key) => key.check_gave(row).map(drop),
            Self::Person(_) => self.check(row.delegator_id.as_deref().unwrap_or_default()),
        }
    }
}

/// Returns and locks the active principals of a person of the tenant.
async fn own_principals(
    db: &mut Db,
    tenant_id: &TenantId,
    subject: &str,
) -> QueryResult<Vec<String>> {
    principals::table
        .filter(principals::tenant_id.eq(tenant_id.as_str()))
        .filter(principals::external_subject.eq(subject))
        .filter(principals::principal_class.eq(HUMAN))
        .filter(principals::state.eq(PrincipalState::Active))
        .filter(principals::deleted_at.is_null())
        .order(principals::id)
        .for_share()
        .select(principals::id)
        .load(db)
        .await
}

//! API keys that delegate: an agent delegates a part of its own authority.
//!
//! A key's operation is checked in its own transaction, against the rows of the key, its tenant and
//! its principals. These rows stay locked until the transaction ends. A concurrent change to any of
//! these rows is therefore either visible to the check or waits until the transaction ends. Stop
//! signals and quarantines are read while this transaction holds the fence. A transaction that
//! begins a stop signal or a quarantine waits for the fence.

use std::collections::HashMap;

use authority_api::{
    error::ApiError,
    identity::{CallerKind, TENANT_INACTIVE},
};
use authority_crypto::equal;
use authority_decision::pattern::Pattern;
use authority_graph::{Fence, hold_fence};
use authority_model::{
    proto::delegation::Delegation,
    schema::{api_keys, delegations, principals, quarantines, stop_signals, tenants},
    state::{ApiKeyStatus, PrincipalState, QuarantineState, StopSignalState, TenantState},
    wire::Time,
};
use chrono::{DateTime, Utc};

use super::line::line;
use crate::flow::prelude::*;

/// The scope that a key needs to delegate.
pub(crate) const SCOPE: &str = "delegations:write";

/// The principals that an API key acts for.
pub(crate) struct DelegatingKey {
    bound: Vec<String>,
    /// The bound principals that are active.
    active: Vec<String>,
}

/// The columns of a key that decide whether it may be used.
type KeyRow = (Vec<u8>, Option<Vec<u8>>, Option<Time>, Option<Time>, Vec<String>, Vec<String>);

impl DelegatingKey {
    /// Returns the caller's key if the caller is an API key. Call this before locking delegations:
    /// an operation that ends a principal locks the principal first and then its delegations.
    ///
    /// # Errors
    /// The key was revoked, has expired, has another secret or lacks the scope, or its tenant is
    /// not active.
    pub(crate) async fn of(
        db: &mut Db,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Result<Option<Self>, Error> {
        let CallerKind::Key { tenant_id, key_id, secret, .. } = &caller.kind else {
            return Ok(None);
        };
        let key: Option<KeyRow> = api_keys::table
            .filter(api_keys::tenant_id.eq(tenant_id.as_str()))
            .filter(api_keys::id.eq(key_id.as_str()))
            .filter(api_keys::status.eq(ApiKeyStatus::Active))
            .for_share()
            .select((
                api_keys::secret_code,
                api_keys::previous_code,
                api_keys::previous_until,
                api_keys::expires_at,
                api_keys::scopes,
                api_keys::principal_ids,
            ))
            .first(db)
            .await
            .optional()?;
        let ended = || Error::Refused(ErrorCode::Unauthenticated);
        let (code, previous, previous_until, expires_at, scopes, bound) = key.ok_or_else(ended)?;
        let is_previous = previous.is_some_and(|previous| equal(&previous, &secret.0))
            && previous_until.is_some_and(|until| until > now.into());
        if !(equal(&code, &secret.0) || is_previous)
            || expires_at.is_some_and(|end| end <= now.into())
        {
            return Err(ended());
        }
        if !scopes.iter().any(|scope| scope == SCOPE) {
            return Err(Error::Refused(ErrorCode::PermissionScopeExceeded));
        }
        let tenant: Option<String> = tenants::table
            .filter(tenants::id.eq(tenant_id.as_str()))
            .filter(tenants::state.eq(TenantState::Active).and(tenants::deleted_at.is_null()))
            .for_share()
            .select(tenants::id)
            .first(db)
            .await
            .optional()?;
        tenant.ok_or_else(|| ApiError::from(TENANT_INACTIVE))?;
        let active = principals::table
            .filter(principals::tenant_id.eq(tenant_id.as_str()))
            .filter(principals::id.eq_any(&bound))
            .filter(principals::state.eq(PrincipalState::Active))
            .filter(principals::deleted_at.is_null())
            .order(principals::id)
            .for_share()
            .select(principals::id)
            .load(db)
            .await?;
        Ok(Some(Self { bound, active }))
    }

    /// Whether the key may see a delegation between these two principals.
    pub(crate) fn sees(&self, delegator_id: &str, delegate_id: &str) -> bool {
        self.bound.iter().any(|id| id == delegator_id || id == delegate_id)
    }

    /// Refuses a principal that the key is not bound to, or that is not active.
    pub(crate) fn check(&self, principal_id: &str) -> Result<(), Error> {
        if !self.bound.iter().any(|id| id == principal_id) {
            return Err(Error::NotSubject);
        }
        if self.active.iter().any(|id| id == principal_id) {
            return Ok(());
        }
        let text = format!("the API key's principal `{principal_id}` is not active");
        Err(Error::Role(text))
    }

    /// Refuses a delegation that no principal of the key gave. The error is the same as for an
    /// unknown delegation. Returns the delegator.
    pub(crate) fn check_gave<'d>(&self, row: &'d Delegation) -> Result<&'d str, Error> {
        let delegator = row.delegator_id.as_deref().unwrap_or_default();
        if !self.bound.iter().any(|id| id == delegator) {
            return Err(Error::NotFound { kind: Delegation::KIND, id: row.id.clone() });
        }
        self.check(delegator)?;
        Ok(delegator)
    }

    /// Refuses to revoke a delegation that no principal of the key gave.
    pub(crate) async fn check_revoke(&self, db: &mut Db, row: &Delegation) -> Result<(), Error> {
        let delegator = self.check_gave(row)?;
        hold_fence(db, Fence::Alone).await?;
        not_stopped(db, row.tenant_id(), &[delegator]).await
    }

    /// Refuses a new delegation below `chain` that a decision could not use: a principal in the
    /// chain is stopped or not active, or a quarantine covers the delegation. Otherwise the
    /// delegation would become usable when the stop is lifted, although the agent was not allowed
    /// to act when it delegated. This function takes the fence. Lock the rows before calling it.
    pub(crate) async fn check_chain(
        db: &mut Db,
        new: &Delegation,
        chain: &[Delegation],
    ) -> Result<(), Error> {
        hold_fence(db, Fence::Alone).await?;
        let people = participants(new, chain);
        not_stopped(db, new.tenant_id(), &people).await?;
        all_active(db, new.tenant_id(), &people).await?;
        not_quarantined(db, new, chain, &people).await
    }
}

/// Returns everyone who takes part in the chain of a delegation, given the links above it.
pub(crate) fn participants<'d>(new: &'d Delegation, above: &'d [Delegation]) -> Vec<&'d str> {
    let mut people = vec![new.delegate_id.as_str()];
    people.extend(above.iter().map(|link| link.delegate_id.as_str()));
    people.extend(above.iter().filter_map(|link| link.delegator_id.as_deref()));
    people.sort_unstable();
    people.dedup();
    people
}

async fn not_stopped(db: &mut Db, tenant_id: &str, people: &[&str]) -> Result<(), Error> {
    let stopped: Option<String> = stop_signals::table
        .filter(stop_signals::tenant_id.eq(tenant_id))
        .filter(stop_signals::state.eq(StopSignalState::Active))
        .filter(stop_signals::actor_id.eq_any(people))
        .select(stop_signals::actor_id)
        .first(db)
        .await
        .optional()?;
    match stopped {
        None => Ok(()),
        Some(id) => Err(Error::NotAllowed(format!("a stop signal is in force on `{id}`"))),
    }
}

async fn all_active(db: &mut Db, tenant_id: &str, people: &[&str]) -> Result<(), Error> {
    let active: Vec<String> = principals::table
        .filter(principals::tenant_id.eq(tenant_id))
        .filter(principals::id.eq_any(people))
        .filter(principals::state.eq(PrincipalState::Active))
        .filter(principals::deleted_at.is_null())
        .select(principals::id)
        .load(db)
        .await?;
    match people.iter().find(|id| !active.iter().any(|known| known == *id)) {
        None => Ok(()),
        Some(id) => Err(Error::NotAllowed(format!("the principal `{id}` is not active"))),
    }
}

/// Refuses a delegation that a quarantine covers. As in a decision, all of the quarantine's fields
/// must match, and a quarantine of a delegation covers its line. A quarantine without fields covers
/// everything.
pub(crate) async fn not_quarantined(
    db: &mut Db,
    new: &Delegation,
    chain: &[Delegation],
    people: &[&str],
) -> Result<(), Error> {
    let found: Vec<(String, Option<String>, Option<String>)> = quarantines::table
        .filter(quarantines::tenant_id.eq(new.tenant_id()))
        .filter(quarantines::state.eq(QuarantineState::Active))
        .filter(quarantines::subject_id.is_null().or(quarantines::subject_id.eq_any(people)))
        .select((quarantines::id, quarantines::action, quarantines::delegation_id))
        .load(db)
        .await?;
    let named: Vec<&String> = found.iter().filter_map(|(.., named)| named.as_ref()).collect();
    let mut lines: HashMap<String, Option<String>> = HashMap::new();
    if !named.is_empty() {
        let rows: Vec<(String, Option<String>)> = delegations::table
            .filter(delegations::tenant_id.eq(new.tenant_id()).and(delegations::id.eq_any(named)))
            .select((delegations::id, delegations::line_id))
            .load(db)
            .await?;
        lines.extend(rows);
    }
    let concerns = |action: &Option<String>, named: &Option<String>| {
        let of_chain = named.as_ref().is_none_or(|id| {
            let named = lines.get(id).and_then(Option::as_ref).unwrap_or(id);
            chain.iter().any(|link| line(link) == named)
        });
        of_chain
            && action
                .as_deref()
                .is_none_or(|action| new.actions.iter().any(|own| overlap(own, action)))
    };
    match found.into_iter().find(|(_, action, named)| concerns(action, named)) {
        None => Ok(()),
        Some((id, ..)) => Err(Error::NotAllowed(format!("it is covered by the quarantine `{id}`"))),
    }
}

/// Whether some action matches both patterns. A pattern that can't be parsed matches every action.
fn overlap(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (one.parse::<Pattern>(), other.parse::<Pattern>()) else {
        return true;
    };
    one.is_within(&other) || other.is_within(&one)
}

/// Removes the fields of a delegation that an API key may not see. These are people's data and,
/// unless the key created the delegation, free texts.
pub(crate) fn show(caller: &Caller, row: &mut Delegation) {
    if !matches!(caller.kind, CallerKind::Key { .. }) {
        return;
    }
    row.standing.clear();
    row.revoke_reason = None;
    if row.created_by != caller.actor {
        row.created_by.clear();
        row.notes = None;
        row.tags.clear();
        row.metadata = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_share_an_action_overlap() {
        for (one, other, expected) in [
            ("payment.execute", "payment.execute", true),
            ("payment.execute", "payment.*", true),
            ("payment.*", "payment.execute", true),
            ("payment.*", "*", true),
            ("payment.*", "payment.refund.*", true),
            ("payment.*", "payments.execute", false),
            ("payment.execute", "payment.refund", false),
            ("payment.*", "not a pattern", true),
        ] {
            assert_eq!(overlap(one, other), expected, "{one} {other}");
        }
    }
}

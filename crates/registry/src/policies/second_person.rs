//! Policies that a tenant's admins write: one person writes a text, and another person activates it,
//! unless the tenant's `author_activates` permits the author to activate it.
//!
//! An active policy may forbid what its next text permits. An admin therefore activates only the
//! newest text, ends only drafts, and does not change the times of a policy.

use authority_graph::{Graph, Person};
use authority_model::{
    proto::registry::{ActivatePolicyRequest, Policy},
    schema::{policy_versions, tenants},
    state::PolicyState,
};
use diesel::dsl::max;

use crate::flow::prelude::*;

const OTHER_PERSON: &str = "you wrote this text: another admin of the tenant or the installation's owner must \
                            activate it";

/// Refuses a new policy of a tenant's caller that is not a draft.
pub(super) fn check_new(policy: &Policy) -> Result<(), Error> {
    if policy.known_state() == Some(PolicyState::Draft) {
        return Ok(());
    }
    let text = "only the installation's owner creates a policy that is active at once; create a draft, which \
                another admin activates";
    Err(Error::Role(text.to_owned()))
}

/// Refuses that a tenant's caller ends a policy that may be in force.
pub(super) fn check_change(policy: &Policy, was: &Policy) -> Result<(), Error> {
    if policy.state == was.state || was.known_state() == Some(PolicyState::Draft) {
        return Ok(());
    }
    let text = "only the installation's owner retires a policy that is not a draft";
    Err(Error::Role(text.to_owned()))
}

/// Refuses an activation by a tenant's caller without a reason, of an older version, or of the
/// caller's own text.
pub(super) async fn check_activation(
    db: &mut Db,
    graph: &Graph,
    by: &Caller,
    policy: &Policy,
    (request, version): (&ActivatePolicyRequest, i32),
) -> Result<(), Error> {
    if by.tenant().is_none() {
        return Ok(());
    }
    if request.reason.as_ref().is_none_or(|reason| reason.trim().is_empty()) {
        return Err(Error::field("reason", "is required for a tenant's admin"));
    }
    // Without a version, a text that another person has saved meanwhile could become active.
    if request.version.is_none() {
        return Err(Error::field("version", "is required for a tenant's admin"));
    }
    let newest: Option<i32> = policy_versions::table
        .filter(policy_versions::policy_id.eq(&policy.id))
        .filter(policy_versions::tenant_id.eq(&policy.tenant_id))
        .select(max(policy_versions::version))
        .first(db)
        .await?;
    if newest != Some(version) {
        let text = "only the installation's owner activates a version that is not the newest";
        return Err(Error::Role(text.to_owned()));
    }
    let author_activates: bool =
        tenants::table.find(&policy.tenant_id).select(tenants::author_activates).first(db).await?;
    if author_activates {
        return Ok(());
    }
    let (author, created_by): (Option<String>, String) = policy_versions::table
        .find((&policy.id, version))
        .select((policy_versions::author, policy_versions::created_by))
        .first(db)
        .await?;
    let Some(author) = author else {
        let text = "the author of this text is unknown; only the installation's owner activates it";
        return Err(Error::Role(text.to_owned()));
    };
    let identity = by.identity();
    let who = Person { identity: &identity, email: by.email() };
    // `created_by` is the author's address, or the `sub` of an author without an address.
    let author = Person { identity: &author, email: Some(&created_by) };
    if graph.are_one(who, author)? {
        return Err(Error::Role(OTHER_PERSON.to_owned()));
    }
    Ok(())
}

//! The start and the end of an observation.
//!
//! A trigger on the table records each observation. It ends it with the policy, or when the version is
//! activated.

use authority_model::{
    proto::registry::{ObservePolicyRequest, Policy, UnobservePolicyRequest},
    schema::{policies, tenants},
    state::PolicyState,
    wire::Time,
};

use super::versions::{checked, requested_version};
use crate::flow::{
    operations::{changeable, or_not_found},
    prelude::*,
    version::{IfMatch, tagged},
};

/// The maximum number of observing policies of a tenant. The facts of each decision name them.
const MOST: i64 = 3;

pub(super) async fn begin(
    registry: &Registry,
    call: Request<ObservePolicyRequest>,
) -> Reply<Policy> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    let within = caller.tenant().cloned();
    let checked = checked(registry, &caller, &request.id, request.version).await;
    let observing = registry.idempotent(&caller, key, async move |db| {
        let was = or_not_found(Policy::lock(db, within.as_ref(), &request.id).await, &request.id)?;
        if_match.check(&was)?;
        changeable(&was)?;
        let (version, cedar) = requested_version(db, &was, request.version).await?;
        if version != checked? {
            return Err(Error::Changed);
        }
        if was.known_state() == Some(PolicyState::Active) && was.version == version {
            let text = format!("version {version} is in force, and can't only observe");
            return Err(Error::NotAllowed(text));
        }
        check_number(db, &was).await?;
        let observing = diesel::update(policies::table.find(&was.id))
            .filter(policies::tenant_id.eq(&was.tenant_id))
            .set((
                policies::observing_version.eq(version),
                policies::observing_cedar.eq(&cedar),
                policies::observing_since.eq(clock_timestamp().nullable()),
                policies::updated_at.eq(clock_timestamp()),
            ))
            .returning(Policy::as_returning())
            .get_result(db)
            .await?;
        Ok::<_, Error>(observing)
    });
    let observing = observing.await?;
    registry.wait_for_graph::<Policy>().await;
    Ok(tagged(observing.reply()))
}

/// Refuses another observing policy of a tenant that has the maximum number.
async fn check_number(db: &mut Db, policy: &Policy) -> Result<(), Error> {
    // Two calls at the same time would both see one policy too few.
    let tenant = tenants::table.find(&policy.tenant_id).select(tenants::id);
    tenant.for_no_key_update().first::<String>(db).await?;
    let others: i64 = policies::table
        .filter(policies::tenant_id.eq(&policy.tenant_id))
        .filter(policies::id.ne(&policy.id))
        .filter(policies::observing_version.is_not_null())
        .count()
        .get_result(db)
        .await?;
    if others < MOST {
        return Ok(());
    }
    let text =
        format!("{MOST} policies of the tenant are observing; end one of these observations first");
    Err(Error::NotAllowed(text))
}

pub(super) async fn end(
    registry: &Registry,
    call: Request<UnobservePolicyRequest>,
) -> Reply<Policy> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    let within = caller.tenant().cloned();
    let ended = registry.idempotent(&caller, key, async move |db| {
        let was = or_not_found(Policy::lock(db, within.as_ref(), &request.id).await, &request.id)?;
        if_match.check(&was)?;
        if was.observing_version.is_none() {
            return Err(Error::NotAllowed("no version of the policy is observing".to_owned()));
        }
        let ended = diesel::update(policies::table.find(&was.id))
            .filter(policies::tenant_id.eq(&was.tenant_id))
            .set((
                policies::observing_version.eq(None::<i32>),
                policies::observing_cedar.eq(None::<String>),
                policies::observing_since.eq(None::<Time>),
                policies::updated_at.eq(clock_timestamp()),
            ))
            .returning(Policy::as_returning())
            .get_result(db)
            .await?;
        Ok::<_, Error>(ended)
    });
    let ended = ended.await?;
    registry.wait_for_graph::<Policy>().await;
    Ok(tagged(ended.reply()))
}

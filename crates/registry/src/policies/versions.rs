//! The versions of a policy's text and the active version.
//!
//! A new text replaces the text of a draft policy at once. An active policy keeps its text, and a
//! new text waits until it is activated.

use std::sync::Arc;

use authority_ids::EntityRef;
use authority_model::{
    proto::registry::*,
    schema::{policies, policy_versions},
    state::PolicyState,
};
use diesel::dsl::max;
use tonic::Response;

use super::{
    check::{self, problem_at},
    cost::{self, InForce},
    second_person,
};
use crate::flow::{
    operations::{changeable, or_not_found},
    prelude::*,
    version::{IfMatch, tagged},
};
use authority_api::named_tenant;
use authority_decision::{moment::Window, validation::Severity};
use authority_graph::policy_check::problem_of;

/// Stores the first text of a new policy as version 1.
pub(crate) async fn begin(policy: &mut Policy, tx: &mut WriteTx<'_>) -> Result<(), Error> {
    if let Some(cedar) = policy.cedar.clone() {
        policy.version = 1;
        keep(policy, 1, &cedar, tx).await?;
    }
    Ok(())
}

/// Applies a patch: the allowed changes of state, and a new text.
pub(crate) async fn change(
    policy: &mut Policy,
    was: &Policy,
    tx: &mut WriteTx<'_>,
) -> Result<(), Error> {
    if policy.state != was.state && policy.known_state() != Some(PolicyState::Retired) {
        return Err(Error::NotAllowed(format!(
            "a policy does not become {} from {} by PATCH; an active one is made by POST \
             /policies/{{id}}/activate",
            policy.state(),
            was.state()
        )));
    }
    if policy.cedar == was.cedar {
        return Ok(());
    }
    let Some(cedar) = policy.cedar.clone() else {
        return Err(Error::field("policy.cedar", "cannot be cleared; retire the policy instead"));
    };
    // Numbers continue from the newest version, because an older version may be active again.
    let newest: Option<i32> = policy_versions::table
        .filter(policy_versions::policy_id.eq(&policy.id))
        .filter(policy_versions::tenant_id.eq(&policy.tenant_id))
        .select(max(policy_versions::version))
        .first(tx.db)
        .await?;
    let version = newest.unwrap_or_default().saturating_add(1);
    keep(policy, version, &cedar, tx).await?;
    let row = diesel::update(policies::table.find(&policy.id));
    if was.version == 0 || was.known_state() == Some(PolicyState::Draft) {
        row.set(policies::version.eq(version)).execute(tx.db).await?;
    } else {
        policy.cedar.clone_from(&was.cedar);
        row.set((policies::draft_version.eq(version), policies::draft_cedar.eq(&cedar)))
            .execute(tx.db)
            .await?;
    }
    Ok(())
}

async fn keep(
    policy: &Policy,
    version: i32,
    cedar: &str,
    tx: &mut WriteTx<'_>,
) -> Result<(), Error> {
    // The foreign key to the policy is checked when the transaction commits.
    diesel::insert_into(policy_versions::table)
        .values((
            policy_versions::policy_id.eq(&policy.id),
            policy_versions::tenant_id.eq(&policy.tenant_id),
            policy_versions::version.eq(version),
            policy_versions::cedar.eq(cedar),
            policy_versions::created_by.eq(&tx.caller.actor),
            policy_versions::author.eq(tx.caller.identity()),
        ))
        .execute(tx.db)
        .await?;
    Ok(())
}

pub(crate) async fn activate(
    registry: &Registry,
    call: Request<ActivatePolicyRequest>,
) -> Reply<Policy> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    let within = caller.tenant().cloned();
    let checked = checked(registry, &caller, &request.id, request.version).await;
    let (graph, by) = (Arc::clone(&registry.graph), caller.clone());
    let active = registry.idempotent(&caller, key, async move |db| {
        let was = or_not_found(Policy::lock(db, within.as_ref(), &request.id).await, &request.id)?;
        if_match.check(&was)?;
        changeable(&was)?;
        let (version, cedar) = requested_version(db, &was, request.version).await?;
        if version != checked? {
            return Err(Error::Changed);
        }
        second_person::check_activation(db, &graph, &by, &was, (&request, version)).await?;
        // If another version is activated, the waiting text keeps waiting.
        let waits = was.draft_version.filter(|draft| *draft != version);
        let active = diesel::update(policies::table.find(&was.id))
            .filter(policies::tenant_id.eq(&was.tenant_id))
            .set((
                policies::state.eq(PolicyState::Active),
                policies::cedar.eq(&cedar),
                policies::version.eq(version),
                policies::draft_version.eq(waits),
                policies::draft_cedar.eq(waits.and(was.draft_cedar)),
                // A trigger on the table records the caller and the version's activation.
                policies::activated_at.eq(clock_timestamp().nullable()),
                policies::activation_reason.eq(&request.reason),
                policies::updated_at.eq(clock_timestamp()),
            ))
            .returning(Policy::as_returning())
            .get_result(db)
            .await?;
        Ok::<_, Error>(active)
    });
    let active = active.await?;
    registry.wait_for_graph::<Policy>().await;
    Ok(tagged(active.reply()))
}

/// Checks the text to activate or to observe, and returns its version. The texts of versions never
/// change.
pub(super) async fn checked(
    registry: &Registry,
    caller: &Caller,
    id: &str,
    version: Option<i32>,
) -> Result<i32, Error> {
    let (within, id) = (caller.tenant().cloned(), id.to_owned());
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let found = Policy::find(db, within.as_ref(), &id, false).await;
        let policy = or_not_found(found, &id)?;
        changeable(&policy)?;
        let (version, cedar) = requested_version(db, &policy, version).await?;
        Ok::<_, Error>((policy, version, cedar))
    });
    let (mut policy, version, cedar) = read.await?;
    let tenant_id = policy.tenant_id.clone();
    let check = check::of_tenant(registry, caller, &tenant_id).await?;
    let faults = check.errors(&cedar).await?;
    if faults.is_empty() {
        policy.applies_to = cost::targets(registry, caller, &policy.id, None).await?;
        InForce::of(&policy, Some(cedar)).check(registry).await?;
        return Ok(version);
    }
    let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
    Err(Error::NotAllowed(format!("version {version}: {}", faults.join("; "))))
}

/// Returns the requested version, by default the newest, and its text.
pub(super) async fn requested_version(
    db: &mut Db,
    policy: &Policy,
    version: Option<i32>,
) -> Result<(i32, String), Error> {
    let newest = policy.draft_version.unwrap_or(policy.version);
    let version = version.unwrap_or(newest);
    Ok((version, text(db, policy, version).await?))
}

async fn text(db: &mut Db, policy: &Policy, version: i32) -> Result<String, Error> {
    if version == 0 {
        return Err(Error::NotAllowed("the policy has no rules yet; PATCH its `cedar`".to_owned()));
    }
    let cedar = policy_versions::table
        .find((&policy.id, version))
        .filter(policy_versions::tenant_id.eq(&policy.tenant_id))
        .select(policy_versions::cedar)
        .first(db)
        .await
        .optional()?;
    cedar.ok_or_else(|| Error::unknown("version", &version.to_string()))
}

pub(crate) async fn validate(
    registry: &Registry,
    call: Request<ValidatePolicyRequest>,
) -> Reply<ValidatePolicyResponse> {
    let (caller, request) = admitted(call)?;
    if request.cedar.is_none() && request.target_class.is_none() {
        return Err(Error::field("cedar", "is required, or `target_class`").into());
    }
    named_tenant::known(&registry.store, &caller, request.tenant_id.as_deref()).await?;
    let tenant_id = caller.tenant().map(String::from).or(request.tenant_id).unwrap_or_default();
    let check = check::of_tenant(registry, &caller, &tenant_id).await?;
    let targets: Vec<String> = request.target_class.iter().cloned().collect();
    let found = check.findings(request.cedar.as_deref(), &targets).await;
    let (findings, of_target) = found.map_err(Error::from)?;
    let of_target = of_target.into_iter();
    let of_target =
        of_target.map(|found| PolicyProblem { field: "target_class".to_owned(), ..found });
    let (errors, warnings): (Vec<_>, Vec<_>) =
        findings.iter().partition(|one| one.severity == Severity::Error);
    let target = request.target_class.as_deref().and_then(rules::target);
    let target = target.map(|problem| problem_at("target_class", problem));
    let problems: Vec<_> = errors.into_iter().map(problem_of).chain(target).collect();
    let mut warnings: Vec<_> = warnings.into_iter().map(problem_of).chain(of_target).collect();
    if let Some(text) = request.cedar.clone().filter(|_| problems.is_empty()) {
        let new = InForce {
            tenant_id,
            id: EntityRef::default(),
            text: Some(text),
            applies_to: targets,
            effective: Window::default(),
        };
        let found = new.exceeds(registry).await?;
        warnings.extend(found.map(|found| {
            problem_at("cedar", format!("together with the policies in force, {found}"))
        }));
    }
    Ok(Response::new(ValidatePolicyResponse { valid: problems.is_empty(), problems, warnings }))
}

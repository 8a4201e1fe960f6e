//! The warnings and problems that policies show.
//!
//! A text is accepted or refused when it is written, validated or activated. An active policy stays
//! active when tools or declarations change. If its text would no longer be accepted, its
//! `problems` list the findings.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use authority_model::{
    proto::registry::{Policy, PolicyProblem},
    schema::applies_to,
    state::PolicyState,
};

use super::observations;
use crate::flow::prelude::*;
use authority_api::identity::Caller;
use authority_decision::validation::Severity;
use authority_graph::policy_check::{PolicyCheck, problem_of};
use authority_store as store;

/// How long a list request waits for texts to be checked. The next list request continues with the
/// remaining texts.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the check of a tenant's texts.
///
/// # Errors
/// The store can't be read.
pub(crate) async fn of_tenant(
    registry: &Registry,
    caller: &Caller,
    tenant_id: &str,
) -> Result<PolicyCheck, Error> {
    Ok(PolicyCheck::of(&registry.store, &registry.pool, caller.scope(), tenant_id).await?)
}

/// Sets the warnings of a policy's newest text and of its targets.
///
/// The write has been committed. If a name can't be looked up now, its warning is omitted.
pub(crate) async fn warn(registry: &Registry, caller: &Caller, policy: &mut Policy) {
    if policy.known_state() == Some(PolicyState::Retired) {
        return;
    }
    let text = policy.draft_cedar.as_deref().or(policy.cedar.as_deref());
    let Ok(check) = of_tenant(registry, caller, &policy.tenant_id).await else { return };
    let Ok((found, of_targets)) = check.findings(text, &policy.applies_to).await else { return };
    let found = found.iter().filter(|one| one.severity == Severity::Warning);
    policy.warnings = found.map(problem_of).chain(of_targets).collect();
}

/// Returns a problem without a place in the text.
pub(crate) fn problem_at(field: &str, problem: String) -> PolicyProblem {
    let (field, summary) = (field.to_owned(), problem.clone());
    PolicyProblem { field, problem, summary, ..PolicyProblem::default() }
}

/// Sets the fields that policies' rows lack. These are the targets, the counts of observing versions,
/// and the current problems of active policies.
///
/// # Errors
/// The store can't be read, or too many checks are running already.
pub(crate) async fn fill_computed(
    registry: &Registry,
    caller: &Caller,
    policies: &mut [Policy],
) -> Result<(), Error> {
    let ids: Vec<String> = policies.iter().map(|policy| policy.id.clone()).collect();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let rows: Vec<(String, String)> = applies_to::table
            .filter(applies_to::policy_id.eq_any(&ids))
            .order((applies_to::created_at, applies_to::id))
            .select((applies_to::policy_id, applies_to::target_class))
            .load(db)
            .await?;
        Ok::<_, store::Error>((rows, observations::of_policies(db, &ids).await?))
    });
    let (rows, mut counted) = read.await?;
    let mut targets: HashMap<String, Vec<String>> = HashMap::new();
    for (policy_id, target) in rows {
        targets.entry(policy_id).or_default().push(target);
    }
    let mut checks: HashMap<String, PolicyCheck> = HashMap::new();
    let started = Instant::now();
    for policy in policies {
        policy.applies_to = targets.remove(&policy.id).unwrap_or_default();
        let observing = policy.observing_version.map(|version| (policy.id.clone(), version));
        policy.observation = observing.and_then(|version| counted.remove(&version));
        let is_checked =
            policy.known_state() == Some(PolicyState::Active) && started.elapsed() < PATIENCE;
        let Some(text) = policy.cedar.as_deref().filter(|_| is_checked) else { continue };
        if !checks.contains_key(&policy.tenant_id) {
            let check = of_tenant(registry, caller, &policy.tenant_id).await?;
            checks.insert(policy.tenant_id.clone(), check);
        }
        let Some(check) = checks.get(&policy.tenant_id) else { continue };
        let Ok(faults) = check.faults(text).await else { continue };
        let problems: Vec<_> = faults.iter().map(problem_of).collect();
        if !problems.is_empty() {
            let faults = problems.len();
            tracing::warn!(policy.id = policy.id, faults, "found an active policy with faults");
        }
        policy.problems = problems;
    }
    Ok(())
}

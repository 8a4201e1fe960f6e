//! Candidate policies, which are not active. They are checked like policies that are written, and
//! compiled for simulations.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use authority_ids::TenantId;
use authority_model::{
    proto::{registry::PolicyProblem, runtime::CandidatePolicy},
    schema::{applies_to, policies},
    validate::Violations,
};
use diesel::prelude::*;

use authority_api::{
    error::ApiError,
    identity::{Caller, CallerKind},
};
use authority_crypto::sha256;
use authority_decision::{
    CompiledPolicy, PolicyChange, PolicyReference, Target, moment::Window, validation::Severity,
};
use authority_graph::policy_check::{PolicyCheck, problem_of};
use authority_process::compute::ComputePool;
use authority_store::{self as store, RunQueryDsl, Store};

/// The requested policies that are stored.
#[derive(Default)]
struct Known {
    ids: BTreeSet<String>,
    /// The targets of the applies-to rows, by policy ID.
    rows: HashMap<String, Vec<String>>,
}

/// The findings that a write of the candidates would report.
#[derive(Default)]
pub(super) struct Findings {
    /// The findings for which the write would be refused.
    pub(super) problems: Vec<PolicyProblem>,
    pub(super) warnings: Vec<PolicyProblem>,
}

/// Reads and compiles candidates. Cheap to clone.
#[derive(Clone)]
pub(super) struct CandidatePolicies {
    pub(super) store: Store,
    pub(super) pool: ComputePool,
}

impl CandidatePolicies {
    /// Returns the policy change of the candidates, compiled once for any number of decisions.
    ///
    /// # Errors
    /// Every invalid text, target and ID, by its field name.
    pub(super) async fn change(
        &self,
        caller: &Caller,
        tenant_id: &TenantId,
        candidates: Vec<CandidatePolicy>,
        without: Vec<String>,
    ) -> Result<Arc<PolicyChange>, ApiError> {
        let known = self.known(caller, tenant_id, &candidates, &without).await?;
        let mut found = Violations::default();
        for (place, id) in without.iter().enumerate().filter(|(_, id)| !known.ids.contains(*id)) {
            found.add(&format!("without_policies[{place}]"), unknown(id));
        }
        let mut replaced = BTreeSet::new();
        for (place, candidate) in candidates.iter().enumerate() {
            let Some(id) = &candidate.policy_id else { continue };
            let member = format!("candidate_policies[{place}].policy_id");
            if !known.ids.contains(id) {
                found.add(&member, unknown(id));
            } else if !replaced.insert(id) {
                found.add(&member, "is already replaced by another candidate; remove one");
            }
        }
        // Runs on the compute pool, because texts may be long and Cedar's parser is slow.
        let compiling = self.pool.run(tenant_id.as_str(), move |turn| {
            let each = candidates.iter().enumerate().take_while(|_| turn.is_wanted());
            let added = each.filter_map(|(place, one)| compile(place, one, &known, &mut found));
            (added.collect::<Vec<_>>(), found)
        });
        let (added, found) = compiling.await?;
        ApiError::unless_clean(found)?;
        Ok(Arc::new(PolicyChange::new(added, without.into_iter().map(Into::into))))
    }

    /// Checks the candidates as if they were written.
    ///
    /// # Errors
    /// Too many checks are running already, or the store can't be read.
    pub(super) async fn findings(
        &self,
        caller: &Caller,
        tenant_id: &TenantId,
        candidates: &[CandidatePolicy],
    ) -> Result<Findings, ApiError> {
        let mut all = Findings::default();
        if candidates.is_empty() {
            return Ok(all);
        }
        let (store, pool, tenant_id) = (&self.store, &self.pool, tenant_id.as_str());
        let check = PolicyCheck::of(store, pool, caller.scope(), tenant_id).await?;
        // Warnings suggest the names of other records, which an agent's key may not read.
        let is_key = matches!(caller.kind, CallerKind::Key { .. });
        for (place, candidate) in candidates.iter().enumerate() {
            let named = |found: PolicyProblem| PolicyProblem {
                field: format!("candidate_policies[{place}].{}", found.field),
                ..found
            };
            let cedar = candidate.cedar.as_str();
            let (found, of_targets) = if is_key {
                (check.errors(cedar).await?, Vec::new())
            } else {
                check.findings(Some(cedar), &candidate.applies_to).await?
            };
            let (errors, warnings): (Vec<_>, Vec<_>) =
                found.iter().partition(|one| one.severity == Severity::Error);
            all.problems.extend(errors.into_iter().map(problem_of).map(named));
            let warnings = warnings.into_iter().map(problem_of).chain(of_targets);
            all.warnings.extend(warnings.map(named));
        }
        Ok(all)
    }

    async fn known(
        &self,
        caller: &Caller,
        tenant_id: &TenantId,
        candidates: &[CandidatePolicy],
        without: &[String],
    ) -> Result<Known, ApiError> {
        let replaced = candidates.iter().filter_map(|one| one.policy_id.clone());
        let ids: Vec<String> = replaced.chain(without.iter().cloned()).collect();
        if ids.is_empty() {
            return Ok(Known::default());
        }
        let tenant = tenant_id.clone();
        let scope = caller.scope();
        let found = self.store.read_tx(&scope, async move |db| {
            let own = policies::table.filter(policies::tenant_id.eq(tenant.as_str()));
            let own = own.filter(policies::id.eq_any(&ids)).select(policies::id);
            let known: Vec<String> = own.load(db).await?;
            let rows: Vec<(String, String)> = applies_to::table
                .filter(applies_to::tenant_id.eq(tenant.as_str()))
                .filter(applies_to::policy_id.eq_any(&ids))
                .order(applies_to::id)
                .select((applies_to::policy_id, applies_to::target_class))
                .load(db)
                .await?;
            Ok::<_, store::Error>((known, rows))
        });
        let (ids, found) = found.await?;
        let mut rows: HashMap<String, Vec<String>> = HashMap::new();
        for (policy_id, target) in found {
            rows.entry(policy_id).or_default().push(target);
        }
        Ok(Known { ids: ids.into_iter().collect(), rows })
    }
}

fn unknown(id: &str) -> String {
    format!("`{id}` is not a policy of this tenant; list them with GET /policies")
}

fn compile(
    place: usize,
    candidate: &CandidatePolicy,
    known: &Known,
    found: &mut Violations,
) -> Option<Arc<CompiledPolicy>> {
    let member = |name: &str| format!("candidate_policies[{place}].{name}");
    let mut applies_to = Vec::new();
    for (row, text) in candidate.applies_to.iter().enumerate() {
        match text.parse::<Target>() {
            Ok(target) => {
                if let Some(fault) = target.fault() {
                    found.add(&member(&format!("applies_to[{row}]")), fault);
                }
                applies_to.push(target);
            }
            Err(problem) => found.add(&member(&format!("applies_to[{row}]")), problem.to_string()),
        }
    }
    let id = candidate.policy_id.clone();
    if let (true, Some(id)) = (candidate.applies_to.is_empty(), &id) {
        let rows = known.rows.get(id).map_or(&[][..], Vec::as_slice);
        let read: Vec<Target> = rows.iter().filter_map(|target| target.parse().ok()).collect();
        // As for active policies, an unreadable row makes the policy apply to everything.
        applies_to = if read.len() == rows.len() { read } else { Vec::new() };
    }
    let reference = PolicyReference {
        id: id.unwrap_or_else(|| format!("candidate:{place}")).into(),
        version: 0,
        sha256: hex::encode(sha256(candidate.cedar.as_bytes())),
        applies_to,
        effective: Window::default(),
    };
    match CompiledPolicy::check(reference, &candidate.cedar) {
        Ok(compiled) => Some(Arc::new(compiled)),
        Err(problem) => {
            found.add(&member("cedar"), problem.to_string());
            None
        }
    }
}

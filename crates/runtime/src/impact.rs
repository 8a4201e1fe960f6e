//! A dry run of a policy change over past decisions.
//!
//! Each decision is evaluated again on its recorded facts, with and without the change. If the
//! result without the change differs from the record, the decision is not comparable and is counted
//! separately. The result with the change is compared with the record. Alternatively, the change is
//! applied to the policies that are active now, and the result is compared with the result of these
//! policies.

use std::sync::Arc;

use authority_ids::TenantId;
use authority_model::{
    proto::runtime::{ChangedDecision, ImpactPoliciesRequest, ImpactPoliciesResponse},
    schema::decisions,
    wire::Time,
};
use diesel::prelude::*;

use super::{
    answer,
    candidates::CandidatePolicies,
    decision_filter::{first_id, limit},
    sealed_facts::SealedFacts,
};
use authority_api::{error::ApiError, identity::Caller};
use authority_decision::{Draft, Facts, PolicyChange, Request, decide, moment::Window};
use authority_evidence::{self as evidence, sealed::Outcome};
use authority_graph::{Graph, time_zones};
use authority_ledger::stored_decisions::{DecisionRow, Stored, complete};
use authority_process::{clock::Clock, compute::ComputePool};
use authority_store::{self as store, RunQueryDsl, Store};

/// The value of `compared_with` for the policies that are active now.
const PRESENT: &str = "present";
const LAST: i32 = 100;
/// The maximum number of decisions in memory.
const PAGE: usize = 100;
/// The maximum number of changed decisions in the response.
const MOST_SHOWN: usize = 100;

/// Applies policy changes to past decisions, as dry runs.
pub(super) struct ImpactRun {
    graph: Arc<Graph>,
    store: Store,
    candidates: CandidatePolicies,
    pool: ComputePool,
    clock: Clock,
}

impl ImpactRun {
    pub(super) fn new(
        graph: &Arc<Graph>,
        store: &Store,
        candidates: CandidatePolicies,
        pool: ComputePool,
        clock: &Clock,
    ) -> Self {
        let (graph, store, clock) = (Arc::clone(graph), store.clone(), clock.clone());
        Self { graph, store, candidates, pool, clock }
    }

    pub(super) async fn run(
        &self,
        caller: &Caller,
        asked: ImpactPoliciesRequest,
    ) -> Result<ImpactPoliciesResponse, ApiError> {
        let tenant_id = self.requested_tenant(caller, asked.tenant_id)?;
        if asked.candidate_policies.is_empty() && asked.without_policies.is_empty() {
            return Err(ApiError::field(
                "candidate_policies",
                "is required, or `without_policies`",
            ));
        }
        let (candidates, without) = (asked.candidate_policies, asked.without_policies);
        let findings = self.candidates.findings(caller, &tenant_id, &candidates).await?;
        let policies = self.candidates.change(caller, &tenant_id, candidates, without).await?;
        let is_present = asked.compared_with.as_deref() == Some(PRESENT);
        let present = if is_present { Some(self.in_force(&tenant_id)?) } else { None };
        let mut run = RunState::new(policies, present);
        let mut left = usize::try_from(asked.last.unwrap_or(LAST)).unwrap_or_default();
        let mut before = None;
        while left > 0 {
            let size = left.min(PAGE);
            let page = self.page(caller, &tenant_id, asked.since, before, size).await?;
            left = if page.len() < size { 0 } else { left - size };
            before = page.last().map(|oldest| oldest.id.clone().into());
            run = self.judge_page(&tenant_id, run, page).await?;
        }
        let (problems, warnings) = (findings.problems, findings.warnings);
        Ok(ImpactPoliciesResponse { problems, warnings, ..run.report })
    }

    /// Returns the change that replaces the recorded policies by the policies that are active now.
    fn in_force(&self, tenant_id: &TenantId) -> Result<PolicyChange, ApiError> {
        self.graph.fresh()?;
        let now = self.clock.now();
        let handle = self.graph.tenant(tenant_id)?;
        let tenant = handle.as_ref().map(|handle| handle.read());
        let Some(all) = tenant.as_ref().and_then(|tenant| tenant.policies()) else {
            let problem =
                "cannot be `present` while a policy of the tenant cannot be read; send `recorded`";
            return Err(ApiError::field("compared_with", problem));
        };
        let in_force = all.iter().filter(|policy| policy.reference.effective.holds(now));
        let always = in_force.map(|policy| {
            Arc::new(policy.applied_to(policy.reference.applies_to.clone(), Window::default()))
        });
        Ok(PolicyChange::only(always.collect()))
    }

    /// Processes a page in turns, and yields to other work between them.
    async fn judge_page(
        &self,
        tenant_id: &TenantId,
        mut run: RunState,
        page: Vec<Stored>,
    ) -> Result<RunState, ApiError> {
        let mut page = page.into_iter();
        while page.len() > 0 {
            let judging = self.pool.run(tenant_id.as_str(), move |turn| {
                while turn.is_wanted() && !turn.is_over() {
                    let Some(decision) = page.next() else { break };
                    run.take(&decision);
                }
                (run, page)
            });
            (run, page) = judging.await?;
        }
        Ok(run)
    }

    /// Returns the tenant of a dry run. It is the caller's own or, for the owner, the named one.
    fn requested_tenant(
        &self,
        caller: &Caller,
        given: Option<String>,
    ) -> Result<TenantId, ApiError> {
        let refused = |problem: &str| Err(ApiError::field("tenant_id", problem));
        match (caller.tenant(), given.filter(|id| !id.is_empty())) {
            (Some(own), given) if given.as_deref().is_none_or(|id| own == id) => Ok(own.clone()),
            (Some(_), _) => refused("is not the caller's own tenant; leave it out"),
            (None, None) => refused("is required"),
            (None, Some(id)) => {
                self.graph.fresh()?;
                let unknown = || refused("must be the id or the slug of a tenant, such as `acme`");
                let Ok(id) = TenantId::parse(&id) else { return unknown() };
                let handle = self.graph.tenant(&id)?;
                let known = handle.is_some_and(|handle| handle.read().tenant().is_some());
                if known { Ok(id) } else { unknown() }
            }
        }
    }

    async fn page(
        &self,
        caller: &Caller,
        tenant_id: &TenantId,
        since: Option<Time>,
        before: Option<String>,
        size: usize,
    ) -> Result<Vec<Stored>, ApiError> {
        let tenant = tenant_id.clone();
        let scope = caller.scope();
        let found = self.store.read_tx(&scope, async move |db| {
            limit(db).await?;
            let mut query =
                decisions::table.filter(decisions::tenant_id.eq(tenant.as_str())).into_boxed();
            if let Some(since) = since {
                query = query.filter(decisions::id.ge(first_id(since)));
            }
            if let Some(before) = before {
                query = query.filter(decisions::id.lt(before));
            }
            let size = i64::try_from(size).unwrap_or_default();
            let query =
                query.order(decisions::id.desc()).limit(size).select(DecisionRow::as_select());
            let rows: Vec<DecisionRow> = query.load(db).await?;
            Ok::<_, store::Error>(complete(db, rows).await?)
        });
        Ok(found.await?)
    }
}

/// A dry run: its results so far, and its cache across pages.
struct RunState {
    policies: Arc<PolicyChange>,
    /// The policies that are active now, if the change is applied to them. `None` if it is applied
    /// to the policies of each record.
    present: Option<PolicyChange>,
    facts: SealedFacts,
    report: ImpactPoliciesResponse,
}

/// A decision's request, its outcome with the change, and the outcome to compare it with.
struct Judged {
    request: Request,
    before: Outcome,
    after: Outcome,
}

impl RunState {
    fn new(policies: Arc<PolicyChange>, present: Option<PolicyChange>) -> Self {
        let report = ImpactPoliciesResponse::default();
        Self { policies, present, facts: SealedFacts::default(), report }
    }

    fn take(&mut self, decision: &Stored) {
        self.report.considered += 1;
        let judged = match self.judge(decision) {
            Ok(judged) => judged,
            Err(error) => {
                tracing::debug!(
                    %error,
                    decision.id = decision.id.as_str(),
                    "skipped a decision in a dry run"
                );
                None
            }
        };
        let Some(Judged { request, before, after }) = judged else {
            self.report.unreadable += 1;
            return;
        };
        if before == after {
            return;
        }
        self.report.changed_total += 1;
        if self.report.changed.len() < MOST_SHOWN {
            let evaluated_at =
                decision.sealed.recorded().ok().map(|recorded| recorded.evaluated_at.into());
            self.report.changed.push(ChangedDecision {
                decision_id: decision.id.clone().into(),
                subject: request.subject.clone().into(),
                action: request.action.clone(),
                evaluated_at,
                before: Some(answer::outcome(&before)),
                after: Some(answer::outcome(&after)),
            });
        }
    }

    /// Returns the outcomes of a decision. `None` if its own facts do not lead to the recorded
    /// outcome.
    fn judge(&mut self, decision: &Stored) -> Result<Option<Judged>, evidence::Error> {
        let recorded = decision.sealed.recorded()?;
        let asked = Draft { explain: false, ..decision.sealed.request()?.into_draft() };
        let unreadable = || evidence::Error::Unreadable("a stored request");
        let request = Request::new(asked).map_err(|_| unreadable())?;
        let mut facts = self.facts.of(&decision.sealed)?;
        let outcome =
            |facts: &Facts| Outcome::from(&decide(&request, facts, recorded.evaluated_at));
        let mut before = outcome(&facts);
        if before != recorded.outcome {
            return Ok(None);
        }
        if facts.declined.is_some() || facts.open_requests.is_some() {
            // Declines and limits of pending requests concern single requests. They are ignored in
            // a comparison of policies.
            (facts.declined, facts.open_requests) = (None, None);
            before = outcome(&facts);
        }
        if let Some(present) = &self.present {
            facts.gathered = present.applied(&request, &facts.gathered);
            time_zones::complete(&request.action, &mut facts, recorded.evaluated_at);
            before = outcome(&facts);
        }
        facts.gathered = self.policies.applied(&request, &facts.gathered);
        time_zones::complete(&request.action, &mut facts, recorded.evaluated_at);
        let after = outcome(&facts);
        Ok(Some(Judged { request, before, after }))
    }
}

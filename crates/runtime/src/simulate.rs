//! Simulations of a stored or a new request, with other policies or other facts.
//!
//! The core decides as usual, on facts that are only read. The simulation writes no data: counters
//! are not incremented, and a cited approval is not used.

use std::sync::Arc;

use authority_model::{
    proto::runtime::{SimulateDecisionRequest, SimulateDecisionResponse},
    wire::Time,
};
use chrono::{DateTime, Utc};

use super::{
    answer,
    candidates::CandidatePolicies,
    changes::{Changes, below},
    cited::cited,
    explainer::{Denied, Explainer},
    facts::FactSource,
    find, normalize,
};
use authority_api::{
    error::{ApiError, ErrorCode},
    identity::{Caller, CallerKind},
};
use authority_decision::{
    Decision, Facts, Reason, Request, counters_needed, decide, decide_and_observe, facts::Declined,
    reason::Stage,
};
use authority_evidence::{
    self as evidence,
    sealed::{Outcome, Recorded},
};
use authority_graph::{TenantHandle, time_zones};
use authority_ids::DecisionId;
use authority_ledger::stored_decisions;
use authority_process::{clock::Clock, compute::ComputePool};
use authority_store as store;

/// The request to simulate.
struct Question {
    request: Request,
    stored: Option<Stored>,
}

/// The recorded decision that is simulated.
struct Stored {
    recorded: Recorded,
    /// The facts on which the decision was made, if requested.
    facts: Option<Facts>,
}

/// The basis of a simulation.
enum Ground {
    /// The tenant's current authority.
    Present(Option<TenantHandle>),
    /// The recorded facts of a decision.
    Recorded(Box<Facts>),
}

/// Runs simulations.
pub(super) struct Simulator {
    pub(super) clock: Clock,
    pub(super) facts: FactSource,
    pub(super) candidates: CandidatePolicies,
    pub(super) explainer: Explainer,
    pub(super) pool: ComputePool,
}

impl Simulator {
    pub(super) async fn simulate(
        &self,
        caller: &Caller,
        asked: SimulateDecisionRequest,
    ) -> Result<SimulateDecisionResponse, ApiError> {
        let recorded = asked.against.as_deref() == Some("recorded");
        let Question { request, stored } =
            self.question(caller, asked.decision_id, asked.request, recorded).await?;
        let changes = Changes::of(asked.changes.unwrap_or_default(), &request, recorded)?;
        let (candidates, without) = (asked.candidate_policies, asked.without_policies);
        let findings = self.candidates.findings(caller, request.tenant(), &candidates).await?;
        let policies =
            self.candidates.change(caller, request.tenant(), candidates, without).await?;
        let (ground, at) = self.ground(&request, stored.as_ref(), asked.at).await?;
        let present = match &stored {
            Some(_) => None,
            None => Some(self.facts_for(&ground, &request, at).await?),
        };
        let facts = self.facts_for(&ground, &changes.request, at).await?;
        let gathered = policies.applied(&changes.request, &facts.gathered);
        let is_cited = changes.request.approval_id == request.approval_id;
        let cited_approval = cited(&request, &facts, at).filter(|_| is_cited);
        let mut facts = changes.approve(&request, Facts { gathered, ..facts }, at);
        // A candidate policy may read the local time.
        time_zones::complete(&changes.request.action, &mut facts, at);
        if let Ground::Present(handle) = &ground {
            facts.declined = self.declined(handle.as_ref(), &changes.request, at).await?;
        }
        let (changed, tenant_id) = (changes.request.clone(), request.tenant().clone());
        // An agent must not learn which policies may come.
        let is_person = !matches!(caller.kind, CallerKind::Key { .. });
        // Runs on the compute pool, because the author of the candidates determines their cost.
        let judging = self.pool.run(tenant_id.as_str(), move |_| {
            let before = present.map(|present| Outcome::from(&decide(&request, &present, at)));
            let judge = if is_person { decide_and_observe } else { decide };
            let verdict = judge(&changed, &facts, at);
            if verdict.reason_code != Reason::ApprovalDeclined {
                facts.declined = None;
            }
            (before, verdict, facts)
        });
        let (before, verdict, facts) = judging.await?;
        let Some(before) = before.or_else(|| stored.map(|stored| stored.recorded.outcome)) else {
            return Err(ApiError::plain(ErrorCode::Internal));
        };
        let mut answer = answer::simulated(&verdict, &before, at);
        answer.cited_approval = cited_approval;
        (answer.problems, answer.warnings) = (findings.problems, findings.warnings);
        answer.authority_revision = u32::try_from(facts.gathered.revision).unwrap_or(u32::MAX);
        // A declined request gets no suggestion, because a suggestion might show how to bypass the
        // people who declined.
        if verdict.decision == Decision::Deny && verdict.reason_code.stage() != Stage::Decision {
            let handle = match ground {
                Ground::Present(handle) => handle,
                Ground::Recorded(_) => None,
            };
            let denied = Denied { request: changes.request, facts, at, handle, policies };
            let smallest = self.explainer.smallest_change(denied).await;
            answer.smallest_change = smallest.as_ref().and_then(answer::smallest);
        }
        Ok(answer)
    }

    /// Returns the decline that is valid for a request that would be held.
    async fn declined(
        &self,
        handle: Option<&TenantHandle>,
        request: &Request,
        at: DateTime<Utc>,
    ) -> Result<Option<Declined>, ApiError> {
        let (_, recording) = self.facts.gather(handle, request)?;
        Ok(self.facts.asked_before(request, None, recording, at).await?.declined)
    }

    async fn question(
        &self,
        caller: &Caller,
        decision_id: Option<String>,
        request: Option<authority_model::proto::runtime::DecisionRequest>,
        recorded: bool,
    ) -> Result<Question, ApiError> {
        match (decision_id, request) {
            (Some(id), None) => {
                self.stored_question(caller, find::decision_id(&id)?, recorded).await
            }
            (None, Some(_)) if recorded => Err(ApiError::field(
                "against",
                "`recorded` needs `decision_id`: a new request has no recorded facts",
            )),
            (None, Some(request)) => {
                self.facts.store.confirm(&caller.scope()).await?;
                let request = normalize::normalize(caller, request);
                let request = request.map_err(|refusal| below("request", refusal))?;
                Ok(Question { request, stored: None })
            }
            (None, None) => Err(ApiError::field("decision_id", "is required, or `request`")),
            (Some(_), Some(_)) => Err(ApiError::field(
                "request",
                "cannot be combined with `decision_id`; give one of them",
            )),
        }
    }

    async fn stored_question(
        &self,
        caller: &Caller,
        id: DecisionId,
        recorded: bool,
    ) -> Result<Question, ApiError> {
        let tenant = caller.tenant().cloned();
        let scope = caller.scope();
        let missing = ApiError::not_found("decision", id.as_str());
        let found = self.facts.store.read_tx(&scope, async move |db| {
            Ok::<_, store::Error>(stored_decisions::one(db, tenant.as_ref(), &id).await?)
        });
        let Some(stored) = found.await? else { return Err(missing) };
        let sealed = &stored.sealed;
        let unreadable = |error: evidence::Error| {
            tracing::warn!(
                %error,
                decision.id = stored.id.as_str(),
                "failed to read back a stored decision"
            );
            let problem = "cannot be read back completely; send its request as `request`";
            ApiError::field("decision_id", problem)
        };
        let request = sealed.request().map_err(unreadable)?;
        // A key bound to principals must not get information about the requests of others.
        if !caller.acts_for(&request.subject) {
            return Err(missing);
        }
        let record = sealed.recorded().map_err(unreadable)?;
        let facts = recorded.then(|| sealed.facts()).transpose().map_err(unreadable)?;
        Ok(Question { request, stored: Some(Stored { recorded: record, facts }) })
    }

    /// Returns the basis and time of the simulation.
    async fn ground(
        &self,
        request: &Request,
        stored: Option<&Stored>,
        at: Option<Time>,
    ) -> Result<(Ground, DateTime<Utc>), ApiError> {
        let at = at.and_then(Time::moment);
        let recorded = stored.and_then(|stored| Some((stored, stored.facts.clone()?)));
        let Some((stored, mut facts)) = recorded else {
            // The `at_least_revision` of a stored request is ignored. It applied when the decision
            // was made.
            let wanted = request.at_least_revision.filter(|_| stored.is_none());
            let handle = self.facts.tenant_at(request, wanted.unwrap_or_default());
            return Ok((Ground::Present(handle.await?), at.unwrap_or_else(|| self.clock.now())));
        };
        let recorded = &stored.recorded;
        Arc::make_mut(&mut facts.gathered).revision = recorded.authority_revision.into();
        if let Some(at) = at {
            facts.zones.clear();
            // Only the counters of the decision's own time windows are recorded. Counters of other
            // windows start at zero.
            for key in counters_needed(&facts.gathered, at) {
                facts.spent.0.entry(key).or_default();
            }
        }
        Ok((Ground::Recorded(Box::new(facts)), at.unwrap_or(recorded.evaluated_at)))
    }

    async fn facts_for(
        &self,
        ground: &Ground,
        request: &Request,
        at: DateTime<Utc>,
    ) -> Result<Facts, ApiError> {
        match ground {
            Ground::Recorded(facts) => Ok(Facts::clone(facts)),
            Ground::Present(handle) => {
                let (mut facts, _) = self.facts.gather(handle.as_ref(), request)?;
                let counting = self.facts.counting(None, handle.as_ref(), request, &facts.gathered);
                if let Some(counting) = &counting {
                    facts = counting.in_facts(facts, request)?;
                }
                let mut seen =
                    self.facts.load_counters_and_approval(request, &facts.gathered, at).await?;
                if seen.cited.is_some() {
                    self.facts.decide_on(request, &mut seen, counting.as_ref(), at);
                }
                Ok(seen.facts)
            }
        }
    }
}

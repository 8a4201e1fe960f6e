//! The permissions that agents had received before a stop and could still use, and the outcomes
//! that they reported.

use authority_model::{
    proto::runtime::{
        DecisionSummary, GetDecisionRequest, GetDecisionResponse, ListDecisionsRequest,
        ListDecisionsResponse,
    },
    wire::Time,
};
use chrono::TimeDelta;
use serde_json::Value;
use tonic::Status;

use super::{blast::covers, known::MOST, scope::StopScope};
use crate::{
    calls::some_at_once,
    names::{Named, Names},
    rpc,
    show::Moment,
    view::View,
};

/// The maximum number of an agent's decisions to list, and to read in full, newest first.
const READ: i32 = 100;
const LOOKED_AT: usize = 10;
/// The maximum duration of a permit.
const LONGEST: TimeDelta = TimeDelta::hours(1);

/// An agent with permits that were open when the stop came.
pub(super) struct Permitted {
    pub(super) named: Named,
    pub(super) permits: Vec<Permit>,
    /// Whether the agent may have older permits that were not read.
    pub(super) cut: bool,
}

pub(super) struct Permit {
    pub(super) id: String,
    pub(super) action: String,
    pub(super) until: Moment,
    /// The delegations that gave the permit's authority.
    pub(super) chain: Vec<String>,
    /// The reported outcome.
    pub(super) outcome: Option<String>,
}

impl Permitted {
    /// The state's CSS class, and its words. "All reported" also requires that all permits were read.
    pub(super) fn state(&self) -> (&'static str, &'static str) {
        if self.permits.iter().any(|permit| permit.outcome.is_none()) {
            ("pending", "permit open, no report")
        } else if self.cut {
            ("pending", "not all looked at")
        } else {
            ("approved", "all reported")
        }
    }
}

/// The agents that had open permits, or may have had.
pub(super) async fn of(view: &View, scope: &StopScope) -> Result<Vec<Permitted>, Status> {
    let names = Names::to_call(view, scope.agents.clone()).await;
    let mut found = Vec::new();
    for id in scope.agents.iter().take(MOST) {
        let (permits, cut) = open(view, id, scope).await?;
        if cut || !permits.is_empty() {
            found.push(Permitted { named: names.called(id.clone()), permits, cut });
        }
    }
    Ok(found)
}

/// The permits of an agent that were open at the time of the stop, and whether the agent may have
/// older permits that were not read.
pub(super) async fn open(
    view: &View,
    id: &str,
    scope: &StopScope,
) -> Result<(Vec<Permit>, bool), Status> {
    let request = ListDecisionsRequest {
        tenant_id: Some(scope.tenant_id.clone()),
        subject: Some(id.to_owned()),
        decision: Some("allow".to_owned()),
        since: Some((scope.since - LONGEST).into()),
        until: Some(scope.since.into()),
        limit: Some(READ),
        ..ListDecisionsRequest::default()
    };
    let listed: ListDecisionsResponse = view.calls.call(rpc::LIST_DECISIONS, &request).await?;
    let allowed = listed.decisions.into_iter().filter(|decision| covers(&scope.actions, decision));
    let mut allowed: Vec<_> = allowed.collect();
    let cut = listed.next_page_token.is_some() || allowed.len() > LOOKED_AT;
    allowed.truncate(LOOKED_AT);
    let read = some_at_once(allowed.into_iter().map(|decision| permit(view, decision, scope)));
    let read: Result<Vec<_>, _> = read.await.into_iter().collect();
    Ok((read?.into_iter().flatten().collect(), cut))
}

/// The permit of a decision, if it was open when the stop came.
async fn permit(
    view: &View,
    decision: DecisionSummary,
    scope: &StopScope,
) -> Result<Option<Permit>, Status> {
    let request = GetDecisionRequest { decision_id: decision.decision_id.clone() };
    let read: GetDecisionResponse = view.calls.call(rpc::GET_DECISION, &request).await?;
    let until = read.valid_until.and_then(Time::moment).filter(|until| *until > scope.since);
    let used = read.record.as_ref().map(|record| &record.0["verdict"]["authority"]["chain"]);
    let chain = used.and_then(Value::as_array).into_iter().flatten();
    let chain = chain.filter_map(|id| id.as_str().map(str::to_owned)).collect();
    Ok(until.map(|until| Permit {
        id: decision.decision_id,
        action: decision.action,
        until: Moment::of(until, view.now),
        chain,
        outcome: read.report.map(|report| report.outcome),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit(outcome: Option<&str>) -> Permit {
        Permit {
            id: "svc:decision:1".to_owned(),
            action: "payment.execute".to_owned(),
            until: Moment::of(chrono::DateTime::UNIX_EPOCH, chrono::DateTime::UNIX_EPOCH),
            chain: Vec::new(),
            outcome: outcome.map(str::to_owned),
        }
    }

    #[test]
    fn all_is_reported_only_where_all_was_looked_at() {
        let state = |permits, cut| {
            let named = Named { name: "bot".to_owned(), id: "svc:agent:acme:bot".to_owned() };
            Permitted { named, permits, cut }.state()
        };
        let done = || permit(Some("succeeded"));
        assert_eq!(state(vec![done()], false), ("approved", "all reported"));
        assert_eq!(state(vec![done()], true), ("pending", "not all looked at"));
        assert_eq!(state(vec![], true), ("pending", "not all looked at"));
        for cut in [false, true] {
            let open = vec![done(), permit(None)];
            assert_eq!(state(open, cut), ("pending", "permit open, no report"));
        }
    }
}

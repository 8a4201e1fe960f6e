//! Who knows of a stop: an agent that asked and was refused, or that reported what became of what it was
//! permitted before.

use authority_model::{
    proto::runtime::{
        DecisionSummary, GetDecisionRequest, GetDecisionResponse, ListDecisionsRequest,
        ListDecisionsResponse,
    },
    wire::Time,
};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use tonic::Status;

use super::blast::covers;
use crate::{
    names::{Named, Names},
    rpc,
    show::Moment,
    view::View,
};

/// Agents that are looked at.
const MOST: usize = 12;
/// Refusals and permits that are read of each.
const REFUSALS: i32 = 100;
const PERMITS: i32 = 10;
/// The longest that a permit can last.
const LONGEST: TimeDelta = TimeDelta::hours(1);

/// An agent that a stop concerns, and what is known of it since.
pub(super) struct Agent {
    pub(super) named: Named,
    /// How often it was refused since, in words, and when last.
    pub(super) refused: Option<(String, Moment)>,
    /// What it was permitted before and could still do when the stop came.
    pub(super) permits: Vec<Permit>,
}

pub(super) struct Permit {
    pub(super) id: String,
    pub(super) action: String,
    pub(super) until: Moment,
    /// What it reported.
    pub(super) outcome: Option<String>,
}

impl Agent {
    /// In a word: whether it has asked and was told, has reported all, or is silent.
    pub(super) fn state(&self) -> (&'static str, &'static str) {
        let is_open = |permit: &Permit| permit.outcome.is_none();
        match (&self.refused, self.permits.iter().any(is_open)) {
            (_, true) => ("pending", "not reported"),
            (Some(_), false) => ("approved", "was told"),
            (None, false) if !self.permits.is_empty() => ("approved", "has reported"),
            (None, false) => ("", "has not asked since"),
        }
    }
}

/// What a stop concerns, and since when.
pub(super) struct Concern<'a> {
    pub(super) agents: Vec<String>,
    /// Patterns; none is all.
    pub(super) actions: &'a [String],
    pub(super) since: DateTime<Utc>,
    /// Null while it stands.
    pub(super) until: Option<DateTime<Utc>>,
}

/// What is known of the agents, and how many more there are.
pub(super) async fn of(
    view: &View,
    concern: &Concern<'_>,
) -> Result<Option<(Vec<Agent>, usize)>, Status> {
    if !view.may(rpc::LIST_DECISIONS) {
        return Ok(None);
    }
    let (agents, more) = (&concern.agents, concern.agents.len().saturating_sub(MOST));
    let names = Names::of(view, agents.clone()).await;
    let known = agents.iter().take(MOST).map(|id| async {
        let refused = refused(view, id, concern).await?;
        let permits = permits(view, id, concern).await?;
        Ok::<_, Status>(Agent { named: names.called(id.clone()), refused, permits })
    });
    let known: Result<Vec<_>, _> = join_all(known).await.into_iter().collect();
    Ok(Some((known?, more)))
}

async fn list(view: &View, request: ListDecisionsRequest) -> Result<Vec<DecisionSummary>, Status> {
    let listed: ListDecisionsResponse = view.calls.call(rpc::LIST_DECISIONS, &request).await?;
    Ok(listed.decisions)
}

async fn refused(
    view: &View,
    id: &str,
    concern: &Concern<'_>,
) -> Result<Option<(String, Moment)>, Status> {
    let request = ListDecisionsRequest {
        subject: Some(id.to_owned()),
        decision: Some("deny".to_owned()),
        since: Some(concern.since.into()),
        until: concern.until.map(Into::into),
        limit: Some(REFUSALS),
        ..ListDecisionsRequest::default()
    };
    let denied = list(view, request).await?;
    let by_stop = denied.iter().filter(|decision| {
        let is_stop = ["actor_stopped", "capability_quarantined"];
        is_stop.contains(&decision.reason_code.as_str()) && covers(concern.actions, decision)
    });
    let count = match by_stop.clone().count() {
        1 => "once".to_owned(),
        count if denied.len() == usize::try_from(REFUSALS).unwrap_or(0) => {
            format!("{count} times or more")
        }
        count => format!("{count} times"),
    };
    let last = by_stop.map(|decision| decision.evaluated_at).next();
    Ok(last.and_then(|at| Some((count, Moment::of_time(at, view.now)?))))
}

/// What the agent was permitted before and could still do then.
async fn permits(view: &View, id: &str, concern: &Concern<'_>) -> Result<Vec<Permit>, Status> {
    let request = ListDecisionsRequest {
        subject: Some(id.to_owned()),
        decision: Some("allow".to_owned()),
        since: Some((concern.since - LONGEST).into()),
        until: Some(concern.since.into()),
        limit: Some(PERMITS),
        ..ListDecisionsRequest::default()
    };
    let allowed = list(view, request).await?;
    let allowed = allowed.into_iter().filter(|decision| covers(concern.actions, decision));
    let read = allowed.map(|decision| async move {
        let request = GetDecisionRequest { decision_id: decision.decision_id.clone() };
        let read = view.calls.call::<_, GetDecisionResponse>(rpc::GET_DECISION, &request).await;
        read.map(|read| (decision, read))
    });
    let read: Result<Vec<_>, _> = join_all(read).await.into_iter().collect();
    let open = read?.into_iter().filter_map(|(decision, read)| {
        let until = read.valid_until.and_then(Time::moment);
        let until = until.filter(|until| *until > concern.since)?;
        Some(Permit {
            id: decision.decision_id,
            action: decision.action,
            until: Moment::of(until, view.now),
            outcome: read.report.map(|report| report.outcome),
        })
    });
    Ok(open.collect())
}

//! The consequences of stopping a principal, a delegation or an action.

use std::collections::BTreeSet;

use authority_decision::Pattern;
use authority_model::{
    proto::{
        delegation::{
            BlastRadius, Delegation, GetBlastRadiusRequest, GetPrincipalBlastRadiusRequest,
        },
        runtime::{DecisionSummary, ListDecisionsRequest, ListDecisionsResponse},
    },
    wire::Time,
};
use chrono::{DateTime, TimeDelta, Utc};
use tonic::Status;

use super::target::Target;
use crate::{
    names::{Named, Names},
    rpc,
    show::Moment,
    view::View,
};

/// The maximum number of delegations, and of agents, on a page.
const LISTED: usize = 100;
/// The number of decisions that are read to find the agents that used an action.
const RECENT: i32 = 500;

/// The consequences of a stop.
#[derive(Default)]
pub(super) struct Blast {
    /// Delegations that have not ended.
    pub(super) delegations: Vec<EndedDelegation>,
    /// The number of all such delegations.
    pub(super) delegation_total: usize,
    /// The agents that act under these delegations.
    pub(super) agents: Vec<Named>,
    pub(super) agent_total: usize,
    pub(super) last_used: Option<Moment>,
    /// The agents of the last day's decisions on the stopped actions. `None` if no delegation ends
    /// and the role may not read decisions.
    pub(super) recent: Option<Recent>,
    /// The affected principals that were read, with the stopped principal first.
    pub(super) concerned: Vec<String>,
}

pub(super) struct EndedDelegation {
    pub(super) id: String,
    pub(super) from: Named,
    pub(super) to: Named,
    pub(super) actions: String,
    pub(super) state: String,
}

pub(super) struct Recent {
    pub(super) who: Vec<Named>,
    /// Whether there are older decisions that were not read.
    pub(super) cut: bool,
}

impl Blast {
    pub(super) async fn of(view: &View, target: &Target) -> Result<Self, Status> {
        let radius = match (&target.delegation, &target.subject) {
            (Some(delegation), _) => of_delegation(view, &delegation.id).await?,
            (None, Some(subject)) => of_principal(view, &subject.id).await?,
            (None, None) => BlastRadius::default(),
        };
        let subject = target.subject.as_ref().map(|subject| subject.id.as_str());
        let used = if radius.delegations.is_empty() {
            let since = view.now - TimeDelta::days(1);
            asked(view, subject, &target.tenant_id, &target.actions, since).await?
        } else {
            Some(Requesters::default())
        };
        let is_itself = |id: &&String| Some(id.as_str()) == subject;
        let concerned = concerned(target, &radius, used.as_ref());
        let itself = radius.agents.iter().filter(is_itself).count();
        let others = radius.agents.iter().filter(|id| !is_itself(id)).take(LISTED);
        let listed = || radius.delegations.iter().take(LISTED);
        let parties = listed().flat_map(|one| [Some(&one.delegate_id), one.delegator_id.as_ref()]);
        let recent = used.iter().flat_map(|used| &used.who);
        let ids = parties.flatten().chain(others.clone()).chain(recent).cloned().collect();
        let names = Names::to_call(view, ids).await;
        Ok(Self {
            agent_total: total(radius.agent_total).saturating_sub(itself),
            delegation_total: total(radius.delegation_total),
            last_used: Moment::of_time(radius.last_used, view.now),
            delegations: listed().map(|one| ended(one, &names)).collect(),
            agents: others.map(|id| names.called(id.as_str())).collect(),
            concerned,
            recent: used.map(|used| Recent {
                who: used.who.into_iter().map(|id| names.called(id)).collect(),
                cut: used.cut,
            }),
        })
    }
}

fn concerned(target: &Target, radius: &BlastRadius, used: Option<&Requesters>) -> Vec<String> {
    let subject = target.subject.as_ref().map(|subject| &subject.id);
    let mut concerned = Vec::from_iter(subject.cloned());
    // With a principal and a delegation, only the agents affected by both are concerned.
    let others = radius.agents.iter().filter(|id| Some(*id) != subject);
    let others = others.filter(|_| subject.is_none() || target.delegation.is_none());
    concerned.extend(others.chain(used.iter().flat_map(|used| &used.who)).cloned());
    concerned.dedup();
    concerned
}

fn total(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn ended(delegation: &Delegation, names: &Names) -> EndedDelegation {
    EndedDelegation {
        id: delegation.id.clone(),
        from: names.called(delegation.delegator_id.clone().unwrap_or_default()),
        to: names.called(delegation.delegate_id.clone()),
        actions: delegation.actions.join(", "),
        state: delegation.state.clone(),
    }
}

/// The first delegations and agents that depend on a principal, and the totals. The agents don't
/// include the principal itself.
pub(super) async fn of_principal(view: &View, id: &str) -> Result<BlastRadius, Status> {
    let limit = i32::try_from(LISTED).ok();
    let request = GetPrincipalBlastRadiusRequest { id: id.to_owned(), limit };
    view.calls.call(rpc::GET_PRINCIPAL_BLAST_RADIUS, &request).await
}

/// All consequences for a delegation, without the delegations that have already ended.
pub(super) async fn of_delegation(view: &View, id: &str) -> Result<BlastRadius, Status> {
    let request = GetBlastRadiusRequest { id: id.to_owned() };
    let mut radius: BlastRadius = view.calls.call(rpc::GET_BLAST_RADIUS, &request).await?;
    let is_over = |end: Time| end.moment().is_some_and(|end| end <= view.now);
    radius.delegations.retain(|one| one.state != "revoked" && !one.expires_at.is_some_and(is_over));
    radius.delegation_total = i32::try_from(radius.delegations.len()).unwrap_or(i32::MAX);
    Ok(radius)
}

/// The agents that requested some actions.
#[derive(Default)]
pub(super) struct Requesters {
    pub(super) who: BTreeSet<String>,
    /// Whether there are older decisions that were not read.
    pub(super) cut: bool,
}

/// The agents that requested the actions since a time. `None` if the caller may not read decisions.
pub(super) async fn asked(
    view: &View,
    subject: Option<&str>,
    tenant_id: &str,
    actions: &[String],
    since: DateTime<Utc>,
) -> Result<Option<Requesters>, Status> {
    if !view.may(rpc::LIST_DECISIONS) {
        return Ok(None);
    }
    // The API filters by one action. A pattern is matched here.
    let action = match actions {
        [action] if !action.contains('*') => Some(action.clone()),
        _ => None,
    };
    let request = ListDecisionsRequest {
        tenant_id: Some(tenant_id.to_owned()),
        subject: subject.map(str::to_owned),
        action,
        since: Some(since.into()),
        limit: Some(RECENT),
        ..ListDecisionsRequest::default()
    };
    let listed: ListDecisionsResponse = view.calls.call(rpc::LIST_DECISIONS, &request).await?;
    let cut = listed.next_page_token.is_some();
    let on = listed.decisions.into_iter().filter(|decision| covers(actions, decision));
    Ok(Some(Requesters { who: on.map(|decision| decision.subject).collect(), cut }))
}

/// Whether the patterns cover a decision's action. An empty list covers every action.
pub(super) fn covers(patterns: &[String], decision: &DecisionSummary) -> bool {
    let covered = |text: &String| {
        text.parse::<Pattern>().is_ok_and(|pattern| pattern.covers(&decision.action))
    };
    patterns.is_empty() || patterns.iter().any(covered)
}

//! What ends with a principal, a delegation or an action.

use std::collections::{BTreeMap, BTreeSet};

use authority_decision::Pattern;
use authority_model::{
    proto::{
        delegation::{
            BlastRadius, Delegation, GetBlastRadiusRequest, ListDelegationsRequest,
            ListDelegationsResponse,
        },
        runtime::{DecisionSummary, ListDecisionsRequest, ListDecisionsResponse},
    },
    wire::Time,
};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::try_join_all;
use tonic::Status;

use super::target::Target;
use crate::{
    names::{Named, Names},
    rpc,
    show::Moment,
    view::View,
};

/// Delegations of a principal that are read on each side.
const MOST: i32 = 100;
/// Decisions that are read to say who used an action.
const RECENT: i32 = 500;

/// What ends.
pub(super) struct Blast {
    /// Delegations in force.
    pub(super) delegations: Vec<Ended>,
    /// Who acts under them.
    pub(super) agents: Vec<Named>,
    pub(super) last_used: Option<Moment>,
    /// Who was decided for in the last day, on what is stopped.
    pub(super) recent: Vec<Named>,
    /// Whether there is more than was read.
    pub(super) more: bool,
}

pub(super) struct Ended {
    pub(super) id: String,
    pub(super) from: Named,
    pub(super) to: Named,
    pub(super) actions: String,
}

/// The same by its ids.
#[derive(Default)]
struct Found {
    delegations: BTreeMap<String, Delegation>,
    agents: BTreeSet<String>,
    last_used: Option<DateTime<Utc>>,
    more: bool,
}

impl Blast {
    pub(super) async fn of(view: &View, target: &Target) -> Result<Self, Status> {
        let mut found = Found::default();
        let subject = target.subject.as_ref().map(|subject| subject.id.as_str());
        if let Some(delegation) = &target.delegation {
            found.add(&radius(view, &delegation.id).await?);
        } else if let Some(subject) = subject {
            found.add_all_of(view, subject).await?;
        }
        let since = view.now - TimeDelta::days(1);
        let recent = if found.delegations.is_empty() {
            asked(view, subject, &target.tenant_id, &target.actions, since).await?
        } else {
            BTreeSet::new()
        };
        let (delegations, agents) = (found.delegations, found.agents);
        let ends = delegations.values().filter(|delegation| delegation.state == "active");
        let mut ids: Vec<String> = agents.iter().chain(&recent).cloned().collect();
        for delegation in ends.clone() {
            ids.push(delegation.delegate_id.clone());
            ids.extend(delegation.delegator_id.clone());
        }
        let names = Names::of(view, ids).await;
        let ended = ends.map(|delegation| Ended {
            id: delegation.id.clone(),
            from: names.called(delegation.delegator_id.clone().unwrap_or_default()),
            to: names.called(delegation.delegate_id.clone()),
            actions: delegation.actions.join(", "),
        });
        let others = agents.into_iter().filter(|id| Some(id.as_str()) != subject);
        Ok(Self {
            delegations: ended.collect(),
            agents: others.map(|id| names.called(id)).collect(),
            last_used: found.last_used.map(|at| Moment::of(at, view.now)),
            recent: recent.into_iter().map(|id| names.called(id)).collect(),
            more: found.more,
        })
    }
}

impl Found {
    /// What a principal holds or gave, and all below it.
    async fn add_all_of(&mut self, view: &View, subject: &str) -> Result<(), Status> {
        let of = |delegate_id, delegator_id| ListDelegationsRequest {
            delegate_id,
            delegator_id,
            state: Some("active".to_owned()),
            limit: Some(MOST),
            ..ListDelegationsRequest::default()
        };
        let sides = [of(Some(subject.to_owned()), None), of(None, Some(subject.to_owned()))];
        let read = sides.iter().map(|request| {
            view.calls.call::<_, ListDelegationsResponse>(rpc::LIST_DELEGATIONS, request)
        });
        let mut ids = BTreeSet::new();
        for listed in try_join_all(read).await? {
            self.more |= listed.next_page_token.is_some();
            ids.extend(listed.delegations.into_iter().map(|delegation| delegation.id));
        }
        let radii = try_join_all(ids.iter().map(|id| radius(view, id))).await?;
        radii.iter().for_each(|radius| self.add(radius));
        Ok(())
    }

    fn add(&mut self, radius: &BlastRadius) {
        let delegations = radius.delegations.iter().cloned();
        self.delegations.extend(delegations.map(|delegation| (delegation.id.clone(), delegation)));
        self.agents.extend(radius.agents.iter().cloned());
        let last_used = radius.last_used.and_then(Time::moment);
        self.last_used = self.last_used.max(last_used);
    }
}

async fn radius(view: &View, id: &str) -> Result<BlastRadius, Status> {
    let request = GetBlastRadiusRequest { id: id.to_owned() };
    view.calls.call(rpc::GET_BLAST_RADIUS, &request).await
}

/// Who asked for the actions since then, as far as the caller may read it.
pub(super) async fn asked(
    view: &View,
    subject: Option<&str>,
    tenant_id: &str,
    actions: &[String],
    since: DateTime<Utc>,
) -> Result<BTreeSet<String>, Status> {
    if !view.may(rpc::LIST_DECISIONS) {
        return Ok(BTreeSet::new());
    }
    let request = ListDecisionsRequest {
        tenant_id: Some(tenant_id.to_owned()),
        subject: subject.map(str::to_owned),
        since: Some(since.into()),
        limit: Some(RECENT),
        ..ListDecisionsRequest::default()
    };
    let listed: ListDecisionsResponse = view.calls.call(rpc::LIST_DECISIONS, &request).await?;
    let on = listed.decisions.into_iter().filter(|decision| covers(actions, decision));
    Ok(on.map(|decision| decision.subject).collect())
}

/// Whether the patterns cover a decision's action; no pattern covers all.
pub(super) fn covers(patterns: &[String], decision: &DecisionSummary) -> bool {
    let covered = |text: &String| {
        text.parse::<Pattern>().is_ok_and(|pattern| pattern.covers(&decision.action))
    };
    patterns.is_empty() || patterns.iter().any(covered)
}

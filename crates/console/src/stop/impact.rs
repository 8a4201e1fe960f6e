//! The impact of a stop, as the API describes it: delegations, agents, requests and permissions.

use authority_model::proto::registry::{
    GetStopImpactRequest, StoppedAgent, StoppedDelegation, StoppedPermission,
};

use super::{stopped::Stopped, target::Target};
use crate::kit::prelude::*;

/// The impact of a stop, as a page shows it.
#[derive(Default)]
pub(super) struct Impact {
    /// The delegations, with the names of both parties.
    pub(super) delegations: Vec<(Named, Named, StoppedDelegation)>,
    pub(super) delegation_total: usize,
    /// The agents, with the named principal first.
    pub(super) agents: Vec<Agent>,
    pub(super) agent_total: usize,
    /// Whether the decisions could be counted.
    pub(super) is_counted: bool,
    /// Permissions that were valid when the stop began.
    pub(super) permissions: Vec<Permission>,
    pub(super) permission_total: usize,
}

/// An agent that the stop concerns.
pub(super) struct Agent {
    pub(super) named: Named,
    pub(super) counts: StoppedAgent,
}

/// A permission that was valid when the stop began.
pub(super) struct Permission {
    pub(super) agent: Named,
    pub(super) permission: StoppedPermission,
}

impl Impact {
    /// Whether an agent has used the stopped authority in the last 24 hours, or still may.
    pub(super) fn is_used(&self) -> bool {
        let is_used = |counts: &StoppedAgent| {
            [counts.recent_decisions, counts.valid_permissions].into_iter().flatten().any(|n| n > 0)
        };
        self.agents.iter().any(|agent| is_used(&agent.counts))
    }

    /// Reads the impact that a stop of the target would have now.
    pub(super) async fn of_target(view: &View, target: &Target) -> Result<Self, Status> {
        let request = GetStopImpactRequest {
            tenant_id: Some(target.tenant_id.clone()),
            subject_id: target.subject.as_ref().map(|subject| subject.id.clone()),
            delegation_id: target.delegation.as_ref().map(|delegation| delegation.id.clone()),
            actions: target.actions.clone(),
            ..GetStopImpactRequest::default()
        };
        Self::read(view, &request).await
    }

    /// Reads the impact of a stop. Empty if the named principal or delegation was removed since.
    pub(super) async fn of_stop(view: &View, stopped: &Stopped) -> Result<Self, Status> {
        let request = GetStopImpactRequest {
            tenant_id: Some(stopped.tenant_id.clone()),
            subject_id: stopped.subject.clone(),
            delegation_id: stopped.delegation.clone(),
            actions: stopped.action.iter().cloned().collect(),
            at: stopped.at,
            until: stopped.changed_at.filter(|_| !stopped.is_active),
            limit: None,
        };
        match Self::read(view, &request).await {
            Err(status) if is_absent(&status) => Ok(Self::default()),
            read => read,
        }
    }

    async fn read(view: &View, request: &GetStopImpactRequest) -> Result<Self, Status> {
        let impact = view.calls.call(request).await?;
        let parties = impact.delegations.iter();
        let parties = parties.flat_map(|one| [Some(&one.delegate_id), one.delegator_id.as_ref()]);
        let agents = impact.agents.iter().map(|agent| &agent.id);
        let ids = parties.flatten().chain(agents).cloned().collect();
        let names = Names::to_call(view, ids).await;
        let agent = |counts: StoppedAgent| Agent { named: names.called(counts.id.clone()), counts };
        let permission = |permission: StoppedPermission| Permission {
            agent: names.called(permission.agent_id.clone()),
            permission,
        };
        let ended = |one: StoppedDelegation| {
            let from = names.called(one.delegator_id.clone().unwrap_or_default());
            (from, names.called(one.delegate_id.clone()), one)
        };
        Ok(Self {
            delegation_total: total(impact.delegation_total),
            agent_total: total(impact.agent_total),
            permission_total: total(impact.valid_permissions.unwrap_or_default()),
            is_counted: impact.decisions_counted,
            delegations: impact.delegations.into_iter().map(ended).collect(),
            agents: impact.agents.into_iter().map(agent).collect(),
            permissions: impact.permissions.into_iter().map(permission).collect(),
        })
    }

    pub(super) fn more_delegations(&self) -> usize {
        self.delegation_total.saturating_sub(self.delegations.len())
    }

    pub(super) fn more_agents(&self) -> usize {
        self.agent_total.saturating_sub(self.agents.len())
    }

    pub(super) fn more_permissions(&self) -> usize {
        self.permission_total.saturating_sub(self.permissions.len())
    }
}

impl Agent {
    /// `2 requests`; `None` if no request waits for people.
    pub(super) fn waiting(&self) -> Option<String> {
        requests(self.counts.pending_approvals)
    }

    /// `2 requests`; `None` if no request is approved and unused.
    pub(super) fn approved(&self) -> Option<String> {
        requests(self.counts.approved_approvals)
    }

    /// `2 permissions`; `None` if none is valid, or if they could not be counted.
    pub(super) fn permissions(&self) -> Option<String> {
        let valid = self.counts.valid_permissions.filter(|valid| *valid > 0)?;
        Some(t::stop::permissions(valid))
    }

    /// `2 decisions`; `None` if there was none, or if they could not be counted.
    pub(super) fn decisions(&self) -> Option<String> {
        let recent = self.counts.recent_decisions.filter(|recent| *recent > 0)?;
        Some(t::stop::decisions(recent))
    }

    /// The number of refused requests; `None` if no request was refused, or if it is unknown.
    pub(super) fn refused(&self) -> Option<i32> {
        self.counts.refusals.filter(|refusals| *refusals > 0)
    }
}

fn requests(count: i32) -> Option<String> {
    (count > 0).then(|| t::requests(count))
}

fn total(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

//! The agents that a stop concerns, and the time of the stop.

use authority_model::{proto::delegation::BlastRadius, wire::Time};
use chrono::{DateTime, TimeDelta, Utc};
use tonic::Status;

use super::{
    blast::{asked, of_delegation, of_principal},
    stopped::Stopped,
    target::Target,
};
use crate::{problem::is_absent, view::View};

pub(super) struct StopScope {
    pub(super) tenant_id: String,
    /// The reason code of its refusals.
    pub(super) reason_code: &'static str,
    /// The concerned agents, the named one first.
    pub(super) agents: Vec<String>,
    /// The number of further agents.
    pub(super) others: usize,
    /// Whether further agents may have requested the actions in decisions that were not read.
    pub(super) cut: bool,
    /// Patterns of actions. An empty list covers every action.
    pub(super) actions: Vec<String>,
    pub(super) since: DateTime<Utc>,
    /// `None` while it is in force.
    pub(super) until: Option<DateTime<Utc>>,
}

impl StopScope {
    /// The scope of a planned stop, as if it began now.
    pub(super) fn before(view: &View, target: &Target, agents: Vec<String>) -> Self {
        Self {
            tenant_id: target.tenant_id.clone(),
            reason_code: "",
            agents,
            others: 0,
            cut: false,
            actions: target.actions.clone(),
            since: view.now,
            until: None,
        }
    }

    /// The stopped principal and the agents under it; for an action, the agents that requested it
    /// since the day before the stop.
    pub(super) async fn of(view: &View, stopped: &Stopped) -> Result<Self, Status> {
        let since = stopped.at.and_then(Time::moment).unwrap_or(view.now);
        let radius = match (&stopped.delegation, &stopped.subject) {
            (Some(delegation), _) => of_delegation(view, delegation).await,
            (None, Some(subject)) => of_principal(view, subject).await,
            (None, None) => Ok(BlastRadius::default()),
        };
        // The named record may have been removed.
        let radius = match radius {
            Err(status) if is_absent(&status) => BlastRadius::default(),
            read => read?,
        };
        let listed = radius.agents.len();
        let total = usize::try_from(radius.agent_total).unwrap_or(0);
        let mut agents: Vec<String> = stopped.subject.iter().cloned().collect();
        agents.extend(radius.agents.into_iter().filter(|id| Some(id) != stopped.subject.as_ref()));
        let actions: Vec<String> = stopped.action.iter().cloned().collect();
        let mut cut = false;
        if agents.is_empty() {
            let day = since - TimeDelta::days(1);
            let asked = asked(view, None, &stopped.tenant_id, &actions, day).await?;
            let asked = asked.unwrap_or_default();
            cut = asked.cut;
            agents.extend(asked.who);
        }
        Ok(Self {
            tenant_id: stopped.tenant_id.clone(),
            reason_code: if stopped.is_signal { "actor_stopped" } else { "capability_quarantined" },
            agents,
            others: total.saturating_sub(listed),
            cut,
            actions,
            since,
            until: stopped.changed_at.and_then(Time::moment).filter(|_| !stopped.is_active),
        })
    }
}

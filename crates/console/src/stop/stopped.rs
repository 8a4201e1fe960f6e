//! A current or former stop: a stop signal on a principal, or a quarantine of a part of a tenant's
//! authority.

use authority_ids::IdParts;
use authority_model::{
    proto::registry::{GetQuarantineRequest, GetStopSignalRequest, Quarantine, StopSignal},
    wire::Time,
};

use crate::kit::prelude::*;

/// A stop signal or a quarantine.
pub(crate) struct Stopped {
    pub(crate) id: String,
    pub(super) tenant_id: String,
    pub(super) is_signal: bool,
    pub(super) is_active: bool,
    pub(crate) subject: Option<String>,
    pub(super) action: Option<String>,
    pub(crate) delegation: Option<String>,
    pub(crate) reason: String,
    pub(super) by: String,
    pub(super) at: Option<Time>,
    /// Who released it.
    pub(super) released_by: Option<String>,
    pub(super) release_reason: Option<String>,
    pub(super) changed_at: Option<Time>,
}

impl From<StopSignal> for Stopped {
    fn from(signal: StopSignal) -> Self {
        Self {
            id: signal.id,
            tenant_id: signal.tenant_id.unwrap_or_default(),
            is_signal: true,
            is_active: signal.state != "lifted",
            subject: Some(signal.actor_id),
            action: None,
            delegation: None,
            reason: signal.reason,
            by: signal.created_by,
            at: signal.created_at,
            released_by: signal.lifted_by,
            release_reason: signal.lift_reason,
            changed_at: signal.updated_at,
        }
    }
}

impl From<Quarantine> for Stopped {
    fn from(quarantine: Quarantine) -> Self {
        Self {
            id: quarantine.id,
            tenant_id: quarantine.tenant_id.unwrap_or_default(),
            is_signal: false,
            is_active: quarantine.state != "released",
            subject: quarantine.subject_id,
            action: quarantine.action,
            delegation: quarantine.delegation_id,
            reason: quarantine.reason,
            by: quarantine.created_by,
            at: quarantine.created_at,
            released_by: quarantine.released_by,
            release_reason: quarantine.release_reason,
            changed_at: quarantine.updated_at,
        }
    }
}

impl Stopped {
    pub(super) async fn read(view: &View, id: &str) -> Result<Self, Status> {
        let id = id.to_owned();
        if is_signal(&id) {
            let request = GetStopSignalRequest { id };
            let signal = view.calls.call(&request).await?;
            return Ok(signal.into());
        }
        let request = GetQuarantineRequest { id };
        let quarantine = view.calls.call(&request).await?;
        Ok(quarantine.into())
    }

    /// The stopped authority in a few words: `invoice-bot`, `payment.* of invoice-bot`.
    pub(crate) fn what(&self, names: &Names) -> String {
        let of = self.subject.as_deref().map(|subject| names.called(subject).name);
        let actions = match (&self.action, of) {
            (Some(action), Some(of)) => t::stop::of_principal(action, of),
            (Some(action), None) => action.clone(),
            (None, Some(of)) => of,
            (None, None) if self.delegation.is_some() => t::stop::EVERYTHING.to_owned(),
            (None, None) => t::stop::everything_of(short(&self.tenant_id)),
        };
        match &self.delegation {
            Some(delegation) => t::stop::under(actions, short(delegation)),
            None => actions,
        }
    }
}

pub(super) fn is_signal(id: &str) -> bool {
    IdParts::of(id).is_some_and(|id| id.kind == "stop_signal")
}

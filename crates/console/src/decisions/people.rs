//! The people who asked for a decision and who approved it, from its request for approval.

use authority_model::proto::runtime::GetDecisionResponse;

use crate::{
    inbox::{self, Act, approving, askers},
    kit::prelude::*,
};

/// The people of a decision.
#[derive(Default)]
pub(super) struct People {
    pub(super) approved_by: Vec<Act>,
    pub(super) asked_by: Vec<Safe<String>>,
}

impl People {
    /// Empty if there is no request for approval, or if the role may not read it.
    pub(super) async fn of(view: &View, decision: &GetDecisionResponse) -> Self {
        let id = decision.approval_id.as_deref().filter(|_| view.may(rpc::GET_APPROVAL));
        let Some(id) = id else { return Self::default() };
        let Ok(approval) = inbox::read(view, id).await else { return Self::default() };
        let was_permitted = approval.used_by.as_deref() == Some(decision.decision_id.as_str());
        let approved_by = if was_permitted { approving(view, &approval) } else { Vec::new() };
        Self { approved_by, asked_by: askers(view, &approval).await }
    }
}

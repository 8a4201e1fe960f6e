//! The authority that an action would use: the chain of delegations, with the names of its people.

use authority_model::proto::approval::ApprovalAuthority;

use crate::{
    administration::chain::{self, Link},
    kit::{prelude::*, text},
};

/// The authority that permits an action, from the root to the agent.
pub(crate) struct Authority {
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    pub(crate) links: Vec<Link>,
    pub(crate) actions: Vec<String>,
    pub(crate) bounds: Vec<Argument>,
}

impl Authority {
    /// The authority that was used, with its current state, if there is one.
    pub(crate) async fn of(view: &View, used: Option<&ApprovalAuthority>) -> Option<Self> {
        let used = used?;
        Some(Self {
            kind: text::authority(&used.kind),
            id: used.id.clone(),
            links: chain::of_ids(view, &used.chain).await,
            actions: used.actions.clone(),
            bounds: used.bounds.as_ref().map(|bounds| arguments(&bounds.0)).unwrap_or_default(),
        })
    }
}

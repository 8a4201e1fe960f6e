//! The authority that an action would use: the chain of delegations, with the names of its people.

use authority_model::proto::{
    approval::ApprovalAuthority,
    delegation::{Delegation, GetDelegationRequest},
};
use futures_util::future::join_all;

use crate::{
    names::{Named, Names},
    rpc,
    show::{Argument, Moment, arguments},
    text,
    view::View,
};

/// What permits an action, from the root to the agent.
pub(crate) struct Authority {
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    pub(crate) links: Vec<Link>,
    pub(crate) actions: Vec<String>,
    pub(crate) bounds: Vec<Argument>,
}

/// A delegation of the chain.
pub(crate) struct Link {
    pub(crate) id: String,
    /// Null where the caller may not read it, or it is gone.
    pub(crate) terms: Option<Terms>,
}

pub(crate) struct Terms {
    pub(crate) from: Named,
    pub(crate) to: Named,
    pub(crate) state: String,
    pub(crate) actions: String,
    /// Up to how much, if it says.
    pub(crate) limit: Option<String>,
    pub(crate) until: Option<Moment>,
}

impl Authority {
    /// The authority that was used, with what it is now.
    pub(crate) async fn of(view: &View, used: &ApprovalAuthority) -> Self {
        let read = used.chain.iter().rev().cloned().map(|id| async move {
            let request = GetDelegationRequest { id };
            let read = view.calls.call::<_, Delegation>(rpc::GET_DELEGATION, &request).await;
            (request.id, read.ok())
        });
        let chain = join_all(read).await;
        let delegations = chain.iter().filter_map(|(_, delegation)| delegation.as_ref());
        let ids = delegations
            .flat_map(|d| [d.delegator_id.clone().unwrap_or_default(), d.delegate_id.clone()]);
        let names = Names::of(view, ids.collect()).await;
        let links = chain.into_iter().map(|(id, delegation)| {
            let terms = delegation.map(|delegation| terms(view, delegation, &names));
            Link { id, terms }
        });
        Self {
            kind: text::authority(&used.kind),
            id: used.id.clone(),
            links: links.collect(),
            actions: used.actions.clone(),
            bounds: used.bounds.as_ref().map(|bounds| arguments(&bounds.0)).unwrap_or_default(),
        }
    }
}

fn terms(view: &View, delegation: Delegation, names: &Names) -> Terms {
    let limit = delegation.max_amount.map(|amount| {
        format!("{amount} {}", delegation.currency.as_deref().unwrap_or_default())
            .trim_end()
            .to_owned()
    });
    Terms {
        from: names.named(delegation.delegator_id.unwrap_or_default()),
        to: names.named(delegation.delegate_id),
        state: delegation.state,
        actions: delegation.actions.join(", "),
        limit,
        until: Moment::of_time(delegation.expires_at, view.now),
    }
}

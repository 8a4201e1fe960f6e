//! The authority that an action would use: the chain of delegations, with the names of its people.

use std::collections::HashMap;

use authority_model::proto::{
    approval::Approval,
    delegation::{Delegation, GetDelegationRequest},
    registry::{GetPrincipalRequest, Principal},
};
use futures_util::future::join_all;

use crate::{
    rpc,
    show::{Argument, Moment, arguments, short},
    view::View,
};

/// What permits an action, from the root to the agent.
pub(super) struct Authority {
    pub(super) kind: &'static str,
    pub(super) id: String,
    pub(super) links: Vec<Link>,
    pub(super) actions: Vec<String>,
    pub(super) bounds: Vec<Argument>,
}

/// A delegation of the chain.
pub(super) struct Link {
    pub(super) id: String,
    /// Null where the caller may not read it, or it is gone.
    pub(super) terms: Option<Terms>,
}

pub(super) struct Terms {
    pub(super) from: Named,
    pub(super) to: Named,
    pub(super) state: String,
    pub(super) actions: String,
    /// Up to how much, if it says.
    pub(super) limit: Option<String>,
    pub(super) until: Option<Moment>,
}

/// A principal's name, and its id.
#[derive(Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) id: String,
}

/// The authority of a request, if it had any when it was opened.
pub(super) async fn of(view: &View, approval: &Approval) -> Option<Authority> {
    let used = approval.authority.as_ref()?;
    let read = used.chain.iter().rev().cloned().map(|id| async move {
        let request = GetDelegationRequest { id };
        let read = view.calls.call::<_, Delegation>(rpc::GET_DELEGATION, &request).await;
        (request.id, read.ok())
    });
    let chain = join_all(read).await;
    let delegations = chain.iter().filter_map(|(_, delegation)| delegation.as_ref());
    let ids = delegations
        .flat_map(|d| [d.delegator_id.clone().unwrap_or_default(), d.delegate_id.clone()]);
    let names = names(view, ids.collect()).await;
    let links = chain.into_iter().map(|(id, delegation)| {
        let terms = delegation.map(|delegation| terms(view, delegation, &names));
        Link { id, terms }
    });
    Some(Authority {
        kind: match used.kind.as_str() {
            "delegation" => "Delegation",
            "uses" => "Right of use",
            "acts_in" => "Work in a workspace",
            _ => "Authority",
        },
        id: used.id.clone(),
        links: links.collect(),
        actions: used.actions.clone(),
        bounds: used.bounds.as_ref().map(|bounds| arguments(&bounds.0)).unwrap_or_default(),
    })
}

fn terms(view: &View, delegation: Delegation, names: &HashMap<String, String>) -> Terms {
    let named = |id: String| Named {
        name: names.get(&id).cloned().unwrap_or_else(|| short(&id).to_owned()),
        id,
    };
    let limit = delegation.max_amount.map(|amount| {
        format!("{amount} {}", delegation.currency.as_deref().unwrap_or_default())
            .trim_end()
            .to_owned()
    });
    Terms {
        from: named(delegation.delegator_id.unwrap_or_default()),
        to: named(delegation.delegate_id),
        state: delegation.state,
        actions: delegation.actions.join(", "),
        limit,
        until: Moment::of_time(delegation.expires_at, view.now),
    }
}

/// The names of principals that the caller may read.
pub(super) async fn names(view: &View, mut ids: Vec<String>) -> HashMap<String, String> {
    ids.sort();
    ids.dedup();
    let read = ids.into_iter().map(|id| async move {
        let request = GetPrincipalRequest { id: id.clone(), ..GetPrincipalRequest::default() };
        let read = view.calls.call::<_, Principal>(rpc::GET_PRINCIPAL, &request).await;
        Some((id, read.ok()?.display_name))
    });
    join_all(read).await.into_iter().flatten().collect()
}

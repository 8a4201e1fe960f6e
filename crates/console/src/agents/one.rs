//! The pages of an agent and of a delegation.

use std::collections::BTreeSet;

use askama::Template;
use authority_model::proto::{
    delegation::{
        BlastRadius, Delegation, GetBlastRadiusRequest, ListDelegationsRequest,
        ListDelegationsResponse,
    },
    runtime::{GetAuthorityRequest, GetAuthorityResponse, Grant},
};
use axum::{extract::Path, response::Response};
use futures_util::future::join_all;
use http::StatusCode;
use tonic::Status;

use super::{
    chain::{self, Link},
    stops::{self, Stop},
};
use crate::{
    frame::{Frame, Section},
    kinds::{Kind, text},
    page::page,
    records::{Datum, address, read, title},
    rpc,
    show::{Argument, arguments, short},
    text::authority as words,
    view::View,
};

/// Something that lets the agent act.
struct Authority {
    kind: &'static str,
    id: String,
    address: Option<String>,
    state: String,
    reason: Option<String>,
    actions: Vec<String>,
    bounds: Vec<Argument>,
    links: Vec<Link>,
}

/// A delegation that the agent made.
struct Given {
    id: String,
    to: String,
    actions: String,
    state: String,
}

#[derive(Template)]
#[template(path = "agent.html")]
struct AgentPage {
    frame: Frame,
    id: String,
    name: String,
    state: String,
    stops: Vec<Stop>,
    may_stop: bool,
    authorities: Vec<Authority>,
    given: Vec<Given>,
}

pub(super) async fn agent(view: View, Path(id): Path<String>) -> Response {
    view.answer(shown(&view, &id).await)
}

async fn shown(view: &View, id: &str) -> Result<Response, Status> {
    let principals = Kind::of_id(id).filter(|kind| kind.path == "principals");
    let kind = principals.ok_or_else(|| Status::not_found("there is no such page"))?;
    let agent = read(view, kind, id).await?.message;
    let request = GetAuthorityRequest { entity_id: id.to_owned() };
    let held: GetAuthorityResponse = view.calls.call(rpc::GET_AUTHORITY, &request).await?;
    let authorities = held.grants.into_iter().map(|grant| authority(view, grant));
    let (authorities, given) = tokio::join!(join_all(authorities), given(view, id));
    let mut ids = BTreeSet::from([id.to_owned()]);
    for link in authorities.iter().flat_map(|authority| &authority.links) {
        ids.insert(link.id.clone());
        let parties = link.terms.iter().flat_map(|terms| [&terms.from.id, &terms.to.id]);
        ids.extend(parties.cloned());
    }
    let ids: Vec<_> = ids.into_iter().collect();
    let shown = AgentPage {
        frame: view.frame(title(&agent), Section::Records),
        name: title(&agent),
        state: text(&agent, "state"),
        stops: stops::on(view, &text(&agent, "tenant_id"), &ids).await?,
        may_stop: view.may(rpc::CREATE_STOP_SIGNAL),
        authorities,
        given,
        id: id.to_owned(),
    };
    Ok(page(StatusCode::OK, &shown))
}

async fn authority(view: &View, grant: Grant) -> Authority {
    Authority {
        kind: words(&grant.kind),
        address: address(view, &grant.id),
        state: grant.state,
        reason: grant.reason,
        actions: grant.actions,
        bounds: grant.bounds.as_ref().map(|bounds| arguments(&bounds.0)).unwrap_or_default(),
        links: chain::of_ids(view, &grant.chain).await,
        id: grant.id,
    }
}

async fn given(view: &View, id: &str) -> Vec<Given> {
    if !view.may(rpc::LIST_DELEGATIONS) {
        return Vec::new();
    }
    let request = ListDelegationsRequest {
        delegator_id: Some(id.to_owned()),
        ..ListDelegationsRequest::default()
    };
    let listed = view.calls.call(rpc::LIST_DELEGATIONS, &request).await;
    let listed: ListDelegationsResponse = listed.unwrap_or_default();
    listed.delegations.into_iter().map(of_delegation).collect()
}

fn of_delegation(delegation: Delegation) -> Given {
    Given {
        id: delegation.id,
        to: short(&delegation.delegate_id).to_owned(),
        actions: delegation.actions.join(", "),
        state: delegation.state,
    }
}

#[derive(Template)]
#[template(path = "delegation.html")]
struct DelegationPage {
    frame: Frame,
    id: String,
    state: String,
    links: Vec<Link>,
    stops: Vec<Stop>,
    may_stop: bool,
    /// What would end with it; none for a role that may not read that.
    below: Option<(Vec<Given>, Vec<String>)>,
}

pub(super) async fn delegation(view: View, Path(id): Path<String>) -> Response {
    view.answer(of_one(&view, &id).await)
}

async fn of_one(view: &View, id: &str) -> Result<Response, Status> {
    let kind = Kind::at("delegations").ok_or_else(|| Status::not_found("there is no such page"))?;
    let delegation = read(view, kind, id).await?.message;
    let (state, tenant) = (text(&delegation, "state"), text(&delegation, "tenant_id"));
    let links = chain::up_from(view, delegation).await;
    let parties = links.iter().flat_map(|link| {
        let parties = link.terms.iter().flat_map(|terms| [&terms.from.id, &terms.to.id]);
        parties.chain([&link.id]).cloned()
    });
    let parties: Vec<String> = parties.collect();
    let (stops, below) = tokio::join!(stops::on(view, &tenant, &parties), below(view, id));
    let frame = view.frame(format!("Delegation {}", short(id)), Section::Records);
    let shown = DelegationPage {
        frame,
        id: id.to_owned(),
        state,
        links,
        stops: stops?,
        may_stop: view.may(rpc::CREATE_QUARANTINE),
        below,
    };
    Ok(page(StatusCode::OK, &shown))
}

async fn below(view: &View, id: &str) -> Option<(Vec<Given>, Vec<String>)> {
    if !view.may(rpc::GET_BLAST_RADIUS) {
        return None;
    }
    let request = GetBlastRadiusRequest { id: id.to_owned() };
    let radius = view.calls.call(rpc::GET_BLAST_RADIUS, &request).await;
    let radius: BlastRadius = radius.ok()?;
    let below = radius.delegations.into_iter().filter(|below| below.id != id);
    Some((below.map(of_delegation).collect(), radius.agents))
}

//! The pages of an agent and of a delegation.

use std::collections::BTreeSet;

use askama::Template;
use authority_ids::TenantId;
use authority_model::proto::{
    delegation::{
        BlastRadius, Delegation, GetBlastRadiusRequest, ListDelegationsRequest,
        ListDelegationsResponse,
    },
    runtime::{GetAuthorityRequest, GetAuthorityResponse, Grant},
};
use axum::{extract::Path, response::Response};
use http::StatusCode;
use prost_reflect::DynamicMessage;
use tonic::Status;

use super::stops::{self, Stops};
use crate::{
    budgets::{self, BudgetLine, Budgets},
    chain::{self, Link, state_now},
    frame::{Frame, Section},
    kinds::{Kind, text},
    names::{Named, Names, called, is_agent},
    page::page,
    problem::is_absent,
    query::encoded,
    records::{Datum, address, read, title},
    rpc,
    show::{Argument, Moment, arguments, short},
    text::authority as words,
    view::View,
};

/// An authority that lets the agent act.
struct Authority {
    kind: &'static str,
    id: String,
    address: Option<String>,
    state: String,
    reason: Option<String>,
    actions: Vec<String>,
    bounds: Vec<Argument>,
    budgets: Vec<BudgetLine>,
    links: Vec<Link>,
}

/// A delegation that the agent made.
struct MadeDelegation {
    id: String,
    to: String,
    actions: String,
    state: String,
}

/// A list of delegations, or the reason why it is unknown.
#[derive(Default)]
struct GivenList {
    rows: Vec<MadeDelegation>,
    /// Whether there are further delegations.
    cut: bool,
    problem: Option<&'static str>,
}

const UNREAD: &str = "This could not be read now. Reload the page.";

impl GivenList {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.problem.is_none()
    }

    fn unread(status: &Status) -> Self {
        let problem = (!is_absent(status)).then_some(UNREAD);
        Self { problem, ..Self::default() }
    }
}

/// The maximum number of delegations in a list.
const LISTED: usize = 100;

#[derive(Template)]
#[template(path = "agent.html")]
struct AgentPage {
    frame: Frame,
    id: String,
    name: String,
    /// The description, if it differs from the name.
    about: Option<String>,
    state: String,
    stops: Stops,
    may_stop: bool,
    /// The lists of its decisions and its requests for approval, if the person may read them.
    lists: Vec<(String, &'static str)>,
    authorities: Vec<Authority>,
    given: GivenList,
}

impl AgentPage {
    fn is_agent(&self) -> bool {
        is_agent(&self.id)
    }
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
    let mut authorities = Vec::new();
    for grant in held.grants {
        authorities.push(authority(view, grant).await);
    }
    let given = given(view, id).await;
    let mut ids = BTreeSet::from([id.to_owned()]);
    for link in authorities.iter().flat_map(|authority| &authority.links) {
        ids.insert(link.id.clone());
        let parties = link.terms.iter().flat_map(|terms| [&terms.from.id, &terms.to.id]);
        ids.extend(parties.cloned());
    }
    let ids: Vec<_> = ids.into_iter().collect();
    let name = called(id, &title(&agent)).to_owned();
    let shown = AgentPage {
        frame: view.frame(name.clone(), section(id)).stopping("subject", id, &name),
        about: Some(title(&agent)).filter(|about| *about != name),
        name,
        state: text(&agent, "state"),
        stops: stops::on(view, &tenant(&agent)?, Some(id), &ids).await?,
        may_stop: view.may(rpc::CREATE_STOP_SIGNAL),
        lists: lists(view, id),
        authorities,
        given,
        id: id.to_owned(),
    };
    Ok(page(StatusCode::OK, &shown))
}

/// The tenant of a record.
fn tenant(record: &DynamicMessage) -> Result<TenantId, Status> {
    let id = TenantId::parse(&text(record, "tenant_id"));
    id.map_err(|_| Status::internal("the record has no valid tenant"))
}

/// The section of a principal's page.
fn section(id: &str) -> Section {
    if is_agent(id) { Section::Agents } else { Section::Records }
}

fn lists(view: &View, id: &str) -> Vec<(String, &'static str)> {
    let id = encoded(id);
    let all = [
        (rpc::LIST_DECISIONS, format!("/console/decisions?agent={id}"), "Its decisions"),
        (
            rpc::LIST_APPROVALS,
            format!("/console/approvals?agent={id}"),
            "Its requests for approval",
        ),
        (rpc::GET_PRINCIPAL, format!("/console/records/principals/{id}"), "Its record"),
    ];
    let readable = all.into_iter().filter(|(needs, ..)| view.may(needs));
    readable.map(|(_, address, label)| (address, label)).collect()
}

async fn authority(view: &View, grant: Grant) -> Authority {
    Authority {
        kind: words(&grant.kind),
        address: address(view, &grant.id),
        state: grant.state,
        reason: grant.reason,
        actions: grant.actions,
        bounds: grant.bounds.as_ref().map(|bounds| arguments(&bounds.0)).unwrap_or_default(),
        budgets: budgets::lines(view, &grant.id, grant.budgets),
        links: chain::of_ids(view, &grant.chain).await,
        id: grant.id,
    }
}

async fn given(view: &View, id: &str) -> GivenList {
    if !view.may(rpc::LIST_DELEGATIONS) {
        return GivenList::default();
    }
    let request = ListDelegationsRequest {
        delegator_id: Some(id.to_owned()),
        limit: i32::try_from(LISTED).ok(),
        ..ListDelegationsRequest::default()
    };
    let listed: Result<ListDelegationsResponse, Status> =
        view.calls.call(rpc::LIST_DELEGATIONS, &request).await;
    match listed {
        Ok(listed) => GivenList {
            rows: listed.delegations.into_iter().map(|one| of_delegation(view, one)).collect(),
            cut: listed.next_page_token.is_some(),
            problem: None,
        },
        Err(status) => GivenList::unread(&status),
    }
}

fn of_delegation(view: &View, delegation: Delegation) -> MadeDelegation {
    let until = Moment::of_time(delegation.expires_at, view.now);
    MadeDelegation {
        id: delegation.id,
        to: short(&delegation.delegate_id).to_owned(),
        actions: delegation.actions.join(", "),
        state: state_now(delegation.state, until.as_ref()),
    }
}

#[derive(Template)]
#[template(path = "delegation.html")]
struct DelegationPage {
    frame: Frame,
    id: String,
    state: String,
    links: Vec<Link>,
    budgets: Budgets,
    stops: Stops,
    may_stop: bool,
    /// The delegations that would end with this one. `None` if the role may not read them.
    below: Option<GivenList>,
    agents_below: Vec<Named>,
}

pub(super) async fn delegation(view: View, Path(id): Path<String>) -> Response {
    view.answer(of_one(&view, &id).await)
}

async fn of_one(view: &View, id: &str) -> Result<Response, Status> {
    let kind = Kind::at("delegations").ok_or_else(|| Status::not_found("there is no such page"))?;
    let delegation = read(view, kind, id).await?.message;
    let (tenant, delegate) = (tenant(&delegation)?, text(&delegation, "delegate_id"));
    let links = chain::up_from(view, delegation).await;
    // The last link is the delegation itself.
    let own = links.last().and_then(|link| link.terms.as_ref());
    let state = own.map(|terms| terms.state.clone()).unwrap_or_default();
    let parties = links.iter().flat_map(|link| {
        let parties = link.terms.iter().flat_map(|terms| [&terms.from.id, &terms.to.id]);
        parties.chain([&link.id]).cloned()
    });
    let parties: Vec<String> = parties.collect();
    let (stops, below, budgets) = tokio::join!(
        stops::on(view, &tenant, None, &parties),
        below(view, id),
        Budgets::read(view, &delegate, id)
    );
    let (below, agents_below) = below.map_or((None, Vec::new()), |(list, ids)| (Some(list), ids));
    let names = Names::to_call(view, agents_below.clone()).await;
    let agents_below = agents_below.into_iter().map(|id| names.called(id)).collect();
    let frame = view.frame(format!("Delegation {}", short(id)), Section::Records);
    let frame = frame.stopping("delegation", id, "this delegation");
    let shown = DelegationPage {
        frame,
        id: id.to_owned(),
        state,
        links,
        budgets,
        stops: stops?,
        may_stop: view.may(rpc::CREATE_QUARANTINE),
        below,
        agents_below,
    };
    Ok(page(StatusCode::OK, &shown))
}

async fn below(view: &View, id: &str) -> Option<(GivenList, Vec<String>)> {
    if !view.may(rpc::GET_BLAST_RADIUS) {
        return None;
    }
    let request = GetBlastRadiusRequest { id: id.to_owned() };
    let radius: Result<BlastRadius, Status> =
        view.calls.call(rpc::GET_BLAST_RADIUS, &request).await;
    let radius = match radius {
        Ok(radius) => radius,
        Err(status) => return Some((GivenList::unread(&status), Vec::new())),
    };
    let mut below = radius.delegations.into_iter().filter(|below| below.id != id);
    let rows = below.by_ref().take(LISTED).map(|one| of_delegation(view, one)).collect();
    Some((GivenList { rows, cut: below.next().is_some(), problem: None }, radius.agents))
}

//! The pages of an agent and of a delegation.

use std::collections::BTreeSet;

use authority_ids::{DelegationRef, PrincipalRef, TenantId};
use authority_model::proto::{
    delegation::{Delegation, GetBlastRadiusRequest, ListDelegationsRequest},
    runtime::{GetAuthorityRequest, Grant},
};
use prost_reflect::DynamicMessage;

use super::stops::{self, Stops};
use crate::{
    administration::{
        budgets::{self, BudgetLine, Budgets},
        chain::{self, Link, state_now},
        records::{Datum, address, read, title},
    },
    kit::{
        kinds::{Kind, text},
        names::is_agent,
        prelude::*,
        text::authority as words,
    },
    overview::{Usage, of_agent},
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
    id: DelegationRef,
    to: String,
    actions: String,
    state: String,
}

/// A list of delegations, or the reason why it is unknown.
#[derive(Default)]
struct GivenList {
    rows: Vec<MadeDelegation>,
    /// The number of further delegations.
    more: usize,
    problem: Option<&'static str>,
}

impl GivenList {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.problem.is_none()
    }
}

/// The reason why a list is unknown.
fn unread<T>(read: &Result<T, Status>) -> Option<&'static str> {
    read.as_ref().err().filter(|status| !is_absent(status)).map(|_| t::READ_FAILED)
}

/// The maximum number of delegations in a list.
const LISTED: usize = 100;

#[derive(Template)]
#[template(path = "agent.html")]
struct AgentPage {
    frame: Frame,
    id: PrincipalRef,
    name: String,
    /// The description, if it differs from the name.
    about: Option<String>,
    state: String,
    stops: Stops,
    may_stop: bool,
    /// Whether the person may create delegations.
    may_delegate: bool,
    /// The lists of its decisions and its requests for approval, if the person may read them.
    lists: Vec<(String, &'static str)>,
    authorities: Vec<Authority>,
    given: GivenList,
    /// Its decisions. `None` if the role may not read them.
    usage: Option<Usage>,
}

impl AgentPage {
    fn is_agent(&self) -> bool {
        is_agent(&self.id)
    }
}

pub(super) async fn agent(view: View, Path(id): Path<PrincipalRef>) -> Response {
    view.answer(shown(&view, &id).await)
}

async fn shown(view: &View, id: &PrincipalRef) -> Result<Response, Status> {
    let principals = Kind::of_id(id).filter(|kind| kind.path == "principals");
    let agent = read(view, principals.ok_or_else(no_page)?, id).await?.message;
    let request = GetAuthorityRequest { entity_id: id.into() };
    let held = view.calls.call(&request).await?;
    let mut authorities = Vec::new();
    for grant in held.grants {
        authorities.push(authority(view, grant).await);
    }
    let (given, usage) = tokio::join!(given(view, id), of_agent(view, id));
    let mut ids = BTreeSet::from([String::from(id)]);
    for link in authorities.iter().flat_map(|authority| &authority.links) {
        ids.insert((&link.id).into());
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
        may_delegate: is_agent(id) && view.may(rpc::CREATE_DELEGATION),
        lists: lists(view, id),
        authorities,
        given,
        usage,
        id: id.clone(),
    };
    Ok(page(StatusCode::OK, &shown))
}

/// The tenant of a record.
fn tenant(record: &DynamicMessage) -> Result<TenantId, Status> {
    let id = TenantId::parse(&text(record, "tenant_id"));
    id.map_err(|_| Status::internal("the record has no valid tenant"))
}

/// The section of a principal's page.
fn section(id: &PrincipalRef) -> Section {
    if is_agent(id) { Section::Agents } else { Section::Records }
}

fn lists(view: &View, id: &PrincipalRef) -> Vec<(String, &'static str)> {
    let id = encoded(id);
    let all = [
        (rpc::LIST_DECISIONS, format!("/console/decisions?agent={id}"), t::agents::ITS_DECISIONS),
        (rpc::LIST_APPROVALS, format!("/console/approvals?agent={id}"), t::agents::ITS_REQUESTS),
        (rpc::GET_PRINCIPAL, format!("/console/records/principals/{id}"), t::agents::ITS_RECORD),
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

async fn given(view: &View, id: &PrincipalRef) -> GivenList {
    if !view.may(rpc::LIST_DELEGATIONS) {
        return GivenList::default();
    }
    let request = ListDelegationsRequest {
        delegator_id: Some(id.into()),
        limit: i32::try_from(LISTED).ok(),
        count: true,
        ..ListDelegationsRequest::default()
    };
    let listed = view.calls.call(&request).await;
    let problem = unread(&listed);
    let listed = listed.unwrap_or_default();
    GivenList {
        more: more(listed.total.unwrap_or_default(), listed.delegations.len()),
        rows: listed.delegations.into_iter().map(|one| of_delegation(view, one)).collect(),
        problem,
    }
}

/// The number of records that a list does not have.
fn more(total: i32, listed: usize) -> usize {
    usize::try_from(total).unwrap_or_default().saturating_sub(listed)
}

fn of_delegation(view: &View, delegation: Delegation) -> MadeDelegation {
    let until = Moment::of_time(delegation.expires_at, view.now);
    MadeDelegation {
        id: delegation.id.into(),
        to: short(&delegation.delegate_id).to_owned(),
        actions: delegation.actions.join(", "),
        state: state_now(delegation.state, until.as_ref()),
    }
}

#[derive(Template)]
#[template(path = "delegation.html")]
struct DelegationPage {
    frame: Frame,
    id: DelegationRef,
    state: String,
    links: Vec<Link>,
    budgets: Budgets,
    stops: Stops,
    may_stop: bool,
    /// The delegations that would end with this one. `None` if the role may not read them.
    below: Option<Below>,
}

/// What depends on a delegation.
struct Below {
    list: GivenList,
    /// The first agents, and the number of further ones.
    agents: Vec<Named>,
    more_agents: usize,
}

pub(super) async fn delegation(view: View, Path(id): Path<DelegationRef>) -> Response {
    view.answer(of_one(&view, &id).await)
}

async fn of_one(view: &View, id: &DelegationRef) -> Result<Response, Status> {
    let delegation = read(view, Kind::known("delegations")?, id).await?.message;
    let (tenant, delegate) = (tenant(&delegation)?, text(&delegation, "delegate_id"));
    let links = chain::up_from(view, delegation).await;
    // The last link is the delegation itself.
    let own = links.last().and_then(|link| link.terms.as_ref());
    let state = own.map(|terms| terms.state.clone()).unwrap_or_default();
    let parties = links.iter().flat_map(|link| {
        let parties = link.terms.iter().flat_map(|terms| [&terms.from.id, &terms.to.id]);
        parties.cloned().chain([String::from(&link.id)])
    });
    let parties: Vec<String> = parties.collect();
    let (stops, below, budgets) = tokio::join!(
        stops::on(view, &tenant, None, &parties),
        below(view, id),
        Budgets::read(view, delegate.into(), id)
    );
    let frame = view.frame(t::agents::delegation(short(id)), Section::Records);
    let frame = frame.stopping("delegation", id, t::agents::THIS_DELEGATION);
    let shown = DelegationPage {
        frame,
        id: id.clone(),
        state,
        links,
        budgets,
        stops: stops?,
        may_stop: view.may(rpc::CREATE_QUARANTINE),
        below,
    };
    Ok(page(StatusCode::OK, &shown))
}

async fn below(view: &View, id: &DelegationRef) -> Option<Below> {
    if !view.may(rpc::GET_BLAST_RADIUS) {
        return None;
    }
    // The answer has the delegation itself as well.
    let limit = i32::try_from(LISTED + 1).ok();
    let request = GetBlastRadiusRequest { id: id.into(), limit };
    let radius = view.calls.call(&request).await;
    let problem = unread(&radius);
    let radius = radius.unwrap_or_default();
    let names = Names::to_call(view, radius.agents.clone()).await;
    let more = more(radius.delegation_total, radius.delegations.len());
    let more_agents = self::more(radius.agent_total, radius.agents.len());
    let below = radius.delegations.into_iter().filter(|below| *id != below.id.as_str());
    let rows = below.map(|one| of_delegation(view, one)).collect();
    Some(Below {
        list: GivenList { rows, more, problem },
        agents: radius.agents.into_iter().map(|id| names.called(id)).collect(),
        more_agents,
    })
}

//! The agents, found by a part of their name, id or e-mail address.

use authority_model::proto::registry::{ListPrincipalsRequest, ListPrincipalsResponse, Principal};

use crate::kit::{
    lists::{Chip, ListAddress, ListLink, Pages},
    prelude::*,
};

/// The number of agents on a page.
const PAGE: i32 = 50;
/// The value of an unset filter in the address.
const ANY: &str = "any";
/// The states in the filter, and their words.
const STATES: [(&str, &str); 5] = [
    ("active", t::agents::ACTIVE),
    ("suspended", t::SUSPENDED),
    ("pending", t::agents::PENDING),
    ("revoked", t::agents::REVOKED),
    (ANY, t::ALL),
];

struct Agent {
    id: String,
    name: String,
    /// The description.
    about: String,
    /// Set if several tenants are shown.
    tenant: Option<String>,
    owner: Option<Named>,
    made: Option<Moment>,
    state: String,
}

#[derive(Template)]
#[template(path = "agents.html")]
struct AgentsPage {
    frame: Frame,
    sought: String,
    links: Vec<ListLink>,
    chips: Vec<Chip>,
    state: String,
    is_filtered: bool,
    agents: Vec<Agent>,
    /// The reason why the search did not run.
    problem: Option<String>,
    may_create: bool,
    lists_delegations: bool,
    pages: Pages,
}

pub(super) async fn list(view: View, query: Pairs) -> Response {
    view.answer(listed(&view, &query).await)
}

async fn listed(view: &View, query: &Pairs) -> Result<Response, Status> {
    let sought = query.text("q").trim();
    let state = query.one("state").unwrap_or("active");
    let request = ListPrincipalsRequest {
        tenant_id: view.shown_tenant().map(String::from),
        principal_class: Some("agent".to_owned()),
        state: (state != ANY).then(|| state.to_owned()),
        q: (!sought.is_empty()).then(|| sought.to_owned()),
        limit: Some(PAGE),
        page_token: query.text("page").to_owned(),
        ..ListPrincipalsRequest::default()
    };
    let listed = view.calls.call(&request).await;
    let (listed, problem): (ListPrincipalsResponse, _) = match listed {
        Ok(listed) => (listed, None),
        Err(status) if is_of_search(&status) && !sought.is_empty() => {
            (ListPrincipalsResponse::default(), Some(Problem::of(&status).in_words()))
        }
        Err(status) => return Err(status),
    };
    let address = ListAddress::of("/console/agents", [("q", sought), ("state", state)]);
    let owners = listed.principals.iter().filter_map(|one| one.owner_principal_id.clone());
    let names = Names::to_call(view, owners.collect()).await;
    let pages = address.pages(query, listed.next_page_token.as_deref());
    let shown = AgentsPage {
        frame: view.frame(t::AGENTS, Section::Agents),
        links: STATES.map(|(word, label)| address.link(label, "state", word)).into(),
        chips: address.chips(|name, value| (name == "q").then(|| t::agents::has(value))),
        state: state.to_owned(),
        is_filtered: !sought.is_empty() || state != "active",
        agents: listed.principals.into_iter().map(|one| agent(view, one, &names)).collect(),
        problem,
        may_create: view.may(rpc::CREATE_PRINCIPAL),
        lists_delegations: view.may(rpc::LIST_DELEGATIONS),
        pages,
        sought: sought.to_owned(),
    };
    Ok(page(StatusCode::OK, &shown))
}

fn agent(view: &View, principal: Principal, names: &Names) -> Agent {
    let name = called(&principal.id, &principal.display_name).to_owned();
    Agent {
        about: if name == principal.display_name { String::new() } else { principal.display_name },
        tenant: view.named_tenant(&principal.tenant_id),
        owner: principal.owner_principal_id.map(|id| names.called(id)),
        made: Moment::of_time(principal.created_at, view.now),
        state: principal.state.unwrap_or_default(),
        id: principal.id,
        name,
    }
}

//! The list of decisions, newest first.

use authority_decision::Reason;
use authority_ids::{DecisionId, IdParts};
use authority_model::proto::{
    registry::ListPrincipalsRequest,
    runtime::{DecisionSummary, RequestFact},
};

use super::filter::{Filter, OUTCOMES, SPANS};
use crate::{
    kit::{
        choice::Choice,
        lists::{Chip, ListAddress, ListLink, Pages},
        prelude::*,
        show::Decided,
        text::reason,
    },
    overview::{Shown, last_day},
};

const PAGE: i32 = 50;
/// The maximum number of agents that the filter proposes.
const PROPOSED: i32 = 200;

struct Item {
    agent: String,
    /// Set if several tenants are shown.
    tenant: Option<String>,
    /// The payee or, without one, the first other party that the tool declares.
    to: Option<String>,
    decided: Decided,
}

#[derive(Template)]
#[template(path = "decisions.html")]
struct DecisionsPage {
    frame: Frame,
    filter: Filter,
    chips: Vec<Chip>,
    /// The list by each outcome.
    links: Vec<ListLink>,
    /// The decisions of the last 24 hours. `None` if the role may not read usage.
    usage: Option<Shown>,
    outcomes: Vec<Choice>,
    spans: Vec<Choice>,
    /// Empty if the agents are unknown or too many. The person then types a name.
    agents: Vec<Choice>,
    reasons: Vec<Choice>,
    items: Vec<Item>,
    pages: Pages,
    /// The filter as the query of an address.
    query: String,
}

impl DecisionsPage {
    /// The links to the exports of the list.
    fn export(&self) -> Safe<String> {
        let path = "/console/decisions/export";
        let (and, query) = if self.query.is_empty() { ("", "") } else { ("&", &*self.query) };
        let csv = format!("{path}?format=csv{and}{query}");
        t::decisions::export(csv, format!("{path}{}{query}", and.replace('&', "?")))
    }
}

pub(super) async fn list(view: View, query: Pairs) -> Response {
    if let Some(id) = query.one("id").map(str::trim) {
        return see(&of_id(id));
    }
    view.answer(listed(&view, &query).await)
}

/// The page for a typed id of a decision, its evidence or an approval.
fn of_id(id: &str) -> String {
    if IdParts::is(id, "approval") {
        return format!("/console/approvals/{}", encoded(id));
    }
    let decision = format!("{}{}", DecisionId::PREFIX, short(id));
    if DecisionId::check(&decision).is_ok() {
        return format!("/console/decisions/{decision}");
    }
    format!("/console/decisions/{}", encoded(id))
}

async fn listed(view: &View, query: &Pairs) -> Result<Response, Status> {
    let filter = Filter::of(query);
    let mut request = filter.request(view);
    request.limit = Some(PAGE);
    request.page_token = query.text("page").to_owned();
    let listed = view.calls.call(&request).await?;
    let shows_all = view.tenant().is_none();
    let items = listed.decisions.into_iter().map(|decision| item(view, decision));
    let address = filter.address();
    let (agents, usage) = tokio::join!(agents(view, &filter), last_day(view));
    let decisions = DecisionsPage {
        frame: view.frame(t::DECISIONS, Section::Decisions),
        outcomes: Choice::of_list(&OUTCOMES, filter.get("outcome")),
        spans: Choice::of_list(&SPANS, filter.get("span")),
        agents,
        usage,
        chips: filter.chips(view.now),
        links: outcomes(&address, shows_all),
        reasons: reasons(filter.get("reason")),
        items: items.collect(),
        pages: address.pages(query, listed.next_page_token.as_deref()),
        query: address.query(),
        filter,
    };
    Ok(page(StatusCode::OK, &decisions))
}

/// The list by each outcome. Over all tenants, the API has this filter only with a time.
fn outcomes(address: &ListAddress, shows_all: bool) -> Vec<ListLink> {
    if shows_all {
        return Vec::new();
    }
    OUTCOMES.map(|(word, label)| address.link(label, "outcome", word)).into()
}

fn item(view: &View, decision: DecisionSummary) -> Item {
    Item {
        agent: short(&decision.subject).to_owned(),
        tenant: view.named_tenant(&decision.tenant_id),
        to: party(&decision.facts),
        decided: decision.into(),
    }
}

/// The party of a request. An account or a document is none.
fn party(facts: &[RequestFact]) -> Option<String> {
    let value = |role: &str| facts.iter().find(|fact| fact.role == role);
    let fact = ["payee", "recipient", "target"].into_iter().find_map(value)?;
    Some(fact.value.clone())
}

/// The agents to choose from.
async fn agents(view: &View, filter: &Filter) -> Vec<Choice> {
    if !view.may(rpc::LIST_PRINCIPALS) {
        return Vec::new();
    }
    let request = ListPrincipalsRequest {
        tenant_id: view.shown_tenant().map(String::from),
        principal_class: Some("agent".to_owned()),
        limit: Some(PROPOSED),
        ..ListPrincipalsRequest::default()
    };
    let listed = view.calls.call(&request).await;
    let Ok(listed) = listed else { return Vec::new() };
    if listed.next_page_token.is_some() || listed.principals.is_empty() {
        return Vec::new();
    }
    let chosen = filter.subject(view);
    let ids = listed.principals.iter().map(|principal| principal.id.as_str());
    let mut agents = Choice::of_values(ids, chosen.as_deref(), |id| id);
    let shows_all = view.tenant().is_none();
    for agent in agents.iter_mut().filter(|_| !shows_all) {
        agent.label = short(&agent.value).to_owned();
    }
    agents
}

/// The reasons to choose from, in their sentences.
fn reasons(chosen: &str) -> Vec<Choice> {
    let mut all: Vec<Choice> =
        Choice::of_values(Reason::ALL.iter().map(Reason::word), Some(chosen), |code| code);
    all.retain(|choice| !choice.value.is_empty());
    for choice in &mut all {
        let sentence = reason(&choice.value);
        if !sentence.is_empty() {
            choice.label = sentence;
        }
    }
    all.sort_by(|one, other| one.label.cmp(&other.label));
    all
}

//! The results of a search, in the groups of the page.

use authority_model::proto::runtime::{
    FoundApproval, FoundDecision, FoundPrincipal, FoundRecord, SearchResponse,
};

use crate::kit::{
    kinds::Kind,
    names::is_agent,
    prelude::*,
    show::Decided,
    text::{capitalized, state},
};

/// Results of the same sort.
pub(super) struct Group {
    pub(super) heading: &'static str,
    pub(super) results: Vec<Found>,
    /// Whether there are more results than these.
    pub(super) has_more: bool,
    /// The list with all results, if there is such a list.
    pub(super) all: Option<String>,
}

/// A result.
pub(super) struct Found {
    /// The address of its page; `None` if it has none.
    pub(super) path: Option<String>,
    pub(super) name: String,
    /// The action, or the id.
    pub(super) code: String,
    /// The outcome or the state: its class and its words.
    pub(super) word: (String, String),
    pub(super) about: String,
    pub(super) at: Option<Moment>,
}

/// The page of the record with this id, if nothing else has the text. A request can have a record's
/// id as a fact.
pub(super) fn page_of_id(sought: &str, answer: &SearchResponse) -> Option<String> {
    if !answer.decisions.is_empty() || !answer.approvals.is_empty() {
        return None;
    }
    let principals = answer.principals.iter().map(|found| &found.principal_id);
    let mut ids = principals.chain(answer.records.iter().map(|found| &found.record_id));
    ids.find(|id| *id == sought).and_then(|id| page_of(id))
}

/// The page of a record: for an agent the page of its authority.
fn page_of(id: &str) -> Option<String> {
    let kind = Kind::of_id(id)?;
    let own = kind.own_page(id).filter(|_| is_agent(id));
    Some(own.map_or_else(|| kind.address(id), |(path, _)| path))
}

/// The groups with results.
pub(super) fn groups(view: &View, sought: &str, answer: SearchResponse) -> Vec<Group> {
    let sought = encoded(sought);
    let groups = [
        Group {
            heading: t::DECISIONS,
            results: answer.decisions.into_iter().filter_map(|one| decision(view, one)).collect(),
            has_more: answer.more_decisions,
            all: Some(format!("/console/decisions?fact={sought}")),
        },
        Group {
            heading: t::overview::APPROVAL_REQUESTS,
            results: answer.approvals.into_iter().map(|one| approval(view, one)).collect(),
            has_more: answer.more_approvals,
            all: None,
        },
        Group {
            heading: t::overview::AGENTS_AND_PEOPLE,
            results: answer.principals.into_iter().map(|one| principal(view, one)).collect(),
            has_more: answer.more_principals,
            all: Some(format!("/console/records/principals?q={sought}")),
        },
        Group {
            heading: t::overview::OTHER_RECORDS,
            results: answer.records.into_iter().map(|one| record(view, one)).collect(),
            has_more: answer.more_records,
            all: None,
        },
    ];
    groups.into_iter().filter(|group| !group.results.is_empty()).collect()
}

fn decision(view: &View, found: FoundDecision) -> Option<Found> {
    let Decided { decision, word, reason, .. } = Decided::from(found.decision?);
    let reason = if reason.is_empty() { decision.reason_code } else { reason };
    Some(Found {
        path: Some(format!("/console/decisions/{}", encoded(&decision.decision_id))),
        name: short(&decision.subject).to_owned(),
        code: decision.action,
        word: (word.to_owned(), word.to_owned()),
        about: about([of_tenant(view, &decision.tenant_id), roles(&found.roles), reason]),
        at: Moment::of_time(decision.evaluated_at, view.now),
    })
}

fn approval(view: &View, found: FoundApproval) -> Found {
    Found {
        path: Some(format!("/console/approvals/{}", encoded(&found.approval_id))),
        name: short(&found.subject).to_owned(),
        code: found.action,
        word: (format!("state {}", found.state), state(&found.state).to_owned()),
        about: of_tenant(view, &found.tenant_id),
        at: Moment::of_time(found.asked_at, view.now),
    }
}

fn principal(view: &View, found: FoundPrincipal) -> Found {
    let name = called(&found.principal_id, &found.display_name).to_owned();
    let display_name = Some(found.display_name).filter(|other| *other != name);
    Found {
        path: page_of(&found.principal_id),
        name,
        code: String::new(),
        word: (format!("state {}", found.state), capitalized(&found.state)),
        about: about([of_tenant(view, &found.tenant_id), display_name.unwrap_or_default()]),
        at: None,
    }
}

fn record(view: &View, found: FoundRecord) -> Found {
    let tenant = found.tenant_id.map(|tenant| of_tenant(view, &tenant)).unwrap_or_default();
    Found {
        path: page_of(&found.record_id),
        name: found.name.unwrap_or_else(|| short(&found.record_id).to_owned()),
        code: String::new(),
        word: (String::new(), String::new()),
        about: about([tenant, capitalized(&found.entity_type.replace('_', " "))]),
        at: None,
    }
}

/// The tenant, if several tenants are shown.
fn of_tenant(view: &View, tenant_id: &str) -> String {
    view.named_tenant(tenant_id).unwrap_or_default()
}

/// The roles that have the value: `Payee, account`.
fn roles(roles: &[String]) -> String {
    capitalized(&roles.join(", "))
}

fn about<const N: usize>(parts: [String; N]) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

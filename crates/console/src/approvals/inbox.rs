//! The requests that wait, the one that ends first on top.

use askama::Template;
use authority_model::proto::approval::{Approval, ListApprovalsRequest, ListApprovalsResponse};
use axum::{extract::RawQuery, response::Response};
use http::StatusCode;
use tonic::Status;

use super::{is_opened, summary::Summary};
use crate::{
    frame::{Frame, Section},
    page::page,
    query::Pairs,
    rpc,
    show::{counted, short},
    text::STATES,
    view::View,
};

/// The most requests that are read for a list.
const MOST: usize = 500;
const PAGE: i32 = 250;

struct Item {
    summary: Summary,
    /// Whether this session has opened it, so that it can be ticked.
    opened: bool,
}

/// A choice of a filter.
struct Choice {
    value: String,
    label: String,
    chosen: bool,
}

#[derive(Template)]
#[template(path = "approvals.html")]
struct Inbox {
    frame: Frame,
    items: Vec<Item>,
    /// How many there are, in words.
    count: String,
    states: Vec<Choice>,
    agents: Vec<Choice>,
    actions: Vec<Choice>,
    is_filtered: bool,
    shows_pending: bool,
    /// Whether there are more than are shown.
    more: bool,
    may_act: bool,
    any_opened: bool,
}

pub(super) async fn list(view: View, RawQuery(query): RawQuery) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(listed(&view, &query).await)
}

async fn listed(view: &View, query: &Pairs) -> Result<Response, Status> {
    let state = query.one("state").unwrap_or("pending");
    let (agent, action) = (query.one("agent"), query.one("action"));
    let (mut approvals, more) = read(view, state, agent).await?;
    if state == "pending" {
        approvals.sort_by_key(|approval| approval.expires_at);
    } else {
        approvals.reverse();
    }
    let agents = choices(approvals.iter().map(|a| a.subject.as_str()), agent, short);
    let actions = choices(approvals.iter().map(|a| a.action.as_str()), action, |action| action);
    approvals.retain(|approval| action.is_none_or(|action| approval.action == action));
    let items: Vec<Item> = approvals
        .iter()
        .map(|approval| Item {
            summary: Summary::of(approval, view.now),
            opened: is_opened(view, approval),
        })
        .collect();
    let states = STATES.iter().map(|(value, label)| Choice {
        value: (*value).to_owned(),
        label: (*label).to_owned(),
        chosen: *value == state,
    });
    let shows_pending = state == "pending";
    let inbox = Inbox {
        frame: view.frame("Approvals", Section::Approvals),
        count: counted(items.len(), "request", "requests"),
        any_opened: items.iter().any(|item| item.opened),
        items,
        states: states.collect(),
        agents,
        actions,
        is_filtered: agent.is_some() || action.is_some() || !shows_pending,
        shows_pending,
        more,
        may_act: view.may(rpc::APPROVE_APPROVAL),
    };
    Ok(page(StatusCode::OK, &inbox))
}

/// The requests of a state and an agent, oldest first, and whether there are more.
async fn read(
    view: &View,
    state: &str,
    agent: Option<&str>,
) -> Result<(Vec<Approval>, bool), Status> {
    let mut request = ListApprovalsRequest {
        tenant_id: view.shown_tenant().map(str::to_owned),
        state: Some(state.to_owned()),
        subject: agent.map(str::to_owned),
        limit: Some(PAGE),
        ..ListApprovalsRequest::default()
    };
    let mut approvals = Vec::new();
    loop {
        let listed: ListApprovalsResponse = view.calls.call(rpc::LIST_APPROVALS, &request).await?;
        approvals.extend(listed.approvals);
        match listed.next_page_token {
            Some(token) if approvals.len() < MOST => request.page_token = token,
            next => return Ok((approvals, next.is_some())),
        }
    }
}

/// The values that a filter can have here, and the one that it has.
fn choices<'a>(
    values: impl Iterator<Item = &'a str>,
    chosen: Option<&'a str>,
    label: impl Fn(&str) -> &str,
) -> Vec<Choice> {
    let mut values: Vec<&str> = values.chain(chosen).collect();
    values.sort_unstable();
    values.dedup();
    let choice = |value: &str| Choice {
        value: value.to_owned(),
        label: label(value).to_owned(),
        chosen: chosen == Some(value),
    };
    values.into_iter().map(choice).collect()
}

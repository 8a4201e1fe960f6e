//! The requests that wait, the one that ends first on top.

use askama::Template;
use authority_model::proto::approval::{Approval, ListApprovalsRequest, ListApprovalsResponse};
use axum::{extract::RawQuery, response::Response};
use http::StatusCode;
use tonic::Status;

use super::{
    is_opened,
    summary::{State, Summary},
};
use crate::{
    choice::Choice,
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
        // One whose time has passed is expired, also before that is written.
        approvals.retain(|approval| State::of(approval, view.now).is_pending);
        approvals.sort_by_key(|approval| approval.expires_at);
    } else {
        approvals.reverse();
    }
    let subjects = approvals.iter().map(|approval| approval.subject.as_str());
    let agents = Choice::of_values(subjects, agent, short);
    let names = approvals.iter().map(|approval| approval.action.as_str());
    let actions = Choice::of_values(names, action, |action| action);
    approvals.retain(|approval| action.is_none_or(|action| approval.action == action));
    let items: Vec<Item> = approvals
        .iter()
        .map(|approval| Item {
            summary: Summary::of(approval, view.now),
            opened: is_opened(view, approval),
        })
        .collect();
    let shows_pending = state == "pending";
    let inbox = Inbox {
        frame: view.frame("Approvals", Section::Approvals),
        count: counted(items.len(), "request", "requests"),
        any_opened: items.iter().any(|item| item.opened),
        items,
        states: Choice::of_list(&STATES, state),
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

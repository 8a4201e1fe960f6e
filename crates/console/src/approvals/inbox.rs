//! The inbox: pending requests by expiry, the soonest first; closed requests with the newest first.
//! The list has pages.

use askama::Template;
use authority_model::proto::approval::{Approval, ListApprovalsRequest, ListApprovalsResponse};
use axum::{extract::RawQuery, response::Response};
use http::StatusCode;
use tonic::Status;

use super::{
    mine::not_mine,
    request::{has_acted, is_opened},
    summary::{State, Summary},
};
use crate::{
    choice::Choice,
    frame::{Frame, Section},
    page::page,
    query::{Pairs, encoded},
    rpc,
    show::{counted, short},
    text::{STATES, capitalized},
    view::View,
};

/// The number of requests of a page. The API returns fewer if contexts are large.
const PAGE: i32 = 100;
/// The maximum number of API pages read for one page here. Another is read if all requests in the
/// last one have ended.
const MOST_READS: usize = 4;

struct Item {
    summary: Summary,
    /// Whether this session has opened it.
    opened: bool,
    /// Whether this person has answered, and other people must still answer.
    answered: bool,
    /// Why somebody else must decide it.
    not_mine: Option<String>,
    /// Whether it was selected before.
    selected: bool,
}

impl Item {
    /// Whether it can be selected: it was read, and waits for this person's answer.
    fn can_be_selected(&self) -> bool {
        let is_open = self.opened && self.summary.state.is_pending;
        is_open && !self.answered && self.not_mine.is_none()
    }
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
    agent: String,
    action: String,
    is_filtered: bool,
    shows_pending: bool,
    /// Whether this is not the first page.
    continues: bool,
    /// The address of the next page.
    next: Option<String>,
    may_act: bool,
    any_selectable: bool,
    /// The filter and the page, for the way back to this list.
    place: Vec<(&'static str, String)>,
}

pub(super) async fn list(view: View, RawQuery(query): RawQuery) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(listed(&view, &query, None).await)
}

/// The list with the selected requests, and the reason why they are not approved together.
pub(super) async fn again(view: &View, query: &Pairs, problem: &str) -> Result<Response, Status> {
    listed(view, query, Some(capitalized(problem))).await
}

async fn listed(view: &View, query: &Pairs, problem: Option<String>) -> Result<Response, Status> {
    let state = query.one("state").unwrap_or("pending");
    let shows_pending = state == "pending";
    let (agent, action) = (query.one("agent"), query.one("action"));
    let found = read(view, state, query).await?;
    let subjects = found.approvals.iter().map(|approval| approval.subject.as_str());
    let agents = Choice::of_values(subjects, agent, short);
    let names = found.approvals.iter().map(|approval| approval.action.as_str());
    let actions = Choice::of_values(names, action, |action| action);
    let may_act = view.may(rpc::APPROVE_APPROVAL);
    let items = items(view, query, &found.approvals, may_act && shows_pending).await;
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let frame = view.frame("Approvals", Section::Approvals);
    let inbox = Inbox {
        frame: match problem {
            Some(text) => frame.failed("Nothing was approved", format!("{text}."), None),
            None => frame,
        },
        count: counted(found.total.unwrap_or(items.len()), "request", "requests"),
        any_selectable: items.iter().any(Item::can_be_selected),
        items,
        states: Choice::of_list(&STATES, state),
        agents,
        actions,
        agent: agent.unwrap_or_default().to_owned(),
        action: action.unwrap_or_default().to_owned(),
        is_filtered: agent.is_some() || action.is_some() || !shows_pending,
        shows_pending,
        continues: query.one("page").is_some(),
        next: found.next.map(|token| next_page(query, &token)),
        may_act,
        place: place(query, query.text("page")),
    };
    Ok(page(status, &inbox))
}

/// The requests of a page, each with whether this person may answer it.
async fn items(
    view: &View,
    query: &Pairs,
    approvals: &[Approval],
    can_be_answered: bool,
) -> Vec<Item> {
    let not_mine =
        if can_be_answered { not_mine(view, approvals).await } else { vec![None; approvals.len()] };
    let item = |(approval, not_mine): (&Approval, Option<String>)| Item {
        summary: Summary::of(approval, view.now),
        opened: is_opened(view, approval),
        answered: has_acted(view, approval),
        selected: query.all("id").any(|id| id == approval.id),
        not_mine,
    };
    approvals.iter().zip(not_mine).map(item).collect()
}

/// The filter and the page of a list, as parameters of an address.
fn place(query: &Pairs, page: &str) -> Vec<(&'static str, String)> {
    let filters = ["state", "agent", "action"].map(|name| (name, query.text(name)));
    let members = filters.into_iter().chain([("page", page)]);
    let given = members.filter(|(_, value)| !value.is_empty());
    given.map(|(name, value)| (name, value.to_owned())).collect()
}

fn address(members: &[(&'static str, String)]) -> String {
    let members = members.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
    format!("/console/approvals?{}", members.collect::<Vec<_>>().join("&"))
}

/// The address of the page that this token leads to.
fn next_page(query: &Pairs, token: &str) -> String {
    address(&place(query, token))
}

/// The address of a list in which these are selected.
pub(super) fn selecting(query: &Pairs, ids: &[&str]) -> String {
    let mut members = place(query, query.text("page"));
    members.extend(ids.iter().map(|id| ("id", (*id).to_owned())));
    address(&members)
}

/// A page of the requests.
struct InboxPage {
    approvals: Vec<Approval>,
    /// The number of pending requests; `None` for other states.
    total: Option<usize>,
    next: Option<String>,
}

/// The page of requests with the state, agent and action of the query.
async fn read(view: &View, state: &str, query: &Pairs) -> Result<InboxPage, Status> {
    let pending = state == "pending";
    let mut request = ListApprovalsRequest {
        tenant_id: view.shown_tenant().map(String::from),
        state: Some(state.to_owned()),
        subject: query.one("agent").map(str::to_owned),
        action: query.one("action").map(str::to_owned),
        order: Some(if pending { "expiry" } else { "newest" }.to_owned()),
        limit: Some(PAGE),
        page_token: query.text("page").to_owned(),
        // Only pending requests are counted, because they are few.
        count: pending,
    };
    let (mut over, mut reads) = (0, 0);
    loop {
        let mut found = once(view, &request).await?;
        let length = found.approvals.len();
        if pending {
            // A request past its expiry time is expired, even if the state is not stored yet.
            found.approvals.retain(|approval| State::of(approval, view.now).is_pending);
        }
        over += length - found.approvals.len();
        reads += 1;
        if found.approvals.is_empty()
            && reads < MOST_READS
            && let Some(token) = found.next.take()
        {
            request.page_token = token;
            continue;
        }
        found.total = found.total.map(|total| total.saturating_sub(over));
        return Ok(found);
    }
}

async fn once(view: &View, request: &ListApprovalsRequest) -> Result<InboxPage, Status> {
    let listed: ListApprovalsResponse = view.calls.call(rpc::LIST_APPROVALS, request).await?;
    let total = listed.total.and_then(|total| usize::try_from(total).ok());
    Ok(InboxPage { approvals: listed.approvals, total, next: listed.next_page_token })
}

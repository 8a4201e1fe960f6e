//! The inbox: pending requests by expiry, the soonest first, by amount or by age; closed requests
//! with the newest first. The list has pages.

use authority_model::{
    proto::approval::{ListApprovalsRequest, ListApprovalsResponse},
    wire::Time,
};

use super::{
    request::translated,
    rows::{Group, Item},
};
use crate::kit::{
    choice::Choice,
    lists::{Chip, ListAddress, ListLink, Pages},
    prelude::*,
    text::{self, STATES, capitalized},
};

/// The number of requests of a page. The API returns fewer if contexts are large.
const PAGE: i32 = 100;
/// The parameters of the list's address besides its page.
const MEMBERS: [&str; 6] = ["state", "agent", "action", "yours", "sort", "group"];

/// The order of the list.
struct Sorting {
    by_amount: ListLink,
    by_age: ListLink,
    by_expiry: ListLink,
}

#[derive(Template)]
#[template(path = "approvals.html")]
struct Inbox {
    frame: Frame,
    groups: Vec<Group>,
    /// How many there are on this page.
    shown: usize,
    /// How many there are, in words.
    count: String,
    states: Vec<Choice>,
    agents: Vec<Choice>,
    actions: Vec<Choice>,
    agent: String,
    action: String,
    chips: Vec<Chip>,
    /// The requests that this person may decide, all that wait, and alike ones in groups.
    links: Vec<ListLink>,
    sorting: Sorting,
    /// The order of the list, in words.
    order: &'static str,
    is_filtered: bool,
    shows_pending: bool,
    /// Whether the list has only the requests that this person may decide.
    yours: bool,
    pages: Pages,
    /// Whether this person may select requests.
    ticks: bool,
    any_selectable: bool,
    /// The filter and the page, for the way back to this list.
    place: ListAddress,
    /// The parameters that the filter's form keeps.
    kept: ListAddress,
}

impl Inbox {
    fn columns(&self) -> usize {
        8 + usize::from(self.ticks)
    }
}

pub(super) async fn list(view: View, query: Pairs) -> Response {
    view.answer(listed(&view, &query, None).await)
}

/// The list with the selected requests, and the reason why they are not approved together.
pub(super) async fn again(view: &View, query: &Pairs, problem: &str) -> Result<Response, Status> {
    listed(view, query, Some(format!("{}.", capitalized(problem)))).await
}

async fn listed(view: &View, query: &Pairs, problem: Option<String>) -> Result<Response, Status> {
    let list = address(query);
    let request = request(view, query);
    let shows_pending = request.state.as_deref() == Some("pending");
    let may_act = view.may(rpc::APPROVE_APPROVAL);
    let ticks = may_act && shows_pending;
    let other = async { if ticks { other_total(view, &request).await } else { None } };
    let (found, other) = tokio::join!(read(view, &request), other);
    let found = found?;
    let (agent, action) = (request.subject.as_deref(), request.action.as_deref());
    let subjects = found.approvals.iter().map(|approval| approval.subject.as_str());
    let agents = Choice::of_values(subjects, agent, short);
    let names = found.approvals.iter().map(|approval| approval.action.as_str());
    let actions = Choice::of_values(names, action, |action| action);
    let items: Vec<Item> =
        found.approvals.iter().map(|approval| Item::of(view, query, approval)).collect();
    let status = if problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let frame = view.frame(t::APPROVALS, Section::Approvals);
    let here = total(&found);
    let count = here.unwrap_or(items.len());
    let inbox = Inbox {
        frame: frame.failed_if(t::inbox::NONE_APPROVED, problem, None),
        shown: items.len(),
        count: match (shows_pending, request.for_me) {
            (true, true) => t::inbox::waiting_for_you(count),
            (true, false) => t::inbox::waiting(count),
            (false, _) => t::requests(count),
        },
        any_selectable: items.iter().any(Item::can_be_selected),
        groups: Group::of(items, &list),
        states: Choice::of_list(&STATES, request.state.as_deref().unwrap_or_default()),
        agents,
        actions,
        agent: agent.unwrap_or_default().to_owned(),
        action: action.unwrap_or_default().to_owned(),
        chips: list.chips(chip),
        links: links(&list, request.for_me, [here, other], ticks),
        sorting: Sorting {
            by_amount: list.link(t::AMOUNT, "sort", "amount"),
            by_age: list.link(t::ASKED, "sort", "age"),
            by_expiry: list.link(t::ENDS, "sort", ""),
        },
        order: order(request.order.as_deref()),
        is_filtered: !list.chips(chip).is_empty(),
        shows_pending,
        yours: request.for_me,
        pages: list.pages(query, found.next_page_token.as_deref()),
        ticks,
        place: list.with("page", query.text("page")),
        kept: list.with("state", "").with("agent", "").with("action", ""),
    };
    Ok(page(status, &inbox))
}

/// The address of the list, without its page.
fn address(query: &Pairs) -> ListAddress {
    ListAddress::of("/console/approvals", MEMBERS.map(|name| (name, query.text(name))))
}

/// The label of a filter.
fn chip(name: &str, value: &str) -> Option<String> {
    match name {
        "state" if value != "pending" => Some(text::state(value).to_owned()),
        "agent" => Some(t::agent_named(short(value))),
        "action" => Some(t::action_named(value)),
        _ => None,
    }
}

/// The words for an order of the API.
fn order(order: Option<&str>) -> &'static str {
    match order {
        Some("expiry") => t::inbox::END_FIRST,
        Some("amount") => t::inbox::LARGEST_FIRST,
        Some("oldest") => t::inbox::OLDEST_FIRST,
        _ => t::inbox::NEWEST_FIRST,
    }
}

/// The common filters of pending requests with their exact numbers, and the grouping. `here` is the
/// number of requests in this list. `other` is the number in the list with the other filter.
fn links(
    list: &ListAddress,
    yours: bool,
    [here, other]: [Option<usize>; 2],
    may_act: bool,
) -> Vec<ListLink> {
    let is_grouped = list.members().iter().any(|(name, _)| name == "group");
    let group = ListLink {
        chosen: is_grouped,
        ..list.link(t::inbox::GROUP_ALIKE, "group", if is_grouped { "" } else { "yes" })
    };
    if !may_act {
        return vec![group];
    }
    let [mine, all] = if yours { [here, other] } else { [other, here] };
    vec![
        list.link(t::inbox::YOURS, "yours", "yes").counted(mine),
        list.link(t::inbox::ALL_WAITING, "yours", "").counted(all),
        group,
    ]
}

/// The number of the requests that this person may decide, if the list has all; or the number of
/// all.
async fn other_total(view: &View, request: &ListApprovalsRequest) -> Option<usize> {
    let other = ListApprovalsRequest {
        for_me: !request.for_me,
        limit: Some(1),
        page_token: String::new(),
        order: None,
        ..request.clone()
    };
    read(view, &other).await.ok().and_then(|listed| total(&listed))
}

fn total(listed: &ListApprovalsResponse) -> Option<usize> {
    usize::try_from(listed.total?).ok()
}

/// The address of a list in which these are selected.
pub(super) fn selecting(query: &Pairs, ids: &[&str]) -> String {
    let mut address = address(query).with("page", query.text("page")).text();
    for id in ids {
        address.push(if address.contains('?') { '&' } else { '?' });
        address.push_str("id=");
        address.push_str(&encoded(id));
    }
    address
}

/// The request for the page of the query.
fn request(view: &View, query: &Pairs) -> ListApprovalsRequest {
    let state = query.one("state").unwrap_or("pending");
    let pending = state == "pending";
    let order = match query.text("sort") {
        "amount" if pending => "amount",
        "age" if pending => "oldest",
        _ if pending => "expiry",
        _ => "newest",
    };
    ListApprovalsRequest {
        tenant_id: view.shown_tenant().map(String::from),
        state: Some(state.to_owned()),
        subject: query.one("agent").map(str::to_owned),
        action: query.one("action").map(str::to_owned),
        order: Some(order.to_owned()),
        limit: Some(PAGE),
        page_token: query.text("page").to_owned(),
        // Only pending requests are counted, because they are few.
        count: pending,
        // A request past its expiry time is expired, even if the state is not stored yet.
        expires_after: pending.then(|| Time::from(view.now)),
        for_me: pending && query.text("yours") == "yes",
    }
}

async fn read(
    view: &View,
    request: &ListApprovalsRequest,
) -> Result<ListApprovalsResponse, Status> {
    let listed = view.calls.call(request).await?;
    let approvals = listed.approvals.into_iter().map(|one| translated(view, one)).collect();
    Ok(ListApprovalsResponse { approvals, ..listed })
}

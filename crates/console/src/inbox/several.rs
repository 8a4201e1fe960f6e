//! Several requests at once: requests of one agent and action that were each opened before. Each
//! one is listed.

use authority_model::proto::approval::{Approval, ApproveApprovalRequest};
use futures_util::{StreamExt, stream};

use super::{
    left_out::{LeftOut, why_alone},
    list,
    next::{Next, next},
    presented::Warning,
    request::{is_opened, read, translated},
    summary::Summary,
    would_be::WouldBe,
};
use crate::kit::{prelude::*, show::Sums};

/// The most requests of one confirmation.
const MOST: usize = 20;

/// The number of approvals that are sent at once.
const ACTS: usize = 4;

/// A request of the table.
struct Item {
    summary: Summary,
    /// Warnings about other requests, selected or not.
    warnings: Vec<Warning>,
}

#[derive(Template)]
#[template(path = "several.html")]
struct Several {
    frame: Frame,
    items: Vec<Item>,
    agent: String,
    action: String,
    sums: Vec<Amount>,
    /// Requests without an amount, which no sum has.
    without_amount: usize,
    /// How many were selected.
    selected: usize,
    left_out: LeftOut,
    /// How many of them wait for more people after this approval.
    still: usize,
    key: String,
    /// The list, with these selected.
    back: String,
}

struct Outcome {
    summary: Summary,
    /// The outcome, or the reason why the request was not approved.
    text: String,
    approved: bool,
}

#[derive(Template)]
#[template(path = "several_done.html")]
struct SeveralDonePage {
    frame: Frame,
    heading: String,
    /// How many of them wait for more people.
    still: usize,
    outcomes: Vec<Outcome>,
    /// The next request that this person may decide.
    next: Option<Next>,
}

pub(super) async fn confirm(view: View, query: Pairs) -> Response {
    view.answer(confirmation(&view, &query).await)
}

async fn confirmation(view: &View, query: &Pairs) -> Result<Response, Status> {
    let ids: Vec<&str> = query.all("id").collect();
    let mut approvals = match together(view, &ids).await {
        Ok(approvals) => approvals,
        Err(status) => return back_to_list(view, query, status).await,
    };
    let (agent, action) = (short(&approvals[0].subject).to_owned(), approvals[0].action.clone());
    let left_out = LeftOut::of(view, &mut approvals);
    let still = approvals.iter().filter(|approval| still_waits(view, approval)).count();
    let items = items(view, &approvals);
    let amounts = items.iter().filter_map(|item| item.summary.amount.as_ref());
    let mut sums = Sums::default();
    amounts.for_each(|amount| sums.add(amount));
    let several = Several {
        frame: view.frame(t::inbox::APPROVE_SEVERAL, Section::Approvals),
        selected: ids.len(),
        agent,
        action,
        sums: sums.amounts(),
        without_amount: items.iter().filter(|item| item.summary.amount.is_none()).count(),
        items,
        left_out,
        still,
        key: idempotency_key()?,
        back: list::selecting(query, &ids),
    };
    Ok(page(StatusCode::OK, &several))
}

/// Whether a request needs more people than one.
fn still_waits(view: &View, approval: &Approval) -> bool {
    let would_be = WouldBe::of(approval, view.now);
    would_be.is_some_and(|would_be| !would_be.permits() || would_be.missing > 1)
}

/// Shows in the list why the requests cannot be approved at once. People can change the selection
/// there.
async fn back_to_list(view: &View, query: &Pairs, status: Status) -> Result<Response, Status> {
    let problem = Problem::of(&status);
    match problem.status {
        StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND => {
            list::again(view, query, &problem.message).await
        }
        _ => Err(status),
    }
}

/// The rows.
fn items(view: &View, approvals: &[Approval]) -> Vec<Item> {
    let ids: Vec<&str> = approvals.iter().map(|approval| approval.id.as_str()).collect();
    let item = |approval: &Approval| Item {
        summary: Summary::of(approval, view.now),
        warnings: Warning::all(approval, &ids, view.now),
    };
    approvals.iter().map(item).collect()
}

fn invalid(text: &str) -> Status {
    Status::invalid_argument(text)
}

/// The requests, if they can be answered together: at least one, and in this order.
async fn together(view: &View, ids: &[&str]) -> Result<Vec<Approval>, Status> {
    if ids.is_empty() {
        return Err(invalid(t::inbox::NONE_SELECTED));
    }
    if ids.len() > MOST {
        return Err(invalid(t::inbox::TOO_MANY));
    }
    if (1..ids.len()).any(|at| ids[..at].contains(&ids[at])) {
        return Err(invalid(t::inbox::TWICE));
    }
    let read = some_at_once(ids.iter().map(|id| read(view, id))).await;
    let approvals = read.into_iter().collect::<Result<Vec<Approval>, Status>>()?;
    if !approvals.iter().all(|approval| is_opened(view, approval)) {
        return Err(invalid(t::inbox::NOT_OPENED));
    }
    let first = &approvals[0];
    let alike =
        |other: &Approval| (&other.subject, &other.action) == (&first.subject, &first.action);
    if !approvals.iter().all(alike) {
        return Err(invalid(t::inbox::NOT_ALIKE));
    }
    Ok(approvals)
}

/// Approves exactly the requests that the page had, by id, digest and version of the presentation.
pub(super) async fn act(Posted { view, form }: Posted) -> Response {
    view.answer_act(t::inbox::NONE_APPROVED, acted(&view, &form).await)
}

/// The API checks whether a request is still pending, with an idempotency key for each request. A
/// form that is sent again after a lost response gets the same response.
async fn acted(view: &View, form: &Pairs) -> Result<Response, Status> {
    let pairs: Vec<(&str, &str)> =
        form.all("item").filter_map(|item| item.split_once('=')).collect();
    let ids: Vec<&str> = pairs.iter().map(|(id, _)| *id).collect();
    let selected = Pairs::of(ids.iter().map(|id| ("id", *id)));
    let approvals = match together(view, &ids).await {
        Ok(approvals) => approvals,
        Err(status) => return back_to_list(view, &selected, status).await,
    };
    let acts = approvals.iter().zip(&pairs).enumerate();
    let acts: Vec<_> = acts
        .map(|(number, (approval, (_, shown)))| approve(view, form, number, approval, shown))
        .collect();
    let mut outcomes: Vec<Outcome> = stream::iter(acts).buffered(ACTS).collect().await;
    outcomes.sort_by_key(|outcome| outcome.approved);
    let done = outcomes.iter().filter(|outcome| outcome.approved).count();
    let waits = |outcome: &&Outcome| outcome.approved && outcome.summary.state.is_pending;
    let still = outcomes.iter().filter(waits).count();
    let all = outcomes.len();
    let heading = t::inbox::approved_of(all, done);
    let mut frame = view.frame(&heading, Section::Approvals);
    let mut status = StatusCode::OK;
    if done < all {
        let failed = t::inbox::not_approved_of(all, all - done);
        frame = frame.failed(failed, t::inbox::LISTED_FIRST, None);
        status = StatusCode::CONFLICT;
    }
    let next = next(view).await;
    Ok(page(status, &SeveralDonePage { frame, heading, still, outcomes, next }))
}

/// Approves one request, number `number` in the form.
async fn approve(
    view: &View,
    form: &Pairs,
    number: usize,
    approval: &Approval,
    shown: &str,
) -> Outcome {
    let (digest, version) = shown.split_once('=').unwrap_or((shown, ""));
    if let Some(why) = why_alone(view, approval) {
        let summary = Summary::of(approval, view.now);
        return Outcome { summary, text: why.to_owned(), approved: false };
    }
    let request = ApproveApprovalRequest {
        id: approval.id.clone(),
        comment: form.one("text").map(str::to_owned),
        request_digest: Some(digest.to_owned()),
        reviewed: Vec::new(),
        presentation_version: (!version.is_empty()).then(|| version.to_owned()),
    };
    let key = form.one("key").map(|key| format!("{key}-{number}"));
    let sent = view.calls.call_once(&request, key.as_deref()).await;
    let (text, approved, now) = outcome(view, sent);
    Outcome { summary: Summary::of(now.as_ref().unwrap_or(approval), view.now), text, approved }
}

fn outcome(view: &View, sent: Result<Approval, Status>) -> (String, bool, Option<Approval>) {
    match sent {
        Ok(approval) => {
            let approval = translated(view, approval);
            let state = Summary::of(&approval, view.now).state;
            (state.label.to_owned(), state.word != "void", Some(approval))
        }
        Err(status) => (Problem::of(&status).message, false, None),
    }
}

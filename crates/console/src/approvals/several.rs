//! Several requests at once: of one agent and action, each opened before, each listed, and no others than those.

use askama::Template;
use authority_model::proto::approval::{Approval, ApproveApprovalRequest};
use axum::{extract::RawQuery, response::Response};
use http::StatusCode;
use tonic::Status;

use super::{is_opened, read, summary::Summary};
use crate::{
    form::{Posted, idempotency_key},
    frame::{Frame, Section},
    page::page,
    problem::Problem,
    query::Pairs,
    rpc,
    show::{Amount, Sums, counted},
    view::View,
};

/// The most requests of one confirmation.
const MOST: usize = 20;

#[derive(Template)]
#[template(path = "several.html")]
struct Several {
    frame: Frame,
    items: Vec<Summary>,
    count: String,
    agent: String,
    action: String,
    sums: Vec<Amount>,
    /// Requests without an amount, which no sum has.
    without_amount: usize,
    key: String,
}

struct Outcome {
    summary: Summary,
    /// What became of it, or why nothing did.
    text: String,
    approved: bool,
}

#[derive(Template)]
#[template(path = "several_done.html")]
struct Done {
    frame: Frame,
    count: String,
    outcomes: Vec<Outcome>,
}

pub(super) async fn confirm(view: View, RawQuery(query): RawQuery) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    let ids: Vec<&str> = query.all("id").collect();
    view.answer(confirmation(&view, &ids).await)
}

async fn confirmation(view: &View, ids: &[&str]) -> Result<Response, Status> {
    let approvals = together(view, ids).await?;
    let mut sums = Sums::default();
    let items: Vec<Summary> = approvals.iter().map(|a| Summary::of(a, view.now)).collect();
    items.iter().filter_map(|item| item.amount.as_ref()).for_each(|amount| sums.add(amount));
    let first = &approvals[0];
    let several = Several {
        frame: view.frame("Approve several", Section::Approvals),
        count: counted(items.len(), "request", "requests"),
        agent: crate::show::short(&first.subject).to_owned(),
        action: first.action.clone(),
        sums: sums.amounts(),
        without_amount: items.iter().filter(|item| item.amount.is_none()).count(),
        items,
        key: idempotency_key()?,
    };
    Ok(page(StatusCode::OK, &several))
}

/// The requests, if they can be answered together: at least one.
async fn together(view: &View, ids: &[&str]) -> Result<Vec<Approval>, Status> {
    let invalid = |text: &str| Status::invalid_argument(text);
    if ids.is_empty() {
        return Err(invalid(
            "no request was ticked; open those that you want to approve, then tick them",
        ));
    }
    if ids.len() > MOST {
        return Err(invalid("at most 20 requests are approved at once; tick fewer"));
    }
    let mut approvals: Vec<Approval> = Vec::new();
    for id in ids {
        let approval = read(view, id).await?;
        if approvals.iter().any(|known| known.id == approval.id) {
            return Err(invalid("a request is named twice; tick each once"));
        }
        if !is_opened(view, &approval) {
            return Err(invalid("a request was not opened in this session; open it, then tick it"));
        }
        if !Summary::of(&approval, view.now).state.is_pending {
            return Err(invalid("a request does not wait any more; go back to the list"));
        }
        let alike = approvals.first().is_none_or(|first| {
            first.subject == approval.subject && first.action == approval.action
        });
        if !alike {
            return Err(invalid("requests of several agents or actions are not approved at once"));
        }
        approvals.push(approval);
    }
    Ok(approvals)
}

/// Approves exactly the pairs of id and digest that the page had.
pub(super) async fn act(Posted { view, form }: Posted) -> Response {
    view.answer(acted(&view, &form).await)
}

async fn acted(view: &View, form: &Pairs) -> Result<Response, Status> {
    let pairs: Vec<(&str, &str)> =
        form.all("item").filter_map(|item| item.split_once('=')).collect();
    let ids: Vec<&str> = pairs.iter().map(|(id, _)| *id).collect();
    let approvals = together(view, &ids).await?;
    let comment = form.one("text").map(str::to_owned);
    let mut outcomes = Vec::new();
    for (number, (approval, (_, digest))) in approvals.iter().zip(&pairs).enumerate() {
        let request = ApproveApprovalRequest {
            id: approval.id.clone(),
            comment: comment.clone(),
            request_digest: Some((*digest).to_owned()),
            reviewed: Vec::new(),
        };
        let key = form.one("key").map(|key| format!("{key}-{number}"));
        let sent = view.calls.call_once(rpc::APPROVE_APPROVAL, &request, key.as_deref()).await;
        let (text, approved, now) = outcome(view, sent);
        let summary = Summary::of(now.as_ref().unwrap_or(approval), view.now);
        outcomes.push(Outcome { summary, text, approved });
    }
    let done = outcomes.iter().filter(|outcome| outcome.approved).count();
    let count = format!("{done} of {}", counted(outcomes.len(), "request", "requests"));
    let frame = view.frame("Approved", Section::Approvals);
    let status = if done == outcomes.len() { StatusCode::OK } else { StatusCode::CONFLICT };
    Ok(page(status, &Done { frame, count, outcomes }))
}

fn outcome(view: &View, sent: Result<Approval, Status>) -> (String, bool, Option<Approval>) {
    match sent {
        Ok(approval) => {
            let state = Summary::of(&approval, view.now).state;
            (state.label.to_owned(), state.word != "void", Some(approval))
        }
        Err(status) => (Problem::of(&status).message, false, None),
    }
}

//! One request: what would be done, by whom, on what authority, and what can be answered.

use askama::Template;
use authority_model::{
    proto::{
        approval::{Approval, ApprovalAct, ApprovalPolicy},
        runtime::{ListDecisionsRequest, ListDecisionsResponse},
    },
    state::ApprovalState,
};
use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use http::StatusCode;
use tonic::Status;

use super::{
    again,
    finding::{Finding, approve_path, findings},
    has_acted, read,
    summary::{Summary, is_erased},
    would_be::WouldBe,
};
use crate::{
    authority::Authority,
    frame::{Frame, Section},
    names::Names,
    page::page,
    query::Pairs,
    rpc,
    show::{Argument, Moment, arguments},
    text::{self, outcome},
    view::View,
};

/// Decisions of the agent on the same action that are shown.
const HISTORY: i32 = 8;

struct Act {
    name: String,
    role: String,
    verb: &'static str,
    own_interest: bool,
    comment: Option<String>,
    at: Option<Moment>,
}

struct Earlier {
    id: String,
    label: &'static str,
    at: Option<Moment>,
    reason: Option<String>,
}

/// Why this person cannot act.
enum Barrier {
    /// They have approved, and this is what it waits for.
    Approved(String),
    Rule {
        rule: String,
        /// The exact rules for who could act instead.
        remedy: String,
    },
}

/// That this person must sign in again before they approve.
struct SignInAgain {
    reason: String,
    /// Where they do; `None` where it would not help.
    path: Option<String>,
}

struct Past {
    id: String,
    word: &'static str,
    reason_code: String,
    at: Option<Moment>,
}

#[derive(Template)]
#[template(path = "approval.html")]
struct ApprovalPage {
    frame: Frame,
    summary: Summary,
    agent_name: Option<String>,
    /// What the person just did.
    done: Option<&'static str>,
    arguments: Vec<Argument>,
    is_erased: bool,
    /// The text that is signed.
    exact: String,
    policies: Vec<ApprovalPolicy>,
    findings: Vec<Finding>,
    authority: Option<Authority>,
    would_be: Option<WouldBe>,
    acts: Vec<Act>,
    /// The answer that ended it.
    last: Option<Act>,
    asked_by: Vec<String>,
    earlier: Vec<Earlier>,
    /// `None` if the role may not read decisions.
    history: Option<Vec<Past>>,
    decision_id: String,
    used_by: Option<String>,
    /// The second step of an approval; it names what of reality this page shows.
    approve: String,
    /// `None` if this person can act.
    barrier: Option<Barrier>,
    /// If the tenant requires it of them now.
    sign_in_again: Option<SignInAgain>,
    nobody_eligible: bool,
    may_withdraw: bool,
}

impl ApprovalPage {
    /// Whether an approval would only make the request void.
    fn is_void(&self) -> bool {
        self.would_be.as_ref().is_some_and(WouldBe::voids)
    }
}

pub(super) async fn show(
    view: View,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(shown(&view, &id, query.text("did")).await)
}

async fn shown(view: &View, id: &str, did: &str) -> Result<Response, Status> {
    let approval = read(view, id).await?;
    if approval.request.is_some() {
        view.note_opened(&approval.id, &approval.request_digest).await;
    }
    let summary = Summary::of(&approval, view.now);
    let names = Names::of(view, vec![approval.subject.clone()]);
    let authority = async {
        match &approval.authority {
            Some(used) => Some(Authority::of(view, used).await),
            None => None,
        }
    };
    let (authority, history, names) = tokio::join!(authority, history(view, &approval), names);
    let question = approval.request.as_ref().map(|request| &request.0);
    let findings = findings(&approval, view.now);
    let about = names.get(&approval.subject);
    // Only a principal that there is can be stopped.
    let known = about.map_or("", |_| approval.subject.as_str());
    let frame = view.frame(summary.line(), Section::Approvals);
    let shown = ApprovalPage {
        frame: frame.stopping("subject", known, &summary.agent),
        agent_name: about.map(str::to_owned),
        done: text::done(did, &approval.state).filter(|_| has_acted(view, &approval)),
        arguments: question.map(arguments).unwrap_or_default(),
        is_erased: is_erased(&approval),
        exact: question
            .and_then(|q| serde_json_canonicalizer::to_string(q).ok())
            .unwrap_or_default(),
        approve: approve_path(&approval.id, &findings),
        findings,
        would_be: WouldBe::of(&approval, view.now),
        acts: acts(view, &approval),
        asked_by: approval.requested_by.iter().map(asker).collect(),
        earlier: earlier(view, &approval),
        barrier: barrier(view, &approval, &summary.agent),
        last: last(view, &approval, &summary),
        sign_in_again: approval
            .authenticate_again
            .clone()
            .map(|reason| SignInAgain { reason, path: again::sign_in(view, id) }),
        nobody_eligible: approval.eligible.as_deref() == Some("none"),
        may_withdraw: summary.state.word == ApprovalState::Approved.to_string()
            && view.may(rpc::WITHDRAW_APPROVAL),
        authority,
        history,
        policies: approval.policies,
        decision_id: approval.decision_id,
        used_by: approval.used_by,
        summary,
    };
    Ok(page(StatusCode::OK, &shown))
}

/// Why this person cannot act, before they try.
fn barrier(view: &View, approval: &Approval, agent: &str) -> Option<Barrier> {
    if !view.may(rpc::APPROVE_APPROVAL) {
        let rule = "your role reads requests and does not decide them".to_owned();
        return Some(Barrier::Rule { rule, remedy: String::new() });
    }
    let why = approval.ineligibility.clone()?;
    if has_acted(view, approval) {
        return Some(Barrier::Approved(match approval.needed - approval.given {
            ..=1 => "one more person".to_owned(),
            more => format!("{more} more people"),
        }));
    }
    Some(Barrier::Rule { rule: why.rule.replace("the agent", agent), remedy: why.remedy })
}

fn acts(view: &View, approval: &Approval) -> Vec<Act> {
    approval.acts.iter().map(|act| answer(view, act)).collect()
}

/// What ended a request, if a person did.
fn last(view: &View, approval: &Approval, summary: &Summary) -> Option<Act> {
    let ends = |act: &&ApprovalAct| matches!(act.verdict.as_str(), "decline" | "withdraw");
    let last = approval.acts.last().filter(|_| !summary.state.is_pending).filter(ends)?;
    Some(answer(view, last))
}

fn answer(view: &View, act: &ApprovalAct) -> Act {
    Act {
        name: act.name.clone(),
        role: act.role.clone(),
        verb: match act.verdict.as_str() {
            "approve" => "approved",
            "decline" => "declined",
            "withdraw" => "withdrew it",
            _ => "acted",
        },
        own_interest: act.self_,
        comment: act.comment.clone(),
        at: Moment::of_time(act.at, view.now),
    }
}

fn earlier(view: &View, approval: &Approval) -> Vec<Earlier> {
    let earlier = approval.earlier.iter().map(|earlier| Earlier {
        id: earlier.id.clone(),
        label: text::state(&earlier.state),
        at: Moment::of_time(earlier.at, view.now),
        reason: earlier.reason.clone(),
    });
    earlier.collect()
}

fn asker(asker: &authority_model::proto::approval::Asker) -> String {
    let kind = if asker.kind == "api_key" { "API key" } else { "person" };
    let name = asker.id.split_once('|').map_or(asker.id.as_str(), |(_, subject)| subject);
    format!("{kind} {name}")
}

/// What was decided on the same agent and action, the newest first.
async fn history(view: &View, approval: &Approval) -> Option<Vec<Past>> {
    if !view.may(rpc::LIST_DECISIONS) {
        return None;
    }
    let request = ListDecisionsRequest {
        tenant_id: Some(approval.tenant_id.clone()),
        subject: Some(approval.subject.clone()),
        action: Some(approval.action.clone()),
        limit: Some(HISTORY),
        ..ListDecisionsRequest::default()
    };
    let listed: ListDecisionsResponse =
        view.calls.call(rpc::LIST_DECISIONS, &request).await.ok()?;
    let past = listed.decisions.into_iter().map(|past| Past {
        word: outcome(past.decision),
        reason_code: past.reason_code,
        at: Moment::of_time(past.evaluated_at, view.now),
        id: past.decision_id,
    });
    Some(past.collect())
}

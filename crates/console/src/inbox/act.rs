//! The second step of an answer: a page that repeats the request, with the form that sends the
//! answer.

use authority_model::proto::approval::{
    Approval, ApproveApprovalRequest, DeclineApprovalRequest, WithdrawApprovalRequest,
};

use super::{
    advice::advice,
    changed::{Shown, differs, refused},
    finding::{Finding, to_review},
    presented::Warning,
    request::{has_acted, is_opened, read},
    summary::{State, Summary},
    who_decides::other_person,
    would_be::{WouldBe, would_be_void},
};
use crate::{administration::authority::Authority, kit::prelude::*};

/// The kind of answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Approve,
    Decline,
    Withdraw,
}

impl Verb {
    fn parse(word: &str) -> Result<Self, Status> {
        match word {
            "approve" => Ok(Self::Approve),
            "decline" => Ok(Self::Decline),
            "withdraw" => Ok(Self::Withdraw),
            _ => Err(no_page()),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Decline => "decline",
            Self::Withdraw => "withdraw",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Approve => t::APPROVE,
            Self::Decline => t::DECLINE,
            Self::Withdraw => t::WITHDRAW,
        }
    }

    fn question(self, action: &str) -> Safe<String> {
        match self {
            Self::Approve => t::inbox::approve_this(action),
            Self::Decline => t::inbox::decline_this(action),
            Self::Withdraw => t::inbox::withdraw_this(action),
        }
    }

    fn undone(self) -> &'static str {
        match self {
            Self::Approve => t::inbox::NOT_APPROVED,
            Self::Decline => t::inbox::NOT_DECLINED,
            Self::Withdraw => t::inbox::NOT_WITHDRAWN,
        }
    }

    fn is_decline(self) -> bool {
        self == Self::Decline
    }

    fn needs_reason(self) -> bool {
        self != Self::Approve
    }
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct Confirm {
    frame: Frame,
    verb: Verb,
    summary: Summary,
    /// The chain of delegations, from the root to the agent.
    authority: Option<Authority>,
    /// The decision that an approval would lead to.
    would_be: Option<WouldBe>,
    /// The effect of this person's approval.
    effect: Option<Safe<String>>,
    /// What to do where it would only make the request void.
    advice: String,
    /// Warnings about other requests.
    warnings: Vec<Warning>,
    /// The reason why this person may not answer. The page then has no form.
    rule: Option<String>,
    /// The reality findings that an approval counts as reviewed.
    reviewed: Vec<Finding>,
    /// Sent twice, the form acts once.
    key: String,
    expires: String,
    /// The text in the form.
    text: String,
}

impl Confirm {
    /// Whether an approval would only make the request void.
    fn is_void(&self) -> bool {
        self.would_be.as_ref().is_some_and(WouldBe::voids)
    }
}

pub(super) async fn confirm(
    view: View,
    Path((id, verb)): Path<(String, String)>,
    query: Pairs,
) -> Response {
    view.answer(confirmation(&view, &id, &verb, &query).await)
}

async fn confirmation(
    view: &View,
    id: &str,
    verb: &str,
    query: &Pairs,
) -> Result<Response, Status> {
    let verb = Verb::parse(verb)?;
    let approval = read(view, id).await?;
    // People can answer only a request that they were shown. The page of a closed request shows its
    // outcome.
    if verb != Verb::Withdraw && !(is_opened(view, &approval) && waits(view, &approval)) {
        return Ok(see(&format!("/console/approvals/{}", approval.id)));
    }
    if rule(view, verb, &approval).is_some() {
        return form(view, verb, &approval, StatusCode::FORBIDDEN, None, String::new()).await;
    }
    if verb == Verb::Approve {
        let shown = Shown::now(&approval, view.now, reviewed(query));
        if shown.lacks_review(&approval, view.now) {
            return Ok(differs(view, &approval, &shown, None, t::NOT_DONE));
        }
    }
    form(view, verb, &approval, StatusCode::OK, None, String::new()).await
}

/// Whether it waits, and this person has not answered it.
fn waits(view: &View, approval: &Approval) -> bool {
    State::of(approval, view.now).is_pending && !has_acted(view, approval)
}

/// Why this person may not answer.
fn rule(view: &View, verb: Verb, approval: &Approval) -> Option<String> {
    if verb == Verb::Withdraw {
        let may = view.may(rpc::WITHDRAW_APPROVAL);
        return (!may).then(|| t::inbox::ROLE_DECIDES_NONE.to_owned());
    }
    other_person(approval).map(|other| other.rule)
}

/// The findings that need a review and were shown on the previous page.
fn reviewed(pairs: &Pairs) -> Vec<String> {
    pairs.all("reviewed").map(str::to_owned).collect()
}

async fn form(
    view: &View,
    verb: Verb,
    approval: &Approval,
    status: StatusCode,
    problem: Option<&'static str>,
    text: String,
) -> Result<Response, Status> {
    let summary = Summary::of(approval, view.now);
    let approves = verb == Verb::Approve;
    let would_be = approves.then(|| WouldBe::of(approval, view.now)).flatten();
    let (authority, advice) = tokio::join!(
        Authority::of(view, approval.authority.as_ref()),
        advice(view, approval, would_be.as_ref()),
    );
    let frame = view.frame(format!("{} {}", verb.label(), summary.line()), Section::Approvals);
    let field = (status == StatusCode::BAD_REQUEST).then_some("text");
    let confirm = Confirm {
        frame: frame.failed_if(verb.undone(), problem, field),
        verb,
        authority,
        effect: would_be.as_ref().and_then(|would_be| would_be.after_approval(&summary)),
        would_be,
        advice,
        warnings: Warning::all(approval, &[], view.now),
        rule: rule(view, verb, approval),
        reviewed: if approves { to_review(approval, view.now) } else { Vec::new() },
        key: idempotency_key()?,
        expires: summary.expires.as_ref().map(|at| at.exact.clone()).unwrap_or_default(),
        summary,
        text,
    };
    Ok(page(status, &confirm))
}

pub(super) async fn act(
    Path((id, verb)): Path<(String, String)>,
    Posted { view, form }: Posted,
) -> Response {
    match Verb::parse(&verb) {
        Ok(verb) => view.answer_act(verb.undone(), acted(&view, &id, verb, &form).await),
        Err(status) => view.answer(Err(status)),
    }
}

async fn acted(view: &View, id: &str, verb: Verb, form: &Pairs) -> Result<Response, Status> {
    let shown = Shown::of(form, (verb == Verb::Approve).then(|| reviewed(form)));
    let approval = read(view, id).await?;
    let text = form.text("text").trim().to_owned();
    if verb.needs_reason() && text.is_empty() {
        let problem = Some(t::inbox::NEEDS_REASON);
        return self::form(view, verb, &approval, StatusCode::BAD_REQUEST, problem, text).await;
    }
    // The API compares state and digest. Only this page knows the shown expiry and findings.
    let expires = Summary::of(&approval, view.now).expires.map(|at| at.exact).unwrap_or_default();
    if verb != Verb::Withdraw {
        let opened = view.session.opened.get(id) == Some(&shown.request_digest);
        if !opened || expires != shown.expires || approval.request_digest != shown.request_digest {
            return Ok(differs(view, &approval, &shown, None, verb.undone()));
        }
    }
    if shown.lacks_review(&approval, view.now) {
        return Ok(differs(view, &approval, &shown, None, verb.undone()));
    }
    // A decline ends the request with a reason.
    if verb == Verb::Approve && would_be_void(&approval, view.now) {
        let problem = Some(t::inbox::WOULD_BE_VOID);
        return self::form(view, verb, &approval, StatusCode::CONFLICT, problem, text).await;
    }
    let sent = send(view, verb, id, text, &shown, form.text("key")).await;
    match sent {
        Ok(_) => Ok(see(&format!("/console/approvals/{id}?did={}", verb.word()))),
        Err(status) => Ok(refused(view, id, &shown, status, verb.undone()).await),
    }
}

async fn send(
    view: &View,
    verb: Verb,
    id: &str,
    text: String,
    shown: &Shown,
    key: &str,
) -> Result<Approval, Status> {
    let (id, key) = (id.to_owned(), (!key.is_empty()).then_some(key));
    let request_digest = Some(shown.request_digest.clone());
    let version = &shown.presentation_version;
    let presentation_version = (!version.is_empty()).then(|| version.clone());
    match verb {
        Verb::Approve => {
            let comment = (!text.is_empty()).then_some(text);
            let reviewed = shown.reviewed.clone().unwrap_or_default();
            let request = ApproveApprovalRequest {
                id,
                comment,
                request_digest,
                reviewed,
                presentation_version,
            };
            view.calls.call_once(&request, key).await
        }
        Verb::Decline => {
            let request = DeclineApprovalRequest {
                id,
                reason: text,
                request_digest,
                presentation_version,
                ..DeclineApprovalRequest::default()
            };
            view.calls.call_once(&request, key).await
        }
        Verb::Withdraw => {
            let request = WithdrawApprovalRequest { id, reason: text };
            view.calls.call_once(&request, key).await
        }
    }
}

//! One request: the action, the agent, the authority and the possible answers.

use authority_crypto::sha256;
use authority_model::{proto::approval::Approval, state::ApprovalState};
use prost::Message;

use super::{
    acts::{Act, acts, askers, last},
    advice::advice,
    again,
    finding::{Finding, approve_path, findings},
    history::{history, requests},
    lapsed::Lapsed,
    next::{Next, next},
    presented::Warning,
    request::{has_acted, read},
    summary::{Summary, is_erased},
    who_decides::{OtherPerson, missing_people, other_person},
    would_be::WouldBe,
};
use crate::{
    administration::authority::Authority,
    kit::{prelude::*, show::Decided, text},
};

/// That this person must sign in again before they approve.
struct SignInAgain {
    reason: String,
    /// Where they do; `None` where it would not help.
    path: Option<String>,
}

#[derive(Template)]
#[template(path = "approval.html")]
struct ApprovalPage {
    frame: Frame,
    /// A digest of the request, by which a script sees that it has changed.
    version: String,
    approval: Approval,
    summary: Summary,
    agent_name: Option<String>,
    /// The result of the person's last action.
    done: Option<&'static str>,
    /// After an action, the next request that this person may decide.
    next: Option<Next>,
    arguments: Vec<Argument>,
    is_erased: bool,
    /// The text that is signed.
    exact: String,
    findings: Vec<Finding>,
    authority: Option<Authority>,
    would_be: Option<WouldBe>,
    /// The effect of this person's approval.
    effect: Option<Safe<String>>,
    /// If it is approved, and the agent would not be allowed with it now.
    useless: Option<WouldBe>,
    /// Whether that is not known now.
    is_uncertain: bool,
    /// What to do where an approval would only make it void.
    advice: String,
    /// If what held it has changed.
    lapsed: Option<Lapsed>,
    acts: Vec<Act>,
    /// The answer that ended it.
    last: Option<Act>,
    asked_by: Vec<Safe<String>>,
    /// Warnings about other requests.
    warnings: Vec<Warning>,
    /// The newest others of the agent for the action.
    requests: Vec<Summary>,
    /// Decisions without a request.
    history: Vec<Decided>,
    /// The address of the second step of an approval. It names the findings that this page shows.
    approve: String,
    /// How many people are missing, if this person has approved.
    missing_people: Option<i32>,
    /// `None` if this person can act, or has approved.
    other_person: Option<OtherPerson>,
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

    /// Whether the same question was approved before. Another approval would permit it once more.
    fn was_permitted(&self) -> bool {
        self.approval.earlier.iter().any(|one| ["approved", "used"].contains(&one.state.as_str()))
    }
}

pub(super) async fn show(view: View, Path(id): Path<String>, query: Pairs) -> Response {
    view.answer(shown(&view, &id, query.text("did")).await)
}

async fn shown(view: &View, id: &str, did: &str) -> Result<Response, Status> {
    let approval = read(view, id).await?;
    if approval.request.is_some() {
        view.note_opened(&approval.id, &approval.request_digest).await;
    }
    let summary = Summary::of(&approval, view.now);
    let would_be = WouldBe::of(&approval, view.now);
    let (authority, names, asked_by, requests, history, advice, lapsed) = tokio::join!(
        Authority::of(view, approval.authority.as_ref()),
        Names::of(view, vec![approval.subject.clone()]),
        askers(view, &approval),
        requests(view, &approval),
        history(view, &approval),
        advice(view, &approval, would_be.as_ref()),
        Lapsed::of(view, &approval),
    );
    let question = approval.request.as_ref().map(|request| &request.0);
    let findings = findings(&approval, view.now);
    let useless = WouldBe::useless(&approval, view.now);
    let is_uncertain = summary.state.word == "approved" && approval.would_be.is_none();
    // Only a principal that there is can be stopped.
    let known = names.get(&approval.subject).map_or("", |_| approval.subject.as_str());
    let frame = view.frame(summary.line(), Section::Approvals);
    let shown = ApprovalPage {
        next: if did.is_empty() { None } else { next(view).await },
        frame: frame.stopping("subject", known, &summary.agent),
        version: hex::encode(sha256(&approval.encode_to_vec())),
        agent_name: names.get(&approval.subject).map(str::to_owned),
        done: text::done(did, &approval.state)
            .filter(|_| has_acted(view, &approval) && useless.is_none() && !is_uncertain),
        arguments: question.map(arguments).unwrap_or_default(),
        is_erased: is_erased(&approval),
        exact: question
            .and_then(|q| serde_json_canonicalizer::to_string(q).ok())
            .unwrap_or_default(),
        approve: approve_path(&approval.id, &findings),
        findings,
        effect: would_be.as_ref().and_then(|would_be| would_be.after_approval(&summary)),
        would_be,
        useless,
        is_uncertain,
        advice,
        lapsed,
        acts: acts(view, &approval),
        asked_by,
        warnings: Warning::all(&approval, &[], view.now),
        requests,
        history,
        missing_people: missing_people(&approval),
        other_person: other_person(&approval),
        last: last(view, &approval),
        sign_in_again: approval
            .authenticate_again
            .clone()
            .map(|reason| SignInAgain { reason, path: again::sign_in(view, id) }),
        nobody_eligible: approval.eligible.as_deref() == Some("none"),
        may_withdraw: summary.state.word == ApprovalState::Approved.to_string()
            && view.may(rpc::WITHDRAW_APPROVAL),
        authority,
        approval,
        summary,
    };
    Ok(page(StatusCode::OK, &shown))
}

//! One decision: the request, the findings of each stage, the authority, and the evidence.

use authority_ids::DecisionRef;
use authority_model::proto::{
    approval::ApprovalAuthority,
    runtime::{GetDecisionRequest, GetDecisionResponse, InspectDecisionRequest, OutcomeReport},
};

use super::{
    deciding_policies::deciding_policies,
    evidence::{Seal, bundle_name},
    exceeded::{Exceeded, exceeded},
    people::People,
    question::Question,
    replay::MODES,
    step::{StageView, step},
};
use crate::{
    administration::authority::Authority,
    inbox::Act,
    kit::{
        prelude::*,
        text::{self, CodeWithMeaning, outcome},
    },
};

#[derive(Template)]
#[template(path = "decision.html")]
struct DecisionPage {
    frame: Frame,
    id: DecisionRef,
    sealed_now: bool,
    agent: Named,
    agent_about: Option<String>,
    action: String,
    amount: Option<Amount>,
    word: &'static str,
    reason: CodeWithMeaning,
    /// The exceeded bounds, each with both values.
    exceeded: Vec<Exceeded>,
    /// The policies that denied or held it.
    policies: Vec<String>,
    further: Vec<CodeWithMeaning>,
    at: Option<Moment>,
    valid_until: Option<Moment>,
    approval: Option<(String, &'static str)>,
    /// The approvals that permitted it, if any.
    approved_by: Vec<Safe<String>>,
    /// The askers, from the request for approval.
    asked_by: Vec<Safe<String>>,
    arguments: Vec<Argument>,
    without_context: Option<&'static str>,
    steps: Vec<StageView>,
    /// Whether the role may read the findings of the stages.
    reads_stages: bool,
    authority: Option<Authority>,
    obligations: Vec<CodeWithMeaning>,
    stop_conditions: Vec<CodeWithMeaning>,
    /// The reported outcome of a permitted action.
    report: Option<OutcomeReport>,
    seal: Seal,
    may_seal: bool,
    may_replay: bool,
    modes: [(&'static str, &'static str); 2],
    digest: String,
    kid: String,
    revision: u32,
    semantics: String,
    /// The record's text.
    exact: String,
}

pub(super) async fn show(view: View, Path(id): Path<DecisionRef>, query: Pairs) -> Response {
    view.answer(
        shown(&view, &id, done_word(&view, &format!("/console/decisions/{id}"), &query) == "seal")
            .await,
    )
}

/// Reads the decision, with its trace and its context if the role may read these.
async fn read(view: &View, id: &DecisionRef) -> Result<GetDecisionResponse, Status> {
    let decision_id = id.into();
    if view.may(rpc::INSPECT_DECISION) {
        let request = InspectDecisionRequest { decision_id, context: true };
        return view.calls.call(&request).await;
    }
    view.calls.call(&GetDecisionRequest { decision_id }).await
}

async fn shown(view: &View, id: &DecisionRef, sealed_now: bool) -> Result<Response, Status> {
    let decision = read(view, id).await?;
    let record = decision.record.as_ref().map(|record| Value::Object(record.0.clone()));
    let record = record.unwrap_or_default();
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (subject, action) =
        (text_of(&record["request"]["subject"]), text_of(&record["request"]["action"]));
    let used = used(&record["verdict"]["authority"]);
    let (names, seal, authority, People { approved_by, asked_by }, policies) = tokio::join!(
        Names::of(view, vec![subject.clone()]),
        Seal::of(view, id),
        Authority::of(view, used.as_ref()),
        People::of(view, &decision),
        deciding_policies(view, &decision),
    );
    let Question { members, without } = Question::of(&decision, view.may(rpc::INSPECT_DECISION));
    let word = outcome(decision.decision);
    let agent = names.called(subject.clone());
    let exceeded = exceeded(&decision, view.now);
    let pack = decision.evidence_pack.unwrap_or_default();
    let mut reasons = decision.reasons.iter().map(|code| CodeWithMeaning::reason(code));
    let about = names.get(&subject);
    // Only an existing principal can be stopped.
    let known = about.map_or("", |_| subject.as_str());
    let title = format!("{}: {action}, {word}", agent.name);
    let frame = view.frame(title, Section::Decisions);
    let first = reasons.next().unwrap_or_else(|| CodeWithMeaning::reason(&decision.reason_code));
    let shown = DecisionPage {
        frame: frame.stopping("subject", known, &agent.name),
        sealed_now,
        agent_about: about.map(str::to_owned),
        agent,
        action,
        amount: members.get("context").and_then(Value::as_object).and_then(Amount::of),
        word,
        exceeded,
        policies,
        further: reasons.collect(),
        reason: first,
        at: Moment::of_time(decision.evaluated_at, view.now),
        valid_until: Moment::of_time(decision.valid_until, view.now),
        approval: decision
            .approval_id
            .map(|id| (id, text::state(decision.approval_state.as_deref().unwrap_or_default()))),
        approved_by: approved_by.iter().map(approver).collect(),
        asked_by,
        arguments: arguments(&members),
        without_context: without,
        steps: decision.trace.into_iter().map(|stage| step(view, stage)).collect(),
        reads_stages: view.may(rpc::INSPECT_DECISION),
        authority,
        obligations: codes(&decision.obligations, CodeWithMeaning::obligation),
        stop_conditions: codes(&decision.stop_conditions, CodeWithMeaning::stop),
        report: decision.report,
        may_seal: view.may(rpc::SEAL_DECISION),
        may_replay: view.may(rpc::MINT_REPLAY_PROOF),
        seal,
        modes: MODES,
        digest: pack.record_digest,
        kid: pack.signature.map(|signature| signature.kid).unwrap_or_default(),
        revision: decision.authority_revision,
        semantics: text_of(&record["semantics"]),
        exact: serde_json_canonicalizer::to_string(&record).unwrap_or_default(),
        id: decision.decision_id.into(),
    };
    Ok(page(StatusCode::OK, &shown))
}

fn codes(codes: &[String], of: fn(&str) -> CodeWithMeaning) -> Vec<CodeWithMeaning> {
    codes.iter().map(|code| of(code)).collect()
}

/// The person who approved, with the role and time.
fn approver(act: &Act) -> Safe<String> {
    let time = act.at.as_ref().map(|at| Safe(format!(", {}", at.time())));
    if act.own_interest {
        return t::decisions::own_approver(&act.name, &act.role, time);
    }
    t::decisions::approver(&act.name, &act.role, time)
}

impl DecisionPage {
    fn bundle_name(&self) -> String {
        bundle_name(&self.id)
    }
}

/// The authority of a verdict.
fn used(authority: &Value) -> Option<ApprovalAuthority> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let chain = authority["chain"].as_array().into_iter().flatten().filter_map(text);
    Some(ApprovalAuthority {
        kind: text(&authority["kind"])?,
        id: text(&authority["id"])?,
        chain: chain.collect(),
        ..ApprovalAuthority::default()
    })
}

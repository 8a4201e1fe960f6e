//! One decision: what was asked, what each stage found, on whose authority, and its evidence.

use askama::Template;
use authority_model::proto::{
    approval::ApprovalAuthority,
    runtime::{GetDecisionRequest, GetDecisionResponse, InspectDecisionRequest, Stage},
};
use axum::{
    extract::{Path, RawQuery},
    response::Response,
};
use http::StatusCode;
use serde_json::Value;
use tonic::Status;

use super::{
    evidence::{Seal, bundle_name},
    question::Question,
    replay::MODES,
};
use crate::{
    authority::Authority,
    frame::{Frame, Section},
    names::{Named, Names},
    page::page,
    query::Pairs,
    records::Link,
    rpc,
    show::{Amount, Argument, Moment, arguments},
    text::{self, CodeWithMeaning, outcome},
    view::View,
};

/// A stage of the pipeline, for people.
struct Step {
    name: &'static str,
    about: &'static str,
    /// As the API has it; also the colour.
    word: &'static str,
    label: &'static str,
    reason: Option<CodeWithMeaning>,
    /// Findings that did not pass.
    notable: Vec<Found>,
    passed: Vec<Found>,
}

struct Found {
    /// In words, the ids among them with their pages.
    check: Vec<Link>,
    detail: Option<Vec<Link>>,
    code: Option<String>,
}

/// What became of a permitted action.
struct Report {
    outcome: String,
    detail: Option<String>,
    at: Option<Moment>,
}

#[derive(Template)]
#[template(path = "decision.html")]
struct DecisionPage {
    frame: Frame,
    id: String,
    sealed_now: bool,
    agent: Named,
    agent_about: Option<String>,
    action: String,
    amount: Option<Amount>,
    word: &'static str,
    reason: CodeWithMeaning,
    further: Vec<CodeWithMeaning>,
    at: Option<Moment>,
    valid_until: Option<Moment>,
    approval: Option<(String, &'static str)>,
    arguments: Vec<Argument>,
    without_context: Option<&'static str>,
    steps: Vec<Step>,
    /// Whether the role reads what the stages found.
    reads_stages: bool,
    authority: Option<Authority>,
    obligations: Vec<CodeWithMeaning>,
    stop_conditions: Vec<CodeWithMeaning>,
    report: Option<Report>,
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

pub(super) async fn show(
    view: View,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Pairs::read(query.unwrap_or_default().as_bytes());
    view.answer(shown(&view, &id, query.text("did") == "seal").await)
}

/// The decision: with its trace and context, where the role reads those.
async fn read(view: &View, id: &str) -> Result<GetDecisionResponse, Status> {
    let decision_id = id.to_owned();
    if view.may(rpc::INSPECT_DECISION) {
        let request = InspectDecisionRequest { decision_id, context: true };
        return view.calls.call(rpc::INSPECT_DECISION, &request).await;
    }
    view.calls.call(rpc::GET_DECISION, &GetDecisionRequest { decision_id }).await
}

async fn shown(view: &View, id: &str, sealed_now: bool) -> Result<Response, Status> {
    let decision = read(view, id).await?;
    let record = decision.record.as_ref().map(|record| Value::Object(record.0.clone()));
    let record = record.unwrap_or_default();
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (subject, action) =
        (text_of(&record["request"]["subject"]), text_of(&record["request"]["action"]));
    let used = used(&record["verdict"]["authority"]);
    let (names, seal, authority) =
        tokio::join!(Names::of(view, vec![subject.clone()]), Seal::of(view, id), async {
            match &used {
                Some(used) => Some(Authority::of(view, used).await),
                None => None,
            }
        },);
    let Question { members, without } = Question::of(&decision, view.may(rpc::INSPECT_DECISION));
    let word = outcome(decision.decision);
    let agent = names.called(subject.clone());
    let pack = decision.evidence_pack.unwrap_or_default();
    let mut reasons = decision.reasons.iter().map(|code| CodeWithMeaning::reason(code));
    let about = names.get(&subject);
    // Only a principal that there is can be stopped.
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
        further: reasons.collect(),
        reason: first,
        at: Moment::of_time(decision.evaluated_at, view.now),
        valid_until: Moment::of_time(decision.valid_until, view.now),
        approval: decision
            .approval_id
            .map(|id| (id, text::state(decision.approval_state.as_deref().unwrap_or_default()))),
        arguments: arguments(&members),
        without_context: without,
        steps: decision.trace.into_iter().map(|stage| step(view, stage)).collect(),
        reads_stages: view.may(rpc::INSPECT_DECISION),
        authority,
        obligations: decision
            .obligations
            .iter()
            .map(|code| CodeWithMeaning::obligation(code))
            .collect(),
        stop_conditions: decision
            .stop_conditions
            .iter()
            .map(|code| CodeWithMeaning::stop(code))
            .collect(),
        report: decision.report.map(|report| Report {
            at: Moment::of_time(report.at, view.now),
            outcome: report.outcome,
            detail: report.detail,
        }),
        may_seal: view.may(rpc::SEAL_DECISION),
        may_replay: view.may(rpc::MINT_REPLAY_PROOF),
        seal,
        modes: MODES,
        digest: pack.record_digest,
        kid: pack.signature.map(|signature| signature.kid).unwrap_or_default(),
        revision: decision.authority_revision,
        semantics: text_of(&record["semantics"]),
        exact: serde_json_canonicalizer::to_string(&record).unwrap_or_default(),
        id: decision.decision_id,
    };
    Ok(page(StatusCode::OK, &shown))
}

impl DecisionPage {
    fn bundle_name(&self) -> String {
        bundle_name(&self.id)
    }
}

/// The name of a check, whose words are joined by underscores; an id in it stays as it is.
fn in_words(check: &str) -> String {
    let word =
        |word: &str| if word.contains(':') { word.to_owned() } else { word.replace('_', " ") };
    check.split(' ').map(word).collect::<Vec<_>>().join(" ")
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

fn step(view: &View, stage: Stage) -> Step {
    let (name, about) = match stage.stage.as_str() {
        "authority" => ("Authority", "May this actor do this at all?"),
        "purpose" => ("Purpose", "Is the declared purpose admissible?"),
        "rules" => ("Rules", "What do policies, reality and the gate say?"),
        _ => ("Decision", "What follows from these?"),
    };
    let (word, label) = match stage.outcome.as_str() {
        "pass" => ("approved", "passed"),
        "hold" => ("pending", "held"),
        _ => ("declined", "refused"),
    };
    let (passed, notable) =
        stage.findings.into_iter().partition::<Vec<_>, _>(|finding| finding.outcome == "pass");
    let found = |finding: authority_model::proto::runtime::Finding| Found {
        check: Link::words(view, &in_words(&finding.check)),
        detail: finding.detail.map(|detail| Link::words(view, &detail)),
        code: finding.reason_code,
    };
    Step {
        name,
        about,
        word,
        label,
        reason: stage.reason_code.map(|code| CodeWithMeaning::reason(&code)),
        notable: notable.into_iter().map(found).collect(),
        passed: passed.into_iter().map(found).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_in_a_check_is_not_changed() {
        for (check, expected) in [
            ("approval_threshold", "approval threshold"),
            (
                "anchor svc:ent:acme:reality_anchor:01a2136d",
                "anchor svc:ent:acme:reality_anchor:01a2136d",
            ),
            (
                "anchor_age svc:ent:acme:reality_anchor:1",
                "anchor age svc:ent:acme:reality_anchor:1",
            ),
        ] {
            assert_eq!(in_words(check), expected);
        }
    }
}

//! The text of a receipt: a decision in plain words.

use askama::Template;
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    names::Names,
    people::People,
    read::Read,
    show::{Moment, visible},
};
use authority_crypto::sha256;
use authority_decision::{Decision, Reason as Code, hidden::is_hidden, sentences};
use authority_evidence::{digest_text, pack::evidence_id};
use authority_ids::{DecisionId, DecisionRef, DelegationRef, PrincipalRef, TenantRef};

#[derive(Template)]
#[template(path = "receipts/page.html")]
pub(super) struct Receipt {
    /// `allow`, `hold` or `deny`; selects colour and shape.
    tone: &'static str,
    headline: &'static str,
    reason: Reason,
    further_reasons: Vec<Reason>,
    tenant_id: TenantRef,
    tenant_name: Option<String>,
    asked: Vec<Fact>,
    evaluated_at: Moment,
    valid_until: Option<Moment>,
    authority_revision: String,
    semantics: String,
    authority: Option<Authority>,
    conditions: Option<Conditions>,
    approval: Option<People>,
    outcome: Option<Outcome>,
    decision_id: DecisionRef,
    record_digest: String,
    kid: String,
    signature: String,
    seal: Option<Seal>,
    /// The record's text in pieces that allow a line break after each; hidden characters are shown
    /// as JSON escapes.
    record_pieces: Vec<String>,
    /// The record's exact text, if it differs from the displayed text.
    exact_record: Option<String>,
    issuer: String,
}

struct Reason {
    code: String,
    sentence: String,
}

struct Fact {
    label: &'static str,
    value: String,
    name: Option<String>,
}

struct Authority {
    kind: &'static str,
    id: String,
    chain_from_root: Vec<Link>,
    actor: PrincipalRef,
    actor_name: Option<String>,
}

/// A delegation of the chain, with its delegator and delegate.
struct Link {
    id: DelegationRef,
    parties: Option<(String, String)>,
}

struct Conditions {
    obligations: Vec<Term>,
    stop_conditions: Vec<Term>,
}

struct Term {
    code: String,
    /// The meaning of the code; `None` for a tenant's own code.
    sentence: Option<&'static str>,
}

struct Outcome {
    word: &'static str,
    at: Moment,
}

struct Seal {
    evidence_id: String,
    log_origin: String,
    log_index: String,
    sealed_at: Moment,
}

/// The page for readers without a credential, with a link for the tenant's people.
#[derive(Template)]
#[template(path = "receipts/members.html")]
pub(super) struct ForMembers {
    pub(super) decision_id: DecisionId,
}

/// The page for an unknown receipt. It does not echo the URL.
#[derive(Template)]
#[template(path = "receipts/not_found.html")]
pub(super) struct NotFound;

/// The members of a request, in the order of the page.
const REQUEST_MEMBERS: [(&str, &str); 11] = [
    ("subject", "Subject"),
    ("action", "Action"),
    ("purpose", "Purpose"),
    ("resource_id", "Resource"),
    ("tool_id", "Tool"),
    ("tool_definition_digest", "Digest of the tool's definition"),
    ("delegation_id", "Delegation"),
    ("on_behalf_of", "On behalf of"),
    ("workspace_id", "Workspace"),
    ("project_id", "Project"),
    ("approval_id", "Approval"),
];

impl Receipt {
    /// `None` if the record cannot be read.
    pub(super) fn of(read: Read, issuer: &str, console: bool, now: DateTime<Utc>) -> Option<Self> {
        let Read { decision, approval, report, pack, names, knows_people, .. } = read;
        let name = |id: &str| names.name(id, knows_people).map(visible);
        let text = String::from_utf8(decision.record).ok()?;
        let record: Value = serde_json::from_str(&text).ok()?;
        let (request, verdict) = (&record["request"], &record["verdict"]);
        let word = Decision::from_word(verdict["decision"].as_str()?)?;
        let (tone, headline) = match word {
            Decision::Allow | Decision::AllowWithConstraints => ("allow", "Allowed"),
            Decision::RequireApproval if approval.is_none() => ("hold", "Held"),
            Decision::RequireApproval => ("hold", "Held for approval"),
            Decision::Deny => ("deny", "Denied"),
        };
        let mut reasons = texts(&verdict["reasons"]).into_iter().map(reason);
        let conditions = Conditions {
            obligations: terms(&verdict["obligations"], sentences::obligation),
            stop_conditions: terms(&verdict["stop_conditions"], sentences::stop_condition),
        };
        let bare = conditions.obligations.is_empty() && conditions.stop_conditions.is_empty();
        Some(Self {
            tone,
            headline,
            reason: reasons.next()?,
            further_reasons: reasons.collect(),
            tenant_id: record["tenant_id"].as_str()?.into(),
            tenant_name: name(record["tenant_id"].as_str()?),
            asked: request_facts(request, name),
            evaluated_at: Moment::of(decision.evaluated_at),
            valid_until: record["valid_until"].as_str().and_then(Moment::read),
            authority_revision: record["authority_revision"].to_string(),
            semantics: record["semantics"].as_str()?.to_owned(),
            authority: authority(verdict, request, &names, name),
            conditions: (!bare).then_some(conditions),
            approval: approval.map(|approval| People::of(approval, console, now)),
            outcome: report.map(|report| Outcome {
                word: match report.outcome.as_str() {
                    "executed" => "Executed",
                    "failed" => "Failed",
                    _ => "Abandoned",
                },
                at: Moment::of(report.at),
            }),
            seal: pack.map(|pack| Seal {
                evidence_id: evidence_id(&decision.id),
                log_origin: pack.origin,
                log_index: pack.log_index.to_string(),
                sealed_at: Moment::of(pack.sealed_at),
            }),
            decision_id: decision.id,
            record_digest: digest_text(&sha256(text.as_bytes())),
            kid: decision.kid,
            signature: STANDARD.encode(&decision.signature),
            record_pieces: visible(&text).split_inclusive(',').map(str::to_owned).collect(),
            exact_record: text.contains(is_hidden).then_some(text),
            issuer: issuer.to_owned(),
        })
    }
}

fn reason(code: String) -> Reason {
    let sentence = Code::from_word(&code).map_or("", Code::sentence);
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    Reason { sentence: format!("{}{}.", first.unwrap_or_default(), letters.as_str()), code }
}

fn terms(list: &Value, sentence: fn(&str) -> Option<&'static str>) -> Vec<Term> {
    let term = |code: String| Term { sentence: sentence(&code), code: visible(&code) };
    texts(list).into_iter().map(term).collect()
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    items.map(str::to_owned).collect()
}

fn request_facts(request: &Value, name: impl Fn(&str) -> Option<String>) -> Vec<Fact> {
    let plain = REQUEST_MEMBERS.iter().filter_map(|(member, label)| {
        let text = request[*member].as_str()?;
        Some(Fact { label, value: visible(text), name: name(text) })
    });
    let supported = request["supported_obligations"].is_array().then(|| {
        let names = texts(&request["supported_obligations"]);
        let value = if names.is_empty() { "none".to_owned() } else { visible(&names.join(", ")) };
        Fact { label: "Supported obligations", value, name: None }
    });
    let declared = [
        ("Declared effect", &request["action_declaration"]),
        ("Declared risk", &request["action_risk_classification"]),
    ];
    let declared = declared.into_iter().filter_map(|(label, members)| {
        let members = members.as_object()?.iter();
        let values = members.map(|(name, value)| match value.as_str() {
            Some(text) => visible(&format!("{name}: {text}")),
            None => visible(&format!("{name}: {value}")),
        });
        Some(Fact { label, value: values.collect::<Vec<_>>().join(", "), name: None })
    });
    plain.chain(supported).chain(declared).collect()
}

fn authority(
    verdict: &Value,
    request: &Value,
    names: &Names,
    name: impl Fn(&str) -> Option<String>,
) -> Option<Authority> {
    let used = verdict["authority"].as_object()?;
    let called = |id: &str| name(id).unwrap_or_else(|| visible(id));
    let links = texts(&used["chain"]).into_iter().rev().map(|id| {
        let id = DelegationRef::from(id);
        let parties = names.link(&id).map(|(from, to)| (called(from), called(to)));
        Link { id, parties }
    });
    let actor = request["subject"].as_str()?;
    Some(Authority {
        kind: match used["kind"].as_str()? {
            "delegation" => "Delegation",
            "uses" => "Right of use",
            _ => "Work in a workspace",
        },
        id: used["id"].as_str()?.to_owned(),
        chain_from_root: links.collect(),
        actor_name: name(actor),
        actor: actor.into(),
    })
}

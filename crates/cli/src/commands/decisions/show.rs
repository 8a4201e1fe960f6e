//! `decisions show`: the decision in a sentence, then the whole record.

use authority_client::SURFACE;
use serde_json::Value;

use crate::{
    connect::Connector,
    names::Names,
    outcome::{CommandOutput, Failure},
    paint,
    reason::why,
    record::{self, ShowArgs},
    text::{self, plain},
    view::View,
};

pub(super) async fn run(
    ShowArgs { id, server, .. }: ShowArgs,
    connector: &Connector<'_>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    // Only some roles may read the findings of a decision. Other callers read it without findings.
    let own = [server.path(&[SURFACE, "decisions"]), vec![&id]].concat();
    let body = match server.get(&own, &()).await {
        Err(refused) if refused.is_forbidden() => {
            server.get(&["v1", "decisions", &id], &()).await?
        }
        body => body?,
    };
    let answer = server.json(&body)?;
    // The owner and tenants' people get the record in an envelope.
    let (decided, body) = match &answer["decision"] {
        inner if inner.is_object() => (inner.clone(), inner.to_string()),
        _ => (answer, body),
    };
    if !decided.is_object() {
        return Err(server.unexpected("no record in the response"));
    }
    let subject = text::of(&decided["record"]["request"], "subject");
    let names = Names::of(&server, std::iter::once(subject)).await;
    let said = sentences(&decided, &names.beside(subject), server.view());
    let text = format!("{said}\n\n{}", record::text(&decided, server.view()));
    Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
}

/// Describes the agent, the action, the time, the result and the reason.
fn sentences(decided: &Value, who: &str, view: View) -> String {
    let request = &decided["record"]["request"];
    let action = plain(text::of(request, "action"));
    let purpose = match text::of(request, "purpose") {
        "" => String::new(),
        purpose => format!(" for {}", plain(purpose)),
    };
    let at = view.time(text::of(decided, "evaluated_at")).unwrap_or_default();
    let decision = plain(text::of(decided, "decision"));
    let outcome = match &*decision {
        "allow" => "was allowed",
        "allow_with_constraints" => "was allowed with constraints",
        "require_approval" => "was held for approval",
        "deny" => "was denied",
        _ => "was decided",
    };
    let now = match text::of(decided, "approval_state") {
        "" => String::new(),
        state => format!(" (approval {})", paint::state(&plain(state))),
    };
    let reason = why(text::of(decided, "reason_code"));
    let findings = findings(decided);
    format!("{action}{purpose}, requested by {who}, {outcome} at {at}{now}.\n{reason}{findings}")
}

/// The findings that caused the denial or the hold, one line each: an exceeded bound is shown with
/// the requested value.
fn findings(decided: &Value) -> String {
    let stages = decided["trace"].as_array().into_iter().flatten();
    let all = stages.flat_map(|stage| stage["findings"].as_array().into_iter().flatten());
    let decisive = all.filter(|found| {
        found["outcome"] != "pass" && found["reason_code"] == decided["reason_code"]
    });
    let mut details: Vec<String> = decisive
        .filter_map(|found| found["detail"].as_str())
        .map(|detail| format!("\n  {}", plain(detail)))
        .collect();
    details.dedup();
    details.concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_exceeded_bound_is_shown_with_both_values() {
        let exceeded = "max_amount of svc:del:acme:1: 50000.00 EUR; requested: 120000.00";
        let finding = |outcome: &str, reason: Option<&str>, detail: &str| json!({"check": "c", "outcome": outcome, "reason_code": reason, "detail": detail});
        let decided = json!({
            "decision": "deny", "reason_code": "constraint_exceeded",
            "trace": [{"findings": [finding("pass", None, "known")]},
                      {"findings": [finding("refuse", Some("constraint_exceeded"), exceeded),
                                    finding("refuse", Some("purpose_unknown"), "another")]}]});
        assert_eq!(findings(&decided), format!("\n  {exceeded}"));
        assert_eq!(findings(&json!({"reason_code": "constraint_exceeded"})), "");
    }

    #[test]
    fn a_decision_is_said_in_a_sentence() {
        let view = View { json: false, utc: true };
        let mut decided = json!({
            "decision": "require_approval", "reason_code": "no_such\u{1b}", "approval_state": "expired",
            "evaluated_at": "2026-11-21T00:48:45.5Z",
            "record": {"request": {"action": "payment.execute", "purpose": "invoice-settlement"}}});
        assert_eq!(
            sentences(&decided, "invoice-bot", view),
            "payment.execute for invoice-settlement, requested by invoice-bot, was held for approval at \
             2026-11-21T00:48:45Z (approval expired).\nno_such\\u{1b}"
        );
        decided["decision"] = "allow".into();
        decided["approval_state"] = Value::Null;
        decided["record"]["request"]["purpose"] = Value::Null;
        decided["reason_code"] = "permission_granted".into();
        let said = sentences(&decided, "invoice-bot", view);
        let start = "payment.execute, requested by invoice-bot, was allowed at 2026-11-21T00:48:45Z.\n\
                     permission_granted: ";
        assert!(said.starts_with(start), "{said}");
    }
}

//! `decisions show`: what was decided in a sentence, then the whole record.

use serde_json::Value;

use crate::cli::{
    Actions, Failure,
    outcome::CommandOutput,
    paint,
    remote::{
        approvals::why,
        connect::Connector,
        names::Names,
        record::{self, ShowArgs},
        text::{self, plain},
    },
    view::View,
};

pub(super) async fn run(
    ShowArgs { id, server, .. }: ShowArgs,
    connector: &Connector<'_, impl Actions>,
) -> Result<CommandOutput, Failure> {
    let server = connector.connect(server).await?;
    let body = server.get(&["v1", "decisions", &id], &()).await?;
    let decided = server.json(&body)?;
    if !decided.is_object() {
        return Err(server.unexpected("no record in the response"));
    }
    let subject = text::of(&decided["record"]["request"], "subject");
    let names = Names::of(&server, std::iter::once(subject)).await;
    let said = sentences(&decided, &names.beside(subject), server.view());
    let text = format!("{said}\n\n{}", record::text(&decided, server.view()));
    Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
}

/// Who asked to do what and when, how it ended, and why.
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
    format!("{action}{purpose}, asked for by {who}, {outcome} at {at}{now}.\n{reason}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_decision_is_said_in_a_sentence() {
        let view = View { json: false, utc: true };
        let mut decided = json!({
            "decision": "require_approval", "reason_code": "no_such\u{1b}", "approval_state": "expired",
            "evaluated_at": "2026-11-21T00:48:45.5Z",
            "record": {"request": {"action": "payment.execute", "purpose": "invoice-settlement"}}});
        assert_eq!(
            sentences(&decided, "invoice-bot", view),
            "payment.execute for invoice-settlement, asked for by invoice-bot, was held for approval at \
             2026-11-21T00:48:45Z (approval expired).\nno_such\\u{1b}"
        );
        decided["decision"] = "allow".into();
        decided["approval_state"] = Value::Null;
        decided["record"]["request"]["purpose"] = Value::Null;
        decided["reason_code"] = "permission_granted".into();
        let said = sentences(&decided, "invoice-bot", view);
        let start = "payment.execute, asked for by invoice-bot, was allowed at 2026-11-21T00:48:45Z.\n\
                     permission_granted: ";
        assert!(said.starts_with(start), "{said}");
    }
}

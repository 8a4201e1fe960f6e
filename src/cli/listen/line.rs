//! The printed output: a line for each delivery.

use std::net::SocketAddr;

use authority_cli::text::{NOTHING, plain};
use authority_verify_webhook::Suite;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::{printer::Line, verifier::Verifier};

/// The longest shown value, in characters. Unverified values may have any length.
const LONGEST: usize = 300;
const GAP: &str = "  ";

/// Shows the address and the expected deliveries.
pub(super) fn start(verifier: &Verifier, address: SocketAddr, json: bool) -> Line {
    let suites = verifier.suites();
    let (url, tenant_id) = (&verifier.url, &verifier.tenant_id);
    if json {
        let suites: Vec<_> = suites.iter().map(|suite| suite.as_str()).collect();
        return Line::Aside(
            json!({"listening": address, "url": url, "tenant_id": tenant_id, "suites": suites})
                .to_string(),
        );
    }
    let suites = if suites.is_empty() { NOTHING.to_owned() } else { names(&suites) };
    Line::Aside(format!(
        "listening on {address} for deliveries of {tenant_id} to {url}; suites: {suites}"
    ))
}

pub(super) fn note(problem: &str, json: bool) -> Line {
    Line::Aside(if json {
        json!({"ok": false, "error": problem}).to_string()
    } else {
        format!("note: {}", plain(problem))
    })
}

/// Shows a delivery. JSON output is the envelope as received, and only if it is verified: scripts
/// treat their input as genuine.
pub(super) fn delivery(
    at: DateTime<Utc>,
    body: &[u8],
    verified: &Result<Vec<Suite>, String>,
    json: bool,
) -> Line {
    match verified {
        Ok(_) if json => Line::Output(String::from_utf8_lossy(body).into_owned()),
        Err(why) if json => note(&format!("not verified: {why}"), json),
        Ok(suites) => Line::Output(text(at, body, &format!("verified by {}", names(suites)))),
        Err(why) => Line::Output(text(at, body, &format!("NOT VERIFIED: {}", plain(why)))),
    }
}

fn text(at: DateTime<Utc>, body: &[u8], verdict: &str) -> String {
    let event: Value = serde_json::from_slice(body).unwrap_or_default();
    let member = |name: &str| match &event[name] {
        Value::String(text) => plain(&text.chars().take(LONGEST).collect::<String>()),
        Value::Number(number) => number.to_string(),
        _ => NOTHING.to_owned(),
    };
    let at = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let [kind, id, sequence, subject] =
        ["event_type", "event_id", "sequence", "subject_ref"].map(member);
    [&at, &kind, &id, &sequence, &subject, verdict].join(GAP)
}

fn names(suites: &[Suite]) -> String {
    suites.iter().map(|suite| suite.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(body: &str, verified: &Result<Vec<Suite>, String>, json: bool) -> (bool, String) {
        let at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        match delivery(at, body.as_bytes(), verified, json) {
            Line::Output(line) => (true, line),
            Line::Aside(line) => (false, line),
        }
    }

    #[test]
    fn a_delivery_is_a_line_that_says_by_what_it_is_verified() {
        let body = r#"{"event_id":"svc:event:1","event_type":"svc.decision.approved","sequence":7,
            "subject_ref":"svc:approval:2"}"#;
        let by = Ok(vec![Suite::Rfc9421, Suite::StandardWebhooks]);
        let start = "2027-01-15T08:00:00Z  svc.decision.approved  svc:event:1  7  svc:approval:2  ";
        assert_eq!(
            printed(body, &by, false),
            (true, format!("{start}verified by rfc9421, standard-webhooks/v1"))
        );
        let why = Err("the body differs from the signed body".to_owned());
        assert_eq!(
            printed(body, &why, false),
            (true, format!("{start}NOT VERIFIED: the body differs from the signed body"))
        );
    }

    #[test]
    fn a_script_gets_the_bytes_of_what_is_verified_and_nothing_else() {
        let body = r#"{"event_id":"svc:event:1"}"#;
        assert_eq!(printed(body, &Ok(vec![Suite::Jwt]), true), (true, body.to_owned()));
        let (on_output, line) = printed(body, &Err("too old".to_owned()), true);
        assert_eq!(
            (on_output, line.as_str()),
            (false, r#"{"ok":false,"error":"not verified: too old"}"#)
        );
    }

    #[test]
    fn what_is_not_an_event_stays_a_short_line_without_control_characters() {
        let long = format!(r#"{{"event_type":"{}\u001b[2J\n"}}"#, "x".repeat(1000));
        for body in ["", "[1]", "null", "\u{7}", &long, r#"{"event_type":"a\u001b\nb"}"#] {
            let (_, line) = printed(body, &Err("no\nkey".to_owned()), false);
            assert!(line.len() < 500 && !line.contains(char::is_control), "{line:?}");
            assert!(line.ends_with("NOT VERIFIED: no\\nkey"), "{line}");
        }
    }
}

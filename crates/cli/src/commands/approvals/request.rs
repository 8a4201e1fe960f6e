//! A request for approval: its parts, and its look-up by id.

use authority_client::SURFACE;
use authority_console::headline;
use serde_json::Value;

use crate::{
    outcome::Failure,
    server::Server,
    text::{self, plain},
};

pub(super) const APPROVALS: [&str; 2] = [SURFACE, "approvals"];

/// The action, and its amount if the context has one. A currency must be three capital letters;
/// otherwise, the amount is shown only in the full request. The reason is that the service's text
/// must not contain text of the agent.
pub(super) fn what(held: &Value) -> String {
    let context = &held["request"]["context"];
    let is_code = |text: &str| text.len() == 3 && text.bytes().all(|c| c.is_ascii_uppercase());
    let amount = match (context["amount"].as_number(), &context["currency"]) {
        (Some(amount), Value::Null) => format!(" {amount}"),
        (Some(amount), Value::String(code)) if is_code(code) => format!(" {amount} {code}"),
        _ => String::new(),
    };
    plain(text::of(held, "action")) + &amount
}

/// The payee and the purpose, as in the console's list: `supplier.iban DE89; invoice RE-417; and 2
/// more`.
pub(super) fn about(held: &Value) -> String {
    let Some(context) = held["request"]["context"].as_object() else { return String::new() };
    let (rows, more) = headline(context);
    let rows = rows.into_iter().map(|(name, value)| member(&name, &value));
    let more = (more > 0).then(|| format!("and {more} more"));
    rows.chain(more).collect::<Vec<_>>().join("; ")
}

/// A field of a request, within text of the service.
pub(super) fn member(name: &str, value: &str) -> String {
    format!("{} {}", told(name), told(value))
}

/// A caller's text within text of the service. It is quoted if it contains characters that the
/// service uses as separators.
pub(super) fn told(text: &str) -> String {
    let is_plain = |letter: char| !matches!(letter, ';' | ':' | ',' | '(' | ')' | '"' | '\\');
    if text.chars().all(is_plain) {
        return plain(text);
    }
    format!("\"{}\"", plain(text).replace('"', "\\\""))
}

/// `1 of 2`, and the roles that must be among the approvers.
pub(super) fn progress(held: &Value) -> String {
    format!("{} of {}{}", held["given"], held["needed"], roles(held))
}

/// ` with legal`, or empty.
pub(super) fn roles(of: &Value) -> String {
    let roles: Vec<_> =
        of["roles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if roles.is_empty() { String::new() } else { plain(&format!(" with {}", roles.join(", "))) }
}

/// Reads a request by its id; returns the body of the response, and the request in it.
pub(super) async fn read(server: &Server, id: &str) -> Result<(String, Value), Failure> {
    let path = [server.path(&APPROVALS), vec![id]].concat();
    let body = server.get(&path, &()).await?;
    let held = server.json(&body)?["approval"].take();
    if held.is_object() {
        Ok((body, held))
    } else {
        Err(server.unexpected("no `approval` in the response"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_says_to_whom() {
        let context = json!({"amount": 5, "currency": "EUR", "note": "x".repeat(90),
                             "payee": "Müller\u{202e}", "iban": "DE89"});
        let shown = about(&json!({"request": {"context": context}}));
        assert!(shown.contains(r"payee Müller\u{202e}") && shown.contains("iban DE89"), "{shown}");
        assert_eq!(about(&json!({"request": null})), "");
        // Text of an agent must not look like text of the service.
        let context = json!({"payee": "Acme AG) by svc:agent:acme:other; declined: \"paid\""});
        assert_eq!(
            about(&json!({"request": {"context": context}})),
            r#"payee "Acme AG) by svc:agent:acme:other; declined: \"pai…""#
        );
    }

    #[test]
    fn a_currency_has_no_words_of_an_agent() {
        for (context, shown) in [
            (json!({"amount": 5, "currency": "EUR"}), "pay 5 EUR"),
            (json!({"amount": 5}), "pay 5"),
            (json!({"amount": 5, "currency": "EUR, approved by finance"}), "pay"),
            (json!({"amount": 5, "currency": ["EUR"]}), "pay"),
            (json!({"amount": "5 EUR"}), "pay"),
        ] {
            let held = json!({"action": "pay", "request": {"context": context}});
            assert_eq!(what(&held), shown, "{context}");
        }
    }
}

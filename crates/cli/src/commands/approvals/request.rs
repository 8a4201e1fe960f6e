//! A request for approval: its parts, and its look-up by id.

use authority_client::SURFACE;
use authority_ids::ApprovalRef;
use serde_json::Value;

use crate::{
    outcome::Failure,
    server::Server,
    text::{self, plain},
};

/// The number of facts in a list, and the length at which their values are cut, in characters.
const LISTED: usize = 4;
const LONGEST: usize = 48;

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

/// The title and the first facts, as in the console's list: `Pay 5.00 EUR to Acme; Invoice RE-417; and
/// 2 more`.
pub(super) fn about(held: &Value) -> String {
    let presentation = &held["presentation"];
    let all = |member: &str| presentation[member].as_array().map_or(0, Vec::len);
    let title = (presentation["declared_title"] == true)
        .then(|| quoted(text::of(presentation, "title")) + &mixed(presentation));
    let facts = presentation["facts"].as_array().into_iter().flatten();
    let facts = facts.take(LISTED).map(|fact| {
        let (label, value) = (text::of(fact, "label"), text::of(fact, "value"));
        format!("{} {}{}", quoted(label), quoted(&short(value)), mixed(fact))
    });
    let not_shown =
        presentation["not_shown"].as_u64().and_then(|count| usize::try_from(count).ok());
    let more = all("facts").saturating_sub(LISTED)
        + all("lists")
        + all("agent_words")
        + not_shown.unwrap_or_default();
    let more = (more > 0).then(|| format!("and {more} more"));
    title.into_iter().chain(facts).chain(more).collect::<Vec<_>>().join("; ")
}

/// A note on letters of several scripts.
pub(super) fn mixed(of: &Value) -> String {
    match text::of(of, "mixed_letters") {
        "" => String::new(),
        letters => format!(" (letters of several scripts: {})", plain(letters)),
    }
}

/// A value, cut for a list.
fn short(value: &str) -> String {
    if value.chars().count() <= LONGEST {
        return value.to_owned();
    }
    value.chars().take(LONGEST).chain(['…']).collect()
}

/// A caller's text within text of the service. It is quoted if it contains characters that the
/// service uses as separators.
fn quoted(text: &str) -> String {
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
pub(super) async fn read(server: &Server, id: &ApprovalRef) -> Result<(String, Value), Failure> {
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
    fn a_row_shows_the_title_and_the_first_facts() {
        let fact = |label: &str, value: &str, mixed_letters: &str| json!({"label": label, "value": value, "mixed_letters": mixed_letters});
        let mut held = json!({"presentation": {
            "declared_title": true, "title": "Pay 5.00 EUR to Müller", "mixed_letters": "", "not_shown": 2,
            "facts": [fact("To", "Müller\u{202e}", ""), fact("Account", "DE\u{410}", "\u{410}")],
            "lists": [{}], "agent_words": [],
        }});
        assert_eq!(
            about(&held),
            "Pay 5.00 EUR to Müller; To Müller\\u{202e}; \
             Account DE\u{410} (letters of several scripts: \u{410}); and 3 more"
        );
        // Text of an agent must not look like text of the service.
        held["presentation"]["declared_title"] = false.into();
        held["presentation"]["facts"] =
            json!([fact("To", "Acme AG) by svc:agent:acme:other; declined: \"paid\"", "")]);
        assert_eq!(
            about(&held),
            r#"To "Acme AG) by svc:agent:acme:other; declined: \"pai…"; and 3 more"#
        );
        assert_eq!(about(&json!({"presentation": null})), "");
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

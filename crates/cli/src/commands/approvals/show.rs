//! A request for approval for people: agent, action, reason, expiry, and the full content.

use serde_json::Value;

use crate::{
    commands::approvals::{
        links::Links,
        request::{self, progress, roles},
    },
    names::{Names, last_part},
    paint,
    reason::why,
    server::Server,
    text::{self, plain},
};

/// The width of a heading and the gap after it, in characters.
const HEADING: usize = 11;

/// Shows the request completely: an approval signs exactly the displayed content.
pub(super) async fn text(server: &Server, held: &Value) -> String {
    let view = server.view();
    let links = Links::of(server, &held["authority"]).await;
    let people = links.people().chain([text::of(held, "subject")]);
    let names = Names::of(server, people).await;
    let mut lines = Lines::default();
    lines.0.push(format!(
        "{}  {}, {}, until {}\n",
        plain(text::of(held, "id")),
        paint::state(&plain(text::of(held, "state"))),
        given(held),
        view.until(text::of(held, "expires_at")),
    ));
    lines.add("who", &names.beside(text::of(held, "subject")));
    lines.add("what", &request::what(held));
    for named in ["tool", "purpose"] {
        if held[named].is_object() {
            lines.add(named, &self::named(&held[named]));
        }
    }
    lines.add("why", &why(text::of(held, "reason_code")));
    each(held, "policies", |policy| lines.add("policy", &self::policy(policy)));
    each(held, "reality", |found| {
        let name = text::of(found, "name");
        let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
        let since = view.time(text::of(found, "since")).unwrap_or_default();
        lines.add(
            "reality",
            &plain(&format!(
                "{} {}{name}: {}, {} since {since}",
                text::of(found, "source"),
                text::of(found, "id"),
                text::of(found, "drift_type"),
                text::of(found, "effect"),
            )),
        );
    });
    authority(&mut lines, &held["authority"], &links, &names);
    would_be(&mut lines, held, |at| view.time(at).unwrap_or_default());
    each(held, "requested_by", |asker| {
        lines.add(
            "asked by",
            &plain(&format!("{} {}", text::of(asker, "kind"), text::of(asker, "id"))),
        );
    });
    others(&mut lines, held, |at| view.time(at).unwrap_or_default());
    if was_permitted(held) {
        lines.add("again", "the same request was approved before: approve it only if the action should happen again");
    }
    each(held, "acts", |act| lines.add("act", &self::act(act, &|at| view.time(at))));
    if held["eligible"] == "none" {
        lines.add("eligible", "no registered user could approve this when it was last requested");
    }
    presented(&mut lines, &held["presentation"]);
    similar(&mut lines, held, |at| view.time(at).unwrap_or_default());
    justification(&mut lines, held);
    lines.0.push(question(held));
    lines.0.join("\n")
}

/// Shows the request as its tool declares it: the title, the facts, the lists, and then the texts that
/// the agent wrote freely.
fn presented(lines: &mut Lines, presentation: &Value) {
    if !presentation.is_object() {
        return;
    }
    lines.0.push(String::new());
    let title = plain(text::of(presentation, "title"));
    lines.add("title", &(title + &request::mixed(presentation)));
    let decline_title = text::of(presentation, "decline_title");
    if !decline_title.is_empty() {
        lines.add("to decline", &plain(decline_title));
    }
    each(presentation, "facts", |own| lines.add_fact("", own));
    each(presentation, "lists", |list| {
        let row = |texts: &Value| {
            let texts = texts.as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.map(plain).collect::<Vec<_>>().join(" | ")
        };
        let (label, mixed) = (plain(text::of(list, "label")), request::mixed(list));
        lines.add("list", &format!("{label}{mixed}: {}", row(&list["columns"])));
        each(list, "rows", |own| lines.add("", &row(&own["cells"])));
        if list["total"].is_object() {
            lines.add("  total", &row(&list["total"]["cells"]));
        }
    });
    each(presentation, "agent_words", |own| lines.add_fact("agent says", own));
    if let Some(count) = presentation["not_shown"].as_u64().filter(|count| *count > 0) {
        lines.add("", &format!("and {count} more in the full request below"));
    }
    lines.0.push(String::new());
}

/// Shows the requester's own, unverified reason after the facts and the warnings.
fn justification(lines: &mut Lines, held: &Value) {
    if let Some(words) = held["justification"].as_str() {
        lines.add("asker says", &plain(words));
    }
}

/// Shows the warnings about other requests, and the first use of a payee or an account.
fn similar(lines: &mut Lines, held: &Value, time: impl Fn(&str) -> String) {
    each(held, "similar", |similar| {
        let text = match text::of(similar, "reason") {
            "document_again" => "this document is in another request; it may be paid twice",
            "new_account" => "this payee is known with another account",
            "shared_account" => "this account is known under another payee",
            _ => "another request is similar",
        };
        lines.add("warning", text);
        let mut named = 0;
        each(similar, "requests", |other| {
            named += 1;
            let [id, state, at] = ["id", "state", "asked_at"].map(|member| text::of(other, member));
            lines.add("", &plain(&format!("{id} {state}, requested at {}", time(at))));
        });
        if let Some(more) = similar["total"]
            .as_u64()
            .and_then(|total| total.checked_sub(named))
            .filter(|more| *more > 0)
        {
            lines.add("", &format!("and {more} more"));
        }
    });
    if held["partly_compared"] == true {
        lines.add("warning", "not all of its payees, accounts and documents were compared");
    }
    each(held, "first_to", |role| {
        let role = plain(role.as_str().unwrap_or_default());
        lines.add("first", &format!("no approved request to this {role} in 90 days"));
    });
}

/// Shows the decision that the same request would get under the current authority, and the effect of
/// an approval.
fn would_be(lines: &mut Lines, held: &Value, time: impl Fn(&str) -> String) {
    let would_be = &held["would_be"];
    if !would_be.is_object() {
        return;
    }
    let decision = paint::state(&plain(text::of(would_be, "decision")));
    lines.add("would be", &format!("{decision}: {}", why(text::of(would_be, "reason_code"))));
    if held["state"] == "pending" && would_be["decision"] == "allow" {
        let agent = plain(last_part(text::of(held, "subject")));
        let until = time(text::of(held, "expires_at"));
        let then = format!("{agent} can do this once, until {until}, and has to ask again");
        lines.add("approved", &format!("with all approvals, {then}"));
    }
    each(would_be, "policies", |policy| lines.add("  held by", &self::policy(policy)));
    if would_be["no_longer_needed"] == true {
        lines.add("", "no longer needs an approval: if requested again now, it is allowed");
    }
}

/// Shows earlier requests that are identical, and requests that are similar.
fn others(lines: &mut Lines, held: &Value, time: impl Fn(&str) -> String) {
    for heading in ["earlier", "declined_before"] {
        each(held, heading, |earlier| {
            let at = time(text::of(earlier, "at"));
            let reason = earlier["reason"].as_str().map(|reason| format!(": {reason}"));
            let (id, state) = (text::of(earlier, "id"), text::of(earlier, "state"));
            let reason = reason.unwrap_or_default();
            lines.add(
                heading.split('_').next().unwrap_or(heading),
                &plain(&format!("{id} {state} at {at}{reason}")),
            );
        });
    }
}

/// Whether an identical request was approved before this one, whether or not the approval was used.
fn was_permitted(held: &Value) -> bool {
    let mut earlier = held["earlier"].as_array().into_iter().flatten();
    held["state"] == "pending"
        && earlier.any(|one| ["approved", "used"].contains(&text::of(one, "state")))
}

/// Whether the request would still be held after all approvals that were required when it was
/// opened.
fn is_more_needed(held: &Value) -> bool {
    held["state"] == "pending" && held["would_be"]["decision"] == "require_approval"
}

/// The number of given approvals and the number of required approvals.
fn given(held: &Value) -> String {
    let (before, now) = (held["needed"].as_u64(), held["would_be"]["needed"].as_u64());
    match now.filter(|now| is_more_needed(held) && Some(*now) > before) {
        Some(now) => {
            let roles = roles(&held["would_be"]);
            format!(
                "{} of {now}{roles} given ({} when it was requested)",
                held["given"], held["needed"]
            )
        }
        None if is_more_needed(held) => {
            format!("{} given; current authority requires more", progress(held))
        }
        None => format!("{} given", progress(held)),
    }
}

#[derive(Default)]
struct Lines(Vec<String>);

impl Lines {
    fn add(&mut self, heading: &str, text: &str) {
        self.0.push(format!("{heading:HEADING$}{text}"));
    }

    /// Adds a fact. A block has its own lines, each marked: they must not read like other lines.
    fn add_fact(&mut self, heading: &str, fact: &Value) {
        let [label, value] = ["label", "value"].map(|member| text::of(fact, member));
        let (label, mixed) = (plain(label), request::mixed(fact));
        if fact["block"] == true {
            self.add(heading, &format!("{label}:{mixed}"));
            value.split('\n').for_each(|line| self.add("", &format!("| {}", plain(line))));
        } else {
            self.add(heading, &format!("{label}: {}{mixed}", plain(value)));
        }
    }
}

fn each(held: &Value, member: &str, mut shown: impl FnMut(&Value)) {
    held[member].as_array().into_iter().flatten().for_each(&mut shown);
}

/// The name, id and description of a tool or purpose.
fn named(record: &Value) -> String {
    let [name, id, about] = ["name", "id", "description"].map(|member| text::of(record, member));
    let about = if about.is_empty() { String::new() } else { format!(": {about}") };
    plain(&format!("{name} ({id}){about}"))
}

fn policy(policy: &Value) -> String {
    let id = text::of(policy, "id");
    let name = text::of(policy, "name");
    let name = if name.is_empty() { id.to_owned() } else { format!("{name} ({id})") };
    let about = ["description", "advice"].map(|member| text::of(policy, member));
    let about: Vec<_> = about.into_iter().filter(|about| !about.is_empty()).collect();
    plain(&format!("{name}, statement {}: {}", text::of(policy, "statement"), about.join(" ")))
        .trim_end_matches(": ")
        .to_owned()
}

/// The authority that the action would use, with its bounds and the chain above it.
fn authority(lines: &mut Lines, authority: &Value, links: &Links, names: &Names) {
    if !authority.is_object() {
        return;
    }
    let mut parts = vec![format!("{} {}", text::of(authority, "kind"), text::of(authority, "id"))];
    let actions: Vec<_> =
        authority["actions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    parts.push(actions.join(" "));
    for (bound, value) in authority["bounds"].as_object().into_iter().flatten() {
        parts.push(format!("{bound} {}", bound_text(value)));
    }
    parts.retain(|part| !part.is_empty());
    lines.add("authority", &plain(&parts.join(", ")));
    let id = text::of(authority, "id");
    if let Some(parties) = links.parties(id, names) {
        lines.add("  given", &parties);
    }
    each(authority, "chain", |link| {
        let link = link.as_str().unwrap_or_default();
        if link != id {
            let parties = links.parties(link, names).map(|parties| format!(", given {parties}"));
            lines.add("  under", &(plain(link) + &parties.unwrap_or_default()));
        }
    });
}

fn bound_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(bound_text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Describes an act: its author, verdict and time.
fn act(act: &Value, time: &dyn Fn(&str) -> Option<String>) -> String {
    let comment = act["comment"].as_str().map(|comment| format!(": {comment}"));
    let own = if act["self"] == true { ", in their own interest" } else { "" };
    plain(&format!(
        "{} by {} as {}{own} at {}{}",
        text::of(act, "verdict"),
        text::of(act, "name"),
        text::of(act, "role"),
        time(text::of(act, "at")).unwrap_or_default(),
        comment.unwrap_or_default(),
    ))
}

/// The exact content of the request, which an approval or decline signs by its digest.
fn question(held: &Value) -> String {
    let digest = plain(text::of(held, "request_digest"));
    if held["request"].is_null() {
        return format!(
            "\nThe request was erased or changed: it cannot be approved. Its digest: {digest}"
        );
    }
    format!("\nThe request, to be signed as {digest}:\n{}", text::json(&held["request"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_hidden_in_a_question_is_seen() {
        let held = json!({"request_digest": "sha256:00", "request": {
            "context": {"iban": "DE\u{202e}98\u{200b}", "note": "x".repeat(5000)}}});
        let shown = question(&held);
        assert!(shown.contains(r#""iban": "DE\u202e98\u200b""#), "{shown}");
        assert!(shown.contains(&"x".repeat(5000)) && shown.contains("sha256:00"), "{shown}");
        let erased = question(&json!({"request_digest": "sha256:00", "request": null}));
        assert!(erased.contains("cannot be approved"), "{erased}");
    }

    #[test]
    fn a_presentation_shows_blocks_totals_and_the_title_of_a_decline() {
        let fact = |label: &str, value: &str, block: bool| json!({"label": label, "value": value, "block": block, "mixed_letters": ""});
        let presentation = json!({
            "title": "Run", "decline_title": "Run of a script", "mixed_letters": "",
            "facts": [fact("Host", "a\nHost: b", false), fact("Script", "echo\u{202e} 1\nHost: b\n", true)],
            "lists": [{"label": "Lines", "columns": ["Text", "Net"], "mixed_letters": "\u{43e}",
                "rows": [{"cells": ["N\u{43e}rd", "5"]}], "total": {"cells": ["", "5"]}}],
            "agent_words": [], "not_shown": 0,
        });
        let mut lines = Lines::default();
        presented(&mut lines, &presentation);
        let lines: Vec<_> = lines.0.iter().map(|line| line.trim()).collect();
        assert_eq!(
            lines,
            [
                "",
                "title      Run",
                "to decline Run of a script",
                "Host: a\\nHost: b",
                "Script:",
                "| echo\\u{202e} 1",
                "| Host: b",
                "|",
                "list       Lines (letters of several scripts: \u{43e}): Text | Net",
                "N\u{43e}rd | 5",
                "total     | 5",
                "",
            ]
        );
    }

    #[test]
    fn what_was_permitted_before_is_said() {
        let of = |state: &str, earlier: &str| {
            was_permitted(
                &json!({"state": state, "earlier": [{"state": "declined"}, {"state": earlier}]}),
            )
        };
        assert!(of("pending", "used") && of("pending", "approved"));
        assert!(!of("pending", "expired") && !of("used", "used"));
    }

    #[test]
    fn people_are_counted_by_present_authority() {
        let mut held = json!({"state": "pending", "given": 0, "needed": 1,
                              "would_be": {"decision": "require_approval", "needed": 2,
                                           "roles": ["legal"]}});
        assert_eq!(given(&held), "0 of 2 with legal given (1 when it was requested)");
        held["would_be"]["needed"] = Value::Null;
        assert_eq!(given(&held), "0 of 1 given; current authority requires more");
        held["would_be"]["decision"] = "allow".into();
        assert_eq!(given(&held), "0 of 1 given");
    }

    #[test]
    fn a_code_has_its_sentence() {
        assert!(why("approval_threshold_breach").starts_with("approval_threshold_breach: "));
        assert_eq!(why("no such\u{1b}"), r"no such\u{1b}");
    }
}

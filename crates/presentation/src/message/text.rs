//! The words of a message.

use std::fmt::Write;

use authority_decision::hidden::is_hidden;
use authority_model::proto::approval::{ApprovalFact, ApprovalPresentation};
use chrono::{DateTime, Utc};

use crate::texts as t;

/// The maximum number of facts in a message. The page of the request has all of them.
const MOST_FACTS: usize = 12;
/// The maximum number of characters of a value and of a label.
const LONGEST: usize = 300;
const LONGEST_LABEL: usize = 60;

/// The reason for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A request waits for people.
    Asked,
    /// A request expired without a decision.
    Lapsed,
}

/// The content of a message about a request.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    pub kind: MessageKind,
    pub action: &'a str,
    /// The name of the agent.
    pub agent: &'a str,
    pub asked_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// The number of people who must approve.
    pub needed: i32,
    /// The roles that may decide.
    pub permitted_roles: &'a [String],
    /// The roles that must be among the people who approve.
    pub required_roles: &'a [String],
    /// How the request reads. `None` if the tenant does not permit facts in messages.
    pub facts: Option<&'a ApprovalPresentation>,
    /// The URL of the request's page.
    pub link: &'a str,
}

/// A message in words, independent of the format of its receiver. Hidden characters are escaped, and
/// each text is a single line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageText {
    pub heading: &'static str,
    /// Labels and values.
    pub lines: Vec<(String, String)>,
    /// The URL of a page and the text of the link to it.
    pub link: String,
    pub link_text: &'static str,
}

impl MessageText {
    pub fn of(message: &Message<'_>) -> Self {
        let mut lines = Vec::new();
        let mut add =
            |label: &str, value: &str| lines.push((label.to_owned(), line(value, LONGEST)));
        if let Some(facts) = message.facts {
            add(t::REQUEST, &marked(&facts.title, &facts.mixed_letters));
        }
        add(t::ACTION, message.action);
        add(t::AGENT, message.agent);
        if message.kind == MessageKind::Asked {
            for fact in message.facts.iter().flat_map(|facts| &facts.facts).take(MOST_FACTS) {
                let ApprovalFact { label, value, mixed_letters, .. } = fact;
                add(&line(label, LONGEST_LABEL), &marked(value, mixed_letters));
            }
            let left =
                message.facts.map_or(0, |facts| facts.facts.len().saturating_sub(MOST_FACTS));
            if left > 0 {
                add(t::FURTHER_FACTS, &left.to_string());
            }
        }
        add(t::ASKED, &time(message.asked_at));
        match message.kind {
            MessageKind::Asked => {
                add(t::EXPIRES, &time(message.expires_at));
                add(t::WHO_DECIDES, &deciders(message));
            }
            MessageKind::Lapsed => add(t::EXPIRED, &time(message.expires_at)),
        }
        let heading = match message.kind {
            MessageKind::Asked => t::REQUEST_WAITS,
            MessageKind::Lapsed => t::REQUEST_EXPIRED,
        };
        Self { heading, lines, link: message.link.to_owned(), link_text: t::OPEN_REQUEST }
    }

    /// The message by which a person tests a channel. `link` is the URL of the channels' page.
    pub fn test(link: &str) -> Self {
        let lines = [(t::CHANNEL, t::MESSAGES_ARRIVE)];
        Self {
            heading: t::TEST_MESSAGE,
            lines: lines.map(|(label, value)| (label.to_owned(), value.to_owned())).into(),
            link: link.to_owned(),
            link_text: t::OPEN_CHANNELS,
        }
    }
}

/// Returns the text with each hidden character as `⟨U+202E⟩`.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_hidden(letter) {
            // Writing to a `String` cannot fail.
            let _ = write!(shown, "⟨U+{:04X}⟩", u32::from(letter));
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// Returns the text as a single line with at most this many characters.
fn line(text: &str, longest: usize) -> String {
    let shown = visible(text).replace(['\n', '\t'], " ");
    if shown.chars().count() <= longest {
        return shown;
    }
    shown.chars().take(longest).chain(['…']).collect()
}

fn marked(value: &str, mixed_letters: &str) -> String {
    let value = line(value, LONGEST);
    if mixed_letters.is_empty() {
        return value;
    }
    t::with_mixed_letters(&value, mixed_letters)
}

fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}

/// `2 people in the role admin, approver or legal; among them legal`.
fn deciders(message: &Message<'_>) -> String {
    let people = t::deciders(message.needed, &any_of(message.permitted_roles));
    if message.required_roles.is_empty() {
        return people;
    }
    t::deciders_with(&people, &message.required_roles.join(t::AND))
}

fn any_of(roles: &[String]) -> String {
    match roles {
        [] => t::AN_APPROVER.to_owned(),
        [only] => only.clone(),
        [others @ .., last] => t::any_of(&others.join(", "), last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(label: &str, value: &str) -> ApprovalFact {
        ApprovalFact { label: label.to_owned(), value: value.to_owned(), ..ApprovalFact::default() }
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn message(kind: MessageKind, facts: Option<&ApprovalPresentation>) -> Message<'_> {
        Message {
            kind,
            action: "payment.execute",
            agent: "invoice-bot",
            asked_at: at("2026-03-05T09:07:30Z"),
            expires_at: at("2026-03-06T09:07:30Z"),
            needed: 1,
            permitted_roles: &[],
            required_roles: &[],
            facts,
            link: "https://authority.example.org/console/approvals/x",
        }
    }

    fn values(text: &MessageText) -> Vec<(&str, &str)> {
        text.lines.iter().map(|(label, value)| (&**label, &**value)).collect()
    }

    #[test]
    fn without_facts_a_message_has_action_agent_times_and_deciders() {
        let roles = ["admin", "approver", "legal"].map(str::to_owned);
        let required = ["legal".to_owned()];
        let of = Message {
            needed: 2,
            permitted_roles: &roles,
            required_roles: &required,
            ..message(MessageKind::Asked, None)
        };
        let text = MessageText::of(&of);
        assert_eq!(
            values(&text),
            [
                ("Action", "payment.execute"),
                ("Agent", "invoice-bot"),
                ("Asked", "2026-03-05 09:07 UTC"),
                ("Expires", "2026-03-06 09:07 UTC"),
                ("Who decides", "2 people in the role admin, approver or legal; among them legal"),
            ]
        );
        let lapsed = MessageText::of(&message(MessageKind::Lapsed, None));
        let labels: Vec<&str> = lapsed.lines.iter().map(|(label, _)| &**label).collect();
        assert_eq!(labels, ["Action", "Agent", "Asked", "Expired"]);
    }

    #[test]
    fn facts_are_single_lines_with_their_hidden_characters_shown() {
        let facts = ApprovalPresentation {
            title: "Pay\nWho decides: nobody".to_owned(),
            facts: vec![
                fact("To", "Nord\u{202e}wind"),
                ApprovalFact { mixed_letters: "\u{43e}".to_owned(), ..fact("Name", "N\u{43e}rd") },
                fact("Long", &"x".repeat(301)),
            ],
            ..ApprovalPresentation::default()
        };
        let text = MessageText::of(&message(MessageKind::Asked, Some(&facts)));
        let value = |label: &str| {
            let found = text.lines.iter().find(|(own, _)| own == label);
            found.map(|(_, value)| value.clone()).unwrap()
        };
        assert_eq!(value("Request"), "Pay Who decides: nobody");
        assert_eq!(value("To"), "Nord⟨U+202E⟩wind");
        assert_eq!(value("Name"), "N\u{43e}rd (letters of another script: \u{43e})");
        assert_eq!(value("Long"), format!("{}…", "x".repeat(300)));
    }

    #[test]
    fn many_facts_are_counted() {
        let facts = ApprovalPresentation {
            facts: (0..20).map(|n| fact(&format!("Fact {n}"), "x")).collect(),
            ..ApprovalPresentation::default()
        };
        let text = MessageText::of(&message(MessageKind::Asked, Some(&facts)));
        assert!(values(&text).contains(&("Fact 11", "x")));
        assert!(!values(&text).contains(&("Fact 12", "x")));
        assert!(values(&text).contains(&("Further facts", "8")));
    }
}

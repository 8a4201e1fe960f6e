//! A decision as a coding agent reads it.

use crate::reason::Reason;
use serde_json::Value;

use super::client::Client;

/// The verdict of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    Held,
    /// Also for a verdict that is unknown.
    Denied,
}

impl Verdict {
    /// Reads the word of a decision's response.
    pub fn of(word: &str) -> Self {
        match word {
            "allow" | "allow_with_constraints" => Self::Allowed,
            "require_approval" => Self::Held,
            _ => Self::Denied,
        }
    }
}

/// A decision on a tool call.
#[derive(Clone, Debug)]
pub struct Decided<'a> {
    pub verdict: Verdict,
    pub reason_code: &'a str,
    /// The receipt of the decision.
    pub link: &'a str,
    /// Whether an approval request waits for people.
    pub has_approval: bool,
    /// Whether no registered person could approve it.
    pub nobody_eligible: bool,
    /// The sentences of the policies that deny or hold the call.
    pub advice: Vec<&'a str>,
    /// The smallest change that would alter a denial, as a sentence.
    pub change: Option<&'a str>,
}

impl Decided<'_> {
    /// The answer in the form of the coding agent.
    pub fn answer(&self, client: Client) -> Value {
        match self.verdict {
            Verdict::Allowed => client.allowed(),
            Verdict::Held | Verdict::Denied => client.denied(&self.text()),
        }
    }

    /// The sentences that the model reads, and shows to its user.
    pub fn text(&self) -> String {
        let mut text = match self.verdict {
            Verdict::Allowed => "Permitted".to_owned(),
            Verdict::Held => "Held for approval".to_owned(),
            Verdict::Denied => "Denied".to_owned(),
        };
        text.push_str(": ");
        text.push_str(self.reason_code);
        let known = Reason::ALL.iter().find(|reason| reason.word() == self.reason_code);
        if let Some(reason) = known {
            text.push_str(" (");
            text.push_str(reason.sentence());
            text.push(')');
        }
        text.push('.');
        let mut add = |sentence: &str| {
            text.push(' ');
            text.push_str(sentence.trim_end());
            if !sentence.trim_end().ends_with(['.', '!', '?']) {
                text.push('.');
            }
        };
        self.advice.iter().for_each(|advice| add(advice));
        match self.verdict {
            Verdict::Held if !self.has_approval => add("No approval helps: ask again later."),
            Verdict::Held if self.nobody_eligible => {
                add("No registered person could approve it: ask an administrator.");
            }
            Verdict::Held => {
                add("A person must approve it. Then repeat exactly the same call.");
            }
            Verdict::Denied => {
                if let Some(change) = self.change {
                    add(&format!("To change this: {change}"));
                }
            }
            Verdict::Allowed => {}
        }
        text.push(' ');
        text.push_str(self.link);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(verdict: Verdict) -> Decided<'static> {
        Decided {
            verdict,
            reason_code: "x_force_push",
            link: "https://a.example/receipts/svc:decision:1",
            has_approval: true,
            nobody_eligible: false,
            advice: vec!["Force pushes need a person"],
            change: Some("ask for 5 at most"),
        }
    }

    #[test]
    fn only_an_allow_lets_a_call_go_on() {
        for client in Client::ALL {
            for word in ["allow", "allow_with_constraints"] {
                assert_eq!(decided(Verdict::of(word)).answer(client), client.allowed());
            }
            for word in ["require_approval", "deny", "", "ALLOW", "unknown"] {
                let decided = decided(Verdict::of(word));
                assert_eq!(decided.answer(client), client.denied(&decided.text()), "{word}");
            }
        }
    }

    #[test]
    fn the_reason_names_the_next_step() {
        let held = decided(Verdict::Held).text();
        assert!(
            held.starts_with(
                "Held for approval: x_force_push. Force pushes need a person. A person must"
            ),
            "{held}"
        );
        assert!(held.ends_with("https://a.example/receipts/svc:decision:1"), "{held}");
        let denied = decided(Verdict::Denied).text();
        assert!(denied.contains("To change this: ask for 5 at most."), "{denied}");
        let coded = Decided { reason_code: "policy_denied", ..decided(Verdict::Denied) }.text();
        assert!(coded.starts_with("Denied: policy_denied ("), "{coded}");
        let nobody = Decided { nobody_eligible: true, ..decided(Verdict::Held) }.text();
        assert!(nobody.contains("No registered person"), "{nobody}");
        let later = Decided { has_approval: false, ..decided(Verdict::Held) }.text();
        assert!(later.contains("No approval helps"), "{later}");
    }
}

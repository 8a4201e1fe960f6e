//! `approvals approve`, `decline`, `withdraw`, `reopen`: each acts on exactly the displayed
//! request.

use authority_ids::{Approval, ApprovalRef};
use clap::Args;
use serde_json::{Value, json};

use crate::{
    arguments::id,
    commands::approvals::{
        request::{self, APPROVALS, progress, read},
        show,
    },
    confirm::Confirm,
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    paint,
    reason::why,
    server::Server,
    text::{self, plain},
};

/// The confirmation question, and the required state of the request.
struct Question {
    verb: &'static str,
    state: &'static str,
    /// Whether the answer permits the action and confirms the required reviews.
    approves: bool,
}

const APPROVE: Question = Question { verb: "Approve", state: "pending", approves: true };
const DECLINE: Question = Question { verb: "Decline", state: "pending", approves: false };
const WITHDRAW: Question =
    Question { verb: "Withdraw the approval of", state: "approved", approves: false };
const REOPEN: Question = Question { verb: "Reopen", state: "declined", approves: false };

/// The request to act on, and the digest of its content.
#[derive(Debug, Args)]
struct Which {
    /// The request's id
    #[arg(value_parser = id::<Approval>)]
    id: ApprovalRef,
    /// The digest that was shown before; if the request now has another digest, the command fails
    /// [default: the current digest]
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    #[command(flatten)]
    which: Which,
    /// The reason, for the record
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// The id of an anchor or a drift event in `reality` that you reviewed; can be given several
    /// times [default without --yes: the ids shown]
    #[arg(long = "reviewed", value_name = "ID")]
    reviewed: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Decline {
    #[command(flatten)]
    which: Which,
    /// The reason, for the record and for the requester
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// The number of seconds for which the same request is denied; the tenant's setting applies if
    /// it is shorter
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=86_400))]
    for_seconds: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Withdraw {
    #[command(flatten)]
    which: Which,
    /// The reason, for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct Reopen {
    #[command(flatten)]
    which: Which,
    /// The reason, for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Approve {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let asks = !self.which.confirm.yes;
        let (server, held) = self.which.agreed(connector, &APPROVE).await?;
        let reviewed =
            if asks && self.reviewed.is_empty() { to_review(&held) } else { self.reviewed };
        let body = json!({"comment": self.comment, "reviewed": reviewed,
                          "request_digest": held["request_digest"],
                          "presentation_version": version(&held)});
        act(&server, &self.which.id, "approve", &body).await
    }
}

impl Decline {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let (server, held) = self.which.agreed(connector, &DECLINE).await?;
        let body = json!({"reason": self.reason, "for_seconds": self.for_seconds,
                          "request_digest": held["request_digest"],
                          "presentation_version": version(&held)});
        act(&server, &self.which.id, "decline", &body).await
    }
}

impl Withdraw {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let (server, _) = self.which.agreed(connector, &WITHDRAW).await?;
        act(&server, &self.which.id, "withdraw", &json!({"reason": self.reason})).await
    }
}

impl Reopen {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let (server, _) = self.which.agreed(connector, &REOPEN).await?;
        act(&server, &self.which.id, "reopen", &json!({"reason": self.reason})).await
    }
}

impl Which {
    /// Returns the displayed request, after a person agreed to act on it.
    async fn agreed(
        &self,
        connector: &Connector<'_>,
        asked: &Question,
    ) -> Result<(Server, Value), Failure> {
        let server = connector.connect(self.server.clone()).await?;
        let (_, held) = read(&server, &self.id).await?;
        let digest = text::of(&held, "request_digest");
        if let Some(expected) = self.digest.as_ref().filter(|expected| *expected != digest) {
            return Err(Failure::new(format!(
                "the request does not match --digest: its digest is {}, not {}; no change was made\n\
                 read it again with `approvals show`",
                plain(digest),
                plain(expected),
            )));
        }
        if held["state"] != asked.state {
            let state = plain(text::of(&held, "state"));
            return Err(Failure::new(format!(
                "{} is {state}: it must be {}",
                plain(&self.id),
                asked.state,
            )));
        }
        if asked.approves && held["would_be"]["decision"] == "deny" {
            let why = why(text::of(&held["would_be"], "reason_code"));
            return Err(Failure::new(format!(
                "not approved: the request would be denied now ({why}), and an approval would only void it\n\
                 wait until the cause is resolved, or end the request with `approvals decline`"
            )));
        }
        if !self.confirm.yes {
            let question = format!(
                "{} {}{} by {} on {}?",
                asked.verb,
                request::what(&held),
                about(&held),
                plain(text::of(&held, "subject")),
                server.address(),
            );
            let mut shown = show::text(&server, &held).await;
            if asked.approves {
                shown.push_str(&reviewed_text(&held));
            }
            self.confirm.agree(&shown, &question)?;
        }
        Ok((server, held))
    }
}

/// The version of the presentation that was shown. An erased request has none.
fn version(held: &Value) -> Option<&str> {
    Some(text::of(held, "presentation_version")).filter(|version| !version.is_empty())
}

/// The title and the first facts of the request, in brackets.
fn about(held: &Value) -> String {
    let about = request::about(held);
    if about.is_empty() { about } else { format!(" ({about})") }
}

/// The findings that require a review.
fn reviews(held: &Value) -> impl Iterator<Item = &Value> {
    let found = held["reality"].as_array().into_iter().flatten();
    found.filter(|found| found["effect"] == "require_human_review")
}

/// The displayed findings, which an approval confirms as reviewed. Each entry has the finding's id
/// and start time: a finding that begins later is not reviewed.
fn to_review(held: &Value) -> Vec<String> {
    let key = |found| format!("{}@{}", text::of(found, "id"), text::of(found, "since"));
    reviews(held).map(key).collect()
}

/// The text about the reviews that a person confirms by approving.
fn reviewed_text(held: &Value) -> String {
    let line = |found: &Value| {
        let name = text::of(found, "name");
        let name = if name.is_empty() { text::of(found, "id") } else { name };
        plain(&format!(
            "{name}: {} since {}",
            text::of(found, "drift_type"),
            text::of(found, "since")
        ))
    };
    let lines: Vec<_> = reviews(held).map(|found| format!("  {}", line(found))).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n\nBy approving you confirm that you have reviewed:\n{}", lines.join("\n"))
}

async fn act(
    server: &Server,
    id: &ApprovalRef,
    verb: &str,
    body: &Value,
) -> Result<CommandOutput, Failure> {
    let path = [server.path(&APPROVALS), vec![id, verb]].concat();
    let body = server.post(&path, body).await?;
    let held = &server.json(&body)?["approval"];
    let state = paint::state(&plain(text::of(held, "state")));
    let aside = match text::of(held, "state") {
        "approved" => format!(
            "the agent repeats it with \"approval_id\": \"{}\" and is allowed once, until {}",
            plain(id),
            server.view().until(text::of(held, "expires_at")),
        ),
        "pending" => "more people must approve".to_owned(),
        "declined" if verb == "decline" => plain(text::of(&held["presentation"], "decline_title")),
        "void" if verb == "approve" => "it would not be permitted now, even if approved".to_owned(),
        _ => String::new(),
    };
    let text = format!("{}  {state}, {} given", plain(id), progress(held));
    Ok(CommandOutput { text, json: Some(body), aside, ..CommandOutput::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reviewed_is_shown_and_named_as_it_was_shown() {
        let found = |id: &str, effect: &str| {
            json!({"id": id, "effect": effect, "drift_type": "verified_but_stale", "name": "Rates",
                   "since": "2026-11-25T10:00:00Z"})
        };
        let held = json!({"reality": [
            found("anchor", "require_human_review"), found("other", "require_revalidation"),
        ]});
        assert_eq!(to_review(&held), ["anchor@2026-11-25T10:00:00Z"]);
        let text = reviewed_text(&held);
        assert!(
            text.ends_with("\n  Rates: verified_but_stale since 2026-11-25T10:00:00Z"),
            "{text}"
        );
        assert_eq!(reviewed_text(&json!({"reality": []})), "");
    }
}

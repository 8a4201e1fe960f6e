//! `approvals approve`, `decline`, `withdraw`: what was shown is what is acted on.

use clap::Args;
use serde_json::{Value, json};

use super::{APPROVALS, read, show};
use crate::cli::{
    Actions, Failure,
    confirm::Confirm,
    outcome::CommandOutput,
    paint,
    remote::{
        connect::{Connector, ServerArgs},
        segment,
        server::Server,
        text::{self, plain},
    },
};

/// Which request, and the digest of its question.
#[derive(Debug, Args)]
struct Which {
    /// The request's id
    #[arg(value_parser = segment)]
    id: String,
    /// The digest that was shown before: another question is refused [default: the one shown now]
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct Approve {
    #[command(flatten)]
    which: Which,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// An anchor or a drift event, of those in `reality`, that you reviewed; repeat it [default, when asked: those
    /// shown]
    #[arg(long = "reviewed", value_name = "ID")]
    reviewed: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct Decline {
    #[command(flatten)]
    which: Which,
    /// Why, for the record and for whoever asked
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
pub(super) struct Withdraw {
    /// The request's id
    #[arg(value_parser = segment)]
    id: String,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    server: ServerArgs,
}

impl Approve {
    pub(super) async fn run(
        self,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        let asks = !self.which.confirm.yes;
        let (server, held) = self.which.agreed(connector, "Approve").await?;
        let reviewed =
            if asks && self.reviewed.is_empty() { to_review(&held) } else { self.reviewed };
        let body = json!({"comment": self.comment, "reviewed": reviewed,
                          "request_digest": held["request_digest"]});
        act(&server, &self.which.id, "approve", &body).await
    }
}

impl Decline {
    pub(super) async fn run(
        self,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        let (server, held) = self.which.agreed(connector, "Decline").await?;
        let body = json!({"reason": self.reason, "request_digest": held["request_digest"]});
        act(&server, &self.which.id, "decline", &body).await
    }
}

impl Withdraw {
    pub(super) async fn run(
        self,
        connector: &Connector<'_, impl Actions>,
    ) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server).await?;
        act(&server, &self.id, "withdraw", &json!({"reason": self.reason})).await
    }
}

impl Which {
    /// The request that was shown, which a person agreed to act on.
    async fn agreed(
        &self,
        connector: &Connector<'_, impl Actions>,
        verb: &str,
    ) -> Result<(Server, Value), Failure> {
        let server = connector.connect(self.server.clone()).await?;
        let (_, held) = read(&server, &self.id).await?;
        let digest = text::of(&held, "request_digest");
        if let Some(expected) = self.digest.as_ref().filter(|expected| *expected != digest) {
            return Err(Failure::new(format!(
                "the question is not the one that you saw: its digest is {}, not {}; nothing was done\n\
                 read it again with `approvals show`",
                plain(digest),
                plain(expected),
            )));
        }
        if held["state"] != "pending" {
            let state = plain(text::of(&held, "state"));
            return Err(Failure::new(format!(
                "{} is {state}: only a pending one is acted on",
                plain(&self.id)
            )));
        }
        if !self.confirm.yes {
            let question = format!(
                "{verb} {} by {} on {}?",
                super::what(&held),
                plain(text::of(&held, "subject")),
                server.address(),
            );
            self.confirm.agree(&show::text(&server, &held).await, &question)?;
        }
        Ok((server, held))
    }
}

/// What was shown to the person needs no naming once more.
fn to_review(held: &Value) -> Vec<String> {
    let found = held["reality"].as_array().into_iter().flatten();
    let reviews = found.filter(|found| found["effect"] == "require_human_review");
    reviews.map(|found| text::of(found, "id").to_owned()).collect()
}

async fn act(
    server: &Server,
    id: &str,
    verb: &str,
    body: &Value,
) -> Result<CommandOutput, Failure> {
    let path = [server.path(&APPROVALS), vec![id, verb]].concat();
    let body = server.post(&path, body).await?;
    let held = &server.json(&body)?["approval"];
    let state = paint::state(&plain(text::of(held, "state")));
    let aside = match text::of(held, "state") {
        "approved" => format!(
            "the agent asks again with \"approval_id\": \"{}\" and is allowed once, until {}",
            plain(id),
            server.view().until(text::of(held, "expires_at")),
        ),
        "pending" => "more people must approve".to_owned(),
        "void" if verb == "approve" => "it would not be permitted now, whoever approves".to_owned(),
        _ => String::new(),
    };
    let text = format!("{}  {state}, {} given", plain(id), super::progress(held));
    Ok(CommandOutput { text, json: Some(body), aside, ..CommandOutput::default() })
}

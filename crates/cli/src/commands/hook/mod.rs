//! `hook`: decides one tool call of a coding agent, which runs the command before each call.
//!
//! The call is on standard input, and the answer on standard output. Unlike the operation
//! `/v1/hooks`, the command waits while people decide. Exit code 0 is an answer. Everything else is
//! exit code 2, with which coding agents block the call.

mod wait;

use std::{
    fmt::Display,
    fs,
    io::{self, Read, Write},
    panic,
    path::PathBuf,
    process::{self, ExitCode},
    slice,
    time::Duration,
};

use authority_client::{Base, address};
use authority_decision::hooks::{Asked, Client, Decided, Question, Verdict, question};
use authority_ids::PrincipalRef;
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
    value_parser,
};
use reqwest::Url;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use crate::{outcome::Failure, runtime::relaying, server::Server, text, view::View};

/// The exit code that blocks a call.
const BLOCKED: u8 = 2;
/// The time before the hook's timeout at which waiting ends.
const MARGIN: Duration = Duration::from_secs(5);
/// The time before the hook's timeout at which the command ends.
const LAST: Duration = Duration::from_secs(1);

/// Returns a parser of the names of coding agents.
pub(crate) fn client() -> impl TypedValueParser<Value = Client> {
    let words = PossibleValuesParser::new(Client::ALL.map(Client::word));
    words.try_map(|word| Client::from_word(&word).ok_or("is unknown"))
}

// Not `///`: that would become the help of the commands themselves.
#[derive(Clone, Debug, Args)]
pub(crate) struct Guard {
    /// The service's address
    #[arg(long, value_name = "URL", value_parser = address)]
    pub(crate) url: Url,
    /// A file with an API key that is bound to the agent and has `runtime:write` and `runtime:read`
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: PathBuf,
    /// The agent's id
    #[arg(long, value_name = "ID")]
    pub(crate) agent: PrincipalRef,
    /// The purpose of the agent's actions, by its slug
    #[arg(long, value_name = "SLUG")]
    pub(crate) purpose: String,
    /// An MCP server that runs behind `mcp wrap`, which decides its calls; repeat it
    #[arg(long = "wrapped-server", value_name = "NAME")]
    pub(crate) wrapped_servers: Vec<String>,
    /// The hook's timeout, in seconds; waiting for people ends 5 seconds before it
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = value_parser!(u64).range(10..=86_400))]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub struct Hook {
    /// The coding agent
    #[arg(value_parser = client())]
    client: Client,
    #[command(flatten)]
    guard: Guard,
}

impl Hook {
    /// Decides the call on standard input, and prints the answer.
    pub fn run(self) -> ExitCode {
        // A coding agent may run the tool after any other exit code than 2.
        panic::set_hook(Box::new(|_| {
            eprintln!("Not permitted, because of an error in agent-authority.");
            process::exit(BLOCKED.into());
        }));
        let written = self.answer().and_then(|answer| {
            let mut to = io::stdout();
            writeln!(to, "{answer}").and_then(|()| to.flush()).map_err(Failure::new)
        });
        match written {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                let _ =
                    writeln!(io::stderr(), "Not permitted, because it was not decided: {failure}");
                ExitCode::from(BLOCKED)
            }
        }
    }

    fn answer(&self) -> Result<Value, Failure> {
        let started = Instant::now();
        let mut body = String::new();
        io::stdin().lock().read_to_string(&mut body).map_err(unread)?;
        let event: Map<String, Value> = serde_json::from_str(&body).map_err(unread)?;
        let asked = question(self.client, &event, &self.guard.wrapped_servers);
        let asked = asked.map_err(|unread| {
            Failure::new(format!("`{}` of the call {}", unread.field, unread.problem))
        })?;
        let asked = match asked {
            Asked::Call(asked) => asked,
            Asked::Wrapped => return Ok(self.client.allowed()),
        };
        let end = started + Duration::from_secs(self.guard.timeout);
        let decided = async { timeout_at(end - LAST, self.decided(asked, end - MARGIN)).await };
        let decided = relaying()?.block_on(decided);
        decided.map_err(|_| Failure::new("the service did not answer in time"))?
    }

    /// Asks the service. If the call is held, waits for people until `end`, and asks again.
    async fn decided(&self, asked: Question, end: Instant) -> Result<Value, Failure> {
        let server = self.guard.server()?;
        let mut request = json!({
            "subject": self.guard.agent,
            "action": asked.action,
            "purpose": self.guard.purpose,
            "context": asked.context,
            // A coding agent meets no obligations.
            "supported_obligations": [],
            "explain": true,
        });
        if let Some(justification) = asked.justification {
            request["justification"] = justification.into();
        }
        let mut answer = evaluate(&server, &request).await?;
        if let Some(approval_id) = awaited(&answer) {
            let [id, link] = ["approval_id", "verify_url"].map(|member| text::of(&answer, member));
            let (id, link) = (text::plain(id), text::plain(link));
            let _ = writeln!(io::stderr(), "waiting for approval {id}: {link}");
            let waited = timeout_at(end, wait::outcome(&server, text::of(&answer, "decision_id")));
            match waited.await {
                Err(_) => {}
                Ok(state) if state.as_ref().is_ok_and(|state| state == "approved") => {
                    request["approval_id"] = approval_id;
                    answer = evaluate(&server, &request).await?;
                }
                Ok(state) => {
                    let reason = format!("Denied: the approval request is {}.", state?);
                    return Ok(self.client.denied(&reason));
                }
            }
        }
        Ok(decided(&answer).answer(self.client))
    }
}

impl Guard {
    /// The API key.
    pub(crate) fn key(&self) -> Result<String, Failure> {
        let key = fs::read_to_string(&self.key_file);
        let key = key.map_err(|error| format!("{}: {error}", self.key_file.display()));
        Ok(key.map_err(Failure::new)?.trim().to_owned())
    }

    fn server(&self) -> Result<Server, Failure> {
        let view = View { json: true, utc: true };
        Server::new(Base::Named(self.url.clone()), &self.key()?, "", view)
    }
}

fn unread(error: impl Display) -> Failure {
    Failure::new(format!("the call on standard input cannot be read: {error}"))
}

async fn evaluate(server: &Server, request: &Value) -> Result<Value, Failure> {
    server.json(&server.post(&["api", "v1", "runtime", "evaluate"], request).await?)
}

/// The approval request that people can still decide.
fn awaited(answer: &Value) -> Option<Value> {
    let is_held = Verdict::of(text::of(answer, "decision")) == Verdict::Held;
    let approval_id = &answer["approval_id"];
    (is_held && approval_id.is_string() && answer["eligible"].is_null())
        .then(|| approval_id.clone())
}

fn list<'a>(value: &'a Value, member: &str) -> slice::Iter<'a, Value> {
    value[member].as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

fn decided(answer: &Value) -> Decided<'_> {
    let findings = list(answer, "trace").flat_map(|stage| list(stage, "findings"));
    Decided {
        verdict: Verdict::of(text::of(answer, "decision")),
        reason_code: text::of(answer, "reason_code"),
        link: text::of(answer, "verify_url"),
        has_approval: answer["approval_id"].is_string(),
        nobody_eligible: !answer["eligible"].is_null(),
        advice: findings.filter_map(|finding| finding["statement"]["advice"].as_str()).collect(),
        change: answer["smallest_change"]["sentence"].as_str(),
    }
}

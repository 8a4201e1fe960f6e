//! `policies validate`, `diff` and `activate`: a policy's text before its activation.

use std::path::PathBuf;

use authority_client::SURFACE;
use authority_ids::{Entity, EntityRef, TenantRef};
use clap::Args;
use serde_json::{Value, json};

use crate::{
    arguments::{id, tenant},
    commands::policies::impact,
    confirm::Confirm,
    connect::{Connector, ServerArgs},
    files,
    outcome::{CommandOutput, Failure},
    paint,
    server::Server,
    text::{self, plain},
    unified_diff::unified_diff,
    unknown_names,
};

pub(super) const POLICIES: [&str; 2] = [SURFACE, "policies"];

#[derive(Debug, Args)]
pub struct Validate {
    /// A file of Cedar; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The tenant with the tools and declarations for the check, by id or slug
    #[arg(long = "tenant", value_name = "ID", value_parser = tenant())]
    tenant_id: Option<TenantRef>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// The policy's id
    #[arg(value_parser = id::<Entity>)]
    id: EntityRef,
    /// The text to compare with the active text; `-` is standard input [default: the draft]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub struct Activate {
    /// The policy's id
    #[arg(value_parser = id::<Entity>)]
    id: EntityRef,
    /// The version of its text [default: the newest]
    #[arg(value_name = "VERSION")]
    number: Option<u32>,
    /// The reason, kept with the version and in the policy's history
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    confirm: Confirm,
    #[command(flatten)]
    server: ServerArgs,
}

impl Validate {
    /// Fails with exit code 1 if the text is invalid.
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let cedar = files::text(&self.file)?;
        let server = connector.connect(self.server).await?;
        let tenant_id = json!(self.tenant_id);
        let name = self.file.display().to_string();
        let Checked { body, valid, lines } = check(&server, &cedar, &tenant_id, &name).await?;
        if valid {
            let text = [vec![paint::state("valid")], lines].concat().join("\n");
            return Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() });
        }
        Err(Failure::new(lines.join("\n")))
    }
}

/// The service's report on a text.
struct Checked {
    body: String,
    valid: bool,
    /// Its problems, followed by its warnings.
    lines: Vec<String>,
}

async fn check(
    server: &Server,
    cedar: &str,
    tenant_id: &Value,
    name: &str,
) -> Result<Checked, Failure> {
    let question = json!({"cedar": cedar, "tenant_id": tenant_id});
    let body = server.post(&server.path(&[SURFACE, "policies:validate"]), &question).await?;
    let found = server.json(&body)?;
    let lines = |member: &str, kind: &str| {
        let found = found[member].as_array().into_iter().flatten();
        found.map(|problem| line(name, kind, problem)).collect::<Vec<_>>()
    };
    let lines = [lines("problems", ""), lines("warnings", "warning: ")].concat();
    Ok(Checked { valid: found["valid"] == true, body, lines })
}

/// Formats `FILE:line:column: problem`, which editors can parse.
fn line(file: &str, kind: &str, problem: &Value) -> String {
    let place = ["line", "column"].map(|member| problem[member].as_u64());
    let place: Vec<_> = place.iter().flatten().map(ToString::to_string).collect();
    let place = [&[file.to_owned()][..], &place[..]].concat().join(":");
    let what = plain(text::of(problem, "problem"));
    // Most problems end with their suggestion.
    let instead = problem["suggestion"].as_str().map(plain);
    let instead = instead.filter(|instead| !what.ends_with(instead.as_str()));
    let instead = instead.map(|instead| format!("; {instead}")).unwrap_or_default();
    format!("{place}: {kind}{what}{instead}")
}

impl Diff {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let other = self.file.as_deref().map(files::text).transpose()?;
        let server = connector.connect(self.server).await?;
        let policy = read(&server, &self.id).await?;
        let is_draft = policy["state"] == "draft";
        let draft = policy["draft_cedar"].as_str();
        let draft = draft.or_else(|| policy["cedar"].as_str().filter(|_| is_draft));
        let (name, other) = match (other, draft) {
            (Some(text), _) => (self.file.unwrap_or_default().display().to_string(), text),
            (None, Some(draft)) => ("draft".to_owned(), draft.to_owned()),
            (None, None) => {
                let told = format!("{} has no draft: give a FILE to compare", plain(&self.id));
                return Err(Failure::new(told));
            }
        };
        let shown = unified_diff(decides(&policy), &other, &name);
        let aside = if shown.is_empty() { "no difference" } else { "" };
        let json = json!({"diff": shown}).to_string();
        Ok(CommandOutput {
            text: shown,
            json: Some(json),
            aside: aside.to_owned(),
            ..CommandOutput::default()
        })
    }
}

impl Activate {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let server = connector.connect(self.server).await?;
        let path = [server.path(&POLICIES), vec![&self.id]].concat();
        // Activates the displayed version, even if a newer version arrives in the meantime.
        let mut version = self.number;
        if !self.confirm.yes {
            let policy = read(&server, &self.id).await?;
            let chosen = chosen(&server, &self.id, version).await?;
            version = chosen["version"].as_u64().and_then(|number| number.try_into().ok());
            let number = version.unwrap_or_default();
            if is_in_force(&policy, &chosen) {
                return Ok(in_force(number, &policy));
            }
            let cedar = text::of(&chosen, "cedar");
            let shown = unified_diff(decides(&policy), cedar, &format!("version {number}"));
            let shown =
                if shown.is_empty() { "Its text is already active.".to_owned() } else { shown };
            let checked =
                check(&server, cedar, &policy["tenant_id"], &format!("version {number}")).await?;
            let impact = impact::of_text(&server, &policy, cedar).await;
            let unknown = unknown(&server, &policy).await;
            let places = vec![applies_to(&policy)];
            let shown = [vec![shown], checked.lines, places, unknown, vec![impact]].concat();
            let shown = shown.join("\n");
            let name = plain(text::of(&policy, "name"));
            let question =
                format!("Activate version {number} of `{name}` on {}?", server.address());
            self.confirm.agree(&shown, &question)?;
        }
        let path = [&path[..], &["activate"]].concat();
        let question = json!({"version": version, "reason": self.reason});
        let body = server.post(&path, &question).await?;
        let policy = &server.json(&body)?["policy"];
        let state = paint::state(&plain(text::of(policy, "state")));
        let text = format!("{}  {state}, version {}", plain(&self.id), policy["version"]);
        Ok(CommandOutput { text, json: Some(body), ..CommandOutput::default() })
    }
}

/// The text used in decisions; empty for a policy that is not active.
fn decides(policy: &Value) -> &str {
    if policy["state"] == "active" { text::of(policy, "cedar") } else { "" }
}

/// Describes the targets of the policy.
fn applies_to(policy: &Value) -> String {
    let targets = policy["applies_to"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let targets: Vec<_> = targets.map(plain).collect();
    match targets.as_slice() {
        [] => "It applies to every action.".to_owned(),
        some => format!("It applies to {}.", some.join(", ")),
    }
}

/// Returns a warning for each action or purpose among the policy's targets that the tenant does not
/// know.
async fn unknown(server: &Server, policy: &Value) -> Vec<String> {
    let targets = policy["applies_to"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let named = |class: &str| -> Vec<&str> {
        targets.clone().filter_map(|target| target.strip_prefix(class)).collect()
    };
    let (actions, purposes) = (named("action:"), named("purpose:"));
    unknown_names::warnings(server, policy["tenant_id"].as_str(), &actions, &purposes).await
}

/// Whether this version is already active.
fn is_in_force(policy: &Value, chosen: &Value) -> bool {
    policy["state"] == "active" && policy["version"] == chosen["version"]
}

/// Reports that the version is already active, and the draft that could be activated.
fn in_force(number: u32, policy: &Value) -> CommandOutput {
    let draft = match policy["draft_version"].as_u64() {
        Some(draft) => format!("the draft is version {draft}"),
        None => "no draft exists".to_owned(),
    };
    let aside = format!("version {number} is already active, and {draft}: no change needed");
    let json = json!({"version": number, "in_force": true}).to_string();
    CommandOutput { json: Some(json), aside, ..CommandOutput::default() }
}

async fn read(server: &Server, id: &EntityRef) -> Result<Value, Failure> {
    let path = [server.path(&POLICIES), vec![id]].concat();
    Ok(server.json(&server.get(&path, &()).await?)?["policy"].take())
}

/// Returns the version with this number, or the newest version.
async fn chosen(server: &Server, id: &EntityRef, version: Option<u32>) -> Result<Value, Failure> {
    let path = [server.path(&POLICIES), vec![id, "versions"]].concat();
    let (mut chosen, mut token) = (None, String::new());
    loop {
        let mut found = server.json(&server.get(&path, &json!({"page_token": token})).await?)?;
        let Value::Array(versions) = found["versions"].take() else { break };
        let is_it = |found: &Value| version.is_none_or(|number| found["version"] == number);
        chosen = versions.into_iter().rfind(is_it).or(chosen);
        let Some(next) = found["next_page_token"].as_str() else { break };
        next.clone_into(&mut token);
    }
    chosen.ok_or_else(|| Failure::new(format!("{} has no such version", plain(id))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_has_its_place() {
        let problem = json!({"problem": "is unknown", "line": 3, "column": 7, "suggestion": "did you mean `amount`?"});
        assert_eq!(
            line("a.cedar", "", &problem),
            "a.cedar:3:7: is unknown; did you mean `amount`?"
        );
        assert_eq!(line("-", "warning: ", &json!({"problem": "x"})), "-: warning: x");
    }
}

//! `mcp doctor`: finds the reasons why an agent's calls are not permitted.

use crate::mcp::{Grants, ServerRecord, Service, ToolRecord};
use clap::Args;
use serde_json::json;

use super::upstream;
use crate::{
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    text::plain,
};

#[derive(Debug, Args)]
pub struct Doctor {
    /// The slug of the MCP server at the service
    #[arg(long = "server", value_name = "SLUG")]
    slug: String,
    /// The agent that calls, by its id
    #[arg(long, value_name = "ID")]
    agent: String,
    #[command(flatten)]
    service: ServerArgs,
    /// The command that starts the MCP server, after `--`, to compare its tools with the pinned ones
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Doctor {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let client = connector.connect(self.service.clone()).await?.into_client();
        let service = Service::new(client, &self.slug, &self.agent, None);
        let service = service.map_err(|why| Failure::usage(format!("--agent: {why}")))?;
        let unread = |what: &str, why: String| Failure::new(format!("{what}: {}", plain(&why)));
        let record = service.record().await.map_err(|why| unread("the server's record", why))?;
        let grants = service.grants().await.map_err(|why| unread("the agent's grants", why))?;
        let mut problems = of_record(&record, &grants);
        if !self.command.is_empty() {
            problems.extend(self.of_server(&record).await);
        }
        let checked = format!("{} tools were checked", record.tools.len());
        let json = Some(json!({"problems": problems, "tools": record.tools.len()}).to_string());
        if problems.is_empty() {
            let text = format!("{checked}; no problem was found");
            return Ok(CommandOutput { text, json, ..CommandOutput::default() });
        }
        let output = CommandOutput { text: problems.join("\n"), json, ..CommandOutput::default() };
        Err(Failure::new(format!("{checked}; {} problems were found", problems.len()))
            .after(output))
    }

    /// Compares the server's own tools with the record.
    async fn of_server(&self, record: &ServerRecord) -> Vec<String> {
        let introduced = match upstream::introduced(&self.command).await {
            Ok(introduced) => introduced,
            Err(failure) => return vec![format!("unreachable: {failure}")],
        };
        let mut problems: Vec<_> =
            introduced.unreadable.iter().map(|why| format!("unreadable: {}", plain(why))).collect();
        for definition in &introduced.definitions {
            let name = plain(&definition.name);
            match record.tool(&definition.name) {
                None => problems.push(format!(
                    "new: {name} is not known to the service; add it with `mcp add`"
                )),
                Some(tool)
                    if tool.is_pinned() && tool.fault(Some(&definition.digest)).is_some() =>
                {
                    problems.push(format!("changed: {name} differs from its pinned definition"));
                }
                Some(_) => {}
            }
        }
        problems
    }
}

fn of_record(record: &ServerRecord, grants: &Grants) -> Vec<String> {
    let mut problems = Vec::new();
    if !record.is_active() {
        problems.push(format!("the server is {}", plain(&record.state)));
    }
    for tool in &record.tools {
        problems.extend(of_tool(tool, grants));
    }
    problems
}

fn of_tool(tool: &ToolRecord, grants: &Grants) -> Vec<String> {
    let name = plain(&tool.mcp.name);
    let pin = match tool.mcp.pin.as_str() {
        "pinned" => None,
        "drifted" => Some(format!(
            "changed: {name} has another definition than the pinned one; see `mcp pin`"
        )),
        _ => Some(format!("unpinned: {name}; see `mcp pin`")),
    };
    let is_granted = tool.action().is_some_and(|action| grants.cover(action));
    let grant =
        (!is_granted).then(|| format!("ungranted: the agent may not perform the action of {name}"));
    pin.into_iter().chain(grant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_is_named() {
        let tool = |name: &str, pin: &str| {
            json!({"id": name, "actions": [format!("mcp.files.{name}")],
            "mcp": {"name": name, "pin": pin, "definition_digest": "sha256:1"}})
        };
        let record = json!({"id": "1", "state": "active", "mcp": {"slug": "files"},
            "tools": [tool("a", "pinned"), tool("b", "drifted"), tool("c", "quarantined")]});
        let record: ServerRecord = serde_json::from_value(record).unwrap();
        let grants = Grants { permitted: vec!["mcp.files.b".to_owned()], denied: Vec::new() };
        let problems = of_record(&record, &grants);
        let kinds: Vec<_> = problems.iter().map(|one| one.split(':').next().unwrap()).collect();
        assert_eq!(kinds, ["ungranted", "changed", "unpinned", "ungranted"]);
    }
}

//! The delegations and agents that are affected by stopping a principal or ending a delegation.

use authority_client::{SURFACE, Surface};
use serde_json::Value;

use crate::{
    names::Names,
    outcome::Failure,
    server::Server,
    text::{self, plain},
    view::View,
};

/// The most delegations and agents that are listed: as many as the service lists for a principal.
const LISTED: usize = 100;

/// Delegations, starting at the root, and the agents that act under them.
pub(crate) struct Blast {
    delegations: Vec<Value>,
    /// The total number of delegations.
    delegation_total: usize,
    agents: Vec<String>,
    agent_total: usize,
    last_used: Option<String>,
    /// Whether the credential cannot read the data.
    unknown: bool,
    names: Names,
}

impl Blast {
    /// Reads the active delegations that a principal holds or granted, and all below them.
    pub(crate) async fn of_principal(server: &Server, id: &str) -> Result<Self, Failure> {
        Self::read(server, "principals", id).await
    }

    /// Reads a delegation and all delegations below it.
    pub(crate) async fn of_delegation(server: &Server, id: &str) -> Result<Self, Failure> {
        Self::read(server, "delegations", id).await
    }

    async fn read(server: &Server, records: &str, id: &str) -> Result<Self, Failure> {
        // API keys may not read the blast radius.
        let unknown = server.opens(Surface::ApiKeys);
        let found = if unknown {
            Value::Null
        } else {
            let path = server.path(&[SURFACE, records, id, "blast-radius"]);
            server.json(&server.get(&path, &()).await?)?
        };
        let list = |member: &str| found[member].as_array().cloned().unwrap_or_default();
        let total = |member: &str| {
            found[member].as_u64().and_then(|total| usize::try_from(total).ok()).unwrap_or(0)
        };
        let delegations = list("delegations");
        let agents = list("agents");
        let agents: Vec<String> =
            agents.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let names = agents.iter().map(String::as_str);
        let names = Names::of(server, names.take(LISTED).chain([id])).await;
        Ok(Self {
            delegation_total: total("delegation_total"),
            agent_total: total("agent_total"),
            last_used: found["last_used"].as_str().map(str::to_owned),
            delegations,
            agents,
            unknown,
            names,
        })
    }

    /// Returns an id with its name.
    pub(crate) fn name(&self, id: &str) -> String {
        self.names.beside(id)
    }

    /// Describes the affected delegations and agents for a person.
    pub(crate) fn text(&self, view: View) -> String {
        if self.unknown {
            return "The affected delegations cannot be read with an API key.".to_owned();
        }
        let used = match &self.last_used {
            Some(used) => format!(", last used {}", view.until(used)),
            None => String::new(),
        };
        let mut lines = vec![match self.delegation_total {
            0 => "No delegation is affected.".to_owned(),
            1 => format!("1 delegation is affected{used}:"),
            total => format!("{total} delegations are affected{used}:"),
        }];
        lines.extend(self.delegations.iter().take(LISTED).map(|one| self.line(one)));
        lines.extend(rest(self.delegation_total));
        if !self.agents.is_empty() {
            lines.push("Agents that act under them:".to_owned());
            let agents = self.agents.iter().take(LISTED);
            lines.extend(agents.map(|agent| format!("  {}", self.names.beside(agent))));
            lines.extend(rest(self.agent_total));
        }
        lines.join("\n")
    }

    fn line(&self, delegation: &Value) -> String {
        let id = plain(text::of(delegation, "id"));
        let actions = delegation["actions"].as_array().into_iter().flatten();
        let actions: Vec<_> = actions.filter_map(Value::as_str).collect();
        let to = self.names.beside(text::of(delegation, "delegate_id"));
        let state = match text::of(delegation, "state") {
            "active" => String::new(),
            other => format!(", {}", plain(other)),
        };
        format!("  {id}  {} to {to}{state}", plain(&actions.join(" ")))
    }
}

/// The number of entries that are not listed.
fn rest(total: usize) -> Option<String> {
    total.checked_sub(LISTED).filter(|more| *more > 0).map(|more| format!("  and {more} more"))
}

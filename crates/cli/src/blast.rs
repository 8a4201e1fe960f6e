//! The delegations and agents that a stop, or the end of a delegation, affects.

use authority_client::{SURFACE, Surface};
use authority_ids::{DelegationRef, PrincipalRef};
use serde_json::{Value, json};

use crate::{
    names::Names,
    outcome::Failure,
    server::Server,
    text::{self, plain},
};

/// The most delegations and agents that are listed: as many as the service lists for a principal.
const LISTED: usize = 100;

/// Delegations, starting at the root, and the agents that act under them.
pub(crate) struct Blast {
    delegations: Vec<Value>,
    /// The total number of delegations.
    delegation_total: usize,
    agents: Vec<Agent>,
    agent_total: usize,
    /// Whether the credential cannot read the data.
    unknown: bool,
    names: Names,
}

impl Blast {
    /// Reads the impact of a stop of all authority that matches every part of `scope`: the filters of
    /// a quarantine.
    pub(crate) async fn of_stop(server: &Server, scope: &Value) -> Result<Self, Failure> {
        let named = [&scope["subject_id"], &scope["delegation_id"]];
        let ids: Vec<&str> = named.into_iter().filter_map(Value::as_str).collect();
        Self::read(server, &[SURFACE, "stop-impact"], scope, &ids).await
    }

    /// Reads a delegation and all delegations below it.
    pub(crate) async fn of_delegation(
        server: &Server,
        id: &DelegationRef,
    ) -> Result<Self, Failure> {
        let path = [SURFACE, "delegations", id, "blast-radius"];
        Self::read(server, &path, &json!({}), &[id]).await
    }

    async fn read(
        server: &Server,
        path: &[&str],
        query: &Value,
        named: &[&str],
    ) -> Result<Self, Failure> {
        // API keys may not read the impact.
        let unknown = server.opens(Surface::ApiKeys);
        let found = if unknown {
            Value::Null
        } else {
            server.json(&server.get(&server.path(path), query).await?)?
        };
        let list = |member: &str| found[member].as_array().cloned().unwrap_or_default();
        let total = |member: &str| {
            found[member].as_u64().and_then(|total| usize::try_from(total).ok()).unwrap_or(0)
        };
        let delegations = list("delegations");
        let agents: Vec<Agent> = list("agents").iter().map(Agent::of).collect();
        let names = agents.iter().map(|agent| agent.id.as_str());
        let names = Names::of(server, names.take(LISTED).chain(named.iter().copied())).await;
        Ok(Self {
            delegation_total: total("delegation_total"),
            agent_total: total("agent_total"),
            delegations,
            agents,
            unknown,
            names,
        })
    }

    /// Returns an id with its name.
    pub(crate) fn name(&self, id: &PrincipalRef) -> String {
        self.names.beside(id)
    }

    /// Describes the affected delegations and agents for a person.
    pub(crate) fn text(&self) -> String {
        if self.unknown {
            return "The affected delegations cannot be read with an API key.".to_owned();
        }
        let mut lines = vec![match self.delegation_total {
            0 => "No delegation is affected.".to_owned(),
            1 => "1 delegation is affected:".to_owned(),
            total => format!("{total} delegations are affected:"),
        }];
        lines.extend(self.delegations.iter().take(LISTED).map(|one| self.line(one)));
        lines.extend(rest(self.delegation_total));
        if !self.agents.is_empty() {
            lines.push("Affected agents:".to_owned());
            let agents = self.agents.iter().take(LISTED);
            lines.extend(
                agents.map(|agent| format!("  {}{}", self.names.beside(&agent.id), agent.counts)),
            );
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

/// An affected agent.
struct Agent {
    id: PrincipalRef,
    /// Its requests and permissions: `: 2 waiting for approval, 1 still permitted`. Empty if there are
    /// none, or if the response has no counts.
    counts: String,
}

impl Agent {
    /// Reads an id, or an object with an id and counts.
    fn of(found: &Value) -> Self {
        let counts = [
            ("pending_approvals", "waiting for approval"),
            ("approved_approvals", "approved and unused"),
            ("valid_permissions", "still permitted"),
            ("recent_decisions", "in the last 24 hours"),
        ];
        let counts = counts.into_iter().filter_map(|(member, words)| {
            let count = found[member].as_u64().filter(|count| *count > 0)?;
            Some(format!("{count} {words}"))
        });
        let counts: Vec<_> = counts.collect();
        Self {
            id: found.as_str().unwrap_or_else(|| text::of(found, "id")).into(),
            counts: if counts.is_empty() {
                String::new()
            } else {
                format!(": {}", counts.join(", "))
            },
        }
    }
}

/// The number of entries that are not listed.
fn rest(total: usize) -> Option<String> {
    total.checked_sub(LISTED).filter(|more| *more > 0).map(|more| format!("  and {more} more"))
}

//! What would end with a principal or a delegation.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cli::{
    Failure,
    remote::{
        delegations,
        names::Names,
        server::Server,
        surface::{SURFACE, Surface},
        text::{self, plain},
    },
    view::View,
};

/// Delegations, by their ids, and the agents that act under them.
pub(in crate::cli::remote) struct Blast {
    delegations: BTreeMap<String, Value>,
    agents: Vec<String>,
    last_used: Option<String>,
    /// Whether there are more delegations than were read.
    more: bool,
    /// Whether the credential may not read it.
    unknown: bool,
    names: Names,
}

impl Blast {
    /// Of a principal: the delegations that it holds or gave, and all below them.
    pub(in crate::cli::remote) async fn of_principal(
        server: &Server,
        id: &str,
    ) -> Result<Self, Failure> {
        let mut blast = Self::nothing(server, id).await;
        if blast.unknown {
            return Ok(blast);
        }
        for side in ["delegate_id", "delegator_id"] {
            let filter = json!({side: id, "state": "active"});
            let found = delegations::LIST.find(server, "", &filter).await?;
            blast.more |= found.next().is_some();
            for delegation in &found.records {
                blast.add(server, text::of(delegation, "id")).await?;
            }
        }
        blast.agents.retain(|agent| agent != id);
        Ok(blast.named(server, id).await)
    }

    /// Of a delegation, with all below it.
    pub(in crate::cli::remote) async fn of_delegation(
        server: &Server,
        id: &str,
    ) -> Result<Self, Failure> {
        let mut blast = Self::nothing(server, id).await;
        if !blast.unknown {
            blast.add(server, id).await?;
        }
        Ok(blast.named(server, id).await)
    }

    async fn nothing(server: &Server, id: &str) -> Self {
        Self {
            delegations: BTreeMap::new(),
            agents: Vec::new(),
            last_used: None,
            more: false,
            // The blast radius is not among what an API key may read.
            unknown: server.opens(Surface::ApiKeys),
            names: Names::of(server, std::iter::once(id)).await,
        }
    }

    async fn named(mut self, server: &Server, id: &str) -> Self {
        let ids = self.agents.iter().map(String::as_str).chain([id]);
        self.names = Names::of(server, ids).await;
        self
    }

    async fn add(&mut self, server: &Server, id: &str) -> Result<(), Failure> {
        if self.delegations.contains_key(id) {
            return Ok(());
        }
        let path = server.path(&[SURFACE, "delegations", id, "blast-radius"]);
        let found = server.json(&server.get(&path, &()).await?)?;
        for delegation in found["delegations"].as_array().into_iter().flatten() {
            self.delegations.insert(text::of(delegation, "id").to_owned(), delegation.clone());
        }
        for agent in found["agents"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !self.agents.iter().any(|known| known == agent) {
                self.agents.push(agent.to_owned());
            }
        }
        // Times of one form are in the order of their texts.
        let last_used = found["last_used"].as_str().map(str::to_owned);
        self.last_used = self.last_used.take().max(last_used);
        Ok(())
    }

    /// An id with its name.
    pub(in crate::cli::remote) fn name(&self, id: &str) -> String {
        self.names.beside(id)
    }

    /// What ends, for a person.
    pub(in crate::cli::remote) fn text(&self, view: View) -> String {
        if self.unknown {
            return "What ends with it cannot be read with an API key.".to_owned();
        }
        let live = |delegation: &&Value| delegation["state"] == "active";
        let count = self.delegations.values().filter(live).count();
        let more = if self.more { " or more" } else { "" };
        let used = match &self.last_used {
            Some(used) => format!(", last used {}", view.until(used)),
            None => String::new(),
        };
        let mut lines = vec![match count {
            0 => "No delegation in force ends with it.".to_owned(),
            1 => format!("1{more} delegation in force ends with it{used}:"),
            count => format!("{count}{more} delegations in force end with it{used}:"),
        }];
        for (id, delegation) in self.delegations.iter().filter(|(_, delegation)| live(delegation)) {
            let actions = delegation["actions"].as_array().into_iter().flatten();
            let actions: Vec<_> = actions.filter_map(Value::as_str).collect();
            let to = self.names.beside(text::of(delegation, "delegate_id"));
            lines.push(format!("  {}  {} to {to}", plain(id), plain(&actions.join(" "))));
        }
        if !self.agents.is_empty() {
            lines.push("Agents that act under them:".to_owned());
            lines.extend(self.agents.iter().map(|agent| format!("  {}", self.names.beside(agent))));
        }
        lines.join("\n")
    }
}

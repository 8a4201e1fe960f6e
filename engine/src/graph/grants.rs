//! What an entity may do and by whose leave, for people to look at.

use serde_json::{Map, Value};

use super::tenant::TenantGraph;
use crate::decision::{
    pattern::Pattern,
    records::{Constraints, Used},
};

/// One authority of an entity.
#[derive(Clone, Debug)]
pub struct GrantView {
    /// `delegation`, `uses` or `acts_in`.
    pub kind: &'static str,
    pub id: String,
    /// From the delegation itself up to its root.
    pub chain: Vec<String>,
    pub actions: Vec<String>,
    pub bounds: Map<String, Value>,
    /// `active`, or the state of the link that is not in force.
    pub state: String,
}

impl TenantGraph {
    /// Whether the tenant has a principal of this id.
    pub fn has_principal(&self, id: &str) -> bool {
        self.principals.get(id).is_some()
    }

    /// Every authority of a principal, in the order of kind and id.
    pub fn grants_of(&self, principal_id: &str) -> Vec<GrantView> {
        let delegations = self.delegations.on(principal_id).iter().map(|leaf| {
            let chain = self.chain(leaf).0;
            let broken = chain.iter().find(|link| link.state.word() != "active");
            GrantView {
                kind: "delegation",
                id: leaf.id.clone(),
                actions: texts(&leaf.actions),
                bounds: object(&leaf.bounds),
                state: broken.map_or("active", |link| link.state.word()).to_owned(),
                chain: chain.iter().map(|link| link.id.clone()).collect(),
            }
        });
        let uses = self.uses.on(principal_id).iter().map(|node| {
            let used = self.used(node);
            let (actions, found) = match &used {
                Used::Action(pattern) => (vec![pattern.to_string()], true),
                Used::Tool(tool) => (texts(&tool.actions), tool.live),
                Used::Model(model) => (texts(&model.actions), model.live),
                Used::ExternalApp(app) => (texts(&app.actions), app.live),
                Used::Resource(_) => (Vec::new(), true),
                Used::Missing(_) => (Vec::new(), false),
            };
            let state = match (node.row.allowed, found) {
                (false, _) => "denied",
                (true, true) => "active",
                (true, false) => "unavailable",
            };
            let bounds = match &node.row.constraints {
                Constraints::Bounds(bounds) => object(bounds.as_ref()),
                Constraints::Malformed(_) => Map::new(),
            };
            GrantView {
                kind: "uses",
                id: node.row.id.clone(),
                chain: Vec::new(),
                actions,
                bounds,
                state: state.to_owned(),
            }
        });
        let acts_in = self.acts_in.on(principal_id).iter().map(|node| GrantView {
            kind: "acts_in",
            id: node.fact.id.clone(),
            chain: Vec::new(),
            actions: node.fact.allowed_actions.as_deref().map(texts).unwrap_or_default(),
            bounds: Map::from_iter([(
                "workspace_id".to_owned(),
                node.fact.workspace_id.clone().into(),
            )]),
            state: "active".to_owned(),
        });
        delegations.chain(uses).chain(acts_in).collect()
    }
}

fn texts(patterns: &[Pattern]) -> Vec<String> {
    patterns.iter().map(ToString::to_string).collect()
}

fn object(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

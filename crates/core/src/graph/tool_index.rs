//! A tenant's tools by the actions that they perform, and the terms that they set together.
//!
//! The terms of one pattern's tools are joined once, at the first request after one of them changed, so
//! that three hundred tools for an action cost a decision as much as one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};

use authority_decision::{JoinedTerms, Pattern, pattern::prefixes, records::Tool};

/// The tools of one action pattern, by id.
#[derive(Default)]
struct Group {
    tools: BTreeMap<String, Arc<Tool>>,
    joined: OnceLock<Option<Arc<JoinedTerms>>>,
}

impl Group {
    fn joined(&self) -> Option<&Arc<JoinedTerms>> {
        let join = || JoinedTerms::all(self.tools.values().map(Arc::as_ref)).map(Arc::new);
        self.joined.get_or_init(join).as_ref()
    }
}

/// Every tool whose terms apply.
#[derive(Default)]
pub(super) struct ToolIndex {
    by_id: HashMap<String, Arc<Tool>>,
    exact: HashMap<String, Group>,
    /// By prefix: for every action below it.
    below: HashMap<String, Group>,
    all: Group,
}

impl ToolIndex {
    /// Replaces the tool with the same id.
    pub(super) fn put(&mut self, tool: Arc<Tool>) {
        self.remove(&tool.id);
        for pattern in &tool.actions {
            let group = match pattern {
                Pattern::Exact(name) => self.exact.entry(name.clone()).or_default(),
                Pattern::Below(prefix) => self.below.entry(prefix.clone()).or_default(),
                Pattern::All => &mut self.all,
            };
            group.tools.insert(tool.id.clone(), Arc::clone(&tool));
            group.joined.take();
        }
        self.by_id.insert(tool.id.clone(), tool);
    }

    pub(super) fn remove(&mut self, id: &str) {
        let Some(tool) = self.by_id.remove(id) else { return };
        let leave = |group: &mut Group| {
            group.tools.remove(id);
            group.joined.take();
            group.tools.is_empty()
        };
        for pattern in &tool.actions {
            match pattern {
                Pattern::Exact(name) => {
                    if self.exact.get_mut(name).is_some_and(leave) {
                        self.exact.remove(name);
                    }
                }
                Pattern::Below(prefix) => {
                    if self.below.get_mut(prefix).is_some_and(leave) {
                        self.below.remove(prefix);
                    }
                }
                Pattern::All => {
                    leave(&mut self.all);
                }
            }
        }
    }

    /// The strictest terms of all that perform the action; `None` if no tool does.
    pub(super) fn joined(&self, action: &str) -> Option<Arc<JoinedTerms>> {
        let below = prefixes(action).filter_map(|prefix| self.below.get(prefix));
        let groups = self.exact.get(action).into_iter().chain(below).chain([&self.all]);
        let mut joined: Option<Arc<JoinedTerms>> = None;
        for terms in groups.filter_map(Group::joined) {
            match &mut joined {
                None => joined = Some(Arc::clone(terms)),
                Some(all) => Arc::make_mut(all).join(terms),
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authority_decision::{
        levels::{AccessLevel, RiskTier},
        request::ActionRiskClassification,
    };

    fn tool(id: &str, actions: &[&str], risk_tier: RiskTier) -> Arc<Tool> {
        Arc::new(Tool {
            id: id.to_owned(),
            live: true,
            workspace_id: None,
            actions: actions.iter().map(|text| text.parse().unwrap()).collect(),
            requires: Vec::new(),
            access_level: Some(AccessLevel::Write),
            action_declaration: None,
            action_risk_classification: Some(ActionRiskClassification {
                risk_tier: Some(risk_tier),
                required_oversight_mode: None,
            }),
        })
    }

    fn tier(index: &ToolIndex, action: &str) -> Option<(RiskTier, String)> {
        let terms = index.joined(action)?;
        Some((terms.risk_tier.strictest?, terms.risk_tier.tool_id.clone()?))
    }

    #[test]
    fn terms_follow_the_tools_that_perform_the_action() {
        let mut index = ToolIndex::default();
        assert_eq!(tier(&index, "a.b.c"), None);
        index.put(tool("t3", &["a.b.c", "a.*"], RiskTier::Limited));
        index.put(tool("t2", &["a.b.*", "x"], RiskTier::High));
        index.put(tool("t1", &["*"], RiskTier::Minimal));
        assert_eq!(tier(&index, "a.b.c"), Some((RiskTier::High, "t2".to_owned())));
        assert_eq!(tier(&index, "a.b"), Some((RiskTier::Limited, "t3".to_owned())));
        assert_eq!(tier(&index, "y"), Some((RiskTier::Minimal, "t1".to_owned())));
        let declarations = &index.joined("a.b.c").unwrap().declarations;
        let tiers: Vec<_> = declarations.iter().filter_map(|own| own.risk_tier).collect();
        assert_eq!(tiers, [RiskTier::Minimal, RiskTier::Limited, RiskTier::High]);

        index.put(tool("t2", &["x"], RiskTier::Prohibited));
        assert_eq!(tier(&index, "a.b.c"), Some((RiskTier::Limited, "t3".to_owned())));
        assert_eq!(tier(&index, "x"), Some((RiskTier::Prohibited, "t2".to_owned())));
        for id in ["t1", "t2", "t3", "t4"] {
            index.remove(id);
        }
        assert!(index.joined("x").is_none() && index.joined("a.b.c").is_none());
        assert!(index.exact.is_empty() && index.below.is_empty());
    }

    #[test]
    fn terms_are_joined_once_until_a_tool_changes() {
        let mut index = ToolIndex::default();
        for number in 0..300 {
            index.put(tool(&format!("t{number}"), &["a.b"], RiskTier::Limited));
        }
        let first = index.joined("a.b").unwrap();
        assert!(Arc::ptr_eq(&first, &index.joined("a.b").unwrap()));
        index.put(tool("t7", &["a.b"], RiskTier::High));
        assert_eq!(tier(&index, "a.b"), Some((RiskTier::High, "t7".to_owned())));
    }

    #[test]
    fn the_first_by_id_of_equals_sets_a_term() {
        let mut index = ToolIndex::default();
        index.put(tool("b", &["a.b"], RiskTier::High));
        index.put(tool("a", &["a.*"], RiskTier::High));
        index.put(tool("c", &["*"], RiskTier::Limited));
        assert_eq!(tier(&index, "a.b"), Some((RiskTier::High, "a".to_owned())));
    }
}

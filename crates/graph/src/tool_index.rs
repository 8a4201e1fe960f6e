//! A tenant's tools by the actions that they perform, with their joined terms.
//!
//! The terms of a pattern's tools are joined once, at the first request after a change of these
//! tools. Three hundred tools for an action then cost a decision as much as one tool.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};

use authority_decision::{
    JoinedTerms, Pattern,
    pattern::prefixes,
    records::Tool,
    validation::{Agreement, Members},
};
use authority_ids::EntityRef;

/// A tool, with the types of its input.
#[derive(Clone)]
struct Performer {
    tool: Arc<Tool>,
    typed: Arc<Members>,
}

/// The tools of one action pattern, by id.
#[derive(Default)]
struct Group {
    tools: BTreeMap<EntityRef, Performer>,
    joined: OnceLock<Option<Arc<JoinedTerms>>>,
    typed: OnceLock<Option<Agreement>>,
}

impl Group {
    fn joined(&self) -> Option<&Arc<JoinedTerms>> {
        let join = || JoinedTerms::all(self.tools.values().map(|one| &*one.tool)).map(Arc::new);
        self.joined.get_or_init(join).as_ref()
    }

    fn typed(&self) -> Option<&Agreement> {
        let of_each = || self.tools.values().map(|one| Agreement::of(&one.typed));
        self.typed.get_or_init(|| of_each().reduce(Agreement::joined)).as_ref()
    }

    fn changed(&mut self) {
        self.joined.take();
        self.typed.take();
    }
}

/// All tools with terms that apply.
#[derive(Default)]
pub(super) struct ToolIndex {
    by_id: HashMap<EntityRef, Arc<Tool>>,
    /// The number of tools that declare the types of their input.
    typing: usize,
    exact: HashMap<String, Group>,
    /// Tools by prefix, for every action below it.
    below: HashMap<String, Group>,
    all: Group,
}

impl ToolIndex {
    /// Replaces the tool with the same id. `typed` contains the types of its input.
    pub(super) fn put(&mut self, tool: Arc<Tool>, typed: Members) {
        self.remove(&tool.id);
        self.typing += usize::from(!typed.is_empty());
        let own = Performer { tool: Arc::clone(&tool), typed: typed.into() };
        for pattern in &tool.actions {
            let group = match pattern {
                Pattern::Exact(name) => self.exact.entry(name.clone()).or_default(),
                Pattern::Below(prefix) => self.below.entry(prefix.clone()).or_default(),
                Pattern::All => &mut self.all,
            };
            group.tools.insert(tool.id.clone(), own.clone());
            group.changed();
        }
        self.by_id.insert(tool.id.clone(), tool);
    }

    pub(super) fn remove(&mut self, id: &str) {
        let Some(tool) = self.by_id.remove(id) else { return };
        let mut typing = false;
        let mut leave = |group: &mut Group| {
            typing |= group.tools.remove(id).is_some_and(|one| !one.typed.is_empty());
            group.changed();
            group.tools.is_empty()
        };
        for pattern in &tool.actions {
            match pattern {
                Pattern::Exact(name) => {
                    if self.exact.get_mut(name).is_some_and(&mut leave) {
                        self.exact.remove(name);
                    }
                }
                Pattern::Below(prefix) => {
                    if self.below.get_mut(prefix).is_some_and(&mut leave) {
                        self.below.remove(prefix);
                    }
                }
                Pattern::All => {
                    leave(&mut self.all);
                }
            }
        }
        self.typing -= usize::from(typing);
    }

    fn groups<'a>(&'a self, action: &'a str) -> impl Iterator<Item = &'a Group> {
        let below = prefixes(action).filter_map(|prefix| self.below.get(prefix));
        self.exact.get(action).into_iter().chain(below).chain([&self.all])
    }

    /// Returns the ids of all tools for the action.
    pub(super) fn ids<'a>(&'a self, action: &'a str) -> impl Iterator<Item = &'a EntityRef> {
        self.groups(action).flat_map(|group| group.tools.keys())
    }

    /// Returns the types of the action's input that its tools agree on; `None` if there are none.
    pub(super) fn typed(&self, action: &str) -> Option<Arc<Members>> {
        if self.typing == 0 {
            return None;
        }
        let all = self.groups(action).filter_map(Group::typed).cloned();
        let members = all.reduce(Agreement::joined)?.members();
        (!members.is_empty()).then(|| members.into())
    }

    /// Returns the strictest terms of all tools for the action; `None` if no tool performs it.
    pub(super) fn joined(&self, action: &str) -> Option<Arc<JoinedTerms>> {
        let mut joined: Option<Arc<JoinedTerms>> = None;
        for terms in self.groups(action).filter_map(Group::joined) {
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
        input_schema::InputAt,
        levels::{AccessLevel, RiskTier},
        request::ActionRiskClassification,
        validation::typed,
    };

    fn tool(id: &str, actions: &[&str], risk_tier: RiskTier) -> Arc<Tool> {
        Arc::new(Tool {
            id: id.into(),
            live: true,
            workspace_id: None,
            actions: actions.iter().map(|text| text.parse().unwrap()).collect(),
            requires: Vec::new(),
            access_level: Some(AccessLevel::Write),
            action_declaration: None,
            input: None,
            definition: None,
            action_risk_classification: Some(ActionRiskClassification {
                risk_tier: Some(risk_tier),
                required_oversight_mode: None,
            }),
        })
    }

    fn tier(index: &ToolIndex, action: &str) -> Option<(RiskTier, EntityRef)> {
        let terms = index.joined(action)?;
        Some((terms.risk_tier.strictest?, terms.risk_tier.tool_id.clone()?))
    }

    #[test]
    fn terms_follow_the_tools_that_perform_the_action() {
        let mut index = ToolIndex::default();
        assert_eq!(tier(&index, "a.b.c"), None);
        index.put(tool("t3", &["a.b.c", "a.*"], RiskTier::Limited), Members::new());
        index.put(tool("t2", &["a.b.*", "x"], RiskTier::High), Members::new());
        index.put(tool("t1", &["*"], RiskTier::Minimal), Members::new());
        assert_eq!(tier(&index, "a.b.c"), Some((RiskTier::High, "t2".into())));
        assert_eq!(tier(&index, "a.b"), Some((RiskTier::Limited, "t3".into())));
        assert_eq!(tier(&index, "y"), Some((RiskTier::Minimal, "t1".into())));
        let declarations = &index.joined("a.b.c").unwrap().declarations;
        let tiers: Vec<_> = declarations.iter().filter_map(|own| own.risk_tier).collect();
        assert_eq!(tiers, [RiskTier::Minimal, RiskTier::Limited, RiskTier::High]);

        index.put(tool("t2", &["x"], RiskTier::Prohibited), Members::new());
        assert_eq!(tier(&index, "a.b.c"), Some((RiskTier::Limited, "t3".into())));
        assert_eq!(tier(&index, "x"), Some((RiskTier::Prohibited, "t2".into())));
        for id in ["t1", "t2", "t3", "t4"] {
            index.remove(id);
        }
        assert!(index.joined("x").is_none() && index.joined("a.b.c").is_none());
        assert!(index.exact.is_empty() && index.below.is_empty());
    }

    #[test]
    fn types_are_those_that_all_tools_of_an_action_agree_on() {
        let typed = |schema: serde_json::Value| typed(&schema, InputAt::Context);
        let text = || {
            typed(serde_json::json!({"type": "object", "required": ["a"],
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}))
        };
        let other =
            typed(serde_json::json!({"type": "object", "properties": {"b": {"type": "string"}}}));
        let names = |index: &ToolIndex, action: &str| -> Vec<(String, bool)> {
            let members = index.typed(action).unwrap_or_default();
            members.iter().map(|(name, member)| (name.clone(), member.required)).collect()
        };
        let pair = |name: &str, required: bool| (name.to_owned(), required);
        let mut index = ToolIndex::default();
        index.put(tool("t1", &["a.b", "a.*"], RiskTier::Minimal), text());
        assert_eq!(names(&index, "a.b"), [pair("a", true), pair("b", false)]);
        assert!(names(&index, "x").is_empty());
        index.put(tool("t2", &["*"], RiskTier::Minimal), Members::new());
        assert_eq!(names(&index, "a.b"), [pair("a", false), pair("b", false)]);
        index.put(tool("t2", &["a.*"], RiskTier::Minimal), other);
        assert_eq!(names(&index, "a.b"), [pair("a", false)]);
        index.remove("t1");
        assert_eq!(names(&index, "a.b"), [pair("b", false)]);
        index.remove("t2");
        assert!(index.typing == 0 && index.typed("a.b").is_none());
    }

    #[test]
    fn terms_are_joined_once_until_a_tool_changes() {
        let mut index = ToolIndex::default();
        for number in 0..300 {
            index.put(tool(&format!("t{number}"), &["a.b"], RiskTier::Limited), Members::new());
        }
        let first = index.joined("a.b").unwrap();
        assert!(Arc::ptr_eq(&first, &index.joined("a.b").unwrap()));
        index.put(tool("t7", &["a.b"], RiskTier::High), Members::new());
        assert_eq!(tier(&index, "a.b"), Some((RiskTier::High, "t7".into())));
    }

    #[test]
    fn the_first_by_id_of_equals_sets_a_term() {
        let mut index = ToolIndex::default();
        index.put(tool("b", &["a.b"], RiskTier::High), Members::new());
        index.put(tool("a", &["a.*"], RiskTier::High), Members::new());
        index.put(tool("c", &["*"], RiskTier::Limited), Members::new());
        assert_eq!(tier(&index, "a.b"), Some((RiskTier::High, "a".into())));
    }
}

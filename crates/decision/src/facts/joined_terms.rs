//! Joins the terms of all tools that perform an action: the strictest value of each term.
//!
//! A request without a tool could be carried out with any of these tools, and is therefore bound by
//! all of them. Joining is associative, commutative and idempotent. The graph joins once for each
//! action pattern, and a decision joins the few patterns that cover its action.

use std::{cmp::Ordering, collections::BTreeMap, fmt::Display};

use authority_ids::EntityRef;
use serde::{Deserialize, Serialize};

use super::{
    access::own_access_level,
    gate::Effective,
    records::{Definition, Tool},
};
use crate::{
    levels::{AccessLevel, EffectClass, OversightMode, Reversibility, RiskTier},
    request::input_schema::InputReference,
};

/// One field of the tools' declarations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term<T> {
    /// The strictest value that any tool declares.
    pub strictest: Option<T>,
    /// The first tool, by id, that declares this value.
    pub tool_id: Option<EntityRef>,
    /// The first tool, by id, that declares another field but not this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_by: Option<EntityRef>,
}

impl<T> Default for Term<T> {
    fn default() -> Self {
        Self { strictest: None, tool_id: None, omitted_by: None }
    }
}

impl<T: Copy> Term<T> {
    /// Whether a tool that declares another field leaves this one out.
    pub fn is_omitted(&self) -> bool {
        self.omitted_by.is_some()
    }

    /// Describes the strictest value with its tool, and a tool that leaves the field out.
    ///
    /// `counted` is the value that a missing field counts as.
    fn describe(&self, name: &str, counted: &str) -> Vec<(&EntityRef, String)>
    where
        T: Display,
    {
        let strictest = self.tool_id.as_ref().zip(self.strictest);
        let strictest = strictest.map(|(tool_id, value)| (tool_id, format!("{name} {value}")));
        let omitted = self.omitted_by.as_ref();
        let omitted = omitted.map(|id| (id, format!("{name} left out, which counts as {counted}")));
        strictest.into_iter().chain(omitted).collect()
    }

    fn join<K: Ord>(&mut self, other: &Self, strictness: fn(T) -> K) {
        match self.strictest.map(strictness).cmp(&other.strictest.map(strictness)) {
            Ordering::Less => {
                self.strictest = other.strictest;
                self.tool_id.clone_from(&other.tool_id);
            }
            Ordering::Equal => first(&mut self.tool_id, other.tool_id.as_ref()),
            Ordering::Greater => {}
        }
        first(&mut self.omitted_by, other.omitted_by.as_ref());
    }
}

/// Keeps the lower of the two ids.
fn first(kept: &mut Option<EntityRef>, other: Option<&EntityRef>) {
    if let Some(other) = other
        && kept.as_ref().is_none_or(|kept| other < kept)
    {
        *kept = Some(other.clone());
    }
}

/// The joined terms of all tools that perform an action. There is at least one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedTerms {
    pub effect_class: Term<EffectClass>,
    pub reversibility: Term<Reversibility>,
    /// `false` is stricter.
    pub rollback_available: Term<bool>,
    pub risk_tier: Term<RiskTier>,
    pub required_oversight_mode: Term<OversightMode>,
    /// The access level that a tool's own record requires. Every tool has a level.
    pub access_level: Term<AccessLevel>,
    /// The fields that tools require of a request, each with the first such tool by id.
    pub requires: BTreeMap<String, EntityRef>,
    /// The distinct declarations of the tools, in order. Policies are evaluated on all of them.
    pub declarations: Vec<Effective>,
    /// The first tool, by id, without any declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undeclared_by: Option<EntityRef>,
    /// The schemas for the tools' input, in order, each with the first tool, by id, that has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<JoinedInput>,
    /// The first tool, by id, with a definition that is not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpinned_by: Option<EntityRef>,
    /// The digests of pinned definitions, each with the first such tool by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub definitions: BTreeMap<String, EntityRef>,
}

/// A schema that applies to requests without a tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JoinedInput {
    #[serde(flatten)]
    pub schema: InputReference,
    pub tool_id: EntityRef,
}

impl JoinedTerms {
    /// Returns the terms of one tool.
    pub fn of(tool: &Tool) -> Self {
        let declaration = tool.action_declaration.unwrap_or_default();
        let classification = tool.action_risk_classification.unwrap_or_default();
        let declared = tool.is_declared();
        let id = &tool.id;
        let mut own = Effective::default();
        own.take(tool.action_declaration, tool.action_risk_classification);
        Self {
            effect_class: term(declaration.effect_class, id, declared),
            reversibility: term(declaration.reversibility, id, declared),
            rollback_available: term(declaration.rollback_available, id, declared),
            risk_tier: term(classification.risk_tier, id, declared),
            // Unlike other missing fields, a missing mode does not count as the worst value.
            required_oversight_mode: term(classification.required_oversight_mode, id, false),
            access_level: term(Some(own_access_level(tool)), id, declared),
            requires: tool.requires.iter().map(|m| (m.clone(), id.clone())).collect(),
            declarations: vec![own],
            undeclared_by: (!declared).then(|| id.clone()),
            inputs: tool.input.iter().map(|schema| input(schema, id)).collect(),
            unpinned_by: (tool.definition == Some(Definition::Unpinned)).then(|| id.clone()),
            definitions: pinned(tool).map(|digest| (digest.clone(), id.clone())).collect(),
        }
    }

    /// Joins the terms of other tools, or of the same tools again.
    pub fn join(&mut self, other: &Self) {
        self.effect_class.join(&other.effect_class, |own| own);
        self.reversibility.join(&other.reversibility, |own| own);
        self.rollback_available.join(&other.rollback_available, |available| !available);
        self.risk_tier.join(&other.risk_tier, |own| own);
        self.required_oversight_mode.join(&other.required_oversight_mode, |own| own);
        self.access_level.join(&other.access_level, |own| own);
        join_names(&mut self.requires, &other.requires);
        join_names(&mut self.definitions, &other.definitions);
        first(&mut self.unpinned_by, other.unpinned_by.as_ref());
        for own in &other.declarations {
            if let Err(place) = self.declarations.binary_search(own) {
                self.declarations.insert(place, *own);
            }
        }
        first(&mut self.undeclared_by, other.undeclared_by.as_ref());
        for one in &other.inputs {
            match self.inputs.binary_search_by(|own| own.schema.cmp(&one.schema)) {
                Err(place) => self.inputs.insert(place, one.clone()),
                Ok(place) => {
                    let kept = self.inputs.get_mut(place).filter(|own| one.tool_id < own.tool_id);
                    if let Some(kept) = kept {
                        kept.tool_id.clone_from(&one.tool_id);
                    }
                }
            }
        }
    }

    /// Returns the joined terms of some tools; `None` if there are none.
    pub fn all<'t>(tools: impl IntoIterator<Item = &'t Tool>) -> Option<Self> {
        tools.into_iter().map(Self::of).reduce(|mut joined, own| {
            joined.join(&own);
            joined
        })
    }

    /// Describes the terms that each tool sets, in order of id.
    pub fn set_by(&self) -> BTreeMap<&EntityRef, Vec<String>> {
        let mut by: BTreeMap<&EntityRef, Vec<String>> = BTreeMap::new();
        let members = [
            self.effect_class.describe("effect_class", "digital_state_change"),
            self.reversibility.describe("reversibility", "irreversible"),
            self.rollback_available.describe("rollback_available", "false"),
            self.risk_tier.describe("risk_tier", "limited"),
            self.required_oversight_mode.describe("required_oversight_mode", "none"),
            self.access_level.describe("access_level", "execute"),
        ];
        for (tool_id, text) in members.into_iter().flatten() {
            by.entry(tool_id).or_default().push(text);
        }
        for (name, tool_id) in &self.requires {
            by.entry(tool_id).or_default().push(format!("requires `{name}`"));
        }
        for one in &self.inputs {
            by.entry(&one.tool_id).or_default().push("a schema of its input".to_owned());
        }
        for tool_id in self.definitions.values() {
            by.entry(tool_id).or_default().push("a pinned definition".to_owned());
        }
        if let Some(tool_id) = &self.unpinned_by {
            by.entry(tool_id).or_default().push("a definition that is not pinned".to_owned());
        }
        by
    }

    /// Returns the ids of the tools that set a term.
    pub fn tool_ids(&self) -> impl Iterator<Item = &EntityRef> {
        self.set_by().into_keys()
    }
}

/// Adds names, each with the lower of the two ids.
fn join_names(kept: &mut BTreeMap<String, EntityRef>, other: &BTreeMap<String, EntityRef>) {
    for (name, tool_id) in other {
        let kept = kept.entry(name.clone()).or_insert_with(|| tool_id.clone());
        if *tool_id < *kept {
            kept.clone_from(tool_id);
        }
    }
}

fn pinned(tool: &Tool) -> impl Iterator<Item = &String> {
    let digest = match &tool.definition {
        Some(Definition::Pinned(digest)) => Some(digest),
        Some(Definition::Unpinned) | None => None,
    };
    digest.into_iter()
}

fn input(schema: &InputReference, tool_id: &EntityRef) -> JoinedInput {
    JoinedInput { schema: schema.clone(), tool_id: tool_id.clone() }
}

fn term<T: Copy>(value: Option<T>, tool_id: &EntityRef, declared: bool) -> Term<T> {
    let omitted = declared && value.is_none();
    Term {
        strictest: value,
        tool_id: value.is_some().then(|| tool_id.clone()),
        omitted_by: omitted.then(|| tool_id.clone()),
    }
}

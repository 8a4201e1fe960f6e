//! Converts a stored tool to a fact and to terms. If a part cannot be read, the tool itself is
//! unusable, and the worst terms apply to requests that do not name a tool. The definition of an MCP
//! server's tool counts as not pinned if it cannot be read.

use std::sync::Arc;

use authority_crypto::sha256;
use authority_model::{proto::registry, record::Record, state::ToolState};
use serde_json::{Value, json};

use super::fields::patterns;
use authority_decision::{
    input_schema::{InputAt, InputReference, InputSchema},
    levels::{AccessLevel, RiskTier},
    pattern::Pattern,
    records::{self, Definition},
    request::{ActionDeclaration, ActionRiskClassification},
    validation::{Members, typed, typed_by_mcp},
};

/// The `mcp.pin` of a tool whose definition is pinned.
const PINNED: &str = "pinned";

/// A tool in two forms: for requests that name it, and for requests that do not name a tool.
pub(super) struct BoundTool {
    pub(super) fact: Arc<records::Tool>,
    /// `None` if the tool is deprecated.
    pub(super) binding: Option<Arc<records::Tool>>,
    /// The schema for the tool's input, and the types that it gives to fields of the context.
    pub(super) schema: Option<(InputSchema, Members)>,
}

pub(super) fn tool(row: registry::Tool) -> BoundTool {
    let ended = row.known_state() == Some(ToolState::Deprecated);
    let (all, read) = (row.actions.len(), patterns(&row.actions));
    let (at, schema) = (input_at(&row), schema(&row));
    let (mut fact, readable) = tool_fact(row, read);
    fact.input = schema
        .as_ref()
        .map(|(schema, _)| InputReference { sha256: schema.sha256().to_owned(), at });
    if fact.actions.len() < all {
        // A tool with an unreadable action pattern may perform any action. A denial of the tool
        // therefore denies every action, and a request that names the tool is refused.
        fact.actions = vec![Pattern::All];
        fact.live = false;
    }
    if ended {
        return BoundTool { fact: Arc::new(fact), binding: None, schema };
    }
    let mut binding = fact.clone();
    if !readable {
        binding.action_risk_classification = Some(ActionRiskClassification {
            risk_tier: Some(RiskTier::Prohibited),
            required_oversight_mode: None,
        });
    }
    let fact = Arc::new(fact);
    let binding = if binding == *fact { Arc::clone(&fact) } else { Arc::new(binding) };
    BoundTool { fact, binding: Some(binding), schema }
}

/// Returns the part of the request that the schema covers.
///
/// For an unknown value, returns the part that every request has.
fn input_at(row: &registry::Tool) -> InputAt {
    if row.mcp.is_some() {
        return InputAt::Arguments;
    }
    row.input_at.as_deref().and_then(InputAt::from_word).unwrap_or(InputAt::Context)
}

/// Returns the definition of an MCP server's tool.
fn definition(row: &registry::Tool) -> Option<Definition> {
    let mcp = row.mcp.as_ref()?;
    let digest = mcp.definition_digest.as_ref().filter(|_| mcp.pin == PINNED);
    Some(digest.map_or(Definition::Unpinned, |digest| Definition::Pinned(digest.clone())))
}

/// Returns the tool's schema, identified by the digest of its canonical text. An empty schema has
/// no requirements.
fn schema(row: &registry::Tool) -> Option<(InputSchema, Members)> {
    let written = row.input_schema.as_ref().filter(|schema| !schema.0.is_empty())?;
    let root = Value::Object(written.0.clone());
    // If the schema has no canonical text, no input satisfies it.
    let text = serde_json_canonicalizer::to_string(&root).unwrap_or_default();
    let schema = InputSchema::new(hex::encode(sha256(text.as_bytes())), text);
    let typed = match row.mcp {
        Some(_) => typed_by_mcp(&root),
        None => typed(&root, input_at(row)),
    };
    Some((schema, typed))
}

/// Returns the fact, and whether its declarations can be read.
fn tool_fact(row: registry::Tool, actions: Vec<Pattern>) -> (records::Tool, bool) {
    let active = row.known_state() == Some(ToolState::Active);
    let definition = definition(&row);
    let declaration = row.action_declaration.map(|part| {
        serde_json::from_value::<ActionDeclaration>(json!({
            "effect_class": part.effect_class,
            "reversibility": part.reversibility,
            "rollback_available": part.rollback_available,
        }))
    });
    let classification = row.action_risk_classification.map(|part| {
        serde_json::from_value::<ActionRiskClassification>(json!({
            "risk_tier": part.risk_tier,
            "required_oversight_mode": part.required_oversight_mode,
        }))
    });
    let readable = !matches!(declaration, Some(Err(_))) && !matches!(classification, Some(Err(_)));
    let fact = records::Tool {
        live: active && readable,
        workspace_id: row.workspace_id.map(Into::into),
        actions,
        requires: row.requires,
        access_level: row
            .access_level
            .map(|word| AccessLevel::from_word(&word).unwrap_or(AccessLevel::Owner)),
        action_declaration: declaration.and_then(Result::ok),
        action_risk_classification: classification.and_then(Result::ok),
        input: None,
        definition,
        id: row.id.into(),
    };
    (fact, readable)
}

/// Returns the form of the tool that binds requests without a tool; `None` if it is deprecated.
pub fn binding_tool(row: registry::Tool) -> Option<Arc<records::Tool>> {
    tool(row).binding
}

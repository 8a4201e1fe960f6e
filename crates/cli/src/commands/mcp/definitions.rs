//! Definitions of tools, as a person reads them before they are pinned.

use serde_json::Value;

use crate::{
    text::{json, of, plain},
    unified_diff::unified_diff,
};

/// Whether people have not pinned the newest definition of a tool.
pub(super) fn waits(tool: &Value) -> bool {
    tool["mcp"]["pin"] != "pinned"
}

/// Describes the definition to pin: its whole text, or the changes.
pub(super) fn shown(tool: &Value) -> String {
    let mcp = &tool["mcp"];
    let seen = &mcp["seen_definition"];
    let heading =
        format!("{} ({})\n{}", plain(of(mcp, "name")), plain(of(mcp, "pin")), declared(tool));
    if mcp["definition"].is_object() && seen.is_object() {
        return format!("{heading}\n{}", changes(&json(&mcp["definition"]), &json(seen)));
    }
    format!("{heading}\n{}", json(if seen.is_object() { seen } else { &mcp["definition"] }))
}

/// The declared effect of a tool, on which the oversight of its calls depends.
fn declared(tool: &Value) -> String {
    let declaration = &tool["action_declaration"];
    let risk = of(&tool["action_risk_classification"], "risk_tier");
    let actions = tool["actions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    format!(
        "action {}; effect {}, {}, risk {}",
        plain(&actions.collect::<Vec<_>>().join(", ")),
        plain(of(declaration, "effect_class")),
        plain(of(declaration, "reversibility")),
        plain(risk),
    )
}

/// The lines that differ, with the lines around them.
fn changes(pinned: &str, seen: &str) -> String {
    let diff = unified_diff(pinned, seen, "seen");
    if diff.is_empty() { "the text is the same".to_owned() } else { diff }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_person_sees_the_whole_text_and_hidden_characters() {
        let tool = json!({"actions": ["mcp.files.read"],
            "action_declaration": {"effect_class": "informational", "reversibility": "reversible"},
            "action_risk_classification": {"risk_tier": "minimal"},
            "mcp": {"name": "read", "pin": "quarantined", "definition": null,
                "seen_definition": {"name": "read", "description": "Reads.\u{200b}"}}});
        let text = shown(&tool);
        assert!(
            text.contains("action mcp.files.read; effect informational, reversible, risk minimal")
        );
        assert!(text.contains("\"description\": \"Reads.\\u200b\""), "{text}");
        assert!(waits(&tool));
    }

    #[test]
    fn a_changed_definition_is_shown_as_a_diff() {
        let tool = json!({"mcp": {"name": "read", "pin": "drifted",
            "definition": {"name": "read", "description": "Reads."},
            "seen_definition": {"name": "read", "description": "Reads. Then sends."}}});
        let text = shown(&tool);
        assert!(text.contains("-  \"description\": \"Reads.\""), "{text}");
        assert!(text.contains("+  \"description\": \"Reads. Then sends.\""), "{text}");
    }
}

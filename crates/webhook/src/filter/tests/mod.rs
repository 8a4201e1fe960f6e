//! Tests which filters are refused, their results, and agreement with CEL.

mod agree;
mod fuzz;
mod meaning;
mod refused;

use serde_json::{Value, json};

use crate::schema::MemberType;

/// Two event types with some members in common.
fn types() -> [MemberType; 2] {
    let event = |data: Value| {
        let schema = json!({"type": "object", "properties": {
            "event_type": {"type": "string"}, "sequence": {"type": "integer"},
            "reason_code": {"type": "string"},
            "evidence_refs": {"type": "array"},
            "data": {"type": "object", "properties": data},
        }});
        MemberType::from_schema(&schema).unwrap()
    };
    [
        event(json!({
            "decision": {"type": "string", "enum": ["allow", "deny"]}, "action": {"type": "string"},
            "approvals": {"type": "integer"}, "repeated": {"type": "boolean"},
            "tool": {"type": "object", "properties": {"id": {"type": "string"}}},
            "mixed": {"type": "string"},
        })),
        event(json!({
            "decision": {"type": "string", "enum": ["held"]}, "children": {"type": "integer"},
            "mixed": {"type": "integer"},
        })),
    ]
}

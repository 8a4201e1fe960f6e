//! Gathered facts, made ready once for every decision that shares them.

use std::sync::Arc;

use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use crate::{
    decision::{Gathered, Request},
    keys,
};

/// What a tenant's graph said, its canonical bytes, their digest, and the index of what was read.
pub struct PreparedFacts {
    pub gathered: Arc<Gathered>,
    /// RFC 8785, policies by reference.
    pub body: Vec<u8>,
    pub sha256: [u8; 32],
    /// Ids, versions and SHA-256 of what was read, absences too; canonical JSON.
    pub index: Box<RawValue>,
}

impl PreparedFacts {
    /// # Errors
    /// When the facts do not serialise, which is a fault of this program: a deny, for the caller.
    pub fn new(gathered: Gathered, request: &Request) -> Result<Self, serde_json::Error> {
        let document = serde_json::to_value(&gathered)?;
        let body = serde_json_canonicalizer::to_vec(&document)?;
        let index = canonical(&index(&document, request))?;
        Ok(Self {
            gathered: Arc::new(gathered),
            sha256: keys::sha256(&body),
            body,
            index,
        })
    }
}

impl PreparedFacts {
    /// The revision of the tenant's authority that these facts are of.
    pub fn revision(&self) -> u32 {
        u32::try_from(self.gathered.revision).unwrap_or(u32::MAX)
    }
}

fn canonical(value: &Value) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(serde_json_canonicalizer::to_string(value)?)
        .or_else(|_| to_raw_value(value))
}

/// One entry for each thing that was read and each that was asked for and is not there.
fn index(document: &Value, request: &Request) -> Value {
    let mut entries = Vec::new();
    for (kind, value) in document.as_object().into_iter().flatten() {
        read(kind, value, &mut entries);
    }
    let asked = [
        ("delegations", &request.delegation_id),
        ("tool", &request.tool_id),
        ("purpose", &request.purpose),
        ("resource", &request.resource_id),
        ("workspace", &request.workspace_id),
        ("project", &request.project_id),
    ];
    let subject = Some(request.subject.clone());
    for (kind, id) in asked.into_iter().chain([("subject", &subject)]) {
        if let Some(id) = id
            && is_empty(&document[kind])
        {
            entries.push(json!({"kind": kind, "id": id, "absent": true}));
        }
    }
    entries.into()
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn read(kind: &str, value: &Value, entries: &mut Vec<Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| read(kind, item, entries)),
        Value::Object(members) => {
            let bytes = serde_json_canonicalizer::to_vec(value).unwrap_or_default();
            let row = members.get("row").and_then(Value::as_object).unwrap_or(members);
            let mut entry = json!({
                "kind": kind,
                "id": row.get("id").or(row.get("team_id")).unwrap_or(&Value::Null),
                "sha256": hex::encode(keys::sha256(&bytes)),
            });
            if let Some(version) = members.get("version") {
                entry["version"] = version.clone();
            }
            entries.push(entry);
        }
        _ => {}
    }
}

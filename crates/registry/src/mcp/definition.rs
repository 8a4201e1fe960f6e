//! The definition of an MCP server's tool: the whole tool object as the server sends it.

use authority_crypto::sha256;
use authority_model::validate::Violations;
use authority_model::wire::Json;
use serde_json::{Map, Value};

/// The maximum size of a definition, in bytes of canonical JSON.
const LARGEST: usize = 64 * 1024;
/// The maximum length of a tool's name, in characters.
const LONGEST_NAME: usize = 128;
/// The maximum length of a tool's signature, in characters.
const LONGEST_SIGNATURE: usize = 2000;

/// A valid definition.
pub(super) struct Definition {
    pub(super) name: String,
    /// `sha256:` and the hex SHA-256 of `text`.
    pub(super) digest: String,
    /// The canonical JSON (RFC 8785).
    pub(super) text: String,
    pub(super) object: Map<String, Value>,
}

impl Definition {
    /// Reads the definitions of a report. Each tool may occur once.
    pub(super) fn all(written: Vec<Json>, found: &mut Violations) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::with_capacity(written.len());
        for (index, Json(object)) in written.into_iter().enumerate() {
            let field = format!("definitions[{index}]");
            match Self::of(object) {
                Ok(one) if all.iter().any(|other| other.name == one.name) => {
                    found.add(&format!("{field}.name"), "is the name of an earlier definition");
                }
                Ok(one) => all.push(one),
                Err((member, problem)) => found.add(&format!("{field}{member}"), problem),
            }
        }
        all
    }

    /// # Errors
    /// The path of the invalid field below the definition, and its problem.
    fn of(object: Map<String, Value>) -> Result<Self, (&'static str, String)> {
        let name = object.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let length = name.chars().count();
        if !(1..=LONGEST_NAME).contains(&length) || name.contains(char::is_control) {
            let problem = format!("must be a text of 1 to {LONGEST_NAME} characters");
            return Err((".name", problem));
        }
        let object = Value::Object(object);
        let text = serde_json_canonicalizer::to_string(&object);
        let text = text.map_err(|error| ("", format!("has no canonical form: {error}")))?;
        if text.len() > LARGEST {
            return Err(("", format!("is larger than {LARGEST} bytes")));
        }
        let Value::Object(object) = object else { return Err(("", "must be an object".into())) };
        let digest = format!("sha256:{}", hex::encode(sha256(text.as_bytes())));
        Ok(Self { name, digest, text, object })
    }

    /// Reads a stored definition.
    pub(super) fn stored(text: &str) -> Result<Self, serde_json::Error> {
        let object: Map<String, Value> = serde_json::from_str(text)?;
        Self::of(object).map_err(|(_, problem)| serde::de::Error::custom(problem))
    }

    /// Returns the name as it is shown to people. Invisible characters are escaped.
    pub(super) fn shown_name(&self) -> String {
        self.name.escape_debug().take(200).collect()
    }

    /// Returns the name with the names of the arguments: `create_issue(title, body)`.
    pub(super) fn signature(&self) -> String {
        let properties = self.object.get("inputSchema").and_then(|schema| schema.get("properties"));
        let properties = properties.and_then(Value::as_object);
        let names = properties.into_iter().flat_map(Map::keys).map(|name| name.escape_debug());
        let names: Vec<_> = names.map(|name| name.to_string()).collect();
        let text = format!("{}({})", self.shown_name(), names.join(", "));
        text.chars().take(LONGEST_SIGNATURE).collect()
    }

    /// Returns the schema of its arguments.
    pub(super) fn input_schema(&self) -> Option<&Map<String, Value>> {
        self.object.get("inputSchema")?.as_object()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(definition: Value) -> Result<Definition, (&'static str, String)> {
        let Value::Object(object) = definition else { panic!("no object") };
        Definition::of(object)
    }

    #[test]
    fn the_digest_covers_the_whole_object_and_no_order_of_it() {
        let one = read(json!({"name": "a", "description": "b", "x": {"y": 1, "z": [1.5]}}));
        let other = read(json!({"x": {"z": [1.5], "y": 1.0}, "description": "b", "name": "a"}));
        let one = one.unwrap();
        assert_eq!(one.digest, other.unwrap().digest);
        assert_eq!(one.text, r#"{"description":"b","name":"a","x":{"y":1,"z":[1.5]}}"#);
        // `printf '%s' '{"description":"b","name":"a","x":{"y":1,"z":[1.5]}}' | sha256sum`
        assert_eq!(
            one.digest,
            "sha256:dfd93e24b882280c66950056d6ed4597e802016ce9f26a6c8102144138bce506"
        );
        for changed in [
            json!({"name": "a", "description": "c", "x": {"y": 1, "z": [1.5]}}),
            json!({"name": "a", "description": "b", "x": {"y": 1, "z": [1.5]}, "_meta": {}}),
            json!({"name": "a", "description": "b ", "x": {"y": 1, "z": [1.5]}}),
        ] {
            assert_ne!(read(changed).unwrap().digest, one.digest);
        }
    }

    #[test]
    fn a_definition_needs_a_name_and_has_a_largest_size() {
        let fault = |definition: Value| read(definition).err().map(|(member, _)| member);
        assert_eq!(fault(json!({})), Some(".name"));
        assert_eq!(fault(json!({"name": ""})), Some(".name"));
        assert_eq!(fault(json!({"name": 1})), Some(".name"));
        assert_eq!(fault(json!({"name": "a\u{0}"})), Some(".name"));
        assert_eq!(fault(json!({"name": "x".repeat(129)})), Some(".name"));
        // The canonical form has 29 more bytes than the description: `{"description":"","name":"a"}`.
        assert_eq!(fault(json!({"name": "a", "description": "x".repeat(65_536 - 29)})), None);
        assert_eq!(fault(json!({"name": "a", "description": "x".repeat(65_537 - 29)})), Some(""));
    }

    #[test]
    fn a_signature_shows_hidden_characters() {
        let schema = json!({"type": "object", "properties": {"a": {}, "b\u{202e}": {}}});
        let definition = read(json!({"name": "t\u{200b}", "inputSchema": schema}));
        let signature = definition.unwrap().signature();
        assert_eq!(signature, "t\\u{200b}(a, b\\u{202e})");
    }
}

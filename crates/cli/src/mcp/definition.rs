//! Definitions of tools as a server sends them, and their digests.

use std::sync::Arc;

use authority_crypto::sha256;
use authority_evidence::digest_text;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::mcp::json::object;

/// The deepest nesting of a definition.
const LEVELS: u8 = 32;
/// The largest definition, in bytes of canonical JSON.
const LARGEST: usize = 64 * 1024;

/// A tool's definition: the whole object of the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) value: Map<String, Value>,
}

/// A page of a server's tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) definitions: Vec<Arc<Definition>>,
    /// The tools that cannot be pinned, each with the reason.
    pub(crate) unreadable: Vec<String>,
    pub(crate) next: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPage<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

/// Reads the result of `tools/list`.
///
/// # Errors
/// The result is not a list of tools.
pub(crate) fn page(result: &str) -> Result<Page, String> {
    let raw: RawPage<'_> = object(result)?;
    let mut page = Page { next: raw.next_cursor, ..Page::default() };
    for tool in raw.tools {
        match Definition::read(tool.get()) {
            Ok(definition) => page.definitions.push(Arc::new(definition)),
            Err(why) => page.unreadable.push(why),
        }
    }
    Ok(page)
}

impl Definition {
    /// Reads a tool. Two parsers must not understand its text differently.
    fn read(text: &str) -> Result<Self, String> {
        let value = gateway_rest::strict(text.as_bytes(), LEVELS)?;
        let Value::Object(value) = value else { return Err("a tool is an object".to_owned()) };
        let name = value.get("name").and_then(Value::as_str).ok_or("a tool has no name")?;
        let name = name.to_owned();
        let canonical = serde_json_canonicalizer::to_vec(&value).map_err(|why| why.to_string())?;
        if canonical.len() > LARGEST {
            return Err(format!("the definition of `{name}` is larger than {LARGEST} bytes"));
        }
        Ok(Self { name, digest: digest_text(&sha256(&canonical)), value })
    }
}

/// Returns the digest of a server's instructions.
pub(crate) fn instructions_digest(text: &str) -> String {
    digest_text(&sha256(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_counts_and_order_and_spaces_do_not() {
        let one =
            page(r#"{"tools":[{"name":"echo","description":"Echoes.","x":{"b":1.0,"a":2}}]}"#);
        let other =
            page(r#"{ "tools": [ {"x":{"a":2,"b":1},"description":"Echoes.","name":"echo"} ] }"#);
        let changed =
            page(r#"{"tools":[{"name":"echo","description":"Echoes!","x":{"b":1,"a":2}}]}"#);
        let digest = |page: Result<Page, String>| page.unwrap().definitions[0].digest.clone();
        let (one, other, changed) = (digest(one), digest(other), digest(changed));
        assert_eq!(one, other);
        assert_ne!(one, changed);
        assert!(one.starts_with("sha256:") && one.len() == 71);
    }

    #[test]
    fn a_tool_that_cannot_be_pinned_does_not_hide_the_others() {
        let text = r#"{"tools":[{"name":"a"},{"name":"b","max":18446744073709551615},{"name":"c","name":"d"},7],
            "nextCursor":"2"}"#;
        let page = page(text).unwrap();
        assert_eq!(page.definitions.len(), 1);
        assert_eq!(page.unreadable.len(), 3);
        assert_eq!(page.next.as_deref(), Some("2"));
    }

    #[test]
    fn what_is_no_list_of_tools_is_refused() {
        for text in [r#"{"tools":[],"tools":[]}"#, "{}", "[]", r#"{"tools":{}}"#, ""] {
            assert!(page(text).is_err(), "{text}");
        }
    }
}

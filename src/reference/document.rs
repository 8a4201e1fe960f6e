//! The OpenAPI document: its operations, and the parts to which it refers.

use serde_json::Value;

use super::prose::text;

/// The HTTP methods used in the document.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
const SCHEMAS: &str = "#/components/schemas/";

#[derive(Clone, Copy)]
pub(super) struct Document<'a>(pub(super) &'a Value);

/// An operation in the document.
pub(super) struct DocumentOperation<'a> {
    pub(super) id: &'a str,
    pub(super) path: &'a str,
    /// In lower case.
    pub(super) method: &'a str,
    pub(super) content: &'a Value,
}

impl<'a> Document<'a> {
    /// All operations, in the document's order.
    pub(super) fn operations(self) -> Vec<DocumentOperation<'a>> {
        let paths = self.0["paths"].as_object().into_iter().flatten();
        let all = paths.flat_map(|(path, item)| {
            METHODS.into_iter().filter_map(move |method| {
                let content = item.get(method)?;
                Some(DocumentOperation {
                    id: content["operationId"].as_str()?,
                    path,
                    method,
                    content,
                })
            })
        });
        all.collect()
    }

    pub(super) fn schemas(self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.0["components"]["schemas"].as_object().into_iter().flatten()
    }

    /// Resolves a reference.
    pub(super) fn resolved(self, value: &'a Value) -> &'a Value {
        let referred =
            value["$ref"].as_str().and_then(|to| self.0.pointer(to.trim_start_matches('#')));
        referred.unwrap_or(value)
    }

    /// The URL of the service, without a `/` at its end.
    pub(super) fn url(self) -> &'a str {
        text(&self.0["servers"][0]["url"]).trim_end_matches('/')
    }
}

impl<'a> DocumentOperation<'a> {
    pub(super) fn parameters(&self, document: Document<'a>) -> impl Iterator<Item = &'a Value> {
        let given = self.content["parameters"].as_array().into_iter().flatten();
        given.map(move |parameter| document.resolved(parameter))
    }

    /// The responses with their statuses: those for successes if `success` is set, else for errors.
    pub(super) fn responses(
        &self,
        document: Document<'a>,
        success: bool,
    ) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let all = self.content["responses"].as_object().into_iter().flatten();
        let wanted = all.filter(move |(status, _)| status.starts_with('2') == success);
        wanted.map(move |(status, response)| (status.as_str(), document.resolved(response)))
    }

    /// Whether the service refuses every call. Such a method exists only for its documentation.
    pub(super) fn is_refused(&self) -> bool {
        self.content["responses"].get("405").is_some()
    }
}

/// The name of a schema with its own page, if this is a reference to it.
pub(super) fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix(SCHEMAS)
}

/// The content of a body by media type.
pub(super) fn contents(holder: &Value) -> impl Iterator<Item = (&String, &Value)> {
    holder["content"].as_object().into_iter().flatten()
}

/// The alternatives of a schema, except null. A schema without alternatives is its own only
/// alternative.
pub(super) fn alternatives(schema: &Value) -> Vec<&Value> {
    let all = ["anyOf", "oneOf", "allOf"].iter().find_map(|of| schema[*of].as_array());
    match all {
        Some(all) => all.iter().filter(|one| one["type"] != "null").collect(),
        None => vec![schema],
    }
}

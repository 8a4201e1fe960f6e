//! The protos' comments and bounds, which the route table lacks: from the `OpenAPI` document.

use std::collections::HashMap;

use agent_authority::app::OPENAPI;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Document {
    paths: HashMap<String, Path>,
}

#[derive(Deserialize)]
struct Path {
    get: Option<Operation>,
}

/// The documentation of an operation.
#[derive(Default, Deserialize)]
pub(super) struct Operation {
    pub(super) summary: String,
    #[serde(default)]
    parameters: Vec<Parameter>,
}

/// A parameter of the path or the query; a header is only a reference, without `in`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Parameter {
    /// As in the query: `page_token`.
    pub(super) name: String,
    #[serde(rename = "in")]
    place: String,
    pub(super) required: bool,
    description: String,
    schema: Value,
}

/// The documentation of the GET operation at `path`; empty if the document has none.
pub(super) fn of(path: &str) -> Operation {
    let document = serde_json::from_str::<Document>(OPENAPI).ok();
    let path = document.and_then(|mut document| document.paths.remove(path));
    path.and_then(|path| path.get).unwrap_or_default()
}

impl Operation {
    pub(super) fn query(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| parameter.place == "query")
    }

    /// The one variable of an item's path.
    pub(super) fn variable(&self) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.place == "path")
    }
}

impl Parameter {
    /// Its comment, or else its name.
    pub(super) fn help(&self) -> String {
        match self.description.trim_end_matches('.') {
            "" => format!("Its `{}`", self.name),
            said => said.to_owned(),
        }
    }

    /// The allowed words; empty for any.
    pub(super) fn choice(&self) -> Vec<String> {
        let words = self.schema["enum"].as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The smallest and the largest allowed number.
    pub(super) fn bounds(&self) -> (i64, i64) {
        let bound = |name: &str| self.schema[name].as_i64();
        (bound("minimum").unwrap_or(i64::MIN), bound("maximum").unwrap_or(i64::MAX))
    }
}

//! The content of the pages, taken from the OpenAPI document.

use askama::Template;
use serde_json::Value;

use super::{
    prose::{Piece, pieces},
    schema::{Row, rows},
};

/// The HTTP methods used in the document.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// An operation in the document.
pub(super) struct Found<'a> {
    pub(super) id: &'a str,
    pub(super) path: &'a str,
    method: &'a str,
    content: &'a Value,
}

/// All operations, in the document's order.
pub(super) fn operations(contract: &Value) -> Vec<Found<'_>> {
    let paths = contract["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| {
        METHODS.into_iter().filter_map(move |method| {
            let content = item.get(method)?;
            Some(Found { id: content["operationId"].as_str()?, path, method, content })
        })
    });
    all.collect()
}

#[derive(Template)]
#[template(path = "reference/index.html")]
pub(super) struct Index<'a> {
    title: &'a str,
    about: Vec<Paragraph>,
    groups: Vec<Group<'a>>,
}

struct Group<'a> {
    name: &'a str,
    about: Vec<Paragraph>,
    entries: Vec<Entry<'a>>,
}

struct Entry<'a> {
    id: &'a str,
    method: String,
    path: &'a str,
    summary: Vec<Piece>,
}

#[derive(Template)]
#[template(path = "reference/operation.html")]
pub(super) struct Operation<'a> {
    method: String,
    path: &'a str,
    /// The operation's service, as in the index.
    service: &'a str,
    summary: Vec<Piece>,
    about: Vec<Paragraph>,
    parameters: Vec<Row>,
    bodies: Vec<Body>,
}

/// A request's body, or a response's.
struct Body {
    heading: String,
    /// Its id on the page: the heading's words, joined by `-`.
    anchor: String,
    about: Vec<Paragraph>,
    rows: Vec<Row>,
    example: Option<String>,
}

#[derive(Template)]
#[template(path = "reference/schema.html")]
pub(super) struct Shape<'a> {
    name: &'a str,
    about: Vec<Paragraph>,
    rows: Vec<Row>,
    example: Option<String>,
}

type Paragraph = Vec<Piece>;

fn paragraphs(value: &Value) -> Vec<Paragraph> {
    let text = value.as_str().unwrap_or_default();
    text.split("\n\n").filter(|text| !text.is_empty()).map(pieces).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn example(content: &Value) -> Option<String> {
    let example = content.get("example")?;
    serde_json::to_string_pretty(example).ok()
}

impl<'a> Index<'a> {
    pub(super) fn of(contract: &'a Value, operations: &[Found<'a>]) -> Self {
        let tags = contract["tags"].as_array().into_iter().flatten();
        let groups = tags.map(|tag| {
            let own = operations.iter().filter(|found| found.content["tags"][0] == tag["name"]);
            let entries = own.map(|found| Entry {
                id: found.id,
                method: found.method.to_uppercase(),
                path: found.path,
                summary: pieces(text(&found.content["summary"])),
            });
            Group {
                name: text(&tag["name"]),
                about: paragraphs(&tag["description"]),
                entries: entries.collect(),
            }
        });
        Self {
            title: text(&contract["info"]["title"]),
            about: paragraphs(&contract["info"]["description"]),
            groups: groups.collect(),
        }
    }
}

impl<'a> Operation<'a> {
    pub(super) fn of(contract: &Value, found: &Found<'a>) -> Self {
        let content = found.content;
        let parameters = content["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.map(|given| resolved(contract, given)).map(Row::of_parameter);
        let request = bodies(&content["requestBody"], "Body");
        let responses = content["responses"].as_object().into_iter().flatten();
        // Errors have one form, described on the index page.
        let successes = responses.filter(|(status, _)| status.starts_with('2'));
        let successes = successes.flat_map(|(status, response)| {
            bodies(resolved(contract, response), &format!("Response {status}"))
        });
        Self {
            method: found.method.to_uppercase(),
            path: found.path,
            service: text(&content["tags"][0]),
            // The description begins with the summary.
            summary: if content["description"].is_string() {
                Vec::new()
            } else {
                pieces(text(&content["summary"]))
            },
            about: paragraphs(&content["description"]),
            parameters: parameters.collect(),
            bodies: request.into_iter().chain(successes).collect(),
        }
    }
}

impl<'a> Shape<'a> {
    pub(super) fn of(name: &'a str, schema: &Value) -> Self {
        Self {
            name,
            about: paragraphs(&schema["description"]),
            rows: rows(schema),
            example: example(schema),
        }
    }
}

fn anchor(heading: &str) -> String {
    let words = heading.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").to_ascii_lowercase()
}

/// Returns a body for each media type.
fn bodies(holder: &Value, heading: &str) -> Vec<Body> {
    let content = holder["content"].as_object().into_iter().flatten();
    let bodies = content.map(|(media, content)| Body {
        anchor: anchor(&format!("{heading} {media}")),
        heading: format!("{heading}, {media}"),
        about: paragraphs(&holder["description"]),
        rows: rows(&content["schema"]),
        example: example(content),
    });
    bodies.collect()
}

/// Resolves a reference.
fn resolved<'a>(contract: &'a Value, value: &'a Value) -> &'a Value {
    let referred =
        value["$ref"].as_str().and_then(|to| contract.pointer(to.trim_start_matches('#')));
    referred.unwrap_or(value)
}

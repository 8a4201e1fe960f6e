//! The page of one operation: an example, who may call it, members and errors.

use askama::Template;
use serde_json::Value;

use super::{
    document::{Document, DocumentOperation, contents},
    prose::{Paragraph, Piece, paragraphs, pieces, text},
    request::curl,
    schema::{FieldRow, Table, tables},
};

#[derive(Template)]
#[template(path = "reference/operation.html")]
pub(super) struct Operation<'a> {
    method: String,
    path: &'a str,
    /// The operation's service, as in the index.
    service: &'a str,
    summary: Paragraph,
    about: Vec<Paragraph>,
    request: String,
    answer: Option<Answer<'a>>,
    callers: Vec<Paragraph>,
    parameters: Vec<FieldRow>,
    bodies: Vec<Body>,
    refusals: Vec<Refusal<'a>>,
}

/// The example of a response.
struct Answer<'a> {
    status: &'a str,
    text: String,
}

/// The body of a request or of a response.
struct Body {
    heading: String,
    /// Its id on the page: the heading's words, joined by `-`.
    anchor: String,
    about: Vec<Paragraph>,
    tables: Vec<Table>,
}

struct Refusal<'a> {
    status: &'a str,
    about: Paragraph,
}

impl<'a> Operation<'a> {
    pub(super) fn of(document: Document<'a>, found: &DocumentOperation<'a>) -> Self {
        let content = found.content;
        let parameters = found.parameters(document);
        let mut all_bodies = bodies(document, &content["requestBody"], "Body", true);
        let mut earlier = Vec::new();
        for (status, response) in found.responses(document, true) {
            let mut own = bodies(document, response, &format!("Response {status}"), false);
            // A further status with the same body: the description refers to the first one.
            if earlier.contains(&&response["content"]) {
                own.iter_mut().for_each(|body| body.tables.clear());
            }
            earlier.push(&response["content"]);
            all_bodies.extend(own);
        }
        let refusals = found.responses(document, false);
        let refusals = refusals.map(|(status, response)| Refusal {
            status,
            about: pieces(text(&response["description"])),
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
            request: curl(document, found),
            answer: answer(document, found),
            callers: callers(&content["security"]),
            parameters: parameters.map(|one| FieldRow::of_parameter(document, one)).collect(),
            bodies: all_bodies,
            refusals: refusals.collect(),
        }
    }
}

/// The first example of a success.
fn answer<'a>(document: Document<'a>, found: &DocumentOperation<'a>) -> Option<Answer<'a>> {
    if found.is_refused() {
        return None;
    }
    found.responses(document, true).find_map(|(status, response)| {
        let example = contents(response).find_map(|(_, content)| content.get("example"))?;
        Some(Answer { status, text: shown(example) })
    })
}

/// An example as it is sent: JSON is indented, and a text is unchanged.
pub(super) fn shown(example: &Value) -> String {
    let indented = || serde_json::to_string_pretty(example).unwrap_or_default();
    example.as_str().map_or_else(indented, str::to_owned)
}

/// Returns a body for each media type.
fn bodies<'a>(
    document: Document<'a>,
    holder: &'a Value,
    heading: &str,
    is_request: bool,
) -> Vec<Body> {
    let bodies = contents(holder).map(|(media, content)| Body {
        anchor: anchor(&format!("{heading} {media}")),
        heading: format!("{heading}, {media}"),
        about: paragraphs(&holder["description"]).into_iter().filter(is_informative).collect(),
        tables: tables(document, &content["schema"], is_request),
    });
    bodies.collect()
}

/// Whether a body's description adds something to its heading.
fn is_informative(about: &Paragraph) -> bool {
    about.iter().any(|piece| piece.text != "Success.")
}

fn anchor(heading: &str) -> String {
    let words = heading.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join("-").to_ascii_lowercase()
}

/// Who may call an operation: each requirement alone is enough.
fn callers(security: &Value) -> Vec<Paragraph> {
    let all = security.as_array().into_iter().flatten().filter_map(Value::as_object).flatten();
    let all: Vec<_> = all.map(|(scheme, words)| (scheme.as_str(), words)).collect();
    let words = |wanted: &str| {
        let own = all.iter().filter(|(scheme, _)| *scheme == wanted);
        let words = own.flat_map(|(_, words)| words.as_array().into_iter().flatten().map(text));
        words.collect::<Vec<_>>()
    };
    let has = |wanted: (&str, bool)| {
        all.iter().any(|(scheme, words)| (*scheme, words[0].is_null()) == wanted)
    };
    let (roles, scopes) = (words("member"), words("api_key"));
    let mut callers = Vec::new();
    if all.is_empty() {
        callers.push(pieces("Everyone, without a credential."));
    }
    if has(("owner", true)) {
        callers.push(pieces("The installation's owner, with a token."));
    }
    if has(("member", true)) {
        callers.push(pieces("A member of the tenant, with a token."));
    }
    if !roles.is_empty() {
        callers.push(listed("A member of the tenant, with a token for the role ", &roles));
    }
    if !scopes.is_empty() {
        callers.push(listed("An API key with the scope ", &scopes));
    }
    callers
}

/// The sentence that ends with these words, joined by `or`.
fn listed(before: &str, words: &[&str]) -> Paragraph {
    let mut sentence = vec![Piece::plain(before)];
    for (at, word) in words.iter().enumerate() {
        match at {
            0 => {}
            _ if at + 1 == words.len() => sentence.push(Piece::plain(" or ")),
            _ => sentence.push(Piece::plain(", ")),
        }
        sentence.push(Piece::code(*word));
    }
    sentence.push(Piece::plain("."));
    sentence
}

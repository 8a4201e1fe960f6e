//! The list of all operations, and the page of a schema.

use askama::Template;
use serde_json::Value;

use super::{
    document::{Document, DocumentOperation},
    operation::shown,
    prose::{Paragraph, paragraphs, pieces, text},
    schema::{Table, tables},
};

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
    summary: Paragraph,
}

#[derive(Template)]
#[template(path = "reference/schema.html")]
pub(super) struct Shape<'a> {
    name: &'a str,
    about: Vec<Paragraph>,
    tables: Vec<Table>,
    example: Option<String>,
}

impl<'a> Index<'a> {
    pub(super) fn of(document: Document<'a>, operations: &[DocumentOperation<'a>]) -> Self {
        let tags = document.0["tags"].as_array().into_iter().flatten();
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
            title: text(&document.0["info"]["title"]),
            about: paragraphs(&document.0["info"]["description"]),
            groups: groups.collect(),
        }
    }
}

impl<'a> Shape<'a> {
    pub(super) fn of(document: Document<'a>, name: &'a str, schema: &'a Value) -> Self {
        Self {
            name,
            about: paragraphs(&schema["description"]),
            tables: tables(document, schema, true),
            example: schema["examples"].get(0).map(shown),
        }
    }
}

//! A JSON Schema as tables: a row for each member, with the members of nested objects below it.

use serde_json::Value;

use super::{
    document::{Document, alternatives, name_of},
    kind::kind,
    prose::{Paragraph, Piece, pieces, text},
};

/// The most levels of nested members. Deeper members are on the page of their schema.
const DEEPEST: usize = 6;

/// A value, and its members if it is an object.
pub(super) struct Table {
    pub(super) kind: Paragraph,
    pub(super) rows: Vec<FieldRow>,
}

pub(super) struct FieldRow {
    pub(super) level: usize,
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) kind: Paragraph,
    pub(super) about: Paragraph,
}

impl FieldRow {
    /// A parameter of the path, the query or a header.
    pub(super) fn of_parameter(document: Document<'_>, parameter: &Value) -> Self {
        let place = Piece::plain(format!("{}, ", text(&parameter["in"])));
        Self {
            level: 0,
            name: text(&parameter["name"]).to_owned(),
            required: parameter["required"] == true,
            kind: [vec![place], kind(document, &parameter["schema"])].concat(),
            about: pieces(text(&parameter["description"])),
        }
    }
}

/// Returns a table for each alternative of the value. Members are marked as required only in
/// requests: a response has every member.
pub(super) fn tables<'a>(
    document: Document<'a>,
    schema: &'a Value,
    is_request: bool,
) -> Vec<Table> {
    let alternatives = alternatives(schema);
    let tables = alternatives.into_iter().map(|one| {
        let mut members = Members { document, is_request, rows: Vec::new(), within: Vec::new() };
        members.of(one, 0);
        Table { kind: kind(document, one), rows: members.rows }
    });
    tables.collect()
}

struct Members<'a> {
    document: Document<'a>,
    is_request: bool,
    rows: Vec<FieldRow>,
    /// The names of the enclosing schemas, to stop at a schema that contains itself.
    within: Vec<&'a str>,
}

impl<'a> Members<'a> {
    /// Adds the members of a value: of the object, or of the objects in a list or a map.
    fn of(&mut self, schema: &'a Value, level: usize) {
        if let Some(name) = name_of(schema) {
            if self.within.contains(&name) {
                return;
            }
            self.within.push(name);
            self.of(self.document.resolved(schema), level);
            self.within.pop();
        } else if let Some(properties) = schema["properties"].as_object() {
            let required = |name: &String| {
                self.is_request
                    && schema["required"]
                        .as_array()
                        .is_some_and(|names| names.iter().any(|required| required == name.as_str()))
            };
            let mut all: Vec<_> =
                properties.iter().map(|(name, member)| (name, member, required(name))).collect();
            all.sort_by_key(|(_, _, is_required)| !is_required);
            for (name, member, required) in all {
                self.rows.push(FieldRow {
                    level,
                    name: name.clone(),
                    required,
                    kind: kind(self.document, member),
                    about: pieces(self.description(member)),
                });
                if level < DEEPEST {
                    self.of(member, level + 1);
                }
            }
        } else if let [one] = alternatives(schema)[..]
            && !std::ptr::eq(one, schema)
        {
            self.of(one, level);
        } else if let Some(inner) = schema.get("items").or(schema.get("additionalProperties")) {
            self.of(inner, level);
        }
    }

    /// The description of the member, or of its schema.
    fn description(&self, member: &'a Value) -> &'a str {
        let of = |schema: &'a Value| schema["description"].as_str();
        let inner =
            || alternatives(member).into_iter().find_map(|one| of(self.document.resolved(one)));
        of(member).or_else(inner).unwrap_or_default()
    }
}

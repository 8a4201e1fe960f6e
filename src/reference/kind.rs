//! The type of a value in a few words, with its bounds.

use serde_json::Value;

use super::{
    document::{Document, alternatives, name_of},
    prose::{Paragraph, Piece, text},
};

/// Bounds, with the words before and after their value.
const BOUNDS: [(&str, &str, &str); 9] = [
    ("minimum", "at least ", ""),
    ("exclusiveMinimum", "more than ", ""),
    ("maximum", "at most ", ""),
    ("exclusiveMaximum", "less than ", ""),
    ("minLength", "at least ", " characters"),
    ("maxLength", "at most ", " characters"),
    ("minItems", "at least ", " items"),
    ("maxItems", "at most ", " items"),
    ("contentEncoding", "in ", ""),
];

/// The largest values of types, which are not shown as bounds.
const WIDTHS: [u64; 2] = [u32::MAX as u64, (1 << 53) - 1];

/// Describes the values of a schema. A schema with its own page is a link.
pub(super) fn kind(document: Document<'_>, schema: &Value) -> Paragraph {
    let mut out = Vec::new();
    add(&mut out, document, schema);
    out
}

fn add(out: &mut Paragraph, document: Document<'_>, schema: &Value) {
    let plain = |text: &str| Piece::plain(text);
    if let Some(name) = name_of(schema) {
        let referred = document.resolved(schema);
        if referred.get("enum").is_some() {
            return add(out, document, referred);
        }
        return out.push(Piece::schema(name));
    }
    if ["anyOf", "oneOf", "allOf"].iter().any(|of| schema.get(of).is_some()) {
        for (at, one) in alternatives(schema).into_iter().enumerate() {
            if at > 0 {
                out.push(plain(" or "));
            }
            add(out, document, one);
        }
    } else if let Some(words) = schema["enum"].as_array() {
        out.push(plain("one of "));
        for (at, word) in words.iter().filter(|word| !word.is_null()).enumerate() {
            if at > 0 {
                out.push(plain(", "));
            }
            out.push(value(word));
        }
    } else if let Some(only) = schema.get("const") {
        out.extend([plain("always "), value(only)]);
    } else if let Some(inner) = schema.get("contentSchema") {
        out.push(plain("JSON text: "));
        add(out, document, inner);
    } else if let Some(items) = schema.get("items") {
        out.push(plain("list of "));
        add(out, document, items);
    } else if let Some(values) = schema.get("additionalProperties").filter(|of| of.is_object()) {
        out.push(plain("object with values: "));
        add(out, document, values);
    } else {
        let names = match &schema["type"] {
            Value::Array(all) => all.iter().map(text).find(|name| *name != "null"),
            one => one.as_str(),
        };
        let is_free = schema["additionalProperties"] == true && schema.get("properties").is_none();
        out.push(plain(match names {
            Some("object") if is_free => "object with any members",
            Some("array") => "list",
            Some(name) => name,
            None => "any value",
        }));
    }
    if may_be_null(schema) {
        out.push(plain(" or null"));
    }
    bounds(out, schema);
}

fn may_be_null(schema: &Value) -> bool {
    let has_null = |list: &Value| {
        let mut all = list.as_array().into_iter().flatten();
        all.any(|one| one.is_null() || one == "null" || one["type"] == "null")
    };
    ["type", "enum", "anyOf", "oneOf"].iter().any(|of| has_null(&schema[*of]))
}

fn bounds(out: &mut Paragraph, schema: &Value) {
    // The format of a number is its width.
    if let Some(format) = schema["format"].as_str().filter(|_| text(&schema["type"]) != "integer") {
        out.push(Piece::plain(format!(", {format}")));
    }
    for (bound, before, after) in BOUNDS {
        match &schema[bound] {
            Value::Null => {}
            number if WIDTHS.iter().any(|width| number == width) => {}
            number if after == " characters" && bound == "minLength" && *number == 1 => {
                out.push(Piece::plain(", not empty"));
            }
            Value::String(text) => out.push(Piece::plain(format!(", {before}{text}{after}"))),
            number => out.push(Piece::plain(format!(", {before}{number}{after}"))),
        }
    }
    if schema["uniqueItems"] == true {
        out.push(Piece::plain(", without duplicates"));
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        out.extend([Piece::plain(", pattern "), Piece::code(pattern)]);
    }
    if let Some(default) = schema.get("default") {
        out.extend([Piece::plain(", by default "), value(default)]);
    }
}

fn value(value: &Value) -> Piece {
    Piece::code(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

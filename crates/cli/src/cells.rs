//! Formats values as cells, and cells in aligned columns.

use std::iter::{once, repeat_n};

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::{
    text::{NOTHING, plain},
    view::{View, left},
};

/// Spaces between columns.
pub(crate) const GAP: u16 = 2;

/// The members of a value with two forms.
const WHOLE: &str = "whole";
const SHORT: &str = "short";

/// Returns a value that has a shorter form in a narrow table.
pub(crate) fn with_short(whole: &str, short: &str) -> Value {
    json!({WHOLE: whole, SHORT: short})
}

/// Returns a cell with a time and its distance from now. A narrow table has only the distance.
pub(crate) fn until(text: &str, view: View) -> Value {
    let whole = view.until(text);
    with_short(&whole, &left(text).unwrap_or_else(|| whole.clone()))
}

/// Returns the shorter form of a value that has one.
pub(crate) fn short_form(value: &Value) -> &Value {
    value.get(SHORT).unwrap_or(value)
}

/// Returns the width of each column on a terminal: the width of its widest cell, and at least one.
pub(crate) fn widths(header: &[String], rows: &[Vec<String>]) -> Vec<u16> {
    let mut widths = vec![1; header.len()];
    for row in once(header).chain(rows.iter().map(Vec::as_slice)) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell_width(cell).max(*width);
        }
    }
    widths
}

/// Aligns rows below a header. Without columns, the text is empty.
pub(crate) fn aligned(header: &[String], rows: &[Vec<String>]) -> String {
    if header.is_empty() {
        return String::new();
    }
    let widths = widths(header, rows);
    let line = |row: &[String]| {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let spaces = width.saturating_add(GAP) - cell_width(cell);
            line.push_str(cell);
            line.extend(repeat_n(' ', spaces.into()));
        }
        line.trim_end().to_owned()
    };
    let lines = once(header).chain(rows.iter().map(Vec::as_slice)).map(line);
    lines.collect::<Vec<_>>().join("\n")
}

fn cell_width(cell: &str) -> u16 {
    u16::try_from(cell.width()).unwrap_or(u16::MAX)
}

/// Formats a value for a cell.
pub(crate) fn cell(value: &Value, view: View) -> String {
    each(value, &|text| view.time(text).unwrap_or_else(|| plain(text)))
}

/// Formats a value, with each text in it formatted by `shown`.
pub(crate) fn each(value: &Value, shown: &dyn Fn(&str) -> String) -> String {
    match value {
        Value::Null => NOTHING.to_owned(),
        Value::String(text) if text.is_empty() => NOTHING.to_owned(),
        Value::String(text) => shown(text),
        Value::Array(items) if items.is_empty() => NOTHING.to_owned(),
        Value::Array(items) => {
            items.iter().map(|item| each(item, shown)).collect::<Vec<_>>().join(",")
        }
        Value::Object(forms) if forms.contains_key(WHOLE) => each(&forms[WHOLE], shown),
        other => plain(&other.to_string()),
    }
}

//! Formats values as cells, and cells in aligned columns.

use comfy_table::{Table, presets};
use serde_json::Value;

use super::text::{NOTHING, plain};
use crate::cli::view::View;

/// Spaces between columns.
pub(super) const GAP: u16 = 2;

/// Aligns rows below a header.
pub(super) fn aligned(header: &[String], rows: &[Vec<String>]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    table
}

/// Formats a value for a cell.
pub(super) fn cell(value: &Value, view: View) -> String {
    each(value, &|text| view.time(text).unwrap_or_else(|| plain(text)))
}

/// Formats a value, with each text in it formatted by `shown`.
pub(super) fn each(value: &Value, shown: &dyn Fn(&str) -> String) -> String {
    match value {
        Value::Null => NOTHING.to_owned(),
        Value::String(text) if text.is_empty() => NOTHING.to_owned(),
        Value::String(text) => shown(text),
        Value::Array(items) if items.is_empty() => NOTHING.to_owned(),
        Value::Array(items) => {
            items.iter().map(|item| each(item, shown)).collect::<Vec<_>>().join(",")
        }
        other => plain(&other.to_string()),
    }
}

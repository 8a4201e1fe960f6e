//! Messages of a stream as rows of CSV (RFC 4180), for spreadsheets.

use bytes::Bytes;

use crate::{
    route::{Column, Route},
    shape::{Kind, Shape},
    wire::{Malformed, Value},
    write,
};

/// The content type, with the parameters of RFC 4180 (3).
pub(crate) const CONTENT_TYPE: &str = "text/csv; charset=utf-8; header=present";

/// The first row: the names of the columns.
pub(crate) fn header(route: &Route) -> Bytes {
    row(route.csv.iter().map(|column| column.name.to_owned()))
}

/// The row of a message. A cell is empty if its field is absent.
pub(crate) fn message(route: &Route, message: &[u8]) -> Result<Bytes, Malformed> {
    let cells = route.csv.iter().map(|column| cell(route.output, column, message));
    Ok(row(cells.collect::<Result<Vec<_>, _>>()?.into_iter()))
}

fn row(cells: impl Iterator<Item = String>) -> Bytes {
    let cells: Vec<String> = cells.map(|cell| quoted(harmless(cell))).collect();
    (cells.join(",") + "\r\n").into()
}

/// Returns the text of a field. A value that is not a text is JSON.
fn cell(shape: &'static Shape, column: &Column, mut message: &[u8]) -> Result<String, Malformed> {
    let Some((last, path)) = column.fields.split_last() else { return Err(Malformed) };
    let mut shape = shape;
    for position in path {
        let field = shape.fields.get(usize::from(*position)).ok_or(Malformed)?;
        let Kind::Message(inner) = &field.kind else { return Err(Malformed) };
        match write::only(field, message)? {
            Some(Value::Bytes(bytes)) => (shape, message) = (*inner, bytes),
            _ => return Ok(String::new()),
        }
    }
    let mut json = Vec::new();
    write::field(&mut json, shape, usize::from(*last), message)?;
    if json == b"null" {
        return Ok(String::new());
    }
    let text = serde_json::from_slice(&json);
    Ok(text.unwrap_or_else(|_| String::from_utf8_lossy(&json).into_owned()))
}

/// Puts an apostrophe before a text that a spreadsheet would take for a formula
/// (<https://owasp.org/www-community/attacks/CSV_Injection>).
fn harmless(cell: String) -> String {
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{cell}") } else { cell }
}

/// Puts a cell in quotes if it has a separator, a quote or a line break (RFC 4180, 2).
fn quoted(cell: String) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_begin_no_formula() {
        for (cell, written) in [
            ("plain", "plain"),
            ("", ""),
            (" a b ", " a b "),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "'=1+1"),
            ("+49 30", "'+49 30"),
            ("-5", "'-5"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""),
            ("a=1", "a=1"),
        ] {
            assert_eq!(row([cell.to_owned()].into_iter()), format!("{written}\r\n"), "{cell:?}");
        }
        let cells = ["a", "", "c"].map(str::to_owned);
        assert_eq!(row(cells.into_iter()), "a,,c\r\n");
    }
}

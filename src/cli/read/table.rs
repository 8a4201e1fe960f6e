//! A list as a table: its columns and their layout.

use gateway_rest::{Cardinality, Field, Kind, Shape};
use serde_json::Value;

use super::{
    collection::identity,
    text::{cut, plain, width},
};

/// The most columns of a table; longer lines are hard to read.
const MOST: usize = 7;
/// The greatest width of a column but the first, on a terminal.
const WIDEST: usize = 32;
/// The least width of a shortened column; a narrower one is left out.
const NARROWEST: usize = 12;
const GAP: &str = "  ";
/// Shown for a missing value.
const NOTHING: &str = "-";

/// The most useful members of the records, a line for each record, below a header. `room` is the
/// terminal's width, to which values are shortened and columns left out; `None` shows everything.
pub(super) fn text(record: &'static Shape, records: &[Value], room: Option<usize>) -> String {
    let columns = columns(record);
    let mut rows = vec![columns.iter().map(|field| field.name.to_uppercase()).collect()];
    for record in records {
        rows.push(columns.iter().map(|field| cell(field, &record[field.name])).collect());
    }
    lay_out(&rows, room)
}

/// Id, state and name first; then the members of every record, then optional ones; the creation time
/// last.
fn columns(record: &'static Shape) -> Vec<&'static Field> {
    let id = identity(record).map_or("", |field| field.name);
    let rank = |field: &Field| match field.name {
        name if name == id => 0,
        "state" | "status" => 1,
        "slug" | "name" | "label" | "title" => 2,
        name if name.ends_with("_name") => 2,
        // Mostly the same in all records, and part of their ids.
        "tenant_id" => 4,
        // Optional only in requests: the server fills them.
        "env" => 3,
        name if name.ends_with("_status") => 3,
        _ if field.cardinality == Cardinality::Optional => 4,
        _ => 3,
    };
    let mut columns: Vec<_> = record.fields.iter().filter(|field| is_short(field)).collect();
    columns.sort_by_key(|field| rank(field));
    let mut times = record.fields.iter().filter(|field| matches!(field.kind, Kind::Timestamp));
    let since = record.field("created_at").or_else(|| times.next());
    columns.truncate(MOST - usize::from(since.is_some()));
    columns.extend(since);
    columns
}

/// Whether its value fits on a line with others.
fn is_short(field: &Field) -> bool {
    let one = !matches!(
        field.kind,
        Kind::Message(_) | Kind::Struct | Kind::Value | Kind::List | Kind::Timestamp | Kind::Bytes
    );
    one && field.cardinality != Cardinality::Map
        && !matches!(field.name, "notes" | "description" | "tags" | "created_by")
}

fn cell(field: &Field, value: &Value) -> String {
    match value {
        Value::Null => NOTHING.to_owned(),
        Value::String(text) if text.is_empty() => NOTHING.to_owned(),
        // To the second.
        Value::String(text) if matches!(field.kind, Kind::Timestamp) => {
            match text.split_once('.') {
                Some((seconds, rest)) if rest.ends_with('Z') => plain(&format!("{seconds}Z")),
                _ => plain(text),
            }
        }
        Value::String(text) => plain(text),
        Value::Array(items) if items.is_empty() => NOTHING.to_owned(),
        Value::Array(items) => {
            let cells: Vec<_> = items.iter().map(|item| cell(field, item)).collect();
            cells.join(",")
        }
        other => plain(&other.to_string()),
    }
}

/// Rows of cells, the first of them the header, as aligned lines.
fn lay_out(rows: &[Vec<String>], room: Option<usize>) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<_> = (0..columns)
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max())
        .map(Option::unwrap_or_default)
        .collect();
    let widths = match room {
        Some(room) => fitted(&widths, room),
        None => widths.into_iter().map(Some).collect(),
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).filter_map(|(cell, width)| Some((cell, (*width)?)));
        let padded: Vec<_> = cells.map(|(cell, width)| pad(&cut(cell, width), width)).collect();
        padded.join(GAP).trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The widths of the columns; `None` for those that do not fit. The first is an id, to be copied: it is
/// not shortened.
fn fitted(widths: &[usize], room: usize) -> Vec<Option<usize>> {
    let mut used = 0;
    let fit = |(at, natural): (usize, &usize)| {
        if at == 0 {
            used = *natural;
            return Some(*natural);
        }
        let free = room.saturating_sub(used + GAP.len());
        let width = (*natural).min(WIDEST).min(free);
        let is_shown = width >= (*natural).min(NARROWEST);
        is_shown.then(|| {
            used += GAP.len() + width;
            width
        })
    };
    widths.iter().enumerate().map(fit).collect()
}

fn pad(text: &str, to: usize) -> String {
    let missing = to.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::read::collection::named;

    fn shape(collection: &str) -> &'static Shape {
        named(collection).unwrap().list.unwrap().record
    }

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect()
    }

    #[test]
    fn columns_are_chosen_by_what_they_tell() {
        let names = |collection| -> Vec<_> {
            columns(shape(collection)).into_iter().map(|field| field.name).collect()
        };
        assert_eq!(
            names("tenants"),
            ["id", "state", "slug", "name", "env", "contract_status", "created_at"]
        );
        assert_eq!(
            names("principals"),
            ["id", "state", "display_name", "name", "principal_class", "tenant_id", "created_at"]
        );
        assert_eq!(
            names("delegations"),
            ["id", "state", "delegator_id", "delegate_id", "actions", "purposes", "created_at"]
        );
        assert_eq!(
            names("keys"),
            ["kid", "status", "alg", "purpose", "custody_provider", "managed", "created_at"]
        );
    }

    #[test]
    fn a_record_is_a_line_under_its_members_names() {
        let records = [
            json!({"kid": "k1", "status": "active", "alg": "EdDSA", "purpose": "", "managed": true,
                "created_at": "2026-11-21T00:48:45.099622Z"}),
            json!({"kid": "key-2", "status": "a\nb", "custody_provider": null}),
        ];
        let table = text(shape("keys"), &records, None);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(
            lines,
            [
                "KID    STATUS  ALG    PURPOSE  CUSTODY_PROVIDER  MANAGED  CREATED_AT",
                "k1     active  EdDSA  -        -                 true     2026-11-21T00:48:45Z",
                "key-2  a\\nb    -      -        -                 -        -",
            ]
        );
        assert_eq!(text(shape("keys"), &[], None).lines().count(), 1);
    }

    #[test]
    fn a_list_of_words_is_one_cell() {
        let record = json!({"id": "d", "actions": ["payment.execute", "payment.read"]});
        let table = text(shape("delegations"), &[record], None);
        assert!(table.contains("payment.execute,payment.read"), "{table}");
    }

    #[test]
    fn cells_are_aligned_by_how_wide_they_look() {
        let table = lay_out(&rows(&[&["ID", "NAME", "X"], &["1", "支付", "y"]]), None);
        assert_eq!(table, "ID  NAME  X\n1   支付  y");
    }

    #[test]
    fn a_terminal_cuts_all_but_the_id_and_a_pipe_nothing() {
        let id = "i".repeat(50);
        let long = "n".repeat(60);
        let rows = rows(&[&["ID", "NAME", "STATE"], &[&id, &long, "active"]]);
        assert!(lay_out(&rows, None).contains(&long));
        let wide = lay_out(&rows, Some(200));
        assert!(wide.contains(&id) && !wide.contains(&long) && wide.contains('…'), "{wide}");
        for room in 50..200 {
            let table = lay_out(&rows, Some(room));
            assert!(table.contains(&id), "{table}");
            assert!(table.lines().all(|line| width(line) <= room), "{room}\n{table}");
        }
    }

    #[test]
    fn a_column_without_room_is_left_out_and_a_shorter_one_behind_it_is_not() {
        let rows = rows(&[&["ID", "NAME", "STATE"], &["1", &"n".repeat(20), "active"]]);
        assert_eq!(lay_out(&rows, Some(12)), "ID  STATE\n1   active");
        assert_eq!(lay_out(&rows, Some(8)), "ID\n1");
    }
}

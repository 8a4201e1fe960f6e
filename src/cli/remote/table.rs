//! Records as a table: aligned columns without lines, which other programs can split too.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde_json::Value;

use super::text::{NOTHING, plain};
use crate::cli::view::View;

/// The least width of a column with longer values; a narrower one is left out.
const NARROWEST: u16 = 12;
const GAP: u16 = 2;

/// These members of the records, each record below a header. `width` is the terminal's: longer values are
/// wrapped, and columns without room left out. `None` shows every record on a line.
pub(super) fn text(columns: &[&str], records: &[Value], width: Option<u16>, view: View) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(columns.iter().map(|name| name.to_uppercase()));
    for record in records {
        table.add_row(columns.iter().map(|name| cell(&record[*name], view)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    if let Some(width) = width {
        fit(&mut table, width);
    }
    table.trim_fmt()
}

/// The first column is an id, to be copied: it stays whole.
fn fit(table: &mut Table, width: u16) {
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    let mut used = 0;
    let widths = table.column_max_content_widths();
    for (at, (column, natural)) in table.column_iter_mut().zip(widths).enumerate() {
        let least = if at == 0 { natural } else { natural.min(NARROWEST) };
        let with_it = least.saturating_add(GAP).saturating_add(used);
        if at == 0 {
            column.set_constraint(ColumnConstraint::ContentWidth);
        } else if with_it > width {
            column.set_constraint(ColumnConstraint::Hidden);
            continue;
        }
        used = with_it;
    }
}

fn cell(value: &Value, view: View) -> String {
    match value {
        Value::Null => NOTHING.to_owned(),
        Value::String(text) if text.is_empty() => NOTHING.to_owned(),
        Value::String(text) => view.time(text).unwrap_or_else(|| plain(text)),
        Value::Array(items) if items.is_empty() => NOTHING.to_owned(),
        Value::Array(items) => {
            items.iter().map(|item| cell(item, view)).collect::<Vec<_>>().join(",")
        }
        other => plain(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const VIEW: View = View { json: false, utc: true };

    #[test]
    fn a_record_is_a_line_under_its_members_names() {
        let columns = ["kid", "status", "purposes", "managed", "created_at"];
        let records = [
            json!({"kid": "k1", "status": "active", "purposes": ["a", "b"], "managed": true,
                "created_at": "2026-11-21T00:48:45.099622Z"}),
            json!({"kid": "key-2", "status": "a\nb", "purposes": [], "managed": null}),
            json!({"kid": "支付", "status": "", "more": 1}),
        ];
        let expected = "\
KID    STATUS  PURPOSES  MANAGED  CREATED_AT
k1     active  a,b       true     2026-11-21T00:48:45Z
key-2  a\\nb    -         -        -
支付   -       -         -        -";
        assert_eq!(text(&columns, &records, None, VIEW), expected);
        assert_eq!(text(&columns, &[], None, VIEW).lines().count(), 1);
    }

    #[test]
    fn a_terminal_wraps_all_but_the_id_and_a_pipe_nothing() {
        let (id, long) = ("i".repeat(50), "n".repeat(60));
        let records = [json!({"id": id, "name": long, "state": "active"})];
        let columns = ["id", "name", "state"];
        assert!(text(&columns, &records, None, VIEW).contains(&long));
        let wide = text(&columns, &records, Some(100), VIEW);
        assert!(wide.contains(&id) && !wide.contains(&long) && wide.contains("active"), "{wide}");
        assert_eq!(wide.matches('n').count(), 60, "{wide}");
        for width in 52..200 {
            let table = text(&columns, &records, Some(width), VIEW);
            assert!(table.contains(&id), "{table}");
            let fits = |line: &str| line.len() <= usize::from(width);
            assert!(table.lines().all(fits), "{width}\n{table}");
        }
    }

    #[test]
    fn a_column_without_room_is_left_out_and_a_shorter_one_behind_it_is_not() {
        let records = [json!({"id": "1", "name": "n".repeat(20), "state": "active"})];
        let table = |width| text(&["id", "name", "state"], &records, Some(width), VIEW);
        assert_eq!(table(13), "ID  STATE\n1   active");
        assert_eq!(table(8), "ID\n1");
        // The id stays, even alone and without room.
        assert_eq!(text(&["id", "state"], &[json!({"id": "whole"})], Some(2), VIEW), "ID\nwhole");
    }
}

//! Shows records as a table: aligned columns without lines, which other programs can also split.
//!
//! If the table is wider than the terminal, it is shown in a form for people only (`narrow.rs`).

use serde_json::Value;

use crate::{
    cells::{GAP, aligned, cell, widths},
    narrow,
    view::View,
};

/// Formats these members of the records below a header; the first member is their id. `width` is
/// the terminal's width in columns. `None` shows every record on one line.
pub(crate) fn text(columns: &[&str], records: &[Value], width: Option<u16>, view: View) -> String {
    let cells = |record: &Value| columns.iter().map(|name| cell(&record[*name], view)).collect();
    let rows: Vec<Vec<String>> = records.iter().map(cells).collect();
    let header: Vec<_> = columns.iter().map(|name| name.to_uppercase()).collect();
    match width {
        Some(width) if whole(&widths(&header, &rows)) > width => {
            narrow::text(columns, records, width, view)
        }
        _ => aligned(&header, &rows),
    }
}

/// The total width of adjacent columns.
fn whole(widths: &[u16]) -> u16 {
    let used =
        widths.iter().fold(0_u16, |used, width| used.saturating_add(width.saturating_add(GAP)));
    used.saturating_sub(GAP)
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
        // The output is the same if it exactly fits.
        assert_eq!(text(&columns, &records, Some(54), VIEW), expected);
        assert_ne!(text(&columns, &records, Some(53), VIEW), expected);
        assert_eq!(text(&columns, &[], None, VIEW).lines().count(), 1);
    }
}

//! Lists of objects as tables.

use std::collections::HashSet;

use authority_model::proto::approval::{ApprovalTable, ApprovalTableRow};
use serde_json::{Map, Value};

use crate::{
    label::label,
    letters::mixed_letters,
    path::{is_covered, leaves, quoted, value_at},
    sum::sum,
    texts as t,
};

/// The maximum number of rows. More are counted as not shown.
const MOST_ROWS: usize = 200;

/// The items of a list as a table. `total` is a column: its sum stands below.
///
/// Fields that are not in a column are in a further column, as JSON. Returns also the number of rows
/// that the table leaves out.
pub(crate) fn table(
    path: &str,
    items: &[Value],
    columns: &[String],
    total: Option<&str>,
) -> (ApprovalTable, usize) {
    let shown: HashSet<&str> = columns.iter().map(String::as_str).collect();
    let mut rows: Vec<(Vec<String>, String)> = items
        .iter()
        .take(MOST_ROWS)
        .map(|item| (cells(item, columns), others(item, &shown)))
        .collect();
    let has_others = rows.iter().any(|(_, others)| !others.is_empty());
    let mut heads: Vec<String> = columns.iter().map(|column| label(column)).collect();
    let mut total = total.and_then(|column| totals(items, columns, column));
    if has_others {
        heads.push(t::OTHER_FIELDS.to_owned());
        total.iter_mut().for_each(|cells| cells.push(String::new()));
        rows.iter_mut().for_each(|(cells, others)| cells.push(std::mem::take(others)));
    }
    let row = |cells| ApprovalTableRow { cells };
    let rows: Vec<_> = rows.into_iter().map(|(cells, _)| row(cells)).collect();
    let names = columns.iter().map(String::as_str).chain([path]);
    let texts = names.chain(rows.iter().flat_map(|row| row.cells.iter().map(String::as_str)));
    let table = ApprovalTable {
        path: path.to_owned(),
        label: label(path),
        columns: heads,
        mixed_letters: mixed_letters(&texts.collect::<Vec<_>>().join(" ")),
        rows,
        total: total.map(row),
    };
    (table, items.len().saturating_sub(MOST_ROWS))
}

/// The cells of an item. An item that is not an object is in the first cell.
fn cells(item: &Value, columns: &[String]) -> Vec<String> {
    let cell = |(number, column): (usize, &String)| match item {
        Value::Object(fields) => at(fields, column).map(text).unwrap_or_default(),
        other if number == 0 => text(other),
        _ => String::new(),
    };
    columns.iter().enumerate().map(cell).collect()
}

/// The fields of an item that no column shows, each with its path. Empty if there are none.
fn others(item: &Value, shown: &HashSet<&str>) -> String {
    let Value::Object(fields) = item else { return String::new() };
    let mut all = Vec::new();
    leaves(fields, "", &mut all);
    all.retain(|(leaf, _)| !is_covered(leaf, |place| shown.contains(place)));
    if all.is_empty() {
        return String::new();
    }
    Value::Object(all.into_iter().map(|(leaf, value)| (leaf, value.clone())).collect()).to_string()
}

/// The cells of the row with the sum of a column.
fn totals(items: &[Value], columns: &[String], total: &str) -> Option<Vec<String>> {
    let sum = sum(items.iter().map(|item| at(item.as_object()?, total)))?;
    let cell = |column: &String| if column == total { sum.clone() } else { String::new() };
    Some(columns.iter().map(cell).collect())
}

/// The value of an item in a column.
fn at<'v>(fields: &'v Map<String, Value>, column: &str) -> Option<&'v Value> {
    let by_name = fields.iter().find(|(name, _)| quoted(name) == *column).map(|(_, value)| value);
    // A column in quotes is a single name. The parts of other names could be equal to its text.
    by_name.or_else(|| value_at(fields, column).filter(|_| !column.starts_with('"')))
}

/// The text of a value. A text that begins or ends with a blank is in quotes.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && text.trim() == text => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(items: &Value, columns: &[&str], total: Option<&str>) -> ApprovalTable {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        table("lines", items.as_array().unwrap(), &columns, total).0
    }

    fn rows(table: &ApprovalTable) -> Vec<String> {
        table.rows.iter().map(|row| row.cells.join("|")).collect()
    }

    #[test]
    fn fields_that_are_not_columns_are_in_a_further_column() {
        let items = json!([{"net": 1}, {"menge": 2, "price": {"net": 3, "gross": 4}}, {"x.y": "z", "no": null}]);
        let table = of(&items, &["net", "price.net"], Some("net"));
        assert_eq!(table.columns, ["Net", "Price net", "Other fields"]);
        assert_eq!(
            rows(&table),
            ["1||", r#"|3|{"menge":2,"price.gross":4}"#, r#"||{"\"x.y\"":"z"}"#]
        );
        let table = of(&json!([{"net": 1}]), &["net"], None);
        assert_eq!((table.columns.len(), rows(&table)), (1, vec!["1".to_owned()]));
    }

    #[test]
    fn a_total_is_the_exact_sum_of_a_column_or_absent() {
        let columns = &["text", "net"];
        let table =
            of(&json!([{"text": "a", "net": 0.1}, {"net": 0.2, "tax": 1}]), columns, Some("net"));
        assert_eq!(table.total.unwrap().cells, ["", "0.3", ""]);
        // The sum includes items without a row.
        let many = Value::from(vec![json!({"net": 1}); 250]);
        let table = of(&many, columns, Some("net"));
        assert_eq!(
            (table.rows.len(), table.total.unwrap().cells),
            (200, vec![String::new(), "250".to_owned()])
        );
        for items in [
            json!([]),
            json!([{"net": 1}, {"net": "1"}]),
            json!([{"net": 1}, {}]),
            json!([{"net": 1}, 1]),
        ] {
            assert_eq!(of(&items, columns, Some("net")).total, None, "{items}");
        }
        assert_eq!(of(&json!([{"net": 1}]), columns, None).total, None);
    }

    #[test]
    fn mixed_letters_of_names_and_cells_are_marked() {
        let marked = |items: Value, columns: &[&str]| of(&items, columns, None).mixed_letters;
        assert_eq!(marked(json!([{"text": "N\u{43e}rd"}]), &["text"]), "\u{43e}");
        assert_eq!(marked(json!([{"n\u{435}t": 1}]), &["n\u{435}t"]), "\u{435}");
        assert_eq!(marked(json!([{"n\u{435}t": 1}]), &["text"]), "\u{435}");
        assert_eq!(marked(json!([{"text": "Nord"}]), &["text"]), "");
    }
}

//! The members of the question that distinguish requests of one agent and action in a table.

use std::collections::BTreeSet;

use authority_model::proto::approval::Approval;
use serde_json::Value;

use crate::show::{Amount, Argument, Tell, arguments, short};

/// Members that the table has in a column of its own.
const SHOWN: [&str; 2] = ["context.amount", "context.currency"];
/// The most distinctive member, if it differs.
const FIRST: &str = "resource_id";
const NONE: &str = "not set";

/// The labels that distinguish the requests of a table.
pub(super) struct Labels {
    /// The most distinctive member; `id` if no member differs.
    pub(super) path: String,
    pub(super) rows: Vec<Label>,
}

pub(super) struct Label {
    /// The value of that member.
    pub(super) label: Argument,
    /// Further members that differ, with recipients and reasons first.
    pub(super) differs: Vec<Differs>,
}

pub(super) struct Differs {
    pub(super) tell: Tell,
    /// Whether this request's context has it.
    pub(super) is_of_context: bool,
}

impl Label {
    /// The path of its label in the context, if it is of that.
    pub(super) fn label_in_context(&self) -> Option<&str> {
        self.label.path.strip_prefix("context.").filter(|_| self.label.value != NONE)
    }
}

/// What differs in the requests.
pub(super) fn labels(approvals: &[Approval]) -> Labels {
    let tables: Vec<Vec<Argument>> = approvals
        .iter()
        .map(|approval| approval.request.as_ref().map(|q| arguments(&q.0)).unwrap_or_default())
        .collect();
    let differing = differing(&tables, approvals.iter().all(has_amount));
    let Some(path) = telling(&tables, &differing) else {
        let ids = approvals.iter().map(|approval| Argument::new("id", short(&approval.id).into()));
        let rows = ids.map(|label| Label { label, differs: Vec::new() }).collect();
        return Labels { path: "id".to_owned(), rows };
    };
    let rows = tables.iter().map(|table| Label {
        label: Argument::new(path, value(table, path).unwrap_or_else(|| NONE.to_owned())),
        differs: differing
            .iter()
            .filter(|other| **other != path)
            .map(|path| {
                let value = value(table, path);
                let is_of_context = value.is_some() && path.starts_with("context.");
                let tell = Tell::new(path, value.unwrap_or_else(|| NONE.to_owned()));
                Differs { tell, is_of_context }
            })
            .collect(),
    });
    Labels { rows: rows.collect(), path: path.to_owned() }
}

/// Whether the table's own column has its amount.
fn has_amount(approval: &Approval) -> bool {
    let request = approval.request.as_ref();
    let context = request.and_then(|request| request.0.get("context")).and_then(Value::as_object);
    context.and_then(Amount::of).is_some()
}

fn value(table: &[Argument], path: &str) -> Option<String> {
    table.iter().find(|row| row.path == path).map(|row| row.value.clone())
}

fn values(tables: &[Vec<Argument>], path: &str) -> usize {
    tables.iter().map(|table| value(table, path)).collect::<BTreeSet<_>>().len()
}

/// The paths with different values, with recipients and reasons first.
fn differing(tables: &[Vec<Argument>], has_amounts: bool) -> Vec<&str> {
    let paths: BTreeSet<&str> = tables.iter().flatten().map(|row| row.path.as_str()).collect();
    let mut differing: Vec<&str> = paths
        .into_iter()
        .filter(|path| !(has_amounts && SHOWN.contains(path)))
        .filter(|path| values(tables, path) > 1)
        .collect();
    let place = |path: &str| {
        let tell = Tell::new(path, String::new());
        (!tell.is_to_whom(), !tell.is_document())
    };
    differing.sort_by_key(|path| place(path));
    differing
}

/// The path with the most different values. Paths that name a recipient or a reason and are set in
/// every request have priority, because a missing value has no information.
fn telling<'a>(tables: &[Vec<Argument>], differing: &[&'a str]) -> Option<&'a str> {
    let names = |path: &str| {
        let tell = Tell::new(path, String::new());
        let is_everywhere = || tables.iter().all(|table| value(table, path).is_some());
        (tell.is_to_whom() || tell.is_document()) && is_everywhere()
    };
    let rank = |path: &&&str| (names(path), values(tables, path), **path == FIRST);
    differing.iter().rev().max_by_key(rank).copied()
}

#[cfg(test)]
mod tests {
    use authority_model::wire::Json;
    use serde_json::json;

    use super::*;

    fn of(questions: &[Value]) -> Labels {
        let approval = |question: &Value| Approval {
            id: "svc:approval:01".to_owned(),
            request: question.as_object().cloned().map(Json),
            ..Approval::default()
        };
        let approvals: Vec<_> = questions.iter().map(approval).collect();
        labels(&approvals)
    }

    #[test]
    fn requests_are_told_apart_by_what_differs() {
        let same = json!({"action": "a", "context": {"amount": 1, "to": "x"}});
        let other = json!({"action": "a", "context": {"amount": 2, "to": "y"}});
        let of_resource = json!({"action": "a", "resource_id": "r", "context": {"to": "y"}});
        let values = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
        for (questions, path, shown) in [
            ([&same, &other], "context.to", ["x", "y"]),
            // A member of both requests comes before a resource that only one request names.
            ([&same, &of_resource], "context.to", ["x", "y"]),
            ([&same, &same], "id", ["01", "01"]),
        ] {
            let found = of(&questions.map(Clone::clone));
            let labels: Vec<String> = found.rows.into_iter().map(|row| row.label.value).collect();
            assert_eq!((found.path.as_str(), labels), (path, values(shown)));
        }
        assert_eq!(of(&[]).path, "id");
    }

    #[test]
    fn every_member_that_differs_is_named() {
        let one = json!({"context": {"amount": 5, "invoice": "X-1", "iban": "DE89"}});
        let mut second = one.clone();
        second["context"]["iban"] = json!("DE2");
        let mut third = second.clone();
        third["context"]["attempt"] = json!(2);
        let found = of(&[one, second, third]);
        assert_eq!(found.path, "context.iban");
        let further: Vec<_> = found
            .rows
            .iter()
            .map(|row| {
                let only = &row.differs[0];
                (row.differs.len(), only.tell.path.as_str(), only.tell.value.as_str())
            })
            .collect();
        assert_eq!(
            further,
            [(1, "attempt", "not set"), (1, "attempt", "not set"), (1, "attempt", "2")]
        );
        // Differences of amounts that the column does not show are named as well.
        let odd = |amount| json!({"context": {"amount": amount}});
        assert_eq!(of(&[odd(0.00001), odd(0.00002)]).path, "context.amount");
    }
}

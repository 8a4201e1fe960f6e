//! What tells requests of one agent and action from each other in a table: a member of the question that differs.

use std::collections::BTreeSet;

use authority_model::proto::approval::Approval;

use crate::show::{Argument, arguments, short};

/// Members that the table has in columns of their own.
const SHOWN: [&str; 2] = ["context.amount", "context.currency"];
/// The member that tells best, if it differs.
const FIRST: &str = "resource_id";

/// The path of the member, and its value in each request; the end of the id where no member differs.
pub(super) fn labels(approvals: &[Approval]) -> (String, Vec<Argument>) {
    let tables: Vec<Vec<Argument>> = approvals
        .iter()
        .map(|approval| approval.request.as_ref().map(|q| arguments(&q.0)).unwrap_or_default())
        .collect();
    let Some(path) = telling(&tables) else {
        let ids = approvals.iter().map(|approval| short(&approval.id).to_owned());
        return ("id".to_owned(), ids.map(|id| Argument::new("id", id)).collect());
    };
    let value = |table: &Vec<Argument>| {
        let row = table.iter().find(|row| row.path == path);
        row.map_or_else(|| "not set".to_owned(), |row| row.value.clone())
    };
    let labels = tables.iter().map(|table| Argument::new(path.as_str(), value(table))).collect();
    (path, labels)
}

/// The path with the most values.
fn telling(tables: &[Vec<Argument>]) -> Option<String> {
    let paths: BTreeSet<&str> = tables
        .iter()
        .flatten()
        .map(|row| row.path.as_str())
        .filter(|p| !SHOWN.contains(p))
        .collect();
    let values = |path: &str| {
        let value = |table: &Vec<Argument>| {
            table.iter().find(|row| row.path == path).map(|row| row.value.clone())
        };
        tables.iter().map(value).collect::<BTreeSet<_>>().len()
    };
    let counted = paths.into_iter().map(|path| (values(path), path == FIRST, path));
    let best = counted.max_by_key(|(values, first, _)| (*values, *first))?;
    (best.0 > 1).then(|| best.2.to_owned())
}

#[cfg(test)]
mod tests {
    use authority_model::wire::Json;
    use serde_json::{Value, json};

    use super::*;

    fn of(questions: &[Value]) -> (String, Vec<String>) {
        let approval = |question: &Value| Approval {
            id: "svc:approval:01".to_owned(),
            request: question.as_object().cloned().map(Json),
            ..Approval::default()
        };
        let approvals: Vec<_> = questions.iter().map(approval).collect();
        let (path, labels) = labels(&approvals);
        (path, labels.into_iter().map(|label| label.value).collect())
    }

    #[test]
    fn requests_are_told_apart_by_what_differs() {
        let same = json!({"action": "a", "context": {"amount": 1, "to": "x"}});
        let other = json!({"action": "a", "context": {"amount": 2, "to": "y"}});
        let of_resource = json!({"action": "a", "resource_id": "r", "context": {"to": "y"}});
        let values = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
        for (questions, path, shown) in [
            ([&same, &other], "context.to", ["x", "y"]),
            ([&same, &of_resource], "resource_id", ["not set", "r"]),
            ([&same, &same], "id", ["01", "01"]),
        ] {
            let questions = questions.map(Clone::clone);
            assert_eq!(of(&questions), (path.to_owned(), values(shown)));
        }
        assert_eq!(of(&[]), ("id".to_owned(), Vec::new()));
    }
}

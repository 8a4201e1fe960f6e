//! Checks a tool's input schema on write. It reports faults and the keywords that decisions ignore.

use authority_decision::input_schema::{Checked, check};
use authority_model::{proto::registry::Tool, validate::Violations};
use serde_json::Value;

/// The maximum number of keywords to name in warnings.
const MOST_NAMED: usize = 20;

/// Adds each fault of the schema, with its location.
pub(crate) fn faults(tool: &Tool, found: &mut Violations) {
    for fault in checked(tool).faults {
        let place = format!("input_schema{}", fault.pointer.replace('/', "."));
        found.add(&place, &fault.problem);
    }
}

/// Lists the keywords of the schema that decisions do not check.
pub(crate) fn warnings(tool: &Tool) -> Vec<String> {
    let ignored = checked(tool).ignored;
    let named = ignored.iter().take(MOST_NAMED);
    let mut warnings: Vec<String> =
        named.map(|place| format!("`input_schema{place}` is not checked by decisions")).collect();
    warnings.extend(evaded(tool));
    if let Some(more) = ignored.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        warnings.push(format!("and {more} more keywords of `input_schema` are not checked"));
    }
    warnings
}

/// Warns if a request could evade a bound on the amount by omitting the amount.
fn evaded(tool: &Tool) -> Option<String> {
    let schema = &tool.input_schema.as_ref()?.0;
    let amount = schema.get("properties")?.get("amount")?;
    let bounds = ["maximum", "exclusiveMaximum", "enum", "const"];
    let is_bound = bounds.iter().any(|keyword| amount.get(*keyword).is_some());
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|all| all.iter().any(|name| name == "amount"));
    (is_bound && !is_required).then(|| {
        "`input_schema` bounds `amount` but does not require it: a request may omit it to avoid the bound".to_owned()
    })
}

fn checked(tool: &Tool) -> Checked {
    let schema = tool.input_schema.as_ref().map(|schema| Value::Object(schema.0.clone()));
    schema.map_or_else(Checked::default, |schema| check(&schema))
}

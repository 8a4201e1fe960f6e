//! Checks the values of free-form fields (`google.protobuf.Struct`).
//!
//! The transcoder checks the same rules while it reads JSON. Both checks report the same texts and
//! paths: a problem looks the same over REST and gRPC.

use std::fmt::{self, Display};

use gateway_rest::{BEYOND, NUL};
use serde_json::{Map, Value};

use crate::wire::{Json, NOT_FINITE};

/// The maximum depth of a free-form field, including its own level.
const DEEPEST: usize = 32;
/// From this number on, a double cannot represent every integer.
const BEYOND_EXACT: f64 = 9_007_199_254_740_992.0;

/// A place in a field: a linked list from the leaf up, on the stack.
enum FieldPlace<'a> {
    Field(&'a str),
    Member(&'a FieldPlace<'a>, &'a str),
    Item(&'a FieldPlace<'a>, usize),
}

impl Display for FieldPlace<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => to.write_str(name),
            // A path must not contain U+0000.
            Self::Member(of, name) => write!(to, "{of}.{}", name.replace('\0', "\u{fffd}")),
            Self::Item(of, index) => write!(to, "{of}[{index}]"),
        }
    }
}

/// Reports each problem of the field with its path.
pub(crate) fn check(field: &str, value: &Json, mut report: impl FnMut(&str, String)) {
    let mut checker = Checker {
        report: &mut |place: &FieldPlace<'_>, problem: &str| {
            report(&place.to_string(), problem.to_owned());
        },
    };
    if !checker.members(&FieldPlace::Field(field), &value.0, DEEPEST - 1) {
        report(field, format!("is nested deeper than {DEEPEST} levels"));
    }
}

struct Checker<'a> {
    report: &'a mut dyn FnMut(&FieldPlace<'_>, &str),
}

impl Checker<'_> {
    /// Returns false if a value has more than `left` levels.
    fn members(&mut self, of: &FieldPlace<'_>, members: &Map<String, Value>, left: usize) -> bool {
        members.iter().all(|(name, value)| {
            let place = FieldPlace::Member(of, name);
            if name.contains('\0') {
                (self.report)(&place, NUL);
            }
            self.value(&place, value, left)
        })
    }

    fn value(&mut self, place: &FieldPlace<'_>, value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                left > 0
                    && items
                        .all(|(at, item)| self.value(&FieldPlace::Item(place, at), item, left - 1))
            }
            Value::Object(members) => left > 0 && self.members(place, members, left - 1),
            Value::String(text) => {
                if text == NOT_FINITE {
                    (self.report)(place, "may not contain a number that is not finite");
                } else if text.contains('\0') {
                    (self.report)(place, NUL);
                }
                true
            }
            Value::Number(number) => {
                if number.as_f64().is_none_or(|number| number.abs() >= BEYOND_EXACT) {
                    (self.report)(place, BEYOND);
                }
                true
            }
            Value::Null | Value::Bool(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(value: Value) -> Vec<(String, String)> {
        let Value::Object(members) = value else { panic!("{value} is not an object") };
        let mut found = Vec::new();
        check("context", &Json(members), |field, problem| found.push((field.to_owned(), problem)));
        found
    }

    #[test]
    fn each_problem_has_its_whole_path() {
        let value = json!({
            "amount": 1e300, "inner": {"items": [1, 9_007_199_254_740_992_i64]}, "n\0": "\0",
            "most": 9_007_199_254_740_991_i64, "least": -9_007_199_254_740_991_i64, "nan": NOT_FINITE,
        });
        let found = problems(value);
        let fields: Vec<_> = found.iter().map(|(field, _)| field.as_str()).collect();
        let nul = "context.n\u{fffd}";
        assert_eq!(fields, ["context.amount", "context.inner.items[1]", nul, nul, "context.nan"]);
        assert_eq!(found[0].1, BEYOND);
        assert_eq!(found[1].1, BEYOND);
        assert_eq!(found[2].1, NUL);
    }

    #[test]
    fn a_field_nests_32_levels_with_its_own() {
        let nested = |levels| (1..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(problems(json!({"a": nested(32)})).is_empty());
        let found = problems(json!({"a": nested(33)}));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "context");
    }
}

//! Bounds the cost of a statement before it is evaluated.
//!
//! Almost everything in Cedar takes time proportional to the length of a policy's text, which is
//! bounded. Three operations also depend on the request's values. `like` may compare each character
//! of a text with all characters between two `*` of its pattern. A comparison of two fields walks
//! both. Building a set of fields compares the fields with each other.

use cedar_policy_core::ast::{BinaryOp, Expr, ExprKind, Literal, Pattern, PatternElem};
use serde_json::{Map, Value};

/// The maximum number of characters after a `*` of a pattern, up to the next `*` or the end.
pub(crate) const LONGEST_RUN: u64 = 512;
/// The maximum sum of [`Cost::matching`] over the statements of a policy record.
pub(crate) const MOST_MATCHING: u64 = 4096;
/// The maximum number of steps of a decision's policies: about 20 ms. Policies that could take more
/// are not evaluated, and the request is denied.
pub(crate) const MOST_STEPS: u64 = 16_000_000;
/// The maximum length of names and other texts in records.
const RECORDS_TEXT: u64 = 1024;
/// The number of steps to compare one value.
const VALUE: u64 = 8;
/// The number of bytes of text that take as long to compare as one value.
const BYTES: u64 = 64;

/// The cost of one statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// The steps for each character of the longest text.
    pub(crate) matching: u64,
    /// The maximum number of characters after a `*` of a pattern, up to the next `*` or the end.
    pub(crate) run: u64,
    /// The maximum number of walks over all values of the request.
    walking: u64,
    /// The length of the longest text literal in the statement.
    literal: u64,
}

impl Cost {
    pub(crate) fn of(condition: &Expr) -> Self {
        let mut cost = Self::default();
        for expression in condition.subexpressions() {
            match expression.expr_kind() {
                ExprKind::Like { pattern, .. } => {
                    let run = run(pattern);
                    cost.matching += 1 + run;
                    cost.run = cost.run.max(run);
                }
                ExprKind::BinaryApp { op, arg1, arg2 } if compares(*op) => {
                    let walks = !is_constant(arg1) && !is_constant(arg2);
                    cost.walking += u64::from(walks);
                }
                ExprKind::Set(items) => {
                    let made = items.iter().filter(|item| !is_constant(item)).count();
                    let each = u64::from(made.max(1).ilog2()) + 1;
                    cost.walking += made as u64 * each;
                }
                // Constructors parse a text once.
                ExprKind::ExtensionFunctionApp { args, .. } => {
                    cost.matching += args.iter().filter(|arg| !is_constant(arg)).count() as u64;
                }
                ExprKind::Lit(Literal::String(text)) => {
                    cost.literal = cost.literal.max(text.len() as u64);
                }
                _ => {}
            }
        }
        cost
    }

    /// Returns the steps to evaluate the policy once on the smallest request.
    pub(crate) fn least_steps(self) -> u64 {
        self.steps(&Sizes::LEAST)
    }

    fn steps(self, sizes: &Sizes) -> u64 {
        let matching = self.matching.saturating_mul(sizes.longest.max(self.literal));
        matching.saturating_add(self.walking.saturating_mul(VALUE).saturating_mul(sizes.values))
    }

    /// Returns the cost of this many evaluations.
    pub(crate) fn times(self, times: usize) -> Self {
        let times = times as u64;
        let matching = self.matching.saturating_mul(times);
        let walking = self.walking.saturating_mul(times);
        Self { matching, walking, ..self }
    }
}

/// Returns the maximum number of characters after a `*`, up to the next `*` or the end.
///
/// A match may compare these characters again at each character of the text.
fn run(pattern: &Pattern) -> u64 {
    let wildcard = |element: &PatternElem| matches!(element, PatternElem::Wildcard);
    let after_first = pattern.get_elems().split(wildcard).skip(1);
    after_first.map(<[PatternElem]>::len).max().unwrap_or_default() as u64
}

fn compares(op: BinaryOp) -> bool {
    use BinaryOp::{Contains, ContainsAll, ContainsAny, Eq, In};
    matches!(op, Eq | In | Contains | ContainsAll | ContainsAny)
}

/// Whether the size of the expression does not depend on the request, as for literals and sets of
/// literals.
fn is_constant(expression: &Expr) -> bool {
    match expression.expr_kind() {
        ExprKind::Lit(_) | ExprKind::Var(_) => true,
        ExprKind::Set(items) => items.iter().all(is_constant),
        ExprKind::ExtensionFunctionApp { args, .. } => args.iter().all(is_constant),
        _ => false,
    }
}

/// Whether evaluating statements with these costs might exceed a decision's limit.
///
/// The request is examined only if a cost depends on it.
pub(crate) fn is_too_much(
    costs: impl Iterator<Item = Cost> + Clone,
    context: &Map<String, Value>,
) -> bool {
    if costs.clone().all(|cost| cost.matching == 0 && cost.walking == 0) {
        return false;
    }
    let mut sizes = Sizes::LEAST;
    context.iter().for_each(|(name, value)| sizes.member(name, value));
    costs.map(|cost| cost.steps(&sizes)).fold(0, u64::saturating_add) > MOST_STEPS
}

struct Sizes {
    /// The length of the longest text, in bytes.
    longest: u64,
    /// The number of values. A long text counts as several values.
    values: u64,
}

impl Sizes {
    /// The size of a request without a context.
    const LEAST: Self = Self { longest: RECORDS_TEXT, values: 1 };

    fn member(&mut self, name: &str, value: &Value) {
        self.values += 1 + name.len() as u64 / BYTES;
        self.value(value);
    }

    fn value(&mut self, value: &Value) {
        self.values += 1;
        match value {
            Value::String(text) => {
                let length = text.len() as u64;
                self.longest = self.longest.max(length);
                self.values += length / BYTES;
            }
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(members) => members.iter().for_each(|(name, one)| self.member(name, one)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use cedar_policy_core::parser::parse_policy;
    use serde_json::json;

    use super::*;

    fn cost(condition: &str) -> Cost {
        let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
        Cost::of(&parse_policy(None, &text).unwrap().condition())
    }

    #[test]
    fn the_cost_of_a_pattern_includes_restarts() {
        for (pattern, run) in
            [("abc", 0), ("abc*", 0), ("*abc", 3), ("a*bc*d", 2), ("*", 0), ("*\\**", 1)]
        {
            let found = cost(&format!("context.purpose like \"{pattern}\""));
            assert_eq!((found.matching, found.run), (1 + run, run), "{pattern}");
        }
    }

    #[test]
    fn comparing_with_a_constant_costs_by_the_text_alone() {
        for condition in [
            "context.purpose == \"x\" && [\"a\", \"b\"].contains(context.currency)",
            "context.input.tags.containsAny([\"a\", \"b\"])",
            "context.amount.greaterThan(decimal(\"1.0\"))",
            "principal in [Svc::Team::\"a\", Svc::Team::\"b\"]",
        ] {
            let found = cost(condition);
            assert_eq!((found.walking, found.run), (0, 0), "{condition}");
        }
        assert_eq!(cost("context.input.a == context.input.b").walking, 1);
        assert_eq!(cost("context.input.a.containsAll(context.input.b)").walking, 1);
        assert_eq!(cost("[context.input.a, context.input.b] == context.input.c").walking, 1 + 4);
    }

    #[test]
    fn long_evaluations_are_too_costly() {
        let with = |length: usize| {
            json!({"a": "a".repeat(length), "b": vec![1; length]}).as_object().cloned().unwrap()
        };
        let long = cost(&format!("context.input.a like \"*{}b\"", "a".repeat(500)));
        assert!(!is_too_much([long].into_iter(), &with(20_000)));
        assert!(is_too_much([long].into_iter(), &with(40_000)));
        let short = cost("context.input.a like \"*@example.org\"");
        assert!(!is_too_much([short; 4].into_iter(), &with(250_000)));
        let same = cost("context.input.b == context.input.a");
        assert!(!is_too_much([same; 50].into_iter(), &with(20_000)));
        assert!(is_too_much([same; 500].into_iter(), &with(20_000)));
        assert!(!is_too_much([cost("context.input.b == 1"); 500].into_iter(), &with(200_000)));
    }
}

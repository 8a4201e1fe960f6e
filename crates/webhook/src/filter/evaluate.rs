//! Evaluates a filter on an event.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::expression::{Expression, LiteralValue, Operator, Path};

/// Returns the value of the expression; `None` if evaluation is an error.
pub(super) fn evaluate(expression: &Expression, event: &Value) -> Option<bool> {
    match expression {
        Expression::Any(operands) => joined(operands, event, true),
        Expression::All(operands) => joined(operands, event, false),
        Expression::Not(inner) => evaluate(inner, event).map(|value| !value),
        Expression::Has(path) => has(path, event),
        Expression::Compare { path, operator, literal } => {
            compare(member(path, event)?, *operator, &literal.value)
        }
        Expression::In { path, literals } => {
            let member = member(path, event)?;
            Some(literals.iter().any(|literal| equal(member, &literal.value)))
        }
        Expression::StartsWith { path, text } => {
            Some(member(path, event)?.as_str()?.starts_with(text))
        }
        Expression::EndsWith { path, text } => Some(member(path, event)?.as_str()?.ends_with(text)),
    }
}

/// Evaluates `||` and `&&`. If an operand evaluates to `decisive`, the expression also
/// evaluates to it, regardless of the other operands. Otherwise an error in an operand is an error of the whole
/// expression.
fn joined(operands: &[Expression], event: &Value, decisive: bool) -> Option<bool> {
    let mut error = false;
    for operand in operands {
        match evaluate(operand, event) {
            Some(value) if value == decisive => return Some(decisive),
            Some(_) => {}
            None => error = true,
        }
    }
    (!error).then_some(!decisive)
}

fn member<'a>(path: &Path, event: &'a Value) -> Option<&'a Value> {
    path.names.iter().try_fold(event, |outer, name| outer.as_object()?.get(name))
}

/// Whether the last name of the path is present. If the parent of this name is not an object, the
/// evaluation is an error.
fn has(path: &Path, event: &Value) -> Option<bool> {
    let (last, outer) = path.names.split_last()?;
    let outer = outer.iter().try_fold(event, |outer, name| outer.as_object()?.get(name))?;
    Some(outer.as_object()?.contains_key(last))
}

fn compare(member: &Value, operator: Operator, literal: &LiteralValue) -> Option<bool> {
    match operator {
        Operator::Equal => Some(equal(member, literal)),
        Operator::NotEqual => Some(!equal(member, literal)),
        Operator::Less => Some(ordering(member, literal)?.is_lt()),
        Operator::LessOrEqual => Some(ordering(member, literal)?.is_le()),
        Operator::Greater => Some(ordering(member, literal)?.is_gt()),
        Operator::GreaterOrEqual => Some(ordering(member, literal)?.is_ge()),
    }
}

/// Whether the values are equal. Values of different types are unequal, as in CEL.
fn equal(member: &Value, literal: &LiteralValue) -> bool {
    match (member, literal) {
        (Value::Bool(member), LiteralValue::Boolean(literal)) => member == literal,
        _ => ordering(member, literal) == Some(Ordering::Equal),
    }
}

/// Orders text by code points and numbers by value. Values of different types have no order.
fn ordering(member: &Value, literal: &LiteralValue) -> Option<Ordering> {
    match (member, literal) {
        (Value::String(member), LiteralValue::Text(literal)) => Some(member.as_str().cmp(literal)),
        (Value::Number(member), LiteralValue::Integer(literal)) => number(member, *literal),
        _ => None,
    }
}

fn number(member: &Number, literal: i64) -> Option<Ordering> {
    match (member.as_i64(), member.as_u64()) {
        (Some(member), _) => Some(member.cmp(&literal)),
        // The member is greater than any i64.
        (None, Some(_)) => Some(Ordering::Greater),
        #[expect(clippy::cast_precision_loss, reason = "literals are below 2^53")]
        (None, None) => member.as_f64()?.partial_cmp(&(literal as f64)),
    }
}

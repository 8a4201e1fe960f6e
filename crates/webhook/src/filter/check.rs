//! Checks paths and literals against the event types that a filter is for.

use super::{
    error::FilterError,
    expression::{Expression, Literal, LiteralValue, Operator, Path},
};
use crate::schema::MemberType;

/// The greatest edit distance of a suggested name.
const FARTHEST: usize = 4;

pub(super) fn check(expression: &Expression, types: &[&MemberType]) -> Result<(), FilterError> {
    match expression {
        Expression::Any(operands) | Expression::All(operands) => {
            operands.iter().try_for_each(|operand| check(operand, types))
        }
        Expression::Not(inner) => check(inner, types),
        Expression::Has(path) => members(path, types).map(drop),
        Expression::Compare { path, operator, literal } => {
            let words = matches!(operator, Operator::Equal | Operator::NotEqual);
            compared(path, literal, !words, &members(path, types)?)
        }
        Expression::In { path, literals } => {
            let members = members(path, types)?;
            literals.iter().try_for_each(|literal| compared(path, literal, false, &members))
        }
        Expression::StartsWith { path, .. } | Expression::EndsWith { path, .. } => {
            let text = |member: &&MemberType| matches!(member, MemberType::Text { .. });
            match members(path, types)?.iter().find(|member| !text(member)) {
                None => Ok(()),
                Some(other) => {
                    let problem = format!("`{}` is {}", path.dotted(), kind(other));
                    Err(FilterError::new(path.offset, problem))
                }
            }
        }
    }
}

/// The member's type in each event type that has it.
fn members<'a>(path: &Path, types: &[&'a MemberType]) -> Result<Vec<&'a MemberType>, FilterError> {
    let found: Vec<_> = types.iter().filter_map(|event| event.at(&path.names)).collect();
    if found.is_empty() { Err(unknown(path, types)) } else { Ok(found) }
}

fn unknown(path: &Path, types: &[&MemberType]) -> FilterError {
    let dotted = path.dotted();
    let all: Vec<_> = types.iter().flat_map(|event| event.paths()).collect();
    let near = nearest(&dotted, all.iter().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let problem = format!("no event of the chosen types has a member `{dotted}`{near}");
    FilterError::new(path.offset, problem)
}

fn compared(
    path: &Path,
    literal: &Literal,
    ordered: bool,
    members: &[&MemberType],
) -> Result<(), FilterError> {
    let refuse = |problem: String| Err(FilterError::new(literal.offset, problem));
    let dotted = path.dotted();
    for member in members {
        let fits = match (member, &literal.value) {
            (MemberType::Text { .. }, LiteralValue::Text(_))
            | (MemberType::Integer, LiteralValue::Integer(_)) => true,
            (MemberType::Boolean, LiteralValue::Boolean(_)) => !ordered,
            _ => false,
        };
        if !fits {
            return refuse(format!("`{dotted}` is {}", kind(member)));
        }
    }
    let LiteralValue::Text(text) = &literal.value else { return Ok(()) };
    let words = members.iter().map(|member| match member {
        MemberType::Text { words } => words.as_slice(),
        _ => &[],
    });
    let words: Vec<_> = words.collect();
    // Any text is valid if at least one type permits any text, or if the comparison is by order.
    if ordered || words.iter().any(|words| words.is_empty() || words.contains(text)) {
        return Ok(());
    }
    let near = nearest(text, words.into_iter().flatten().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
    refuse(format!("`{dotted}` is never {text:?}{near}"))
}

fn kind(member: &MemberType) -> &'static str {
    match member {
        MemberType::Text { .. } => "text: compare it with text in quotes",
        MemberType::Integer => "a whole number: compare it with one",
        MemberType::Boolean => "true or false: compare it by == or !=",
        MemberType::List => "a list: only has() applies to it",
        MemberType::Object(_) => "an object: compare a member of it",
    }
}

fn nearest<'a>(text: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = all.map(|one| (strsim::osa_distance(text, one), one));
    distances.min().filter(|(distance, _)| *distance <= FARTHEST).map(|(_, one)| one)
}

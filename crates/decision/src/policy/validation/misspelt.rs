//! Finds misspelt names of actions, context fields and declared input, which are similar to known
//! names.
//!
//! If the text first tests a field with `has`, Cedar does not report a misspelt name, and the
//! statement never matches.

use std::collections::BTreeSet;

use cedar_policy_core::ast::{Expr, ExprKind, Var};

use super::{
    declared::{Declared, is_declared},
    fault::{Fault, Severity},
    input_type::Surroundings,
    known::{Known, Name, NameKind},
    members::{InputType, Members},
    schema,
    uses::{self, Path, Span, action_literals},
};
use crate::pattern::{check_action, prefixes};

/// The maximum edit distance between a misspelt name and a known name.
const SLIPS: usize = 2;

/// Finds unknown actions that are similar to a known action.
pub(super) fn actions(
    conditions: &[Expr],
    surroundings: &Surroundings,
    records: &Known,
) -> Vec<Fault> {
    let is_missing = |name: &str| {
        let is = |kind| records.missing.contains_key(&Name::new(kind, name));
        is(NameKind::Action) || is(NameKind::Actions)
    };
    let granted = records.actions.iter().map(String::as_str);
    let mut known: BTreeSet<&str> = surroundings.actions().chain(granted).collect();
    let prefixes: Vec<_> = known.iter().flat_map(|name| prefixes(name)).collect();
    known.extend(prefixes);
    let is_unknown =
        |name: &str| !known.contains(name) && check_action(name).is_ok() && !is_missing(name);
    let unknown = action_literals(conditions).filter(|(name, _)| is_unknown(name));
    let near = unknown.filter_map(|(name, span)| {
        let (slips, near) = known.iter().map(|one| (slips(one, &name), one)).min()?;
        (slips <= SLIPS).then(|| Fault {
            span,
            severity: Severity::Warning,
            problem: format!("no tool or grant names the action `{name}`"),
            suggestion: Some(format!("did you mean `{near}`?")),
        })
    });
    near.collect()
}

/// Finds `has` tests for impossible fields, or for fields that are similar to a declared one.
pub(super) fn tests(conditions: &[Expr], declared: &Declared) -> Vec<Fault> {
    let mut found = Vec::new();
    for (statement, condition) in conditions.iter().enumerate() {
        for expression in condition.subexpressions() {
            let (of, names): (_, Vec<&str>) = match expression.expr_kind() {
                ExprKind::HasAttr { expr, attr } => (expr, vec![attr.as_str()]),
                ExprKind::ExtHasAttr { expr, attrs } => {
                    (expr, attrs.iter().map(cedar_policy_core::pst::SmolStr::as_str).collect())
                }
                _ => continue,
            };
            let span = uses::span(expression);
            if let ExprKind::Var(var) = of.expr_kind()
                && let Some(name) = names.first().filter(|_| *var != Var::Action)
                && !schema::members(*var).iter().any(|known| known == name)
            {
                found.push(impossible(*var, name, span, declared));
                continue;
            }
            let Some(path) = uses::tested(of, &names) else { continue };
            let Some(mut inputs) = declared.inputs(statement) else { continue };
            if inputs.any(|input| is_declared(input, &path)) {
                continue;
            }
            if let Some(near) = near(declared, &path) {
                found.push(Fault {
                    span,
                    severity: Severity::Warning,
                    problem: format!("`context.input.{}` is not declared", path.join(".")),
                    suggestion: Some(format!("did you mean `{near}`?")),
                });
            }
        }
    }
    found
}

/// Describes a test for a field that the principal, resource or context never has.
fn impossible(var: Var, name: &str, span: Span, declared: &Declared) -> Fault {
    let known = schema::members(var);
    let near = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    let is_input = var == Var::Context && declared.has(name);
    let of_input = || is_input.then(|| format!("context.input has {name}"));
    let meant = near.or_else(of_input);
    Fault {
        span,
        severity: Severity::Warning,
        problem: format!("`{var}` has no member `{name}`: this test is always false"),
        suggestion: meant.map(|meant| format!("did you mean `{meant}`?")),
    }
}

/// Adds a suggestion if the missing field of the context is a field of the input.
pub(super) fn of_input(mut fault: Fault, missing: Option<String>, declared: &Declared) -> Fault {
    let name = missing.filter(|name| declared.has(name));
    if let (Some(name), None) = (name, &fault.suggestion) {
        fault.suggestion = Some(format!("did you mean `context.input.{name}`?"));
    }
    fault
}

/// Returns a declared field of any action that is similar to the last name of a path.
pub(super) fn near(declared: &Declared, path: &Path) -> Option<String> {
    let (name, of) = path.split_last()?;
    let members = declared.actions.values().filter_map(|input| below(input, of));
    let known: BTreeSet<&str> = members.flat_map(Members::keys).map(String::as_str).collect();
    nearest(name, known.into_iter()).map(str::to_owned)
}

/// Returns the fields of the record at this path.
fn below<'a>(input: &'a Members, path: &[String]) -> Option<&'a Members> {
    path.iter().try_fold(input, |members, name| match &members.get(name)?.kind {
        InputType::Record(inner) => Some(inner),
        _ => None,
    })
}

/// Returns the known name that is similar to this one. In short names, most letters must be the
/// same.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = SLIPS.min(name.chars().count().saturating_sub(1) / 2);
    let (distance, near) = known.map(|one| (slips(one, name), one)).min()?;
    (1..=most).contains(&distance).then_some(near)
}

/// Whether the names differ so little that one may be the other, misspelt.
pub(super) fn is_near(one: &str, other: &str) -> bool {
    slips(one, other) <= SLIPS
}

/// Returns the edit distance of two names.
fn slips(one: &str, other: &str) -> usize {
    strsim::osa_distance(one, other)
}

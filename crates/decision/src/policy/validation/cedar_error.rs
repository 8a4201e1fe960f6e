//! Converts the errors of Cedar's parser and validator to faults.

use cedar_policy_core::{
    ast::is_normalized_ident,
    parser::err::{ParseError, ToASTErrorKind},
    validator::{
        ValidationError,
        validation_errors::{AttributeAccess, UnrecognizedActionIdHelp},
    },
};
use miette::Diagnostic;

use super::{
    fault::{Fault, Severity},
    misspelt::is_near,
    uses::Path,
};

/// The suggestion for a comparison of decimals by an operator.
const DECIMALS: &str = "compare decimals by `.greaterThan(decimal(\"1.0\"))`, `.lessThan(…)`, \
                        `.greaterThanOrEqual(…)` or `.lessThanOrEqual(…)`";

/// Returns an error with Cedar's own text and suggestion.
pub(super) fn fault(error: &impl Diagnostic, severity: Severity) -> Fault {
    let label = error.labels().and_then(|mut labels| labels.next());
    let span = label.map_or((0, 0), |label| (label.offset(), label.len()));
    let text = error.to_string();
    // Line and column already identify the statement. Cedar's number is left out.
    let problem = match text.strip_prefix("for policy `").and_then(|rest| rest.split_once("`, ")) {
        Some((_, rest)) => rest.to_owned(),
        None => text,
    };
    Fault { span, severity, problem, suggestion: error.help().map(|help| help.to_string()) }
}

/// Returns an error of the parser.
pub(super) fn of_parser(error: &ParseError) -> Fault {
    let mut fault = fault(error, Severity::Error);
    let ParseError::ToAST(error) = error else { return fault };
    let (name, hint) = match error.kind() {
        ToASTErrorKind::UnknownMethod { id, hint: Some(hint) } => (id.to_string(), hint),
        ToASTErrorKind::UnknownFunction { id, hint: Some(hint) } => (id.to_string(), hint),
        _ => return fault,
    };
    // Cedar's hint has the suggested name in backticks.
    if !hint.split('`').nth(1).is_some_and(|suggested| is_near(suggested, &name)) {
        fault.suggestion = None;
    }
    fault
}

/// Returns an error of the validator. Cedar suggests the nearest name at any distance: a name that
/// is not similar is not suggested.
pub(super) fn of_validator(error: &ValidationError) -> Fault {
    let mut fault = fault(error, Severity::Error);
    let (name, suggested) = match error {
        ValidationError::UnexpectedType(error) => {
            if error.actual.to_string() == "decimal" {
                fault.suggestion = Some(DECIMALS.to_owned());
            }
            return fault;
        }
        ValidationError::UnrecognizedEntityType(error) => {
            (error.actual_entity_type.clone(), error.suggested_entity_type.as_deref())
        }
        ValidationError::UnrecognizedActionId(error) => match &error.hint {
            Some(UnrecognizedActionIdHelp::SuggestAlternative(suggested)) => {
                (error.actual_action_id.clone(), Some(suggested.as_str()))
            }
            _ => return fault,
        },
        ValidationError::UnsafeAttributeAccess(error) => {
            let path = written(&error.attribute_access);
            if matches!(error.attribute_access, AttributeAccess::Context(..)) {
                // The action is left out: the contexts of all actions only differ in `input`.
                fault.problem = format!("attribute `{path}` in context not found");
            }
            (path, error.suggestion.as_deref())
        }
        _ => return fault,
    };
    if suggested.is_some_and(|suggested| !is_near(suggested, &name)) {
        fault.suggestion = None;
    }
    fault
}

/// Returns the path of a field below `context.input`, from the outermost field.
pub(super) fn input_path(access: &AttributeAccess) -> Option<Path> {
    let AttributeAccess::Context(..) = access else { return None };
    let mut names = names(access);
    (!names.is_empty() && names.remove(0) == "input").then_some(names)
}

/// Returns the name of a field of the context itself.
pub(super) fn context_member(access: &AttributeAccess) -> Option<String> {
    let AttributeAccess::Context(..) = access else { return None };
    <[String; 1]>::try_from(names(access)).ok().map(|[name]| name)
}

/// Returns the test for a field's presence, as Cedar suggests it: `context.input has iban`.
pub(super) fn presence_test(access: &AttributeAccess) -> String {
    let is_of_context = matches!(access, AttributeAccess::Context(..));
    let mut test = if is_of_context { "context" } else { "e" }.to_owned();
    let mut names = names(access);
    let name = names.pop().unwrap_or_default();
    for name in names {
        test += &member(&name, true);
    }
    let name =
        if is_normalized_ident(&name) { name } else { format!("\"{}\"", name.escape_debug()) };
    format!("{test} has {name}")
}

/// Returns a path as it is written in a policy: `input.iban`.
fn written(access: &AttributeAccess) -> String {
    let names = names(access).into_iter().enumerate();
    names.map(|(index, name)| member(&name, index != 0)).collect()
}

fn member(name: &str, has_dot: bool) -> String {
    match (is_normalized_ident(name), has_dot) {
        (true, true) => format!(".{name}"),
        (true, false) => name.to_owned(),
        (false, _) => format!("[\"{}\"]", name.escape_debug()),
    }
}

/// Returns the names of the fields that are read, from the outermost.
fn names(access: &AttributeAccess) -> Vec<String> {
    // Cedar has the innermost field first.
    match access {
        AttributeAccess::EntityLUB(_, names)
        | AttributeAccess::Context(_, names)
        | AttributeAccess::Other(names) => names.iter().rev().map(ToString::to_string).collect(),
    }
}

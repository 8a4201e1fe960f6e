//! Checks a policy's text strictly, with Cedar's own validator, against the tenant's declarations
//! of actions and their input.
//!
//! All problems are found at once, each with its position. A problem that may be intended is a
//! warning: an undeclared field of `context.input` that the text reads without `has`, or uses in
//! two ways.

mod absence;
mod agreement;
mod cedar_error;
mod declared;
mod fault;
mod input_type;
mod known;
mod members;
mod misspelt;
mod names;
mod place;
mod schema;
mod scopes;
mod unguarded;
mod uses;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use authority_ids::EntityRef;
use cedar_policy_core::{
    ast::{Expr, Policy, PolicySet},
    extensions::Extensions,
    parser::{err::ParseErrors, parse_policyset},
    validator::{
        ValidationError, ValidationMode, Validator, ValidatorSchema,
        validation_errors::AttributeAccess,
    },
};

pub use self::agreement::Agreement;
pub use self::fault::Severity;
pub use self::input_type::{ContextSchema, Surroundings, ToolInput, typed, typed_by_mcp};
pub use self::known::{Known, Name, NameKind};
pub use self::members::{InputType, Member, Members};
pub use self::misspelt::nearest;
use self::{
    declared::{Declared, is_declared},
    fault::Fault,
    unguarded::{as_unless, unguarded},
    uses::{Path, Span, Uses, action_literals},
};
use super::{
    compiled::CompiledPolicy,
    error::{PolicyError, position},
    stack,
    statement::{Effect, Statement},
    text::split,
};

/// The maximum number of findings to report.
const MOST: usize = 50;
/// The id of a statement without `@id`, as in the check's texts.
const UNNAMED: &str = "policy";
/// The maximum length of a finding's text, in characters.
const LONGEST: usize = 400;

/// A problem of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    pub severity: Severity,
    /// Whether the finding is only a problem because of the tenant's declarations.
    pub by_schema: bool,
    pub problem: String,
    /// The suggested replacement, if known.
    pub suggestion: Option<String>,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "line {}, column {}: {}", self.line, self.column, self.problem)?;
        self.suggestion.as_ref().map_or(Ok(()), |suggestion| write!(to, "; {suggestion}"))
    }
}

impl From<PolicyError> for Finding {
    fn from(error: PolicyError) -> Self {
        let PolicyError { line, column, problem } = error;
        let severity = Severity::Error;
        Self { line, column, severity, by_schema: false, problem, suggestion: None }
    }
}

/// Returns the names in a text that a tenant may lack. Empty if the text can't be read.
pub fn named(text: &str) -> BTreeSet<Name> {
    // A text that can't be split may be too deep to parse.
    if split(text).is_err() {
        return BTreeSet::new();
    }
    stack::for_parsing(|| {
        let set = parse_policyset(text);
        set.map(|set| names::named(&conditions(&set))).unwrap_or_default()
    })
}

/// Returns the statements, by index, that use a word outside its closed set, such as a country
/// `UK`.
///
/// Use it for policies that were stored before such texts were refused.
pub fn misplaced(policy: &CompiledPolicy) -> Vec<(usize, String)> {
    let of = |statement: &Statement| {
        let faults = names::misplaced(std::slice::from_ref(statement.condition()));
        let ordinal = statement.ordinal;
        faults.into_iter().map(move |fault| (ordinal, fault.problem)).collect::<Vec<_>>()
    };
    policy.all().iter().flat_map(of).collect()
}

/// Returns all problems of the text, by position.
pub fn validate(text: &str, surroundings: &Surroundings, known: &Known) -> Vec<Finding> {
    let spans = match split(text) {
        Ok(spans) => spans,
        Err(error) => return vec![error.into()],
    };
    let mut found = stack::for_parsing(|| Check::of(text, spans, surroundings, known));
    // If there are too many findings, warnings are dropped first.
    found.sort_by_key(|one| (one.severity, one.line, one.column));
    found.truncate(MOST);
    found.sort_by(|one, other| {
        let order = |one: &Finding| (one.line, one.column, one.severity);
        order(one).cmp(&order(other)).then_with(|| one.problem.cmp(&other.problem))
    });
    found.dedup();
    found
}

/// A parsed text.
struct Check<'a> {
    text: &'a str,
    spans: Vec<Range<usize>>,
    declared: Declared,
    uses: Uses,
}

impl<'a> Check<'a> {
    fn of(
        text: &'a str,
        spans: Vec<Range<usize>>,
        surroundings: &Surroundings,
        known: &Known,
    ) -> Vec<Finding> {
        let set = match parse_policyset(text) {
            Ok(set) => set,
            Err(errors) => return parse_errors(text, &errors),
        };
        let mut found = Vec::new();
        if let Err(error) = CompiledPolicy::count(text, &spans, &set) {
            return vec![error.into()];
        }
        let unnamed = EntityRef::from(UNNAMED);
        let mut unknown_types = Vec::new();
        let compiled = spans.iter().enumerate().map(|(ordinal, span)| {
            let statement = Statement::compile(&unnamed, ordinal, text, span.clone());
            let faults = statement.map_err(|faults| {
                for fault in faults {
                    let of = if fault.unknown_type { &mut unknown_types } else { &mut found };
                    of.push(Finding::from(fault.error(text)));
                }
            });
            faults.ok()
        });
        let statements: Vec<_> = compiled.collect();
        found.extend(
            CompiledPolicy::refusals(text, &spans, statements.iter().flatten()).map(Finding::from),
        );
        let conditions = conditions(&set);
        let actions = schema::actions(&named_actions(&conditions), surroundings);
        let uses = Uses::of(conditions.iter());
        let check = Self { text, spans, declared: Declared { actions, statements }, uses };
        let (faults, has_unknown_types) = check.faults(&set);
        // Cedar's errors on entity types have a better position than the errors of the statement's
        // own check.
        if !has_unknown_types {
            found.extend(unknown_types);
        }
        let misplaced = names::misplaced(&conditions).into_iter();
        let misplaced = misplaced.chain(names::renewed(&conditions, known));
        let misplaced = misplaced.map(|fault| Finding { by_schema: false, ..check.finding(fault) });
        found.extend(misplaced);
        found.extend(check.escapes(&conditions, known).map(|fault| check.finding(fault)));
        let near = misspelt::actions(&conditions, surroundings, known);
        let unknown = names::unknown(&conditions, known).into_iter().chain(near);
        let tests = misspelt::tests(&conditions, &check.declared);
        let all = faults.into_iter().chain(check.disagreements()).chain(unknown).chain(tests);
        let all = all.chain(check.doubled());
        found.extend(all.map(|fault| check.finding(fault)));
        found
    }

    /// Returns the fields that a request may omit to evade a forbid.
    fn escapes<'b>(
        &'b self,
        conditions: &'b [Expr],
        known: &'b Known,
    ) -> impl Iterator<Item = Fault> + 'b {
        let each = conditions.iter().enumerate();
        each.filter(|(place, _)| self.forbids(*place)).flat_map(move |(_, condition)| {
            let scopes = scopes::action_scopes(condition);
            absence::escapes(condition, |member| {
                scopes.iter().any(|scope| known.requires(scope, member))
                    || member.input().is_some_and(|path| self.declared.requires(&scopes, path))
            })
        })
    }

    fn forbids(&self, statement: usize) -> bool {
        let statement = self.declared.statements.get(statement).and_then(Option::as_ref);
        statement.is_some_and(|one| one.effect != Effect::Permit)
    }

    fn finding(&self, fault: Fault) -> Finding {
        let (line, column) = position(self.text, fault.span.0);
        let Fault { severity, problem, suggestion, .. } = fault;
        let problem = shortened(problem);
        Finding { line, column, severity, by_schema: true, problem, suggestion }
    }

    /// Returns the findings of Cedar's validator that occur whatever types are chosen for the
    /// fields with several uses, and whether the text has unknown entity types.
    fn faults(&self, set: &PolicySet) -> (Vec<Fault>, bool) {
        let mut kept: Option<BTreeMap<(Span, String), Fault>> = None;
        let mut has_unknown_types = false;
        for way in 0..self.uses.ways() {
            let (found, is_unknown) = self.validated(set, way);
            has_unknown_types |= is_unknown;
            let places: BTreeSet<Span> = found.iter().map(|fault| fault.span).collect();
            kept = Some(match kept {
                None => {
                    found.into_iter().map(|one| ((one.span, one.problem.clone()), one)).collect()
                }
                Some(mut kept) => {
                    kept.retain(|(span, _), _| places.contains(span));
                    kept
                }
            });
        }
        (kept.unwrap_or_default().into_values().collect(), has_unknown_types)
    }

    fn validated(&self, set: &PolicySet, way: usize) -> (Vec<Fault>, bool) {
        let json = schema::schema(&self.declared.actions, &self.uses.members(way));
        let schema = match ValidatorSchema::from_json_value(json, Extensions::all_available()) {
            Ok(schema) => schema,
            Err(error) => {
                let problem = format!("the declared input types are not a Cedar schema: {error}");
                let severity = Severity::Error;
                let fault = Fault { span: (0, 0), severity, problem, suggestion: None };
                return (vec![fault], false);
            }
        };
        let result = Validator::new(schema).validate(set, ValidationMode::Strict);
        let mut has_unknown_types = false;
        let errors = result.validation_errors().map(|error| {
            has_unknown_types |= matches!(error, ValidationError::UnrecognizedEntityType(_));
            let fault = cedar_error::of_validator(error);
            let access = match error {
                ValidationError::UnsafeOptionalAttributeAccess(error) => &error.attribute_access,
                ValidationError::UnsafeAttributeAccess(error) => {
                    let missing = cedar_error::context_member(&error.attribute_access);
                    return misspelt::of_input(fault, missing, &self.declared);
                }
                _ => return fault,
            };
            let forbids =
                self.statement_at(fault.span).is_some_and(|statement| self.forbids(statement));
            match self.undeclared_at(fault.span, access) {
                Some(path) => unguarded(fault, path, misspelt::near(&self.declared, path), forbids),
                None if forbids => as_unless(fault, access),
                None => fault,
            }
        });
        let mut found: Vec<_> = errors.collect();
        let wrong: BTreeSet<_> = found.iter().map(|one| self.statement_at(one.span)).collect();
        // Drops Cedar's warning that a statement with an error can never match.
        let warnings = result.validation_warnings();
        let warnings = warnings.map(|one| cedar_error::fault(one, Severity::Warning));
        found.extend(warnings.filter(|one| !wrong.contains(&self.statement_at(one.span))));
        (found, has_unknown_types)
    }

    fn statement_at(&self, span: Span) -> Option<usize> {
        self.spans.iter().position(|one| one.contains(&span.0))
    }

    /// Returns the path of the input field that is read here, if it is undeclared for the
    /// statement's actions.
    fn undeclared_at(&self, span: Span, access: &AttributeAccess) -> Option<&Path> {
        let read = self.uses.0.iter().filter(|(_, one)| one.reads.contains(&span));
        // `input.a` and `input.a.b` are read at the same position. Cedar's error has the field.
        let accessed = cedar_error::input_path(access);
        let is_named = |path: &Path| accessed.as_ref() == Some(path);
        let (path, _) = read.max_by_key(|(path, _)| (is_named(path), path.len()))?;
        let statement = self.statement_at(span)?;
        let mut inputs = self.declared.inputs(statement)?;
        inputs.all(|input| !is_declared(input, path)).then_some(path)
    }

    /// Returns the statements with the `@id` of an earlier one.
    fn doubled(&self) -> impl Iterator<Item = Fault> {
        let mut seen = BTreeSet::new();
        let named = self.declared.statements.iter().flatten().filter(|one| one.id != UNNAMED);
        let doubled = named.filter(move |one| !seen.insert(one.id.as_str()));
        doubled.map(|one| Fault {
            span: self.spans.get(one.ordinal).map_or((0, 0), |span| (span.start, 0)),
            severity: Severity::Warning,
            problem: format!(
                "an earlier statement has the `@id` `{}`; traces and approvals show both by it",
                one.id
            ),
            suggestion: Some("give each statement an `@id` of its own".to_owned()),
        })
    }

    fn disagreements(&self) -> impl Iterator<Item = Fault> {
        let undeclared =
            |path: &Path| self.declared.actions.values().any(|input| !is_declared(input, path));
        let several =
            self.uses.0.iter().filter(move |(path, one)| one.types.len() > 1 && undeclared(path));
        several.map(|(path, one)| {
            let places = one.types.iter().map(|(kind, span)| {
                let (line, column) = position(self.text, span.0);
                format!("as {} at line {line}, column {column}", described(kind))
            });
            let places: Vec<_> = places.collect();
            let name = format!("context.input.{}", path.join("."));
            Fault {
                span: one.types.get(1).map_or((0, 0), |(_, span)| *span),
                severity: Severity::Warning,
                problem: format!(
                    "`{name}` is used {}; one use cannot be evaluated and denies as rule_error",
                    places.join(", and ")
                ),
                suggestion: Some("declare it in the tenant's `context_schema`".to_owned()),
            }
        })
    }
}

fn described(kind: &InputType) -> String {
    match kind {
        InputType::Boolean => "a boolean".to_owned(),
        InputType::Integer => "a whole number".to_owned(),
        InputType::Decimal => "a decimal".to_owned(),
        InputType::String => "a text".to_owned(),
        InputType::Set(_) => "a set".to_owned(),
        InputType::Record(_) => "a record".to_owned(),
    }
}

fn parse_errors(text: &str, errors: &ParseErrors) -> Vec<Finding> {
    let found = errors.iter().map(|error| {
        let Fault { span, problem, suggestion, .. } = cedar_error::of_parser(error);
        let (line, column) = position(text, span.0);
        let (severity, problem) = (Severity::Error, shortened(problem));
        Finding { line, column, severity, by_schema: false, problem, suggestion }
    });
    found.collect()
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Returns the statements' conditions, including scopes, in order.
fn conditions(set: &PolicySet) -> Vec<Expr> {
    let number = |policy: &Policy| {
        let id: &str = policy.id().as_ref();
        id.trim_start_matches("policy").parse::<usize>().unwrap_or(usize::MAX)
    };
    let mut policies: Vec<_> = set.policies().collect();
    policies.sort_by_key(|policy| number(policy));
    policies.iter().map(|policy| policy.condition()).collect()
}

fn named_actions(conditions: &[Expr]) -> BTreeSet<String> {
    action_literals(conditions).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests;

//! Policy records: Cedar text, checked on write and compiled once.
//!
//! A record's text has one or more statements. Each becomes a separate [`Statement`]: only
//! statements that can match an action are evaluated.

use std::{ops::Range, sync::Arc};

use authority_ids::EntityRef;
use cedar_policy_core::{
    ast::PolicySet,
    parser::{err::ParseErrors, parse_policyset},
};
use miette::Diagnostic;
use serde::{Deserialize, Serialize, Serializer};

use super::{
    cost::{LONGEST_RUN, MOST_MATCHING},
    error::PolicyError,
    stack,
    statement::{ActionScope, Statement, StatementFault},
    target::{Aspects, Target},
    text::split,
};
use crate::moment::Window;

/// A policy record without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyReference {
    pub id: EntityRef,
    pub version: i64,
    /// Lower-case hex SHA-256 of the Cedar text.
    pub sha256: String,
    /// The policy's applies-to rows. Without any, the policy applies everywhere.
    pub applies_to: Vec<Target>,
    pub effective: Window,
}

/// A policy record that is ready for evaluation.
#[derive(Debug)]
pub struct CompiledPolicy {
    pub reference: PolicyReference,
    statements: Arc<[Statement]>,
}

impl CompiledPolicy {
    /// Checks and compiles a record's text.
    ///
    /// # Errors
    /// Syntax errors, templates, unknown entity types or annotations, and misplaced annotations,
    /// with the position in the text.
    pub fn compile(reference: PolicyReference, text: &str) -> Result<Self, PolicyError> {
        let spans = split(text)?;
        stack::for_parsing(|| Self::parse(reference, text, &spans))
    }

    /// Returns a record with an unreadable text. It has no statements, unlike all records that
    /// [`Self::compile`] returns.
    pub(crate) fn unreadable(reference: PolicyReference) -> Self {
        Self { reference, statements: Arc::default() }
    }

    /// Whether the record's text could be read.
    pub(crate) fn is_readable(&self) -> bool {
        !self.statements.is_empty()
    }

    /// Compiles on the caller's stack. [`Self::compile`] ensures that the stack is large enough.
    pub(crate) fn parse(
        reference: PolicyReference,
        text: &str,
        spans: &[Range<usize>],
    ) -> Result<Self, PolicyError> {
        let set = parse_policyset(text).map_err(|why| parse_error(text, &why))?;
        Self::count(text, spans, &set)?;
        let statements = spans.iter().enumerate().map(|(ordinal, span)| {
            let compiled = Statement::compile(&reference.id, ordinal, text, span.clone());
            let first = |faults: Vec<StatementFault>| faults.into_iter().next();
            compiled.map_err(|faults| first(faults).map_or_else(unexplained, |one| one.error(text)))
        });
        let statements = statements.collect::<Result<_, _>>()?;
        Ok(Self { reference, statements })
    }

    /// Checks that Cedar parses as many statements as `spans` has.
    pub(crate) fn count(
        text: &str,
        spans: &[Range<usize>],
        set: &PolicySet,
    ) -> Result<(), PolicyError> {
        let known = set.policies().count() + set.templates().count();
        if spans.is_empty() {
            return Err(PolicyError::at(text, 0, "the policy has no statement"));
        }
        if spans.len() != known {
            return Err(PolicyError::at(text, 0, "the statements cannot be separated"));
        }
        Ok(())
    }

    /// Checks and compiles a text that will be stored, or evaluated as if it were stored.
    ///
    /// # Errors
    /// The errors of [`Self::compile`]. Also if the patterns would cost more than a decision may,
    /// or if a statement can never have its apparent meaning.
    pub fn check(reference: PolicyReference, text: &str) -> Result<Self, PolicyError> {
        let compiled = Self::compile(reference, text)?;
        let spans = split(text)?;
        if let Some(fault) = Self::refusals(text, &spans, compiled.statements.iter()).next() {
            return Err(fault);
        }
        Ok(compiled)
    }

    /// Returns the statements that can never have their apparent meaning, by index, with the
    /// reason.
    pub fn faulty(&self) -> impl Iterator<Item = (usize, &str)> {
        let faulty = |s: &'_ Statement| s.fault.is_some();
        let statements = self.statements.iter().filter(move |statement| faulty(statement));
        statements.map(|s| (s.ordinal, s.fault.as_deref().unwrap_or_default()))
    }

    /// Returns the statements that are refused only on write.
    ///
    /// These statements can never have their apparent meaning, or their patterns would cost more
    /// than a decision may.
    pub(crate) fn refusals<'a>(
        text: &'a str,
        spans: &'a [Range<usize>],
        statements: impl Iterator<Item = &'a Statement> + 'a,
    ) -> impl Iterator<Item = PolicyError> + 'a {
        let mut matching = 0;
        statements.filter_map(move |statement| {
            matching += statement.cost.matching;
            let problem = if let Some(fault) = &statement.fault {
                fault.clone()
            } else if statement.cost.run > LONGEST_RUN {
                format!("a pattern of `like` has over {LONGEST_RUN} characters on end behind a `*`")
            } else if matching > MOST_MATCHING {
                format!("the patterns of `like` have over {MOST_MATCHING} characters behind a `*`")
            } else {
                return None;
            };
            let start = spans.get(statement.ordinal).map_or(0, |span| span.start);
            Some(PolicyError::at(text, start, problem))
        })
    }

    /// Returns the same record and text with other applies-to rows or times, without compiling
    /// again.
    #[must_use]
    pub fn applied_to(&self, applies_to: Vec<Target>, effective: Window) -> Self {
        let reference = PolicyReference { applies_to, effective, ..self.reference.clone() };
        Self { reference, statements: self.statements.clone() }
    }

    /// Whether any of the record's applies-to rows matches. Always true without rows.
    pub fn applies(&self, aspects: &Aspects<'_>) -> bool {
        let rows = &self.reference.applies_to;
        rows.is_empty() || rows.iter().any(|target| target.matches(aspects))
    }

    /// Returns the statements with an action constraint that admits the action.
    pub fn statements(&self, action: &str) -> impl Iterator<Item = &Statement> {
        self.statements.iter().filter(move |statement| statement.action.admits(action))
    }

    /// Returns the statements, in order.
    pub(crate) fn all(&self) -> &[Statement] {
        &self.statements
    }

    /// Returns the action constraint of each statement.
    pub(crate) fn each_scope(&self) -> impl Iterator<Item = &ActionScope> {
        self.statements.iter().map(|statement| &statement.action)
    }

    /// Returns the steps to evaluate all statements on the smallest request; `None` if the policy
    /// costs no steps.
    pub(crate) fn least_steps(&self) -> Option<u64> {
        let each = self.statements.iter().map(|statement| statement.cost.least_steps());
        Some(each.fold(0, u64::saturating_add)).filter(|steps| *steps > 0)
    }

    /// Returns the action constraints of all statements; `None` if a statement has no constraint.
    pub(crate) fn scopes(&self) -> Option<Vec<&ActionScope>> {
        let scope = |s: &'_ Statement| !matches!(s.action, ActionScope::Any);
        self.statements
            .iter()
            .all(scope)
            .then(|| self.statements.iter().map(|statement| &statement.action).collect())
    }
}

impl PartialEq for CompiledPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.reference == other.reference
    }
}

/// Serialises the reference. The text is stored once, under its digest.
impl Serialize for CompiledPolicy {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.reference.serialize(to)
    }
}

fn unexplained() -> PolicyError {
    PolicyError { line: 1, column: 1, problem: "the statement cannot be compiled".to_owned() }
}

fn parse_error(text: &str, errors: &ParseErrors) -> PolicyError {
    let first = errors.first();
    let label = first.labels().and_then(|mut labels| labels.next());
    PolicyError::at(text, label.map_or(0, |label| label.offset()), first.to_string())
}

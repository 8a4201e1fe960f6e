//! Policy records: Cedar text checked on write and compiled once.
//!
//! A record's text holds one statement or more; each becomes a [`Statement`] of its own, so that
//! only those that can match an action are evaluated.

use std::{str::FromStr, sync::Arc};

use cedar_policy::{ParseErrors, PolicySet};
use miette::Diagnostic;
use serde::{Deserialize, Serialize, Serializer};

use super::{
    moment::Window,
    policy_text::split,
    statement::{ActionScope, Statement},
    target::{Aspects, Target},
};

/// What a policy record is, without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyReference {
    pub id: String,
    pub version: i64,
    /// Lower-case hex SHA-256 of the Cedar text.
    pub sha256: String,
    /// Its applies-to rows; none: everywhere.
    pub applies_to: Vec<Target>,
    pub effective: Window,
}

/// Why a policy's text is refused: `line` and `column` count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct PolicyError {
    pub line: usize,
    pub column: usize,
    pub problem: String,
}

impl PolicyError {
    pub(super) fn at(text: &str, offset: usize, problem: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self { line, column, problem: problem.into() }
    }
}

/// A policy record ready to be evaluated.
#[derive(Debug)]
pub struct CompiledPolicy {
    pub reference: PolicyReference,
    statements: Arc<[Statement]>,
}

impl CompiledPolicy {
    /// Checks and compiles a record's text.
    ///
    /// # Errors
    /// Syntax, templates, unknown entity types or annotations, annotations out of place; with the
    /// place in the text.
    pub fn compile(reference: PolicyReference, text: &str) -> Result<Self, PolicyError> {
        let spans = split(text)?;
        let set = PolicySet::from_str(text).map_err(|why| parse_error(text, &why))?;
        let known = set.num_of_policies() + set.num_of_templates();
        if spans.is_empty() {
            return Err(PolicyError::at(text, 0, "the policy has no statement"));
        }
        if spans.len() != known {
            return Err(PolicyError::at(text, 0, "the statements cannot be told apart"));
        }
        let statements = spans
            .iter()
            .enumerate()
            .map(|(ordinal, span)| Statement::compile(&reference.id, ordinal, text, span.clone()))
            .collect::<Result<_, _>>()?;
        Ok(Self { reference, statements })
    }

    /// The same record and text with other applies-to rows or times: nothing is compiled anew.
    #[must_use]
    pub fn applied_to(&self, applies_to: Vec<Target>, effective: Window) -> Self {
        let reference = PolicyReference { applies_to, effective, ..self.reference.clone() };
        Self { reference, statements: self.statements.clone() }
    }

    /// Whether one of the record's applies-to rows matches; no row: everywhere.
    pub fn applies(&self, aspects: &Aspects<'_>) -> bool {
        let rows = &self.reference.applies_to;
        rows.is_empty() || rows.iter().any(|target| target.matches(aspects))
    }

    /// The statements whose own action constraint admits the action.
    pub fn statements(&self, action: &str) -> impl Iterator<Item = &Statement> {
        self.statements.iter().filter(move |statement| statement.action.admits(action))
    }

    /// The action constraints of all statements; none where a statement is without.
    pub(super) fn scopes(&self) -> Option<Vec<&ActionScope>> {
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

/// As its reference: the text is stored once, by its digest.
impl Serialize for CompiledPolicy {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.reference.serialize(to)
    }
}

fn parse_error(text: &str, errors: &ParseErrors) -> PolicyError {
    let first = errors.iter().next();
    let offset = first
        .and_then(Diagnostic::labels)
        .and_then(|mut labels| labels.next())
        .map_or(0, |label| label.offset());
    let problem = first.map_or_else(|| errors.to_string(), ToString::to_string);
    PolicyError::at(text, offset, problem)
}

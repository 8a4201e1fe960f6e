//! The check of a text: its validity and its effect.

use authority_model::proto::registry::{Policy, PolicyProblem, ValidatePolicyRequest};

use super::impact::{self, Impact};
use crate::kit::prelude::*;

/// The result of checking a text.
#[derive(Default)]
pub(super) struct Trial {
    /// Whether it was checked.
    pub(super) checked: bool,
    pub(super) problems: Vec<Fault>,
    pub(super) warnings: Vec<Fault>,
    /// `None` if it was not run: it is invalid, or a run was not requested.
    pub(super) impact: Option<Impact>,
}

/// A problem of a text, with its place.
pub(super) struct Fault {
    /// `Line 3, column 7`; empty without a position.
    pub(super) place: String,
    pub(super) problem: String,
    pub(super) suggestion: Option<String>,
    /// The number of the line, and the line itself.
    pub(super) line: Option<i32>,
    pub(super) source: Option<String>,
}

impl Fault {
    /// The problem, with its line of this text.
    pub(super) fn of(found: &PolicyProblem, cedar: &str) -> Self {
        let (line, column) = (found.line.unwrap_or_default(), found.column.unwrap_or_default());
        let index = usize::try_from(line).ok().and_then(|line| line.checked_sub(1));
        Self {
            place: match (line, column) {
                (0, _) => String::new(),
                (line, 0) => t::policies::line(line),
                (line, column) => t::policies::line_column(line, column),
            },
            line: found.line,
            source: index.and_then(|index| cedar.lines().nth(index)).map(str::to_owned),
            problem: found.summary.clone(),
            suggestion: found.suggestion.clone(),
        }
    }

    pub(super) fn all(found: &[PolicyProblem], cedar: &str) -> Vec<Self> {
        found.iter().map(|problem| Self::of(problem, cedar)).collect()
    }
}

impl Trial {
    /// Checks the text if the role may do so, and runs it if it is valid.
    ///
    /// # Errors
    /// The errors of the operations.
    pub(super) async fn of(view: &View, policy: &Policy, cedar: &str) -> Result<Self, Status> {
        let mut trial = Self::checked(view, policy, cedar).await?;
        if trial.problems.is_empty() {
            trial.impact = Some(impact::run(view, policy, cedar).await?);
        }
        Ok(trial)
    }

    /// Checks the text against the declarations of the policy's tenant. The result is empty if the
    /// role may not check texts.
    ///
    /// # Errors
    /// The errors of the operation.
    pub(super) async fn checked(view: &View, policy: &Policy, cedar: &str) -> Result<Self, Status> {
        if !view.may(rpc::VALIDATE_POLICY) {
            return Ok(Self::default());
        }
        let request = ValidatePolicyRequest {
            cedar: Some(cedar.to_owned()),
            target_class: None,
            tenant_id: Some(policy.tenant_id.clone()),
        };
        let found = view.calls.call(&request).await?;
        Ok(Self {
            checked: true,
            problems: Fault::all(&found.problems, cedar),
            warnings: Fault::all(&found.warnings, cedar),
            impact: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_has_its_place_once_and_its_line() {
        let found = PolicyProblem {
            field: "cedar".to_owned(),
            problem: "line 2, column 8: unknown name `contexx`; did you mean `context`?".to_owned(),
            line: Some(2),
            column: Some(8),
            suggestion: Some("did you mean `context`?".to_owned()),
            summary: "unknown name `contexx`".to_owned(),
        };
        let fault = Fault::of(&found, "forbid (principal, action, resource)\nwhen { contexx };");
        assert_eq!(fault.place, "Line 2, column 8");
        assert_eq!(fault.problem, "unknown name `contexx`");
        assert_eq!((fault.line, fault.source.as_deref()), (Some(2), Some("when { contexx };")));
        let elsewhere =
            PolicyProblem { summary: "is empty".to_owned(), ..PolicyProblem::default() };
        let fault = Fault::of(&elsewhere, "");
        assert_eq!((fault.place.as_str(), fault.problem.as_str()), ("", "is empty"));
        assert!(fault.source.is_none());
    }
}

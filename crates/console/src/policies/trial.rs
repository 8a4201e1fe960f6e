//! What a text would do: whether it is valid, and which of the tenant's last decisions it would change.

use authority_model::proto::{
    registry::{Policy, PolicyProblem, ValidatePolicyRequest, ValidatePolicyResponse},
    runtime::{CandidatePolicy, ImpactPoliciesRequest, ImpactPoliciesResponse, Outcome},
};
use tonic::Status;

use crate::{
    rpc,
    show::{Moment, counted, short},
    text,
    view::View,
};

/// How many of the newest decisions a text is run against.
pub(super) const LAST: i32 = 200;

/// What was found out about a text.
#[derive(Default)]
pub(super) struct Trial {
    /// Whether it was checked.
    pub(super) checked: bool,
    pub(super) problems: Vec<Fault>,
    pub(super) warnings: Vec<Fault>,
    /// `None` if it was not run: it is not valid, or nobody asked.
    pub(super) impact: Option<Impact>,
}

/// A problem of a text, with its place.
pub(super) struct Fault {
    /// `Line 3, column 7`; empty if it is nowhere.
    pub(super) place: String,
    pub(super) problem: String,
    pub(super) suggestion: Option<String>,
    /// The line itself.
    pub(super) source: Option<String>,
}

impl Fault {
    /// The problem in this text; the API's own sentence has place and suggestion again, which are taken off.
    pub(super) fn of(found: &PolicyProblem, cedar: &str) -> Self {
        let (line, column) = (found.line.unwrap_or_default(), found.column.unwrap_or_default());
        let suggestion = found.suggestion.clone();
        let problem = found.problem.as_str();
        let problem = problem.strip_prefix(&format!("line {line}, column {column}: "));
        let problem = problem.unwrap_or(&found.problem);
        let end = suggestion.as_ref().map(|suggestion| format!("; {suggestion}"));
        let cut = end.and_then(|end| problem.strip_suffix(&end));
        let index = usize::try_from(line).ok().and_then(|line| line.checked_sub(1));
        Self {
            place: match (line, column) {
                (0, _) => String::new(),
                (line, 0) => format!("Line {line}"),
                (line, column) => format!("Line {line}, column {column}"),
            },
            source: index.and_then(|index| cedar.lines().nth(index)).map(str::to_owned),
            problem: cut.unwrap_or(problem).to_owned(),
            suggestion,
        }
    }

    pub(super) fn all(found: &[PolicyProblem], cedar: &str) -> Vec<Self> {
        found.iter().map(|problem| Self::of(problem, cedar)).collect()
    }
}

/// What would change of the last decisions.
pub(super) struct Impact {
    /// Decisions that the text was run against.
    pub(super) run: u32,
    pub(super) changed_total: u32,
    /// Decisions that could not be decided again.
    pub(super) unreadable: u32,
    /// The newest of those that change.
    pub(super) changed: Vec<Changed>,
}

impl Impact {
    pub(super) fn has_more(&self) -> bool {
        usize::try_from(self.changed_total).is_ok_and(|total| total > self.changed.len())
    }
}

/// A decision with another outcome.
pub(super) struct Changed {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) action: String,
    pub(super) at: Option<Moment>,
    pub(super) before: Verdict,
    pub(super) after: Verdict,
}

pub(super) struct Verdict {
    pub(super) word: &'static str,
    pub(super) reason_code: String,
    /// `2 approvals, legal among them`, where people are needed.
    pub(super) approvals: Option<String>,
    /// Obligations and stop conditions.
    pub(super) terms: Vec<String>,
}

impl Trial {
    /// Checks the text, where the role may, and runs it if it is valid.
    ///
    /// # Errors
    /// As the operations answer.
    pub(super) async fn of(view: &View, policy: &Policy, cedar: &str) -> Result<Self, Status> {
        let mut trial = Self::checked(view, policy, cedar).await?;
        if trial.problems.is_empty() {
            trial.impact = Some(run(view, policy, cedar).await?);
        }
        Ok(trial)
    }

    /// Whether the text is valid for what the policy's tenant declares; unchecked where the role may not ask.
    ///
    /// # Errors
    /// As the operation answers.
    pub(super) async fn checked(view: &View, policy: &Policy, cedar: &str) -> Result<Self, Status> {
        if !view.may(rpc::VALIDATE_POLICY) {
            return Ok(Self::default());
        }
        let request = ValidatePolicyRequest {
            cedar: Some(cedar.to_owned()),
            target_class: None,
            tenant_id: Some(policy.tenant_id.clone()),
        };
        let found: ValidatePolicyResponse = view.calls.call(rpc::VALIDATE_POLICY, &request).await?;
        Ok(Self {
            checked: true,
            problems: Fault::all(&found.problems, cedar),
            warnings: Fault::all(&found.warnings, cedar),
            impact: None,
        })
    }
}

/// Runs the text, in the place of the policy's present one, against the tenant's last decisions.
///
/// # Errors
/// As the operation answers.
pub(super) async fn run(view: &View, policy: &Policy, cedar: &str) -> Result<Impact, Status> {
    let candidate = CandidatePolicy {
        policy_id: Some(policy.id.clone()),
        cedar: cedar.to_owned(),
        applies_to: Vec::new(),
    };
    let request = ImpactPoliciesRequest {
        candidate_policies: vec![candidate],
        ..ImpactPoliciesRequest::default()
    };
    impact(view, policy, request).await
}

/// What the last decisions would have been without the policy.
///
/// # Errors
/// As the operation answers.
pub(super) async fn without(view: &View, policy: &Policy) -> Result<Impact, Status> {
    let request = ImpactPoliciesRequest {
        without_policies: vec![policy.id.clone()],
        ..ImpactPoliciesRequest::default()
    };
    impact(view, policy, request).await
}

async fn impact(
    view: &View,
    policy: &Policy,
    mut request: ImpactPoliciesRequest,
) -> Result<Impact, Status> {
    request.tenant_id = Some(policy.tenant_id.clone());
    request.last = Some(LAST);
    let found: ImpactPoliciesResponse = view.calls.call(rpc::IMPACT_POLICIES, &request).await?;
    let changed = found.changed.into_iter().map(|changed| Changed {
        agent: short(&changed.subject).to_owned(),
        at: Moment::of_time(changed.evaluated_at, view.now),
        before: verdict(changed.before),
        after: verdict(changed.after),
        id: changed.decision_id,
        action: changed.action,
    });
    Ok(Impact {
        run: found.considered.saturating_sub(found.unreadable),
        changed_total: found.changed_total,
        unreadable: found.unreadable,
        changed: changed.collect(),
    })
}

fn verdict(outcome: Option<Outcome>) -> Verdict {
    let outcome = outcome.unwrap_or_default();
    let approvals = outcome.approvals_needed.map(|needed| {
        let count = usize::try_from(needed.count).unwrap_or(usize::MAX);
        let count = counted(count, "approval", "approvals");
        if needed.roles.is_empty() {
            count
        } else {
            format!("{count}, {} among them", needed.roles.join(" and "))
        }
    });
    Verdict {
        word: text::outcome(outcome.decision),
        reason_code: outcome.reason_code,
        approvals,
        terms: [outcome.obligations, outcome.stop_conditions].concat(),
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
        };
        let fault = Fault::of(&found, "forbid (principal, action, resource)\nwhen { contexx };");
        assert_eq!(fault.place, "Line 2, column 8");
        assert_eq!(fault.problem, "unknown name `contexx`");
        assert_eq!(fault.source.as_deref(), Some("when { contexx };"));
        let elsewhere =
            PolicyProblem { problem: "is empty".to_owned(), ..PolicyProblem::default() };
        let fault = Fault::of(&elsewhere, "");
        assert_eq!((fault.place.as_str(), fault.problem.as_str()), ("", "is empty"));
        assert!(fault.source.is_none());
    }
}

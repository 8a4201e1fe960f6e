//! The parts of a trace.

use std::fmt;

use authority_ids::EntityRef;
use serde::{Deserialize, Serialize};

use crate::{
    facts::budget::Budget,
    levels::{Decision, words},
    moment,
    reason::{Reason, Stage},
};

words! {
    /// The outcome of a stage or a step.
    Outcome {
        Pass "pass",
        Hold "hold",
        Refuse "refuse",
    }
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageTrace {
    pub stage: Stage,
    pub outcome: Outcome,
    pub reason_code: Option<Reason>,
    pub steps: Vec<TraceStep>,
}

/// One step of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceStep {
    /// The kind of object: `delegation`, `uses`, `acts_in`, `policy`, `anchor`, `drift`, `gate`, ….
    pub kind: String,
    /// The object's id. For a policy, also the statement's id and place.
    pub id: String,
    pub outcome: Outcome,
    pub reason_code: Option<Reason>,
    /// A description for people.
    pub detail: String,
    /// The bounds that the request exceeds, if the step refuses it for exceeding them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceeded: Vec<ExceededBound>,
    /// The statement of a policy that the step evaluates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<PolicyStatement>,
    /// The decision with an observing version of a policy in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Box<Observed>>,
}

impl TraceStep {
    pub(crate) fn new(
        kind: &str,
        id: impl Into<String>,
        outcome: Outcome,
        reason_code: Option<Reason>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind: kind.to_owned(),
            id: id.into(),
            outcome,
            reason_code,
            detail: detail.into(),
            exceeded: Vec::new(),
            statement: None,
            observed: None,
        }
    }
}

/// The outcome that a decision would have had with an observing version of a policy in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    pub policy_id: EntityRef,
    pub version: i64,
    pub decision: Decision,
    pub reason_code: Reason,
    /// Whether the outcome differs for the caller: in decision, reason, obligations, stop conditions
    /// or needed approvals.
    pub would_change: bool,
    /// The version's statements that deny or hold the action, if the request asks for the trace.
    pub statements: Vec<PolicyStatement>,
}

/// A statement of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyStatement {
    pub policy_id: EntityRef,
    /// The statement's `@id`, or the policy's id.
    pub id: String,
    /// The statement's `@advice`, if the statement matches.
    pub advice: Option<String>,
}

/// A bound that a request exceeds, with the requested value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExceededBound {
    /// The name of the bound: `max_amount`, `hours`, ….
    pub bound: String,
    /// The id of the delegation, `uses` row or purpose that has the bound.
    pub holder: String,
    /// The bound as text.
    pub limit: String,
    /// The currency of `limit`, if the bound is an amount in a currency.
    pub currency: Option<String>,
    /// The requested value; `None` if the request lacks it.
    pub asked: Option<String>,
    /// For `max_uses` and `max_total_amount`: the bound with its current window and use.
    pub budget: Option<Budget>,
}

impl fmt::Display for ExceededBound {
    /// Formats the bound and the requested value, for people.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} of {}: {}", self.bound, self.holder, self.limit)?;
        if let Some(currency) = &self.currency {
            write!(to, " {currency}")?;
        }
        if let Some(budget) = &self.budget {
            write!(to, " in {} s", budget.key.window_seconds)?;
        }
        write!(to, "; requested: {}", self.asked.as_deref().unwrap_or("none"))?;
        let Some(budget) = &self.budget else { return Ok(()) };
        match budget.used {
            Some(used) => write!(to, "; used before: {}", budget.text(used))?,
            None => to.write_str("; used before: unknown")?,
        }
        match budget.resets_at() {
            Some(end) => write!(to, "; resets at {}", moment::text(end)),
            None => Ok(()),
        }
    }
}

//! The trace that `explain` asks for: what each stage looked at and what it made of it.

use serde::{Deserialize, Serialize};

use super::levels::words;
use super::reason::{Reason, Stage};

words! {
    /// How a stage or a step in it came out.
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
    pub steps: Vec<Step>,
}

/// One thing that a stage looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What: `delegation`, `uses`, `acts_in`, `policy`, `anchor`, `drift`, `gate`, ….
    pub kind: String,
    /// Which one.
    pub id: String,
    pub outcome: Outcome,
    pub reason_code: Option<Reason>,
    /// For people.
    pub detail: String,
}

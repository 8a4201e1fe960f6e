//! The parts of a trace.

use serde::{Deserialize, Serialize};

use super::{
    levels::words,
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
    pub steps: Vec<Step>,
}

/// One step of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The kind of object: `delegation`, `uses`, `acts_in`, `policy`, `anchor`, `drift`, `gate`, ….
    pub kind: String,
    /// The object's id.
    pub id: String,
    pub outcome: Outcome,
    pub reason_code: Option<Reason>,
    /// A description for people.
    pub detail: String,
}

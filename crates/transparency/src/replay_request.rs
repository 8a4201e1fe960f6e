//! Reads the parameters of a replay request.

use authority_ids::DecisionId;
use authority_model::proto::evidence::MintReplayProofRequest;

use super::Error;
use authority_evidence::{pack::decision_of, replay::Mode};

/// Returns the mode. `policy_pin` requires a policy and a version.
pub(super) fn mode(asked: &MintReplayProofRequest) -> Result<Mode, Error> {
    match asked.mode.as_deref() {
        None | Some("historical_state_snapshot") => Ok(Mode::HistoricalStateSnapshot),
        Some("current_state") => Ok(Mode::CurrentState),
        Some("policy_pin") if asked.policy_id.is_none() => {
            Err(Error::Field("policy_id", "is required with `policy_pin`".to_owned()))
        }
        Some("policy_pin") if asked.policy_version.is_none() => {
            Err(Error::Field("policy_version", "is required with `policy_pin`".to_owned()))
        }
        _ => Ok(Mode::PolicyPin),
    }
}

/// Returns the decision's id, from `decision_id` or `evidence_id`.
pub(super) fn decision(asked: &MintReplayProofRequest) -> Result<DecisionId, Error> {
    match (&asked.decision_id, &asked.evidence_id) {
        (Some(_), Some(_)) => Err(Error::Field(
            "evidence_id",
            "cannot be combined with `decision_id`; give one of them".to_owned(),
        )),
        (Some(id), None) => {
            DecisionId::parse(id).map_err(|_| Error::NotFound("decision", id.clone()))
        }
        (None, Some(id)) => decision_of(id).ok_or_else(|| Error::NotFound("evidence", id.clone())),
        (None, None) => {
            Err(Error::Field("decision_id", "is required, or `evidence_id`".to_owned()))
        }
    }
}

//! Replay: a sealed decision is made again. The signed result compares both.

use authority_ids::DecisionRef;
use authority_model::proto::evidence::MintReplayProofRequest;

use crate::kit::prelude::*;

/// The possible sources of a repeated decision, with their descriptions.
pub(super) const MODES: [(&str, &str); 2] = [
    ("historical_state_snapshot", t::decisions::FROM_FACTS),
    ("current_state", t::decisions::WITH_AUTHORITY),
];

struct Difference {
    member: String,
    sealed: String,
    recomputed: String,
}

#[derive(Template)]
#[template(path = "replay.html")]
struct ReplayPage {
    frame: Frame,
    decision_id: DecisionRef,
    name: String,
    mode: &'static str,
    /// `match`, `mismatch` or `indeterminate`.
    result: String,
    detail: Option<String>,
    differences: Vec<Difference>,
    recomputed_id: Option<DecisionRef>,
    kid: String,
    /// The signed document.
    document: String,
}

pub(super) async fn replay(Path(id): Path<DecisionRef>, Posted { view, form }: Posted) -> Response {
    view.answer_act(t::decisions::NOT_REPLAYED, replayed(&view, &id, form.text("mode")).await)
}

async fn replayed(view: &View, id: &DecisionRef, mode: &str) -> Result<Response, Status> {
    let request = MintReplayProofRequest {
        decision_id: Some(id.into()),
        mode: (!mode.is_empty()).then(|| mode.to_owned()),
        ..MintReplayProofRequest::default()
    };
    let minted = view.calls.call(&request).await?;
    let unreadable = |_| Status::internal(t::decisions::PROOF_UNREADABLE);
    let proof: Value = serde_json::from_str(&minted.document).map_err(unreadable)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let known = |word: &str| MODES.iter().find(|(mode, _)| *mode == word).map(|(_, words)| *words);
    let differences = proof["diff"].as_array().into_iter().flatten().map(|differs| Difference {
        member: text(&differs["member"]).unwrap_or_default(),
        sealed: shown(&differs["sealed"]),
        recomputed: shown(&differs["recomputed"]),
    });
    let replay = ReplayPage {
        frame: view.frame(t::decisions::REPLAY, Section::Decisions),
        decision_id: id.clone(),
        name: short(id).chars().take(12).collect(),
        mode: text(&proof["mode"]).and_then(|mode| known(&mode)).unwrap_or_default(),
        result: text(&proof["result"]).unwrap_or_default(),
        detail: text(&proof["detail"]),
        differences: differences.collect(),
        recomputed_id: text(&proof["recomputed_decision_id"]).map(DecisionRef::from),
        kid: text(&proof["signature"]["kid"]).unwrap_or_default(),
        document: minted.document,
    };
    Ok(page(StatusCode::OK, &replay))
}

impl ReplayPage {
    /// The result: its words and its colour.
    fn outcome(&self) -> (&'static str, &'static str) {
        match self.result.as_str() {
            "match" => (t::decisions::SAME, "approved"),
            "mismatch" => (t::decisions::DIFFERENT, "declined"),
            _ => (t::decisions::INDETERMINATE, "pending"),
        }
    }
}

/// A value of a record: a text without its quotes.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => t::decisions::NONE.to_owned(),
        other => other.to_string(),
    }
}

//! The evidence of a decision: its seal, its place in the log, and the bundle to verify offline.

use authority_ids::DecisionRef;
use authority_model::proto::evidence::{GetEvidenceRequest, SealDecisionRequest};

use super::export::saved;
use crate::kit::prelude::*;

/// Whether a decision is sealed.
pub(super) enum Seal {
    Sealed(Box<Sealed>),
    NotYet,
    /// The role may not read the evidence.
    Hidden,
    /// The evidence could not be read: it is unknown whether the decision is sealed.
    Unread,
}

pub(super) struct Sealed {
    pub(super) evidence_id: String,
    pub(super) origin: String,
    pub(super) index: String,
    pub(super) at: Option<Moment>,
}

impl Seal {
    pub(super) async fn of(view: &View, decision_id: &DecisionRef) -> Self {
        let request = GetEvidenceRequest { entity_id: decision_id.into(), bundle: false };
        let read = view.calls.call(&request).await;
        match read {
            Ok(pack) => Self::read(view, &pack.document),
            Err(status) => match status.code() {
                Code::NotFound => Self::NotYet,
                Code::PermissionDenied => Self::Hidden,
                _ => Self::Unread,
            },
        }
    }

    fn read(view: &View, pack: &str) -> Self {
        let Ok(pack) = serde_json::from_str::<Value>(pack) else { return Self::Unread };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self::Sealed(Box::new(Sealed {
            evidence_id: text(&pack["id"]),
            origin: text(&pack["log"]["origin"]),
            index: pack["log"]["index"].to_string(),
            at: Moment::read(&text(&pack["sealed_at"]), view.now),
        }))
    }
}

/// The file name of a decision's bundle: `bundle-01a2136e306c.json`.
pub(super) fn bundle_name(decision_id: &DecisionRef) -> String {
    let plain = |letter: &char| letter.is_ascii_alphanumeric();
    let id: String = short(decision_id).chars().filter(plain).take(12).collect();
    format!("bundle-{id}.json")
}

/// `POST /console/decisions/{id}/seal`.
pub(super) async fn seal(Path(id): Path<DecisionRef>, Posted { view, .. }: Posted) -> Response {
    let request = SealDecisionRequest { decision_id: (&id).into() };
    let sealed = view.calls.call(&request).await;
    view.answer_act(
        t::decisions::NOT_SEALED,
        sealed.map(|_| see_done(&view, &format!("/console/decisions/{id}"), "seal")),
    )
}

/// `GET /console/decisions/{id}/bundle.json`: all that an offline verifier needs.
pub(super) async fn bundle(view: View, Path(id): Path<DecisionRef>) -> Response {
    let name = bundle_name(&id);
    let request = GetEvidenceRequest { entity_id: id.into(), bundle: true };
    let read = view.calls.call(&request).await;
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    view.answer(read.map(|bundle| saved((kind, bundle.document).into_response(), &name)))
}

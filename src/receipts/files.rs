//! The files for verifying a receipt: record, signature, pack, proof. A bundle or a context is
//! never included.

use axum::{
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};

use authority_api::error::{ApiError, ErrorCode};
use authority_evidence::pack;
use authority_ids::DecisionRef;
use serde::Deserialize;
use serde_json::Value;

use super::{
    access::{POLICY, Receipts, missing, refused},
    read,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The parameters of a file's address. They are read by name, like the parameter of a receipt's
/// address.
#[derive(Deserialize)]
pub(super) struct At {
    decision_id: DecisionRef,
    file: String,
}

pub(super) async fn file(
    State(this): State<Receipts>,
    Path(At { decision_id, file }): Path<At>,
    parts: Parts,
) -> Response {
    let (read, _turn) = match this.read(&decision_id, &parts).await {
        Ok(read) => read,
        Err(response) => return *response,
    };
    let decision = read.decision;
    if let Some(pack) = read.archived_pack.filter(|_| matches!(&*file, "pack.json" | "proof")) {
        return match proof(&pack) {
            _ if file != "proof" => document(JSON, pack),
            Some(proof) => document(TEXT, proof),
            None => {
                tracing::error!(
                    decision.id = decision.id.as_str(),
                    "found an archived pack without a proof"
                );
                refused(ApiError::plain(ErrorCode::Internal))
            }
        };
    }
    match file.as_str() {
        "record.json" => document(JSON, decision.record),
        "signature.json" => match pack::signature(&decision.kid, &decision.signature) {
            Ok(text) => document(JSON, text),
            Err(error) => refused(error),
        },
        "pack.json" | "proof" => match read::sealed(&this.0.store, &this.0.keys, &decision).await {
            Err(error) => refused(error),
            Ok(None) => {
                let text = "the decision is not sealed: its pack and proof do not exist yet";
                refused(ApiError::new(ErrorCode::NotFound, text))
            }
            Ok(Some(Err(altered))) => refused(altered),
            Ok(Some(Ok(pack))) if file == "proof" => document(TEXT, pack.proof),
            Ok(Some(Ok(pack))) => match pack.text() {
                Ok(text) => document(JSON, text),
                Err(error) => refused(error),
            },
        },
        _ => missing(),
    }
}

/// Returns the proof in a pack. `None` if the text is not a pack or has no proof.
fn proof(pack: &str) -> Option<String> {
    let pack: Value = serde_json::from_str(pack).ok()?;
    pack["log"]["proof"].as_str().map(str::to_owned)
}

fn document(kind: HeaderValue, body: impl IntoResponse) -> Response {
    let mut response = (StatusCode::OK, [POLICY], body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

//! The receipt page at `/receipts/{decision_id}`: a decision in a form that people can read and
//! check.
//!
//! Anyone with the decision's id, which cannot be guessed, may open the page. The page shows the
//! record itself, which contains only a digest of the request's context. Names are shown next to
//! the ids; names of people are shown only to the tenant's own readers. The page is readable
//! without a script. A script verifies the signature in the browser. The files for verification are
//! below the page (`files.rs`) and are as public as the page. A tenant may restrict both to its own
//! credentials.

mod access;
mod archive;
mod files;
mod names;
mod page;
mod people;
mod read;
mod show;

use askama::Template;
use authority_api::error::ErrorCode;
use authority_ids::DecisionRef;
use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde::Deserialize;

use access::POLICY;
pub use access::{Peer, Receipts};
use page::Receipt;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("verify.js");

const ASSET_AGE: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// The parameter of a receipt's address. It is read by its name, because a request from the console
/// also has the parameters of the console's page.
#[derive(Deserialize)]
struct At {
    decision_id: DecisionRef,
}

impl Receipts {
    /// The page and its assets.
    pub fn router(self) -> Router {
        Router::new()
            .route("/receipts/style.css", get(async || asset(STYLE, "text/css; charset=utf-8")))
            .route(
                "/receipts/verify.js",
                get(async || asset(SCRIPT, "text/javascript; charset=utf-8")),
            )
            .route("/receipts/{decision_id}", get(receipt))
            .route("/receipts/{decision_id}/{file}", get(files::file))
            .with_state(self)
    }
}

fn asset(text: &'static str, kind: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, ASSET_AGE),
    ];
    (headers, text).into_response()
}

async fn receipt(
    State(this): State<Receipts>,
    Path(At { decision_id }): Path<At>,
    parts: Parts,
) -> Response {
    let (read, _turn) = match this.read(&decision_id, &parts).await {
        Ok(read) => read,
        Err(response) => return *response,
    };
    let now = this.0.clock.now();
    let Some(receipt) = Receipt::of(read, &this.0.issuer, this.0.console, now) else {
        tracing::error!("failed to read a receipt's record");
        return ErrorCode::Internal.http().into_response();
    };
    match receipt.render() {
        Ok(page) => (StatusCode::OK, [POLICY], Html(page)).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to render a receipt");
            ErrorCode::Internal.http().into_response()
        }
    }
}

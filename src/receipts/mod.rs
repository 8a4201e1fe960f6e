//! The receipt page at `/receipts/{decision_id}`: a decision as a person reads it, and can check it.
//!
//! Public by its id, which nobody can guess. It shows the record itself, in which the request's
//! context is a digest, and no person's name. The facts need no script; a script verifies the
//! signature in the browser.

mod page;
mod read;

use std::{sync::Arc, time::Duration};

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};

use tokio::sync::Semaphore;

use crate::{
    error::{ErrorCode, Refusal},
    evidence::is_hex,
    store::Store,
};
use page::{NotFound, Receipt};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("verify.js");

const POLICY: (HeaderName, HeaderValue) = (
    header::CONTENT_SECURITY_POLICY,
    HeaderValue::from_static(
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
);
const ASSET_AGE: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// What the page is made of.
#[derive(Clone)]
pub struct Receipts(Arc<Inner>);

struct Inner {
    store: Store,
    /// The service's public URL, with no `/` at its end.
    issuer: String,
    turns: Semaphore,
}

impl Receipts {
    pub fn new(store: Store, public_url: &str) -> Self {
        let issuer = public_url.trim_end_matches('/').to_owned();
        Self(Arc::new(Inner { store, issuer, turns: Semaphore::new(AT_ONCE) }))
    }

    /// The page and what it loads.
    pub fn router(self) -> Router {
        Router::new()
            .route("/receipts/style.css", get(async || asset(STYLE, "text/css; charset=utf-8")))
            .route(
                "/receipts/verify.js",
                get(async || asset(SCRIPT, "text/javascript; charset=utf-8")),
            )
            .route("/receipts/{decision_id}", get(receipt))
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

/// Anybody may ask, so that not everything that the database can do goes to them.
const AT_ONCE: usize = 2;
const PATIENCE: Duration = Duration::from_secs(2);

fn is_id(text: &str) -> bool {
    text.strip_prefix("svc:decision:").is_some_and(|hash| is_hex(hash, 64))
}

fn missing() -> Response {
    match NotFound.render() {
        Ok(page) => (StatusCode::NOT_FOUND, [POLICY], Html(page)).into_response(),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn receipt(State(this): State<Receipts>, Path(decision_id): Path<String>) -> Response {
    if !is_id(&decision_id) {
        return missing();
    }
    let turn = tokio::time::timeout(PATIENCE, this.0.turns.acquire()).await;
    let Ok(Ok(_turn)) = turn else {
        let busy = ErrorCode::Unavailable;
        return (busy.http(), [POLICY], busy.sentence()).into_response();
    };
    let read = match read::decision(&this.0.store, decision_id).await {
        Ok(read) => read,
        Err(error) => {
            let refusal = Refusal::from(error);
            return (refusal.code.http(), [POLICY], refusal.message).into_response();
        }
    };
    let shown = match read {
        None => return missing(),
        Some(read) => match Receipt::of(read, &this.0.issuer) {
            Some(receipt) => receipt.render().map(|page| (StatusCode::OK, page)),
            None => return ErrorCode::Internal.http().into_response(),
        },
    };
    match shown {
        Ok((status, page)) => (status, [POLICY], Html(page)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a receipt cannot be written");
            ErrorCode::Internal.http().into_response()
        }
    }
}

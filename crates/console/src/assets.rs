//! The style and the script of every page, at addresses that change with their content.

use std::sync::LazyLock;

use authority_crypto::sha256;
use axum::{
    Router,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderValue, header};

use crate::Console;

const STYLE: &str = include_str!("assets/style.css");
const SCRIPT: &str = include_str!("assets/console.js");
const ICON: &str = include_str!("assets/icon.svg");
/// The content at an address never changes: a new release has new addresses.
const AGE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The query at the end of assets' addresses.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let digest = sha256([STYLE, SCRIPT, ICON].concat().as_bytes());
    hex::encode(digest).chars().take(12).collect()
});

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/style.css", get(async || asset(STYLE, "text/css; charset=utf-8")))
        .route("/console/console.js", get(async || asset(SCRIPT, "text/javascript; charset=utf-8")))
        .route("/console/icon.svg", get(async || asset(ICON, "image/svg+xml")))
}

fn asset(text: &'static str, kind: &'static str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::CACHE_CONTROL, AGE)];
    (headers, text).into_response()
}

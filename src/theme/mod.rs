//! The look that the console, the receipts and the documentation share: colours, type, mark, and
//! the choice between light and dark.

use axum::{
    Router,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
    routing::get,
};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("choice.js");
const ICON: &str = include_str!("icon.svg");
const AGE: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// The files at `/theme`.
pub fn router() -> Router {
    Router::new()
        .route("/theme/style.css", get(async || asset(STYLE, "text/css; charset=utf-8")))
        .route("/theme/choice.js", get(async || asset(SCRIPT, "text/javascript; charset=utf-8")))
        .route("/theme/icon.svg", get(async || asset(ICON, "image/svg+xml")))
}

fn asset(text: &'static str, kind: &'static str) -> Response {
    let kind = HeaderValue::from_static(kind);
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, AGE)], text).into_response()
}

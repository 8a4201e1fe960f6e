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
/// The height of a line in the editor of policies, in pixels, as in the style's `.numbered`.
const LINE: usize = 20;
/// The number of numbered lines.
const LINES: usize = 500;

/// The numbers beside the lines of the editor, as its background.
static NUMBERS: LazyLock<String> = LazyLock::new(|| {
    let number = |line: usize| format!("<text x=\"36\" y=\"{}\">{line}</text>", line * LINE - 5);
    let numbers: String = (1..=LINES).map(number).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"{}\" font-family=\"monospace\" \
         font-size=\"13\" text-anchor=\"end\" fill=\"#7c7f84\">{numbers}</svg>",
        LINES * LINE
    )
});

/// The content at an address never changes: a new release has new addresses.
const AGE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// The query at the end of assets' addresses.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let digest = sha256([STYLE, SCRIPT].concat().as_bytes());
    hex::encode(digest).chars().take(12).collect()
});

pub(crate) fn router() -> Router<Console> {
    Router::new()
        .route("/console/style.css", get(async || asset(STYLE, "text/css; charset=utf-8")))
        .route("/console/console.js", get(async || asset(SCRIPT, "text/javascript; charset=utf-8")))
        .route("/console/lines.svg", get(async || asset(&NUMBERS, "image/svg+xml")))
}

fn asset(text: &'static str, kind: &'static str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::CACHE_CONTROL, AGE)];
    (headers, text).into_response()
}

//! A page as a response, with its policy. Pages are never cached.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};

/// The policy of the receipts. In addition, forms may be sent only to this service.
const POLICY: (HeaderName, HeaderValue) = (
    header::CONTENT_SECURITY_POLICY,
    HeaderValue::from_static(
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
         img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
);
/// With `no-referrer` a browser sends forms with `Origin: null`, which does not distinguish its own
/// pages from other origins.
const REFERRER: (HeaderName, HeaderValue) =
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
const STORE: (HeaderName, HeaderValue) =
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));

pub(crate) fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, [POLICY, REFERRER, STORE], Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "failed to render a page of the console");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Redirects to a page after an act.
pub(crate) fn see(path: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(path) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let headers = [(header::LOCATION, location), REFERRER, STORE];
    (StatusCode::SEE_OTHER, headers).into_response()
}

//! Security headers of every response, errors included. A response is data for one caller and must
//! not be framed, sniffed or cached.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, Response, header},
};

/// Headers that are added only if the response does not have them yet. A page that needs more (a
/// receipt's style, a console's form) sets its own policies.
const UNLESS_SET: [(HeaderName, HeaderValue); 3] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

const ALWAYS: [(HeaderName, HeaderValue); 3] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static(
            "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
        ),
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Marks a response that other sites may frame; stored in the response's extensions. Its content
/// security policy lists the sites.
#[derive(Clone, Copy)]
pub struct Embeddable;

/// Two years, as browsers' preload lists require (RFC 6797).
const HTTPS_ONLY: HeaderValue = HeaderValue::from_static("max-age=63072000; includeSubDomains");

/// Adds the security headers; with `https`, also HSTS.
pub(super) fn put_on(response: &mut Response<Body>, https: bool) {
    let is_embeddable = response.extensions().get::<Embeddable>().is_some();
    let headers = response.headers_mut();
    headers.reserve(UNLESS_SET.len() + ALWAYS.len() + 4);
    for (name, value) in UNLESS_SET {
        headers.entry(name).or_insert(value);
    }
    for (name, value) in ALWAYS {
        headers.insert(name, value);
    }
    if is_embeddable {
        headers.insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    } else {
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    }
    if https {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HTTPS_ONLY);
    }
}

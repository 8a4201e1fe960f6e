//! CORS: pages of the configured origins may call the service, also by gRPC-web.

use std::time::Duration;

use axum::http::{HeaderName, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::settings::Settings;

const REMEMBERED: Duration = Duration::from_mins(10);

/// `None` if no origin is configured: responses then have no CORS headers, and OPTIONS is a 405.
pub(super) fn layer(settings: &Settings) -> Option<CorsLayer> {
    if settings.origins.is_empty() {
        return None;
    }
    let name = HeaderName::from_static;
    Some(
        CorsLayer::new()
            .allow_origin(AllowOrigin::list(settings.origins.iter().cloned()))
            .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::PUT, Method::DELETE])
            .allow_headers([
                header::AUTHORIZATION,
                header::CONTENT_TYPE,
                header::CACHE_CONTROL,
                header::IF_MATCH,
                header::IF_NONE_MATCH,
                name("idempotency-key"),
                name("x-request-id"),
                name("last-event-id"),
                name("traceparent"),
                name("tracestate"),
                name("baggage"),
                name("x-grpc-web"),
                name("x-user-agent"),
                name("grpc-timeout"),
            ])
            .expose_headers([
                name("grpc-status"),
                name("grpc-message"),
                name("grpc-status-details-bin"),
                name("x-request-id"),
                name("idempotency-replayed"),
                name("ratelimit"),
                name("ratelimit-policy"),
                header::ETAG,
                header::LOCATION,
                header::RETRY_AFTER,
                header::WWW_AUTHENTICATE,
            ])
            .max_age(REMEMBERED),
    )
}

//! Metrics for operators, on an address of their own: never on one that clients reach.

use axum::{
    Router,
    http::{HeaderValue, header},
    response::IntoResponse,
    routing::get,
};

/// `/metrics` in Prometheus' text format, from `render`.
pub fn ops(render: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    const KIND: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    let metrics = move || {
        let render = render.clone();
        async move { ([(header::CONTENT_TYPE, KIND)], render()).into_response() }
    };
    Router::new().route("/metrics", get(metrics))
}

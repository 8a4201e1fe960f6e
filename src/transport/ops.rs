//! Metrics for operators, served only on a separate address that clients cannot reach.

use axum::{
    Router,
    http::{HeaderValue, header},
    response::IntoResponse,
    routing::get,
};

use super::headers;

/// `/metrics` in Prometheus' text format, from `render`.
pub fn ops(render: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    const KIND: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    let metrics = move || {
        let render = render.clone();
        async move {
            let mut response = ([(header::CONTENT_TYPE, KIND)], render()).into_response();
            headers::put_on(&mut response, false);
            response
        }
    };
    Router::new().route("/metrics", get(metrics))
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn metrics_have_the_security_headers() {
        for method in ["GET", "HEAD"] {
            let call = Request::builder().method(method).uri("/metrics").body(Body::empty());
            let response = ops(|| "up 1".to_owned()).oneshot(call.unwrap()).await.unwrap();
            let header = |name: &str| response.headers()[name].to_str().unwrap();
            assert_eq!(header("x-content-type-options"), "nosniff");
            assert_eq!(header("x-frame-options"), "DENY");
            assert_eq!(header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        }
    }
}

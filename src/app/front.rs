//! `GET /` for browsers: a page with links. Other clients get the service's description as JSON.

use askama::Template;
use authority_config::Config;
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{Html, IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};

use crate::{directory::DESCRIPTION, transport::prefers_html};

const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (header::VARY, HeaderValue::from_static("accept")),
];

#[derive(Template)]
#[template(path = "app/front.html")]
struct Front<'a> {
    version: &'static str,
    description: &'static str,
    /// The service's public URL, without a trailing `/`.
    public_url: &'a str,
    has_console: bool,
}

/// The page; `None` if it could not be rendered.
#[derive(Clone)]
pub(super) struct FrontPage(Option<Bytes>);

impl FrontPage {
    pub(super) fn new(config: &Config) -> Self {
        let public_url = config.public_url();
        let front = Front {
            version: env!("CARGO_PKG_VERSION"),
            description: DESCRIPTION,
            public_url: public_url.trim_end_matches('/'),
            has_console: config.console(),
        };
        let page = front.render();
        let page =
            page.inspect_err(|error| tracing::error!(%error, "failed to render the page at /"));
        Self(page.ok().map(Into::into))
    }
}

/// Returns the page if a browser requests `/`. With a query, such as `?pretty`, a browser also gets
/// JSON.
pub(super) async fn front(
    State(FrontPage(page)): State<FrontPage>,
    request: Request,
    next: Next,
) -> Response {
    let uri = request.uri();
    let is_front = uri.path() == "/" && uri.query().is_none() && request.method() == Method::GET;
    match page.filter(|_| is_front && prefers_html(request.headers())) {
        Some(page) => (HEADERS, Html(page)).into_response(),
        None => next.run(request).await,
    }
}

//! `GET /` for browsers: a page that leads on. Every other client gets the service's description as JSON.

use askama::Template;
use authority_core::config::Config;
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
            "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
        ),
    ),
    (header::VARY, HeaderValue::from_static("accept")),
];

#[derive(Template)]
#[template(path = "app/front.html")]
struct Front<'a> {
    version: &'static str,
    description: &'static str,
    /// Without a trailing `/`.
    public_url: &'a str,
    has_console: bool,
}

/// The page, or else the reason why it cannot be written, for the log.
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
        let page = page.inspect_err(|error| tracing::error!(%error, "the page at / is not there"));
        Self(page.ok().map(Into::into))
    }
}

/// The page, if a browser asks for `/`; with a query, as `?pretty`, it gets JSON.
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

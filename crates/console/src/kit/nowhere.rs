//! The response to unknown addresses of the console: a page for browsers, the usual error for
//! programs.

use axum::{
    body::Body,
    extract::{FromRequestParts, State},
    response::Response,
};
use http::{HeaderMap, Request, StatusCode, header};
use tonic::Status;
use tower::ServiceExt;

use crate::{
    Console,
    kit::{notice::Notice, view::View},
    texts as t,
};

pub(crate) async fn nowhere(State(console): State<Console>, request: Request<Body>) -> Response {
    if !takes_pages(request.headers()) {
        let Ok(answer) = console.0.api.clone().oneshot(request).await;
        return answer;
    }
    let (mut parts, _) = request.into_parts();
    // An unknown address does not lead to the sign-in.
    if let Ok(view) = View::from_request_parts(&mut parts, &console).await {
        return view.answer(Err(Status::not_found(t::kit::UNKNOWN_ADDRESS)));
    }
    let notice = Notice::new(StatusCode::NOT_FOUND, t::kit::NOT_FOUND, t::kit::UNKNOWN_ADDRESS);
    notice.link("/console", t::kit::OPEN_CONSOLE).response()
}

/// Whether the client accepts pages. Browsers list `text/html`, programs do not.
fn takes_pages(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    accepted.any(|value| value.to_str().is_ok_and(|value| value.contains("text/html")))
}

//! An address of the console at which there is no page: browsers are told so by a page, programs as everywhere else.

use axum::{
    body::Body,
    extract::{FromRequestParts, State},
    response::Response,
};
use http::{HeaderMap, Request, StatusCode, header};
use tonic::Status;
use tower::ServiceExt;

use crate::{Console, notice::Notice, view::View};

pub(crate) async fn nowhere(State(console): State<Console>, request: Request<Body>) -> Response {
    if !takes_pages(request.headers()) {
        let Ok(answer) = console.0.api.clone().oneshot(request).await;
        return answer;
    }
    let (mut parts, _) = request.into_parts();
    // Nobody is sent through a sign-in to learn that there is nothing.
    if let Ok(view) = View::from_request_parts(&mut parts, &console).await {
        return view.answer(Err(Status::not_found("there is no page at this address")));
    }
    let text = "There is no page at this address.";
    let notice = Notice::new(StatusCode::NOT_FOUND, "Not found", text);
    notice.link("/console", "Open the console").response()
}

/// Whether whoever asks takes a page: browsers name `text/html`, and programs do not.
fn takes_pages(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    accepted.any(|value| value.to_str().is_ok_and(|value| value.contains("text/html")))
}

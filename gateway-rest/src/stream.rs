//! Server streams as newline-delimited JSON, or as server-sent events on request.
//!
//! A failure in mid-stream is the last line, in the form of any error; the status was sent before.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tonic::Streaming;

use crate::{answer, fault::Fault, host::Host, route::Route};

/// Proxies close connections that are idle for about 30 to 60 seconds.
const SILENCE: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Lines,
    Events,
}

impl Form {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let wants = |value: &HeaderValue| {
            value.to_str().is_ok_and(|value| value.contains("text/event-stream"))
        };
        if headers.get_all(header::ACCEPT).iter().any(wants) { Self::Events } else { Self::Lines }
    }

    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Lines => "application/x-ndjson",
            Self::Events => "text/event-stream",
        })
    }

    fn message(self, json: &[u8]) -> Bytes {
        match self {
            Self::Lines => [json, b"\n"].concat().into(),
            Self::Events => [b"data: ", json, b"\n\n"].concat().into(),
        }
    }

    fn failure(self, json: &[u8]) -> Bytes {
        match self {
            Self::Lines => self.message(json),
            Self::Events => [b"event: error\ndata: ", json, b"\n\n"].concat().into(),
        }
    }
}

struct State<H> {
    host: Arc<H>,
    route: &'static Route,
    form: Form,
    request_id: Option<HeaderValue>,
    messages: Option<Streaming<Bytes>>,
}

pub(crate) fn respond<H: Host>(
    host: Arc<H>,
    route: &'static Route,
    form: Form,
    request_id: Option<HeaderValue>,
    messages: Streaming<Bytes>,
) -> Response {
    let state = State { host, route, form, request_id, messages: Some(messages) };
    let chunks = stream::unfold(state, |mut state| async {
        let chunk = state.next().await?;
        Some((Ok::<_, Infallible>(chunk), state))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, form.content_type());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Asks nginx and similar proxies not to buffer.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

impl<H: Host> State<H> {
    async fn next(&mut self) -> Option<Bytes> {
        let messages = self.messages.as_mut()?;
        let next = match tokio::time::timeout(SILENCE, messages.message()).await {
            Ok(next) => next,
            // A blank line for NDJSON readers, a comment for event readers.
            Err(_) if self.form == Form::Events => {
                return Some(Bytes::from_static(b": still here\n\n"));
            }
            Err(_) => messages.message().await,
        };
        match next {
            Ok(None) => None,
            Ok(Some(message)) => match answer::body(self.route, &message) {
                Ok(json) => Some(self.form.message(&json)),
                Err(_) => Some(self.fail(&answer::broken(self.route))),
            },
            Err(status) => Some(self.fail(&Fault::from(status))),
        }
    }

    fn fail(&mut self, fault: &Fault) -> Bytes {
        self.messages = None;
        let id = self.request_id.as_ref().and_then(|id| id.to_str().ok());
        self.form.failure(&self.host.render(fault, id))
    }
}

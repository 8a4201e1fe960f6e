//! Server streams as newline-delimited JSON, or on request as server-sent events or CSV.
//!
//! A failure in mid-stream is sent as the last line, in the same form as any error, because the
//! status was already sent. CSV has no form for errors: its last row is then missing.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tonic::Streaming;

use crate::{
    answer, csv,
    fault::Fault,
    host::Host,
    route::{Events, Route},
    wire, write,
};

/// The longest silence on a stream. Proxies close connections that are idle for 30 to 60 seconds.
const SILENCE: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Lines,
    Events,
    Rows,
}

impl Form {
    pub(crate) fn of(route: &Route, headers: &HeaderMap) -> Self {
        let accepts = |kind: &str| {
            let values = headers.get_all(header::ACCEPT).iter();
            let mut ranges = values.filter_map(|value| value.to_str().ok());
            ranges.any(|ranges| ranges.split(',').any(|range| accepts(range, kind)))
        };
        if accepts("text/event-stream") {
            Self::Events
        } else if !route.csv.is_empty() && accepts("text/csv") {
            Self::Rows
        } else {
            Self::Lines
        }
    }

    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Lines => "application/x-ndjson",
            Self::Events => "text/event-stream",
            Self::Rows => csv::CONTENT_TYPE,
        })
    }

    fn message(self, route: &Route, message: &[u8]) -> Result<Bytes, wire::Malformed> {
        match (self, route.events) {
            (Self::Lines, _) => Ok(line(&answer::body(route, message)?)),
            (Self::Rows, _) => csv::message(route, message),
            (Self::Events, None) => {
                Ok([b"data: ", answer::body(route, message)?.as_slice(), b"\n\n"].concat().into())
            }
            (Self::Events, Some(fields)) => event(route, fields, message),
        }
    }

    /// The end of a stream that fails; `None` if the form has none.
    fn failure(self, json: &[u8]) -> Option<Bytes> {
        match self {
            Self::Lines => Some(line(json)),
            Self::Events => Some([b"event: error\ndata: ", json, b"\n\n"].concat().into()),
            Self::Rows => None,
        }
    }
}

/// Whether a media range of `Accept` names a media type, with a quality above 0 (RFC 9110, 12.5.1).
fn accepts(range: &str, kind: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let is_named = parts.next().is_some_and(|named| named.eq_ignore_ascii_case(kind));
    let is_refused = parts.any(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        name.eq_ignore_ascii_case("q") && value.parse::<f32>().is_ok_and(|quality| quality <= 0.0)
    });
    is_named && !is_refused
}

fn line(json: &[u8]) -> Bytes {
    [json, b"\n"].concat().into()
}

/// Encodes an event with its id (WHATWG HTML, 9.2.6). For an event without data, a client
/// dispatches no event and resumes after the id.
fn event(route: &Route, fields: Events, message: &[u8]) -> Result<Bytes, wire::Malformed> {
    let mut out = b"id: ".to_vec();
    write::field(&mut out, route.output, fields.id.into(), message)?;
    let mut data = Vec::new();
    write::field(&mut data, route.output, fields.data.into(), message)?;
    if data != b"null" {
        out.extend_from_slice(b"\ndata: ");
        out.append(&mut data);
    }
    out.extend_from_slice(b"\n\n");
    Ok(out.into())
}

struct State<H> {
    host: Arc<H>,
    route: &'static Route,
    form: Form,
    /// The names of the columns, until they are sent.
    header: Option<Bytes>,
    request_id: Option<HeaderValue>,
    messages: Option<Streaming<Bytes>>,
}

pub(crate) fn respond<H: Host>(
    host: Arc<H>,
    route: &'static Route,
    form: Form,
    request_id: Option<HeaderValue>,
    reply: tonic::Response<Streaming<Bytes>>,
) -> Response {
    let (metadata, messages, _) = reply.into_parts();
    let header = (form == Form::Rows).then(|| csv::header(route));
    let state = State { host, route, form, header, request_id, messages: Some(messages) };
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
    answer::forward(&metadata.into_headers(), headers);
    response
}

impl<H: Host> State<H> {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(header) = self.header.take() {
            return Some(header);
        }
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
            Ok(Some(message)) => match self.form.message(self.route, &message) {
                Ok(chunk) => Some(chunk),
                Err(_) => self.fail(&answer::broken(self.route)),
            },
            Err(status) => self.fail(&Fault::from(status)),
        }
    }

    fn fail(&mut self, fault: &Fault) -> Option<Bytes> {
        self.messages = None;
        let id = self.request_id.as_ref().and_then(|id| id.to_str().ok());
        self.form.failure(&self.host.render(fault, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sent_to_clients_that_accept_them() {
        for (accept, events) in [
            ("text/event-stream", true),
            ("TEXT/EVENT-STREAM", true),
            ("application/json, text/event-stream;q=0.5", true),
            ("text/event-stream; charset=utf-8", true),
            ("text/event-stream;q=0", false),
            ("text/event-stream; Q=0.000, application/x-ndjson", false),
            ("text/event-streams", false),
            ("*/*", false),
            ("", false),
        ] {
            let named = accept.split(',').any(|range| accepts(range, "text/event-stream"));
            assert_eq!(named, events, "{accept}");
        }
    }
}

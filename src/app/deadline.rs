//! A deadline for every call. After it the call fails, its action is not permitted, and the work
//! stops.
//!
//! This layer is the outermost. The deadline therefore includes every wait of a call: its body, its
//! credential, the database. A stream that has started has only its caller's deadline.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, response::Response};
use futures_util::future::Either;
use gateway_rest::{Fault, Host as _};
use http::{HeaderMap, HeaderValue, Request, header};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::{Layer, Service};

use super::{
    deciding::ONE_QUESTION,
    host::RestHost,
    wrapped::{Around, Wrapped},
};
use crate::{routes::ROUTES, transport::is_grpc};
use authority_api::{
    deadline::{CALL, DECISION, Deadline},
    error::{ApiError, DOMAIN, ErrorCode},
};

const TIMEOUT: &str = "grpc-timeout";

/// A gRPC caller's own deadline, in the extensions of its call; it also applies to streams.
#[derive(Clone, Copy)]
pub(super) struct CallerDeadline(pub(super) Deadline);

/// The layer around all routes that sets each call's deadline and answers late calls.
#[derive(Clone)]
pub(super) struct DeadlineLayer {
    host: Arc<RestHost>,
    /// The paths of decisions, over gRPC and REST, up to the first variable.
    decisions: Arc<[&'static str]>,
}

impl DeadlineLayer {
    pub(super) fn new(host: RestHost) -> Self {
        let rest = ROUTES.iter().filter(|route| ONE_QUESTION.contains(&route.rpc));
        let rest = rest.map(|route| route.path.split('{').next().unwrap_or(route.path));
        let decisions = ONE_QUESTION.into_iter().chain(rest).collect();
        Self { host: Arc::new(host), decisions }
    }

    fn limit(&self, path: &str) -> Duration {
        let is = |decision: &&str| path == *decision || is_below(path, decision);
        if self.decisions.iter().any(is) { DECISION } else { CALL }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Wrapped<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Wrapped::new(self, inner)
    }
}

impl<S> Around<S> for DeadlineLayer
where
    S: Service<Request<Body>, Response = Response, Error = Infallible>,
{
    type Future = Either<ResponseFuture<S::Future>, Ready<Result<Response, Infallible>>>;

    fn call(&self, inner: &mut S, mut request: Request<Body>) -> Self::Future {
        let own = self.limit(request.uri().path());
        let kind = request.headers().get(header::CONTENT_TYPE);
        let grpc = kind.filter(|_| is_grpc(request.headers())).cloned();
        let callers = match grpc.as_ref().map(|_| timeout(request.headers())) {
            None | Some(Ok(None)) => None,
            Some(Ok(Some(limit))) => Some(limit),
            Some(Err(refusal)) => {
                return Either::Right(ready(Ok(framed(refusal.into(), grpc.as_ref()))));
            }
        };
        let limit = callers.unwrap_or(own).min(own);
        let deadline = Deadline::after(limit);
        request.extensions_mut().insert(deadline);
        if let Some(limit) = callers {
            request.extensions_mut().insert(CallerDeadline(Deadline::after(limit)));
        }
        let (parts, body) = request.into_parts();
        let late = Late {
            host: Arc::clone(&self.host),
            request_id: self.host.request_id(&parts),
            is_callers: callers.is_some_and(|callers| callers < own),
            grpc,
            limit,
        };
        let request = Request::from_parts(parts, body);
        Either::Left(ResponseFuture {
            answer: inner.call(request),
            end: sleep_until(deadline.at().into()),
            late,
        })
    }
}

pin_project! {
    /// The response in time, or the error of a passed deadline.
    pub(super) struct ResponseFuture<F> {
        #[pin]
        answer: F,
        #[pin]
        end: Sleep,
        late: Late,
    }
}

impl<F> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response, Infallible>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if let Poll::Ready(answer) = this.answer.poll(context) {
            return Poll::Ready(answer);
        }
        // After this response, the caller drops this future, and with it the work.
        this.end.poll(context).map(|()| Ok(this.late.answer()))
    }
}

/// Whether a path is one segment below a prefix that ends with `/`.
fn is_below(path: &str, prefix: &str) -> bool {
    prefix.ends_with('/') && path.strip_prefix(prefix).is_some_and(|rest| !rest.contains('/'))
}

/// The response after the deadline.
struct Late {
    host: Arc<RestHost>,
    request_id: Option<HeaderValue>,
    /// The content type of a gRPC call.
    grpc: Option<HeaderValue>,
    is_callers: bool,
    limit: Duration,
}

impl Late {
    fn answer(&self) -> Response {
        let status = if self.is_callers {
            exceeded()
        } else {
            let text = format!(
                "no response within {} s: treat the action as not permitted, and retry with the \
                 same Idempotency-Key if there was one",
                self.limit.as_secs()
            );
            ApiError::new(ErrorCode::Unavailable, text).into()
        };
        if self.grpc.is_some() {
            return framed(status, self.grpc.as_ref());
        }
        gateway_rest::refusal(&*self.host, Fault::from(status), self.request_id.as_ref())
    }
}

/// The status after a gRPC caller's own deadline.
pub(super) fn exceeded() -> Status {
    let word = ErrorCode::Unavailable.word();
    let details = ErrorDetails::with_error_info(word, DOMAIN, []);
    let text = "no response within `grpc-timeout`: treat the action as not permitted";
    Status::with_error_details(Code::DeadlineExceeded, text, details)
}

/// A status as a gRPC response, in the caller's variant of gRPC.
fn framed(status: Status, kind: Option<&HeaderValue>) -> Response {
    let mut response = status.into_http();
    if let Some(kind) = kind {
        response.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
    }
    response
}

/// Reads `grpc-timeout` (gRPC over HTTP/2): up to 8 digits and a unit.
fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, ApiError> {
    let Some(value) = headers.get(TIMEOUT) else { return Ok(None) };
    let read = || {
        let (unit, digits) = value.as_bytes().split_last()?;
        let is_number = (1..=8).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        let number = str::from_utf8(digits).ok().filter(|_| is_number)?;
        let number: u64 = number.parse().ok()?;
        match unit {
            b'H' => Some(Duration::from_secs(number * 3600)),
            b'M' => Some(Duration::from_secs(number * 60)),
            b'S' => Some(Duration::from_secs(number)),
            b'm' => Some(Duration::from_millis(number)),
            b'u' => Some(Duration::from_micros(number)),
            b'n' => Some(Duration::from_nanos(number)),
            _ => None,
        }
    };
    let problem = "must be 1 to 8 digits and a unit: H, M, S, m, u or n";
    read().map(Some).ok_or_else(|| ApiError::field(TIMEOUT, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_read_as_grpc_writes_it() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(TIMEOUT, HeaderValue::from_static(text));
            timeout(&headers).ok().flatten()
        };
        for (text, millis) in [("1S", 1000), ("250m", 250), ("2M", 120_000), ("1H", 3_600_000)] {
            assert_eq!(read(text), Some(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(read("7u"), Some(Duration::from_micros(7)));
        assert_eq!(read("99999999n"), Some(Duration::from_nanos(99_999_999)));
        assert!(read("99999999H").is_some());
        for text in ["", "S", "1", "-1S", "+1S", "1.5S", "x", "1s", "123456789m", "1 S"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert!(timeout(&HeaderMap::new()).is_ok_and(|none| none.is_none()));
    }
}

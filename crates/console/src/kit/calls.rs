//! Calls of the service's own operations, in this process and with a person's own credential.
//!
//! A page has no other way to read or change data. The API's checks of credential, role, tenant and
//! limits therefore apply, and its log has every act. The available surfaces depend on the address
//! that the browser used.

use authority_api::error::ErrorCode;
use authority_model::{record::RpcRequest, surfaces::Surfaces};
use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::{Extensions, HeaderMap, HeaderValue, Request, StatusCode, Version, header};
use http_body_util::{BodyExt, Limited};
use prost::Message;
use serde_json::Value;
use tonic::{Code, Status};
use tower::ServiceExt;
use tracing::Instrument;

use crate::texts as t;

/// The largest answer that is read, in bytes: a page of approvals has at most 2 MiB of contexts.
const LARGEST: usize = 16 << 20;
/// The length of a gRPC frame's head: a flag for compression, and the message's length.
const FRAME_HEAD: usize = 5;

/// The maximum number of calls of one page that run at once. The calls wait in the same queues as
/// the tenant's decisions.
const AT_ONCE: usize = 8;

/// Runs the calls of a page, [`AT_ONCE`] at a time. Returns their results in order.
pub(crate) async fn some_at_once<F: Future>(calls: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    // Collected first: a stream over a closure that borrows is not `Send` for every lifetime.
    let calls: Vec<F> = calls.into_iter().collect();
    stream::iter(calls).buffered(AT_ONCE).collect().await
}

/// The service's own router, and one person's credential.
#[derive(Clone)]
pub(crate) struct Calls {
    api: Router,
    token: HeaderValue,
    /// The extensions of the page's request: the client's address, the surfaces, the request's id.
    extensions: Extensions,
}

impl Calls {
    /// # Errors
    /// The token is not a valid header value.
    pub(crate) fn new(api: Router, token: &str, extensions: Extensions) -> Result<Self, Status> {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut token = value.map_err(|_| Status::unauthenticated(t::kit::TOKEN_NOT_TEXT))?;
        token.set_sensitive(true);
        Ok(Self { api, token, extensions })
    }

    /// Calls the operation of a request.
    ///
    /// # Errors
    /// The errors of the operation.
    pub(crate) async fn call<Q: RpcRequest>(&self, request: &Q) -> Result<Q::Response, Status> {
        self.call_once(request, None).await
    }

    /// Calls the operation with an idempotency key. A call that is sent twice takes effect once.
    ///
    /// # Errors
    /// The errors of the operation.
    pub(crate) async fn call_once<Q: RpcRequest>(
        &self,
        request: &Q,
        idempotency_key: Option<&str>,
    ) -> Result<Q::Response, Status> {
        let key = idempotency_key.map(|key| ("idempotency-key", key));
        let path = format!("/{}", Q::METHOD);
        let answer = self.send(&path, request, key.as_slice()).await?;
        <Q::Response>::decode(answer.message).map_err(|_| unreadable())
    }

    /// Calls the operation with the path `rpc`, `/package.Service/Method`, and with these headers. Returns the encoded message of the response.
    ///
    /// # Errors
    /// The errors of the operation.
    pub(crate) async fn send(
        &self,
        rpc: &str,
        request: &impl Message,
        headers: &[(&str, &str)],
    ) -> Result<Answer, Status> {
        let mut call = Request::post(rpc)
            .version(Version::HTTP_2)
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .header(header::AUTHORIZATION, self.token.clone());
        for (name, value) in headers {
            call = call.header(*name, *value);
        }
        let call = call
            .body(Body::from(framed(request)))
            .map_err(|_| Status::invalid_argument(t::kit::HEADER_NOT_TEXT))?;
        let (head, body) = self.answer(call).await.into_parts();
        // If there is no message, the status is in the headers.
        succeeded(&head.headers)?;
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(|_| Status::internal(t::kit::ANSWER_CUT))?;
        if let Some(trailers) = body.trailers() {
            succeeded(trailers)?;
        }
        Ok(Answer { headers: head.headers, message: unframed(&body.to_bytes())? })
    }

    /// Returns a page of the service unchanged, whatever its status. `with_token` sends the person's token.
    pub(crate) async fn document(&self, path: &str, with_token: bool) -> Response {
        let mut call = Request::get(path);
        if with_token {
            call = call.header(header::AUTHORIZATION, self.token.clone());
        }
        let Ok(call) = call.body(Body::empty()) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        self.answer(call).await
    }

    /// Sends the call with the extensions of the page's request, in a span of its own. The API's
    /// layers name the current span after the operation. They must not rename the page's span.
    async fn answer(&self, mut call: Request<Body>) -> Response {
        *call.extensions_mut() = self.extensions.clone();
        let span = tracing::debug_span!("call");
        let Ok(answer) = self.api.clone().oneshot(call).instrument(span).await;
        answer
    }

    /// Returns a document of the REST API unchanged, in the media type that `accept` names. This is
    /// for long exports, which no message contains.
    ///
    /// # Errors
    /// The connection does not serve the path, or the errors of the operation.
    pub(crate) async fn get(&self, path: &str, accept: &str) -> Result<Response, Status> {
        // gRPC's rules depend on the surfaces. A path of REST is only checked where a connection is
        // served.
        let surfaces = self.extensions.get().copied().unwrap_or(Surfaces::NONE);
        if !surfaces.serve(path.split('?').next().unwrap_or_default()) {
            return Err(Status::permission_denied(t::kit::EXPORT_NOT_SERVED));
        }
        let call = Request::get(path).header(header::AUTHORIZATION, self.token.clone());
        let call = call.header(header::ACCEPT, accept);
        let call = call
            .body(Body::empty())
            .map_err(|_| Status::invalid_argument(t::kit::ADDRESS_NOT_TEXT))?;
        let answer = self.answer(call).await;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Err(refusal(&body))
    }
}

/// Reads the refusal in the body of an error.
fn refusal(body: &[u8]) -> Status {
    let error_body: Value = serde_json::from_slice(body).unwrap_or_default();
    let word = error_body["error"].as_str().unwrap_or_default();
    let known = ErrorCode::ALL.iter().find(|code| code.word() == word);
    let code = known.map_or(Code::Unavailable, |code| code.grpc());
    let message = error_body["message"].as_str().unwrap_or(t::kit::NO_ANSWER);
    Status::new(code, message)
}

/// The response of an operation.
pub(crate) struct Answer {
    headers: HeaderMap,
    /// One encoded message.
    pub(crate) message: Bytes,
}

impl Answer {
    /// The version of the record, for `If-Match`.
    pub(crate) fn tag(&self) -> Option<&str> {
        self.headers.get(header::ETAG)?.to_str().ok()
    }
}

fn succeeded(headers: &HeaderMap) -> Result<(), Status> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() != Code::Ok => Err(status),
        _ => Ok(()),
    }
}

fn framed(request: &impl Message) -> Bytes {
    let length = request.encoded_len();
    let mut frame = BytesMut::with_capacity(FRAME_HEAD + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    frame.put_slice(&request.encode_to_vec());
    frame.freeze()
}

/// Returns the message of a body with a single frame.
fn unframed(frame: &Bytes) -> Result<Bytes, Status> {
    let Some([0, length @ ..]) = frame.first_chunk::<FRAME_HEAD>() else {
        return Err(unreadable());
    };
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| unreadable())?;
    let body = frame.slice(FRAME_HEAD..);
    if body.len() == length { Ok(body) } else { Err(unreadable()) }
}

fn unreadable() -> Status {
    Status::internal(t::kit::UNREADABLE_ANSWER)
}

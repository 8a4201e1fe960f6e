//! A message that is no protobuf is the caller's fault: tonic calls it internal.

use http::{HeaderValue, Response};
use tonic::Code;

const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
/// How tonic's prost codec begins its message, percent-encoded as gRPC asks.
const CANNOT_DECODE: &[u8] = b"failed%20to%20decode%20Protobuf";

/// `INVALID_ARGUMENT` in the place of `INTERNAL` where the request could not be decoded.
pub(super) fn say_so<B>(mut response: Response<B>) -> Response<B> {
    let headers = response.headers();
    let is_internal = headers.get(STATUS).is_some_and(|status| status == "13");
    let is_ours = |message: &HeaderValue| message.as_bytes().starts_with(CANNOT_DECODE);
    if is_internal && headers.get(MESSAGE).is_some_and(is_ours) {
        let invalid = HeaderValue::from(Code::InvalidArgument as u16);
        response.headers_mut().insert(STATUS, invalid);
    }
    response
}

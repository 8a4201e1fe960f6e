//! The public OpenAPI document.
//!
//! All responses share the document's bytes, over REST and gRPC: a copy for each response would
//! take more than a megabyte until the caller has read it.

use authority_crypto::sha256;
use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

use authority_model::proto::directory::GetOpenApiResponse;
use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use gateway_rest::Document;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::Frame;
use http_body_util::StreamBody;
use prost::Message;
use tower::Service;

/// The method that returns the document.
pub(super) const GET_OPEN_API: &str = "/authority.directory.v1.DirectoryService/GetOpenApi";

/// The chunk size of the gRPC response; gRPC-Web's text form, base64, needs a multiple of three.
const CHUNK: usize = 15 << 10;

/// The document, prepared for both transports. Its `Service` implementation answers
/// [`GET_OPEN_API`] over gRPC.
#[derive(Clone)]
pub(super) struct OpenApi {
    pub(super) rest: Document,
    /// The response message with its prefix (gRPC over HTTP/2, "Length-Prefixed-Message").
    framed: Bytes,
}

impl OpenApi {
    pub(super) fn new(document: &str) -> Self {
        let tag = format!("\"{}\"", hex::encode(sha256(document.as_bytes())));
        let etag = HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""));
        let message = GetOpenApiResponse { document: document.to_owned() };
        let mut framed = BytesMut::with_capacity(message.encoded_len() + 5);
        framed.put_u8(0); // not compressed
        framed.put_u32(u32::try_from(message.encoded_len()).unwrap_or(u32::MAX));
        framed.put(message.encode_to_vec().as_slice());
        let framed = framed.freeze();
        // The document is the only field and therefore ends the message.
        let bytes = framed.slice(framed.len() - document.len()..);
        Self { rest: Document { bytes, etag }, framed }
    }
}

impl<B> Service<Request<B>> for OpenApi {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let mut rest = self.framed.clone();
        let pieces = std::iter::from_fn(move || {
            let piece = rest.split_to(rest.len().min(CHUNK));
            (!piece.is_empty()).then(|| Frame::data(piece))
        });
        let status = HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            HeaderValue::from_static("0"),
        )]);
        let frames = pieces.chain([Frame::trailers(status)]).map(Ok::<_, Infallible>);
        let mut answer = Response::new(Body::new(StreamBody::new(stream::iter(frames).boxed())));
        let kind = HeaderValue::from_static("application/grpc");
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
        ready(Ok(answer))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    /// Each response is a view of the same bytes, over REST and gRPC.
    #[tokio::test]
    async fn answers_share_the_documents_bytes() {
        const TEXT: &str = "0123456789abcdef";
        let open_api = OpenApi::new(TEXT);
        assert_eq!(open_api.rest.bytes, TEXT);
        assert_eq!(open_api.rest.bytes.as_ptr(), open_api.framed[7..].as_ptr());
        let first = async || {
            let answer = open_api.clone().call(Request::new(())).await.unwrap();
            let frame = answer.into_body().frame().await.unwrap().unwrap();
            frame.into_data().unwrap().as_ptr()
        };
        assert_eq!(first().await, open_api.framed.as_ptr());
        assert_eq!(first().await, open_api.framed.as_ptr());
    }
}

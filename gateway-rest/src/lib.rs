//! JSON REST in front of tonic services, in process, from the tables of `gateway-rest-build`.
//!
//! A call passes these stages: route, [`Host::admit`], JSON text -> protobuf bytes, the tonic
//! stack, protobuf bytes -> JSON text. Message types are known only by their [`Shape`]: the code
//! does not grow with the API. One pass finds every problem of a body.

mod answer;
mod codec;
mod csv;
mod fault;
mod gateway;
mod host;
mod nearest;
mod paths;
mod problems;
mod read;
mod request;
mod route;
mod shape;
mod shorten;
mod stream;
mod time;
mod wire;
mod write;

use axum::Router;
use bytes::Bytes;
use tonic::client::GrpcService;

pub use answer::refusal;
pub use codec::Raw;
pub use fault::{Fault, Problem, Refused, reason};
pub use gateway::{Call, Gateway, content_coding, unread_coding};
pub use host::{Document, Host, google_rpc_status};
pub use nearest::suggestion;
use problems::Problems;
use read::Reader;
pub use read::{BEYOND, NUL, strict};
pub use route::{Body, Column, Events, Route, Segment, Variable};
pub use shape::{Cardinality, Field, Kind, Shape};
pub use shorten::{json_len, shortened};
pub use time::{SPAN, before};

/// Converts JSON text to protobuf. Reports every problem of the text at once.
pub fn to_proto(shape: &'static Shape, json: &[u8]) -> Result<Bytes, Fault> {
    let text = read::utf8(json)?;
    let (mut out, mut problems) = (Vec::with_capacity(json.len()), Problems::default());
    let read = Reader::new(text, &mut out, &mut problems).whole(shape);
    read::verdict(read, text, &mut problems)?;
    if problems.is_empty() { Ok(out.into()) } else { Err(problems.into_fault()) }
}

/// Converts protobuf to JSON text with all members, in the proto's order.
///
/// # Errors
/// The bytes are not a message of this shape.
pub fn to_json(shape: &'static Shape, proto: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::with_capacity(proto.len() * 2 + 64);
    write::message(&mut out, shape, proto, 0).map_err(|wire::Malformed| {
        let message = format!("the bytes are not a `{}`", shape.name);
        Fault::new(tonic::Code::Internal, reason::INTERNAL, message)
    })?;
    Ok(out)
}

/// Returns an axum router of the routes over `grpc`, a tower service such as
/// `tonic::service::Routes`, with or without layers. It can serve as a fallback: it responds to
/// every path, and returns the host's 404 for unknown paths.
pub fn router<H: Host, S>(
    routes: impl IntoIterator<Item = &'static Route>,
    grpc: S,
    host: H,
) -> Router
where
    S: GrpcService<tonic::body::Body> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <S::ResponseBody as http_body::Body>::Error:
        Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    Router::new().fallback_service(Gateway::new(routes, grpc, host))
}

//! JSON REST in front of tonic services, in process, from tables made by `gateway-rest-build`.
//!
//! A call goes: route, [`Host::admit`], JSON text -> protobuf bytes, the tonic stack, protobuf
//! bytes -> JSON text. No message type is known here, only its [`Shape`]; so the code does not
//! grow with the API, and every fault of a body is found in one pass.

mod fault;
mod host;
mod route;
mod shape;

use axum::Router;
use bytes::Bytes;

pub use fault::{Fault, Problem, reason};
pub use host::{Host, google_rpc_status};
pub use route::{Body, Route, Segment, Variable};
pub use shape::{Cardinality, Field, Kind, Shape};

/// JSON text -> protobuf. Reports every fault of the text at once.
pub fn to_proto(shape: &'static Shape, json: &[u8]) -> Result<Bytes, Fault> {
    let _ = (shape, json);
    Err(Fault::new(tonic::Code::Unimplemented, reason::INTERNAL, "to come"))
}

/// Protobuf -> JSON text, members in the proto's order, all of them. The fault is the caller's
/// own: bytes that are not this message.
pub fn to_json(shape: &'static Shape, proto: &[u8]) -> Result<Vec<u8>, Fault> {
    let _ = (shape, proto);
    Err(Fault::new(tonic::Code::Unimplemented, reason::INTERNAL, "to come"))
}

/// The routes as an axum router over `grpc`, a tower service such as `tonic::service::Routes`,
/// bare or in layers. Serves as a fallback: it answers every path, unknown ones with the host's
/// 404.
pub fn router<H: Host, S>(
    routes: impl IntoIterator<Item = &'static Route>,
    grpc: S,
    host: H,
) -> Router
where
    S: tower::Service<http::Request<tonic::body::Body>> + Clone + Send + Sync + 'static,
{
    let _ = (routes.into_iter().count(), grpc, host);
    Router::new()
}

//! The services of `../proto`: a trait for each, and a function to serve it over gRPC.
//!
//! tonic generates a server that is generic over every method's messages. Its framing was compiled
//! about 150 times and made up a quarter of the service's code. Here tonic's framing is compiled
//! once, over bytes. Only decoding and encoding are specific to a method.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use gateway_rest::{Call as RestCall, Raw};
use http::Uri;
use prost::Message;
use tokio_stream::{Stream, StreamExt};
use tonic::{
    Code, Request, Response, Status,
    body::Body,
    codegen::{BoxFuture, Service as Tower, StdError, tokio_stream},
    server::{Grpc, ServerStreamingService},
};
use tonic_types::{ErrorDetails, StatusExt};

use crate::{
    tenant_ids::{TenantIds, complete},
    unknown::{Holds, Known, KnownField},
};

include!(concat!(env!("OUT_DIR"), "/services.rs"));

/// The result of a unary method.
pub type Reply<T> = Result<Response<T>, Status>;
/// The result of a server-streaming method.
pub type Replies<T> = Reply<Messages<T>>;
/// A stream of messages.
pub type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A method's encoded responses.
///
/// A unary method also returns a stream, with one response. The bytes on the wire are the same, and
/// the same code serves all methods.
type Answers = BoxFuture<Response<Messages<Bytes>>, Status>;
/// The name of a method and its handler.
type Handler<S> = (&'static str, fn(Arc<S>, Request<Bytes>) -> Answers);
/// Calls the method with that name, or returns `None` if it does not exist.
type Call = dyn Fn(&str, Request<Bytes>) -> Option<Answers> + Send + Sync;

/// The initial size of a response buffer, in bytes. Most responses fit.
const ANSWER: usize = 2 << 10;

/// A gRPC service, routed under [`Service::paths`].
#[derive(Clone)]
pub struct Service {
    name: &'static str,
    methods: Arc<[&'static str]>,
    call: Arc<Call>,
    /// The largest accepted request, in bytes.
    limit: usize,
}

impl Service {
    fn new<S>(name: &'static str, handlers: &'static [Handler<S>], rpcs: Arc<S>) -> Self
    where
        S: ?Sized + Send + Sync + 'static,
    {
        let call = move |method: &str, call| {
            let (_, handler) = handlers.iter().find(|(name, _)| *name == method)?;
            Some(handler(Arc::clone(&rpcs), call))
        };
        let methods = handlers.iter().map(|(name, _)| *name).collect();
        Self { name, methods, call: Arc::new(call), limit: 4 << 20 }
    }

    /// Limits requests to `limit` bytes. The default is 4 MiB.
    ///
    /// Larger requests fail with `OUT_OF_RANGE`, as in tonic.
    #[must_use]
    pub fn limited_to(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Returns the full name of the service: `authority.registry.v1.ToolService`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the path of each method for the router:
    /// `/authority.registry.v1.ToolService/CreateTool`.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        let name = self.name;
        self.methods.iter().map(move |method| format!("/{name}/{method}"))
    }

    /// Whether a path is below the service's name.
    pub fn has(&self, path: &str) -> bool {
        let rest = path.strip_prefix('/').and_then(|path| path.strip_prefix(self.name));
        rest.is_some_and(|rest| rest.starts_with('/'))
    }
}

impl<B> Tower<http::Request<B>> for Service
where
    B: tonic::codegen::Body + Send + 'static,
    B::Error: Into<StdError> + Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let limit = self.limit;
        let method = Method { call: Arc::clone(&self.call), uri: request.uri().clone() };
        Box::pin(async move {
            let mut grpc = Grpc::new(Raw { length: ANSWER }).max_decoding_message_size(limit);
            Ok(grpc.server_streaming(method, request).await)
        })
    }
}

/// The method for a request's path.
struct Method {
    call: Arc<Call>,
    uri: Uri,
}

impl ServerStreamingService<Bytes> for Method {
    type Response = Bytes;
    type ResponseStream = Messages<Bytes>;
    type Future = Answers;

    fn call(&mut self, request: Request<Bytes>) -> Answers {
        // The method's name is the rest of the path after the service's name. The access check
        // reads the name in the same way.
        let name = self.uri.path().splitn(3, '/').nth(2).unwrap_or_default();
        let unknown = || Box::pin(async { Err(Status::unimplemented("no such method")) }) as _;
        (self.call)(name, request).unwrap_or_else(unknown)
    }
}

/// Decodes a request. Malformed protobuf is the caller's error; tonic's own codec would report an
/// internal error.
///
/// With `known`, unknown fields are also the caller's error. Requests from the REST gateway are not
/// checked: the gateway marks them with a [`RestCall`] and writes only known fields.
///
/// Replaces the slugs of tenants by the tenants' ids.
fn read<T: Message + Default + TenantIds>(
    request: Request<Bytes>,
    known: Option<&'static Known>,
) -> Result<Request<T>, Status> {
    let (metadata, extensions, bytes) = request.into_parts();
    let mut message = T::decode(&*bytes).map_err(|error| unreadable(&error.to_string()))?;
    message.complete_tenants();
    if let Some(known) = known.filter(|_| extensions.get::<RestCall>().is_none()) {
        known.check(&bytes)?;
    }
    Ok(Request::from_parts(metadata, extensions, message))
}

/// Reports the field that exceeds prost's nesting limit.
///
/// prost's error text lists the fields from the innermost to the outermost, each after the name of
/// its message.
fn unreadable(error: &str) -> Status {
    const FREE: [&str; 4] = ["Struct", "Value", "ListValue", "FieldsEntry"];
    let mut details = ErrorDetails::with_error_info("invalid_request", "authority", []);
    let Some(way) = error.strip_suffix(": recursion limit reached") else {
        return Status::with_error_details(Code::InvalidArgument, error, details);
    };
    let members = way.rsplit(": ").filter_map(|step| step.split_once('.'));
    let members = members.filter(|(message, _)| !FREE.contains(message));
    let member = members.map(|(_, member)| member).collect::<Vec<_>>().join(".");
    let problem = "is nested deeper than 32 levels";
    details.add_bad_request_violation(&member, problem);
    let message = format!("the request is invalid: `{member}` {problem}");
    Status::with_error_details(Code::InvalidArgument, message, details)
}

/// The id of the record that a call wrote. Stored in the response's extensions, for the admin log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRecord(pub String);

/// Encodes a unary response. `id` returns the id of the written record.
fn one<T: Message>(reply: Reply<T>, id: impl FnOnce(&T) -> Option<String>) -> Replies<Bytes> {
    let mut response = reply?;
    if let Some(id) = id(response.get_ref()) {
        response.extensions_mut().insert(WrittenRecord(id));
    }
    Ok(response.map(|message| Box::pin(tokio_stream::once(Ok(written(&message)))) as _))
}

fn many<T: Message + 'static>(replies: Replies<T>) -> Replies<Bytes> {
    let written = |next: Result<T, Status>| next.map(|message| written(&message));
    Ok(replies?.map(|messages| Box::pin(messages.map(written)) as _))
}

fn written(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_method_is_named_by_all_of_the_path() {
        for (path, named) in [
            ("/a.v1.B/Delete", "Delete"),
            ("/a.v1.B/Get/Delete", "Get/Delete"),
            ("/a.v1.B/Delete/", "Delete/"),
            ("/a.v1.B//Delete", "/Delete"),
            ("/a.v1.B", ""),
        ] {
            let asked = Arc::new(Mutex::new(String::new()));
            let heard = Arc::clone(&asked);
            let call: Arc<Call> = Arc::new(move |name, _| {
                name.clone_into(&mut heard.lock().unwrap());
                None
            });
            let mut method = Method { call, uri: Uri::from_static(path) };
            drop(method.call(Request::new(Bytes::new())));
            assert_eq!(*asked.lock().unwrap(), named, "{path}");
        }
    }
}

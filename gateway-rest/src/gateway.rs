//! The tower service that turns HTTP requests into gRPC calls.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{body::Body, extract::Request, response::Response};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request::Parts, uri::PathAndQuery,
};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tonic::{
    Code, Status,
    client::{Grpc, GrpcService},
    metadata::MetadataMap,
};

use crate::{
    answer,
    codec::Raw,
    fault::{Fault, reason},
    host::Host,
    nearest,
    paths::Tree,
    request,
    route::{Body as BodyOf, Route},
    shorten::shortened,
    stream,
};

/// An extension of every REST call, for [`Host::admit`] and the handler.
#[derive(Clone, Debug)]
pub struct Call {
    pub route: &'static Route,
    pub method: Method,
    /// The URI as the client sent it.
    pub uri: Uri,
}

/// Headers of the HTTP message that have no meaning in gRPC, or another meaning.
const DROPPED: [&str; 14] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "grpc-accept-encoding",
    "grpc-encoding",
    "grpc-timeout",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// A tower service over `S`: see [`router`](crate::router).
pub struct Gateway<H, S> {
    grpc: S,
    inner: Arc<Inner<H>>,
}

struct Inner<H> {
    host: Arc<H>,
    tree: Tree,
    routes: Vec<&'static Route>,
}

impl<H, S: Clone> Clone for Gateway<H, S> {
    fn clone(&self) -> Self {
        Self { grpc: self.grpc.clone(), inner: Arc::clone(&self.inner) }
    }
}

impl<H: Host, S> Gateway<H, S> {
    pub fn new(routes: impl IntoIterator<Item = &'static Route>, grpc: S, host: H) -> Self {
        let routes: Vec<_> = routes.into_iter().collect();
        let mut tree = Tree::default();
        for route in &routes {
            tree.insert(route);
        }
        Self { grpc, inner: Arc::new(Inner { host: Arc::new(host), tree, routes }) }
    }
}

impl<H, S> tower::Service<Request> for Gateway<H, S>
where
    H: Host,
    S: GrpcService<tonic::body::Body> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <S::ResponseBody as http_body::Body>::Error:
        Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Request) -> Self::Future {
        let (grpc, inner) = (self.grpc.clone(), Arc::clone(&self.inner));
        Box::pin(async move { Ok(inner.answer(grpc, call).await) })
    }
}

impl<H: Host> Inner<H> {
    async fn answer<S>(&self, grpc: S, call: Request) -> Response
    where
        S: GrpcService<tonic::body::Body>,
        S::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
        <S::ResponseBody as http_body::Body>::Error:
            Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        let (mut parts, body) = call.into_parts();
        let request_id = self.host.request_id(&parts);
        let is_head = parts.method == Method::HEAD;
        let response = match self.tree.find(parts.method.as_str(), parts.uri.path()) {
            Some(route) => self.call(grpc, route, parts, body, request_id.as_ref()).await,
            None => Err(self.unroutable(&mut parts).await),
        };
        let response = response
            .unwrap_or_else(|fault| answer::refusal(&*self.host, fault, request_id.as_ref()));
        if is_head { headers_only(response) } else { response }
    }

    /// Returns the error for an unknown path or an unsupported method. If the caller is not
    /// admitted, the error does not reveal a path's verbs and methods.
    async fn unroutable(&self, parts: &mut Parts) -> Fault {
        let path = parts.uri.path();
        let last = path.rsplit('/').next().unwrap_or_default();
        let unknown_verb = self.tree.unknown_verb(path).filter(|_| !self.host.is_id(last));
        if let Some((route, verb)) = unknown_verb {
            let verbs = self.routes.iter().copied().filter(|route| !route.verb.is_empty());
            let near = nearest::route(path, parts.method.as_str(), verbs);
            let near = near.map_or(String::new(), |route| {
                format!("; did you mean {} {}?", route.method, route.path)
            });
            let message = format!("this path has no verb `:{verb}`{near}");
            if let Err(refused) = self.admit(route, parts).await {
                return answer::failed(refused);
            }
            let fault = Fault::new(Code::NotFound, reason::NOT_FOUND, message);
            return Fault { status: Some(StatusCode::NOT_FOUND), ..fault };
        }
        let routes = self.tree.all(path);
        let Some(route) = routes.first() else {
            let near = nearest::route(path, parts.method.as_str(), self.routes.iter().copied());
            let message = near.map_or("this path is unknown".to_owned(), |route| {
                format!("this path is unknown; did you mean {} {}?", route.method, route.path)
            });
            let fault = Fault::new(Code::NotFound, reason::NOT_FOUND, message);
            return Fault { status: Some(StatusCode::NOT_FOUND), ..fault };
        };
        let mut methods: Vec<&str> = routes.iter().map(|route| route.method).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.sort_unstable();
        methods.dedup();
        let allow = methods.join(", ");
        if let Err(refused) = self.admit(route, parts).await {
            return answer::failed(refused);
        }
        let message = format!("this path takes {allow}, not {}", parts.method);
        let fault = Fault::new(Code::Unimplemented, reason::METHOD_NOT_ALLOWED, message);
        Fault {
            status: Some(StatusCode::METHOD_NOT_ALLOWED),
            metadata: vec![("allow".to_owned(), allow)],
            ..fault
        }
    }

    async fn admit(&self, route: &'static Route, parts: &mut Parts) -> Result<(), Status> {
        let call = Call { route, method: parts.method.clone(), uri: parts.uri.clone() };
        parts.extensions.insert(call);
        self.host.admit(route, parts).await
    }

    async fn call<S>(
        &self,
        grpc: S,
        route: &'static Route,
        mut parts: Parts,
        body: Body,
        request_id: Option<&HeaderValue>,
    ) -> Result<Response, Fault>
    where
        S: GrpcService<tonic::body::Body>,
        S::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
        <S::ResponseBody as http_body::Body>::Error:
            Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        self.admit(route, &mut parts).await.map_err(answer::failed)?;
        let body = self.read(&parts.headers, route, body).await?;
        let query = parts.uri.query().unwrap_or_default();
        let now = || self.host.now();
        let message =
            request::assemble(route, parts.uri.path(), query, now, &parts.headers, &body)?;
        let limit = self.host.message_limit();
        if message.len() > limit {
            return Err(too_large_in_protobuf(body.len(), message.len(), limit));
        }
        if let Some(document) = self.host.document(route) {
            return Ok(answer::document(route, &parts.headers, document));
        }
        let known: Vec<HeaderValue> = match route.method {
            "GET" => parts.headers.get_all(header::IF_NONE_MATCH).iter().cloned().collect(),
            _ => Vec::new(),
        };
        let codec = Raw { length: message.len() };
        let form = stream::Form::of(route, &parts.headers);
        let request =
            tonic::Request::from_parts(metadata(parts.headers), parts.extensions, message);
        // The call is in process: a large response needs no limit.
        let mut client = Grpc::new(grpc).max_decoding_message_size(usize::MAX);
        client.ready().await.map_err(|_| {
            Fault::new(Code::Unavailable, reason::UNAVAILABLE, "the service is unavailable")
        })?;
        let rpc = PathAndQuery::from_static(route.rpc);
        if route.streams {
            let reply = client.server_streaming(request, rpc, codec).await;
            let reply = reply.map_err(|status| refused(route, status))?;
            let host = Arc::clone(&self.host);
            return Ok(stream::respond(host, route, form, request_id.cloned(), reply));
        }
        let reply = client.unary(request, rpc, codec).await;
        let reply = reply.map_err(|status| refused(route, status))?;
        let response = answer::success(route, parts.uri.path(), reply)?;
        Ok(if known.is_empty() { response } else { answer::unless_known(response, &known) })
    }

    async fn read(
        &self,
        headers: &HeaderMap,
        route: &'static Route,
        body: Body,
    ) -> Result<Bytes, Fault> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        if let Some(coding) = content_coding(headers) {
            return Err(unread_coding(&coding));
        }
        let limit = match route.body_bytes {
            0 => self.host.body_limit(),
            own => self.host.body_limit().min(own as usize),
        };
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large(limit));
        }
        let body = Limited::new(body, limit).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                return too_large(limit);
            }
            Fault::invalid(request::whole("the body ended early"), 0)
        })?;
        let body = body.to_bytes();
        if !body.is_empty() && route.body != BodyOf::None && !is_json(headers, route) {
            let message = if route.method == "PATCH" {
                "send the members to change as `Content-Type: application/json`; JSON Merge Patch and JSON Patch are \
                 not supported"
            } else {
                "send the body as `Content-Type: application/json`"
            };
            let fault = Fault::new(Code::InvalidArgument, reason::UNSUPPORTED_MEDIA_TYPE, message);
            return Err(Fault { status: Some(StatusCode::UNSUPPORTED_MEDIA_TYPE), ..fault });
        }
        Ok(body)
    }
}

/// Converts the service's member names, from the request message, to the names in the client's
/// body.
fn refused(route: &'static Route, status: Status) -> Fault {
    let fault = answer::failed(status);
    match route.body_field() {
        Some(field) => fault.below(field.name),
        None => fault,
    }
}

fn too_large(limit: usize) -> Fault {
    refuse_large(format!("the body is larger than {limit} bytes"))
}

fn too_large_in_protobuf(body: usize, found: usize, limit: usize) -> Fault {
    refuse_large(format!(
        "the body of {body} bytes is {found} bytes as protobuf; the limit is {limit} bytes"
    ))
}

fn refuse_large(message: String) -> Fault {
    let fault = Fault::new(Code::OutOfRange, reason::TOO_LARGE, message);
    Fault { status: Some(StatusCode::PAYLOAD_TOO_LARGE), ..fault }
}

/// Returns the content coding of a body (RFC 9110 section 8.4), shortened; `None` without one.
pub fn content_coding(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let text = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let mut codings = text.flat_map(|list| {
        list.split(',').map(|coding| coding.trim().to_owned()).collect::<Vec<_>>()
    });
    let coded = |coding: &String| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity");
    codings.find(coded).map(|coding| shortened(&coding, 100).into_owned())
}

/// Returns a 415 for a body with a content coding.
pub fn unread_coding(coding: &str) -> Fault {
    let message = format!(
        "`Content-Encoding: {coding}` is not supported; send the body uncoded, without the header"
    );
    let fault = Fault::new(Code::InvalidArgument, reason::UNSUPPORTED_MEDIA_TYPE, message);
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Fault {
        status: Some(StatusCode::UNSUPPORTED_MEDIA_TYPE),
        headers: Some(Box::new(headers)),
        ..fault
    }
}

/// Returns whether the body is `application/json` or `…+json`. Parameters such as `charset` are
/// ignored: JSON is always UTF-8 (RFC 8259, section 8.1).
fn is_json(headers: &HeaderMap, route: &Route) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| {
        let essence = value.split(';').next().unwrap_or_default().trim();
        // The body of a PATCH has neither of these formats (RFC 7396, RFC 6902), though both are
        // JSON.
        let is_patch = ["application/merge-patch+json", "application/json-patch+json"];
        let is_patch = is_patch.iter().any(|patch| essence.eq_ignore_ascii_case(patch));
        if is_patch && route.method == "PATCH" {
            return false;
        }
        let ends = essence.len().checked_sub(5).and_then(|at| essence.get(at..));
        essence.eq_ignore_ascii_case("application/json")
            || ends.is_some_and(|end| end.eq_ignore_ascii_case("+json"))
    })
}

fn metadata(mut headers: HeaderMap) -> MetadataMap {
    for name in DROPPED {
        headers.remove(name);
    }
    MetadataMap::from_headers(headers)
}

/// Returns the response to HEAD: the response to GET, with its length and without its body.
fn headers_only(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, Body::empty())
}

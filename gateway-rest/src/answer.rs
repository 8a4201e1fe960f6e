//! Responses and errors as HTTP.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tonic::Code;

use crate::{
    fault::{Fault, Refused, reason},
    host::{Document, Host},
    route::Route,
    shape::{Cardinality, Field, Kind, Shape},
    wire::{self, Value},
    write,
};

/// Response metadata that becomes HTTP headers.
const FORWARDED: [HeaderName; 6] = [
    header::ETAG,
    header::LOCATION,
    header::RETRY_AFTER,
    HeaderName::from_static("idempotency-replayed"),
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("ratelimit-policy"),
];

/// Response metadata with the status, if it differs from the route's status.
pub(crate) const STATUS: &str = "http-status";

/// The characters to encode in a path segment. An id's colons may stay (RFC 3986, section 3.3).
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');
/// The characters to encode in the value of a query parameter.
const QUERY: &AsciiSet = &SEGMENT.add(b'&').add(b'=').add(b'+');

const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(crate) fn success(
    route: &'static Route,
    path: &str,
    reply: tonic::Response<Bytes>,
) -> Result<Response, Fault> {
    let (metadata, message, _) = reply.into_parts();
    let own = metadata.get(STATUS).and_then(|own| StatusCode::from_bytes(own.as_bytes()).ok());
    let status = own.or(StatusCode::from_u16(route.status).ok()).unwrap_or_default();
    let mut response = if status == StatusCode::NO_CONTENT {
        Response::new(Body::empty())
    } else {
        let body = body(route, &message).map_err(|wire::Malformed| broken(route))?;
        let mut response = Response::new(Body::from(body));
        response.headers_mut().insert(header::CONTENT_TYPE, content_type(route));
        response
    };
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, caching(route));
    if status == StatusCode::CREATED
        && let Some(location) = location(route, path, &message)
    {
        headers.insert(header::LOCATION, location);
    }
    forward(&metadata.into_headers(), headers);
    Ok(response)
}

fn content_type(route: &Route) -> HeaderValue {
    match route.content_type {
        "" => JSON,
        own => HeaderValue::from_static(own),
    }
}

fn caching(route: &Route) -> HeaderValue {
    match route.max_age_seconds {
        0 => HeaderValue::from_static("no-store"),
        seconds => HeaderValue::try_from(format!("public, max-age={seconds}"))
            .unwrap_or(HeaderValue::from_static("no-store")),
    }
}

pub(crate) fn forward(from: &HeaderMap, to: &mut HeaderMap) {
    for name in FORWARDED {
        if let Some(value) = from.get(&name) {
            to.insert(name, value.clone());
        }
    }
}

pub(crate) fn broken(route: &Route) -> Fault {
    let message = format!("the response of `{}` is not a valid message", route.rpc);
    Fault::new(Code::Internal, reason::INTERNAL, message)
}

/// Returns the body of a success, in the route's form.
pub(crate) fn body(route: &Route, message: &[u8]) -> Result<Vec<u8>, wire::Malformed> {
    let shape = route.output;
    if let Some(field) = raw_field(route).filter(|_| route.envelope.is_empty()) {
        return raw(field, shape, message);
    }
    let mut out = Vec::with_capacity(message.len() * 2 + 64);
    match (route.ok, route.envelope) {
        (false, "") => content(&mut out, route, message)?,
        (true, "") => {
            out.extend_from_slice(b"{\"ok\":true");
            if !shape.fields.is_empty() {
                out.push(b',');
            }
            write::members(&mut out, shape, message, 0)?;
            out.push(b'}');
        }
        (ok, envelope) => {
            let begin: &[u8] = if ok { b"{\"ok\":true,\"" } else { b"{\"" };
            out.extend_from_slice(begin);
            out.extend_from_slice(envelope.as_bytes());
            out.extend_from_slice(b"\":");
            content(&mut out, route, message)?;
            out.push(b'}');
        }
    }
    Ok(out)
}

fn raw_field(route: &Route) -> Option<&'static Field> {
    route.output.fields.get(usize::from(route.raw?))
}

fn content(out: &mut Vec<u8>, route: &Route, message: &[u8]) -> Result<(), wire::Malformed> {
    if let Some(field) = raw_field(route) {
        out.extend(raw(field, route.output, message)?);
        return Ok(());
    }
    match route.response_body {
        Some(at) => write::field(out, route.output, usize::from(at), message),
        None => write::message(out, route.output, message, 0),
    }
}

fn raw(field: &Field, shape: &Shape, message: &[u8]) -> Result<Vec<u8>, wire::Malformed> {
    if matches!(field.kind, Kind::String | Kind::Bytes) {
        return Ok(match write::only(field, message)? {
            Some(Value::Bytes(bytes)) => bytes.to_vec(),
            _ => Vec::new(),
        });
    }
    let mut out = Vec::with_capacity(message.len() * 2);
    write::field(&mut out, shape, shape.position(field.name).unwrap_or_default(), message)?;
    Ok(out)
}

/// Returns the URL of a new record below the collection, if GET reads it there. The URL has the
/// record's `id`. Without an `id`, it has that of the first record in the response.
fn location(route: &Route, path: &str, message: &[u8]) -> Option<HeaderValue> {
    let location = route.location?;
    if !location.is_empty() {
        let fields = location.iter().map(|at| route.output.fields.get(usize::from(*at)));
        let query = fields.map(|field| {
            let field = field?;
            let text = text(field, message).unwrap_or_default();
            Some(format!("{}={}", field.name, utf8_percent_encode(text, QUERY)))
        });
        let query = query.collect::<Option<Vec<_>>>()?.join("&");
        return HeaderValue::try_from(format!("{path}/_?{query}")).ok();
    }
    let id = id(route.output, message).or_else(|| {
        route.output.fields.iter().find_map(|field| match &field.kind {
            Kind::Message(inner) if field.cardinality == Cardinality::Optional => {
                let Some(Value::Bytes(message)) = write::only(field, message).ok()? else {
                    return None;
                };
                id(inner, message)
            }
            _ => None,
        })
    })?;
    let id = utf8_percent_encode(id, SEGMENT);
    HeaderValue::try_from(format!("{path}/{id}")).ok()
}

fn id<'a>(shape: &Shape, message: &'a [u8]) -> Option<&'a str> {
    text(shape.field("id")?, message).filter(|id| !id.is_empty())
}

/// Returns a field of type string.
fn text<'a>(field: &Field, message: &'a [u8]) -> Option<&'a str> {
    if !matches!(field.kind, Kind::String) {
        return None;
    }
    let Some(Value::Bytes(text)) = write::only(field, message).ok()? else { return None };
    std::str::from_utf8(text).ok()
}

/// Returns whether `If-None-Match` contains the tag, which is compared weakly (RFC 9110 section
/// 13.1.2).
fn is_known<'h>(asked: impl IntoIterator<Item = &'h HeaderValue>, etag: &HeaderValue) -> bool {
    asked.into_iter().any(|value| {
        let tags = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        let same = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag) == etag.as_bytes();
        tags.into_iter().any(|tag| tag == b"*" || same(tag))
    })
}

/// Replaces the response by a 304 without a body if the client has this version of the record.
pub(crate) fn unless_known(mut response: Response, asked: &[HeaderValue]) -> Response {
    let etag = response.headers().get(header::ETAG);
    if response.status() == StatusCode::OK && etag.is_some_and(|etag| is_known(asked, etag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    response
}

/// Returns a prepared document, or 304 if the client already has it.
pub(crate) fn document(route: &Route, asked: &HeaderMap, document: Document) -> Response {
    let known = is_known(asked.get_all(header::IF_NONE_MATCH), &document.etag);
    let mut response =
        Response::new(if known { Body::empty() } else { Body::from(document.bytes) });
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, caching(route));
    headers.insert(header::ETAG, document.etag);
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        headers.insert(header::CONTENT_TYPE, content_type(route));
    }
    response
}

/// Returns an error in the host's form, with the headers that RFC 9110 requires for its status.
pub fn refusal(host: &impl Host, fault: Fault, request_id: Option<&HeaderValue>) -> Response {
    let status = host.status(&fault);
    let id = request_id.and_then(|id| id.to_str().ok());
    let mut response = Response::new(Body::from(host.render(&fault, id)));
    *response.status_mut() = status;
    let refused = Refused { reason: fault.reason.clone(), message: fault.message.clone() };
    response.extensions_mut().insert(refused);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    for (key, name) in [("allow", header::ALLOW), ("retry_after", header::RETRY_AFTER)] {
        if let Some(value) = fault.about(key).and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
    if let Some(more) = fault.headers {
        headers.extend(*more);
    }
    response
}

/// Converts a failed call to a fault, with the HTTP parts of its metadata.
pub(crate) fn failed(status: tonic::Status) -> Fault {
    let mut found = HeaderMap::new();
    forward(status.metadata().as_ref(), &mut found);
    let mut fault = Fault::from(status);
    fault.headers = (!found.is_empty()).then(|| Box::new(found));
    fault
}

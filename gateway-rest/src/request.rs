//! Builds one protobuf message from the path, the query and the body.
//!
//! The parts are written in reverse order, because protobuf keeps the last of several values of a
//! scalar: the URL takes precedence over the body.

use std::{borrow::Cow, time::SystemTime};

use bytes::Bytes;
use http::HeaderMap;

use crate::{
    fault::{Fault, Problem},
    nearest, paths,
    problems::Problems,
    read::{self, Members, Reader, Seen},
    route::{Body, Route},
    shape::{Cardinality, Field, Kind, Shape},
    time,
    wire::{self, Wire},
};

/// The maximum number of nested messages in the name of a query parameter.
const DEPTH: usize = 8;

/// The header of server-sent events (WHATWG HTML, 9.2.4).
const LAST_EVENT_ID: &str = "last-event-id";

pub(crate) fn assemble(
    route: &'static Route,
    path: &str,
    query: &str,
    now: impl Fn() -> Option<SystemTime>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Bytes, Fault> {
    let mut out = Vec::with_capacity(body.len() + query.len() + path.len() + 16);
    let mut problems = Problems::default();
    from_body(route, body, &mut out, &mut problems)?;
    from_query(route, query, now, &mut out, &mut problems);
    from_path(route, path, &mut out, &mut problems);
    from_last_event_id(route, headers, &mut out, &mut problems);
    if problems.is_empty() { Ok(out.into()) } else { Err(problems.into_fault()) }
}

fn from_body(
    route: &'static Route,
    body: &[u8],
    out: &mut Vec<u8>,
    problems: &mut Problems,
) -> Result<(), Fault> {
    let mut text = read::utf8(body)?;
    let is_empty = text.trim_ascii().is_empty();
    let field = route.body_field();
    if route.body == Body::None {
        if !is_empty && text.trim_ascii() != "{}" {
            problems.add("", "this operation takes no body");
        }
        return Ok(());
    }
    if is_empty && route.mask.is_some() {
        problems.add("", "the body is missing: send an object with the fields to change");
        return Ok(());
    }
    if is_empty {
        if field.is_some_and(|field| !is_object(field)) {
            return Ok(());
        }
        // The service then lists each missing required member.
        text = "{}";
    }
    let mut reader = Reader::new(text, out, problems);
    let read = match field {
        Some(field) => reader.whole_field(field),
        None => reader.whole(route.input),
    };
    let Some(Members { seen, null }) = read::verdict(read, text, problems)? else { return Ok(()) };
    if field.is_none() {
        let given = route.variables.iter().filter(|variable| match variable.fields {
            [position] => seen.contains(usize::from(*position)),
            _ => false,
        });
        for variable in given {
            problems.add(variable.path, "is set by the path; leave it out");
        }
    }
    fill_masks(route, seen, null, out);
    Ok(())
}

fn is_object(field: &Field) -> bool {
    let single = matches!(field.cardinality, Cardinality::Single | Cardinality::Optional);
    single && matches!(field.kind, Kind::Message(_) | Kind::Struct)
}

/// Fills the masks from the body's fields, including null ones.
///
/// A null bounding list becomes a path of the clearing mask: protobuf can't distinguish an absent
/// list from an empty one.
fn fill_masks(route: &'static Route, seen: Seen, null: Seen, out: &mut Vec<u8>) {
    let field = |at: Option<u16>| {
        let at = usize::from(at?);
        route.input.fields.get(at).map(|field| (at, field))
    };
    let Some((at, mask)) = field(route.mask) else { return };
    let shape = match route.body_field().map(|field| &field.kind) {
        Some(Kind::Message(shape)) => shape,
        Some(_) => return,
        None if seen.contains(at) => return,
        None => route.input,
    };
    let named = || shape.fields.iter().enumerate().filter(|(at, _)| seen.contains(*at));
    let clears =
        |at: usize, field: &Field| field.cardinality == Cardinality::Bound && null.contains(at);
    put_mask(mask, named().filter(|(at, field)| !clears(*at, field)), out);
    if let Some((_, clear)) = field(route.clear) {
        put_mask(clear, named().filter(|(at, field)| clears(*at, field)), out);
    }
}

fn put_mask<'a>(
    mask: &Field,
    members: impl Iterator<Item = (usize, &'a Field)>,
    out: &mut Vec<u8>,
) {
    wire::put_tag(out, mask.number, Wire::Length);
    let start = wire::open(out);
    for (_, member) in members {
        wire::put_tag(out, 1, Wire::Length);
        wire::put_bytes(out, member.name.as_bytes());
    }
    wire::close(out, start);
}

fn from_query(
    route: &'static Route,
    query: &str,
    now: impl Fn() -> Option<SystemTime>,
    out: &mut Vec<u8>,
    problems: &mut Problems,
) {
    let mut given: Vec<Cow<'_, str>> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(name) = decode(name) else {
            problems.add(name, "is not UTF-8");
            continue;
        };
        let Some(text) = decode(text) else {
            problems.add(name, "is not UTF-8");
            continue;
        };
        let mut way = [0; DEPTH];
        let Some((way, field)) = resolve(route, &name, &mut way) else {
            let known = route.input.fields.iter().map(|field| field.name);
            let known = known.filter(|known| resolve(route, known, &mut [0; DEPTH]).is_some());
            let suggestion = nearest::suggestion(&name, known);
            problems.add(name, format!("is an unknown query parameter{suggestion}"));
            continue;
        };
        if field.cardinality == Cardinality::Bound && text.is_empty() {
            problems.add(name, read::NO_ITEM);
            continue;
        }
        if !field.cardinality.is_list() {
            if given.contains(&name) {
                problems.add(name, "is given more than once");
                continue;
            }
            given.push(name.clone());
        }
        let span = Some(&*text)
            .filter(|text| matches!(field.kind, Kind::Timestamp) && text.starts_with('-'));
        let put = match span.zip(now()) {
            Some((span, now)) => match time::before(span, now) {
                Some(moment) => put(route.input, way, &moment, out),
                None => Err(time::SPAN.into()),
            },
            None => put(route.input, way, &text, out),
        };
        if let Err(problem) = put {
            let plus = matches!(field.kind, Kind::Timestamp) && text.contains(' ');
            let hint = if plus { "; write `+` as `%2B` in a URL" } else { "" };
            problems.add(name, format!("{problem}{hint}"));
        }
    }
}

/// `+` is a space only in a query.
fn decode(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains('+') {
        return paths::decode(raw);
    }
    let spaced = raw.replace('+', " ");
    paths::decode(&spaced).map(|text| Cow::Owned(text.into_owned()))
}

/// Returns the field positions from the request down to a query parameter's field. `None` if the
/// field does not exist, or if the path, the body or the mask sets it.
fn resolve<'a>(
    route: &'static Route,
    name: &str,
    way: &'a mut [u16; DEPTH],
) -> Option<(&'a [u16], &'static Field)> {
    if route.body == Body::Whole || route.variables.iter().any(|v| v.path == name) {
        return None;
    }
    let mut shape = route.input;
    let mut parts = name.split('.').peekable();
    for depth in 0..DEPTH {
        let at = shape.position(parts.next()?)?;
        let field = shape.fields.get(at)?;
        let position = u16::try_from(at).ok()?;
        let top = (depth == 0).then_some(position);
        let filled = [route.mask, route.clear].contains(&top);
        let taken = top.is_some() && (filled || top.map(Body::Field) == Some(route.body));
        if taken || field.cardinality == Cardinality::Map {
            return None;
        }
        *way.get_mut(depth)? = position;
        if parts.peek().is_none() {
            return Some((way.get(..=depth)?, field));
        }
        match &field.kind {
            Kind::Message(inner) if !field.cardinality.is_list() => shape = inner,
            _ => return None,
        }
    }
    None
}

fn from_path(route: &'static Route, path: &str, out: &mut Vec<u8>, problems: &mut Problems) {
    for variable in route.variables {
        let put = match paths::variable(route, variable.segments, path) {
            Some(text) => put(route.input, variable.fields, &text, out),
            None => Err("is not UTF-8".into()),
        };
        if let Err(problem) = put {
            problems.add(variable.path, problem);
        }
    }
}

/// Reads the position of a stream from the header `Last-Event-ID`. A client that reconnects sends
/// the first request again with the header, which takes precedence.
fn from_last_event_id(
    route: &'static Route,
    headers: &HeaderMap,
    out: &mut Vec<u8>,
    problems: &mut Problems,
) {
    let given = headers.get(LAST_EVENT_ID).filter(|id| !id.is_empty());
    let Some((events, id)) = route.events.zip(given) else { return };
    let put = match id.to_str() {
        Ok(id) => put(route.input, &[events.resume], id, out),
        Err(_) => Err("is not ASCII".into()),
    };
    if let Err(problem) = put {
        problems.add(LAST_EVENT_ID, problem);
    }
}

/// Writes a scalar into the innermost message of a path. Protobuf merges these messages with
/// messages that were already written.
fn put(shape: &Shape, way: &[u16], text: &str, out: &mut Vec<u8>) -> Result<(), Cow<'static, str>> {
    let Some((first, rest)) = way.split_first() else { return Ok(()) };
    let Some(field) = shape.fields.get(usize::from(*first)) else { return Ok(()) };
    wire::put_tag(out, field.number, Wire::of(&field.kind));
    match &field.kind {
        Kind::Message(inner) if !rest.is_empty() => {
            let start = wire::open(out);
            put(inner, rest, text, out)?;
            wire::close(out, start);
            Ok(())
        }
        kind => read::from_text(kind, text, out),
    }
}

/// Returns one problem with the body as a whole.
pub(crate) fn whole(problem: &str) -> Vec<Problem> {
    vec![Problem { field: String::new(), problem: problem.to_owned() }]
}

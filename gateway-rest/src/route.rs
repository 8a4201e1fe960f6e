//! One HTTP binding of an RPC, as `gateway-rest-build` writes it.

use crate::shape::{Field, Shape};

/// One HTTP binding of an RPC.
#[derive(Debug)]
pub struct Route {
    /// The gRPC path: `/package.v1.Service/Method`.
    pub rpc: &'static str,
    /// The HTTP method, in upper case. GET also serves HEAD.
    pub method: &'static str,
    /// The path template, as written in the proto.
    pub path: &'static str,
    /// The template's segments, without the verb.
    pub segments: &'static [Segment],
    /// The verb after the last `:`; empty for none.
    pub verb: &'static str,
    pub variables: &'static [Variable],
    pub input: &'static Shape,
    pub output: &'static Shape,
    pub body: Body,
    /// The response field that is the body: its position in `output.fields`.
    pub response_body: Option<u16>,
    /// The `FieldMask` that the keys of a PATCH body fill: its position in `input.fields`.
    pub mask: Option<u16>,
    /// The position in `input.fields` of the `FieldMask` to fill from a PATCH body's null bounding lists.
    pub clear: Option<u16>,
    /// The HTTP status of success.
    pub status: u16,
    /// The member that contains the response; empty for none.
    pub envelope: &'static str,
    /// Whether a success body begins with `"ok": true`.
    pub ok: bool,
    /// The response field that is the raw body: its position in `output.fields`.
    pub raw: Option<u16>,
    /// The content type of a raw body; application/json if empty.
    pub content_type: &'static str,
    /// How long caches may keep the response, in seconds; 0 forbids caching.
    pub max_age_seconds: u32,
    /// Whether the RPC streams its responses.
    pub streams: bool,
    /// How its messages become server-sent events. Without it each whole message is the data of an
    /// event.
    pub events: Option<Events>,
    /// The columns of its messages as CSV; empty if it has no such form.
    pub csv: &'static [Column],
    /// The largest body in bytes, if it is smaller than the host's limit; 0 for the host's limit.
    pub body_bytes: u32,
    /// The fields that identify a new record: positions in `output.fields`. Its `Location` contains
    /// them as a query. Empty if the record's id identifies it; `None` if GET cannot read it below
    /// this path.
    pub location: Option<&'static [u16]>,
}

/// The fields of a stream's messages as server-sent events.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    /// The response field that is an event's `id`: its position in `output.fields`.
    pub id: u16,
    /// The response field that is an event's `data`: its position in `output.fields`. A message
    /// without it only advances the id.
    pub data: u16,
    /// The request field that the header `Last-Event-ID` sets: its position in `input.fields`.
    pub resume: u16,
}

/// A column of a stream as CSV.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    /// The path from the message to the field, as positions in each message's `fields`.
    pub fields: &'static [u16],
}

/// One segment of a path template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    Literal(&'static str),
    /// `*`: any single segment that is not empty.
    One,
    /// `**`: the remaining segments, possibly none. Always last.
    Rest,
}

/// A request field that the path sets.
#[derive(Debug)]
pub struct Variable {
    /// The path as in the template: `id`, `tool.id`.
    pub path: &'static str,
    /// The path from the request to the field, as positions in each message's `fields`.
    pub fields: &'static [u16],
    /// The range of segments that it covers, end exclusive.
    pub segments: (u16, u16),
}

/// The destination of the HTTP body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    None,
    /// `*`: the body is the request.
    Whole,
    /// The body is this field: its position in `input.fields`.
    Field(u16),
}

impl Route {
    pub(crate) fn body_field(&self) -> Option<&'static Field> {
        match self.body {
            Body::Field(at) => self.input.fields.get(usize::from(at)),
            Body::None | Body::Whole => None,
        }
    }
}

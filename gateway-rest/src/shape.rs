//! The shape of a message as tables: the data that transcoding needs about a type.
//!
//! `gateway-rest-build` writes the tables as statics. This module has no code per message.

/// One message type.
#[derive(Debug)]
pub struct Shape {
    /// Full protobuf name: `package.v1.Message`.
    pub name: &'static str,
    /// In the order of the proto, which is also the order of the JSON members.
    pub fields: &'static [Field],
    /// Positions in `fields`, sorted by field name.
    pub by_name: &'static [u16],
    /// Positions in `fields`, sorted by field number.
    pub by_number: &'static [u16],
}

/// One field of a message.
#[derive(Debug)]
pub struct Field {
    /// Its name in the proto, and in JSON.
    pub name: &'static str,
    pub number: u32,
    pub kind: Kind,
    pub cardinality: Cardinality,
    /// Fields of one message with the same number exclude one another; 0 for a field outside a
    /// oneof.
    pub oneof: u8,
}

/// How often a field may occur, and how its absence is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// Always has a value; absent means the default.
    Single,
    /// `optional`, a member of a oneof, or a message: null when absent.
    Optional,
    /// A list; empty when absent.
    Repeated,
    /// A bounding list: null when absent, which means no bound. An empty list is refused, since its
    /// author may mean to forbid everything.
    Bound,
    /// A map: the field's kind is its entry message, with fields `key` and `value`.
    Map,
}

/// Type of a field's value.
#[derive(Debug)]
pub enum Kind {
    Bool,
    Int32,
    Sint32,
    Sfixed32,
    Uint32,
    Fixed32,
    /// A JSON string, as in the protobuf JSON mapping. The same applies to the other 64-bit
    /// integers.
    Int64,
    Sint64,
    Sfixed64,
    Uint64,
    Fixed64,
    /// An int64 with rules that keep it within 53 bits: a JSON number, which every reader
    /// represents exactly.
    Int53,
    Float,
    Double,
    String,
    /// Base64.
    Bytes,
    /// Bytes that are a JSON text, which is the member's value. Only in responses.
    Json,
    /// Numbers and their words, sorted by number. 0 is null if it has no word.
    Enum(&'static [(i32, &'static str)]),
    Message(&'static Shape),
    /// `google.protobuf.Timestamp`: RFC 3339, written in UTC with `Z`.
    Timestamp,
    /// `google.protobuf.Duration`: seconds with an `s`.
    Duration,
    /// `google.protobuf.FieldMask`: comma-separated paths.
    FieldMask,
    /// `google.protobuf.Struct`: any object.
    Struct,
    /// `google.protobuf.Value`: any JSON value.
    Value,
    /// `google.protobuf.ListValue`: any array.
    List,
    /// `google.protobuf.StringValue` and the like: the value, or null.
    Wrapper(&'static Kind),
}

impl Cardinality {
    pub(crate) fn is_list(self) -> bool {
        matches!(self, Self::Repeated | Self::Bound)
    }
}

impl Shape {
    /// Returns the position in `fields` of the field with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        let found = self.by_name.binary_search_by(|at| {
            self.fields.get(usize::from(*at)).map_or("", |field| field.name).cmp(name)
        });
        self.by_name.get(found.ok()?).map(|at| usize::from(*at))
    }

    /// Returns the field with this name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.get(self.position(name)?)
    }

    /// Returns the position in `fields` of the field with this number.
    pub(crate) fn numbered(&self, number: u32) -> Option<usize> {
        // Most messages number their fields 1, 2, 3, … in order.
        let guess = (number as usize).wrapping_sub(1);
        if self.fields.get(guess).is_some_and(|field| field.number == number) {
            return Some(guess);
        }
        let found = self.by_number.binary_search_by_key(&number, |at| {
            self.fields.get(usize::from(*at)).map_or(0, |field| field.number)
        });
        self.by_number.get(found.ok()?).map(|at| usize::from(*at))
    }
}

//! Messages with a form of their own in JSON.

use prost_reflect::MessageDescriptor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WellKnown {
    /// A text of RFC 3339.
    Timestamp,
    /// An object without declared members.
    Struct,
}

impl WellKnown {
    pub(super) fn of(message: &MessageDescriptor) -> Option<Self> {
        match message.full_name() {
            "google.protobuf.Timestamp" => Some(Self::Timestamp),
            "google.protobuf.Struct" => Some(Self::Struct),
            _ => None,
        }
    }
}

//! What the registry's flow needs to know about a message; build/shapes.rs implements it for each message
//! with the matching shape.

use std::fmt::Display;

use crate::{
    validate::{Validate, Violations},
    wire::{FieldMask, Time},
};

/// The request message of a method.
pub trait RpcRequest: prost::Message {
    /// `authority.registry.v1.ToolService/CreateTool`.
    const METHOD: &'static str;
}

/// A request about one record.
pub trait ByIdRequest {
    fn id(&self) -> &str;
    /// Whether a soft-deleted record is included.
    fn deleted(&self) -> bool {
        false
    }
    /// Whether this is a dry run, which stores no change.
    fn validate_only(&self) -> bool {
        false
    }
}

/// A request for one page of a list.
pub trait Listing {
    fn page(&self) -> Page<'_>;
}

/// The paging members of every list; the filters of a record stay in its own request.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub tenant_id: Option<&'a str>,
    pub state: Option<&'a str>,
    /// How many records at most.
    pub limit: Option<i32>,
    /// The end of the last page; empty for the first.
    pub token: &'a str,
    /// Whether to count all matches.
    pub count: bool,
    /// Whether soft-deleted records are included.
    pub deleted: bool,
}

/// A request with a record: the whole for a create, the members of the mask for an update.
pub trait RecordRequest {
    type Record: Record;
    /// The member with the record.
    const FIELD: &'static str;
    /// The bounding lists that an update clears.
    fn cleared(&mut self) -> FieldMask {
        FieldMask::default()
    }
    fn open(self) -> (Self::Record, FieldMask);
}

/// A response with a page of records.
pub trait ListResponse {
    type Record: Record;
    fn of(records: Vec<Self::Record>, total: Option<i32>, next_page_token: Option<String>) -> Self;
}

/// A line of an export: a record with the token to continue after it; or the last line, which marks the
/// export as complete.
pub trait Exported: Send + 'static {
    type Record: Record;
    fn of(record: Option<Self::Record>, page_token: String) -> Self;
}

/// The response to a delete: the id, and the remaining record unless it is erased.
pub trait Deleted {
    type Record: Record;
    fn of(id: String, record: Option<Self::Record>) -> Self;
}

/// A message that is also a row.
pub trait Record: Validate + prost::Message + Clone + Default + 'static {
    /// `tool`: its name in ids, texts and JSON.
    const KIND: &'static str;
    /// Its lists that bound something: an empty list has no effect as a bound.
    const BOUNDS: &'static [&'static str] = &[];
    type State: Copy + PartialEq + Display + Send + 'static;
    fn id(&self) -> &str;
    /// For a tenant its own id; empty for a record without a tenant.
    fn tenant_id(&self) -> &str;
    /// Its state as stored; empty for a record without states.
    fn state(&self) -> &str;
    /// `None` if the text is not one of its states.
    fn known_state(&self) -> Option<Self::State>;
    fn created_at(&self) -> Option<Time>;
    fn updated_at(&self) -> Option<Time>;
    /// Whether a bounding list is empty; `None` if the field isn't a bounding list.
    fn unbounded(&self, member: &str) -> Option<bool> {
        let _ = member;
        None
    }
    /// Sets the server's fields on create; a state only if the client gave none.
    fn stamp_created(&mut self, id: String, by: String);
    /// Reports a client's values for fields that only the server writes.
    fn reject_output_only(&self, found: &mut Violations);
    /// Reports the members of a patch that cannot change.
    fn reject_immutable(mask: &FieldMask, found: &mut Violations);
    /// Replaces the fields that the mask names, each whole.
    fn merge(&mut self, from: Self, mask: &FieldMask);
}

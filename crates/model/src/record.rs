//! Traits of the messages that the registry's flow handles.
//!
//! build/shapes.rs implements them for each message of the matching shape.

use std::fmt::Display;

use crate::{
    validate::{Validate, Violations},
    wire::{FieldMask, Time},
};

/// The request message of a method.
pub trait RpcRequest: prost::Message {
    /// The name of the method: `authority.registry.v1.ToolService/CreateTool`.
    const METHOD: &'static str;
    /// The response message; each of them, if the method streams.
    type Response: prost::Message + Default;
    /// The states in which the method can change its record. In any other state, the method is
    /// refused or has no effect. If the list is empty, the method can change every record that is
    /// not in a final state.
    const STATES: &'static [&'static str] = &[];
}

/// A request about one record.
pub trait ByIdRequest {
    fn id(&self) -> &str;
    /// Whether a soft-deleted record is included.
    fn deleted(&self) -> bool {
        false
    }
    /// Whether this is a dry run, which does not store any change.
    fn validate_only(&self) -> bool {
        false
    }
}

/// A request for one page of a list.
pub trait Listing {
    fn page(&self) -> Page<'_>;
    /// The encoded request, without the fields that may differ from page to page: `limit`,
    /// `page_token`, `count` and times. A span such as `-1h` is a different time on each page.
    fn filters(&self) -> Vec<u8>;
}

/// The paging fields that all lists share. The filters that only one list has are not included.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub tenant_id: Option<&'a str>,
    pub state: Option<&'a str>,
    /// The maximum number of records.
    pub limit: Option<i32>,
    /// The end of the previous page; empty for the first page.
    pub token: &'a str,
    /// Whether to count all matches.
    pub count: bool,
    /// Whether soft-deleted records are included.
    pub deleted: bool,
}

/// A request with a record: the whole record for a create, the masked fields for an update.
pub trait RecordRequest {
    type Record: Record;
    /// The field that contains the record.
    const FIELD: &'static str;
    /// The bounding lists ([`Record::BOUNDS`]) that an update clears.
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

/// A line of an export.
///
/// It contains a record and the token to continue after it. The last line has no record: it marks
/// the export as complete.
pub trait Exported: Send + 'static {
    type Record: Record;
    fn of(record: Option<Self::Record>, page_token: String) -> Self;
}

/// The response to a delete: the id, and the record unless it was erased.
pub trait Deleted {
    type Record: Record;
    fn of(id: String, record: Option<Self::Record>) -> Self;
}

/// A message that is also a database row.
pub trait Record: Validate + prost::Message + Clone + Default + 'static {
    /// The record's name in ids, texts and JSON, for example `tool`.
    const KIND: &'static str;
    /// The names of the bounding lists. A bounding list without entries sets no bound.
    const BOUNDS: &'static [&'static str] = &[];
    type State: Copy + PartialEq + Display + Send + 'static;
    /// The name of the field with its state; empty for a record without states.
    const STATE: &'static str = "";
    /// The final states, in which the record can't change.
    const FINAL: &'static [Self::State] = &[];
    fn id(&self) -> &str;
    /// The id of its tenant. For a tenant, its own id; empty for a record without a tenant.
    fn tenant_id(&self) -> &str;
    /// The stored state; empty for a record without states.
    fn state(&self) -> &str;
    /// The state as an enum; `None` if the text is not a valid state of the record.
    fn known_state(&self) -> Option<Self::State>;
    fn created_at(&self) -> Option<Time>;
    fn updated_at(&self) -> Option<Time>;
    /// Whether a bounding list is empty; `None` if the field isn't a bounding list.
    fn unbounded(&self, member: &str) -> Option<bool> {
        let _ = member;
        None
    }
    /// Sets the server's fields on create. Sets the state only if the client did not.
    fn stamp_created(&mut self, id: String, by: String);
    /// Reports the client's values for fields that only the server may set.
    fn reject_output_only(&self, found: &mut Violations);
    /// Reports the fields of a patch that cannot change.
    fn reject_immutable(mask: &FieldMask, found: &mut Violations);
    /// Replaces the fields in the mask. Each field is replaced as a whole.
    fn merge(&mut self, from: Self, mask: &FieldMask);
}

//! What the registry's flow needs to know of a message; build/shapes.rs implements it for each
//! message that has the shape.

use crate::{
    validate::{Validate, Violations},
    wire::{FieldMask, Time},
};

/// A message that a method takes.
pub trait RpcRequest: prost::Message {
    /// `authority.registry.v1.ToolService/CreateTool`.
    const METHOD: &'static str;
}

/// A request about one record.
pub trait ByIdRequest {
    fn id(&self) -> &str;
    /// Whether a soft-deleted one is meant too.
    fn deleted(&self) -> bool {
        false
    }
}

/// A request for one page of a list.
pub trait Listing {
    fn page(&self) -> Page<'_>;
}

/// What every list takes; filters of one record only stay in its own request.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub tenant_id: Option<&'a str>,
    pub state: Option<&'a str>,
    /// How many records at most.
    pub limit: Option<i32>,
    /// Where the last page ended; empty for the first.
    pub token: &'a str,
    /// Whether to count all that match.
    pub count: bool,
    /// Whether soft-deleted records are shown too.
    pub deleted: bool,
}

/// A request that holds a record: the whole for a create, the named parts for an update.
pub trait RecordRequest {
    type Record: Record;
    /// The member that holds it.
    const FIELD: &'static str;
    fn open(self) -> (Self::Record, FieldMask);
}

/// A page of records on its way out.
pub trait ListResponse {
    type Record: Record;
    fn of(records: Vec<Self::Record>, total: Option<i32>, next_page_token: Option<String>) -> Self;
}

/// A line of an export: a record and where to go on after it; or the last one, which says that
/// nothing is missing.
pub trait Exported: Send + 'static {
    type Record: Record;
    fn of(record: Option<Self::Record>, page_token: String) -> Self;
}

/// What a delete answers: the id, and the record as it now stands unless it is erased.
pub trait Deleted {
    type Record: Record;
    fn of(id: String, record: Option<Self::Record>) -> Self;
}

/// A message that is also a row.
pub trait Record: Validate + prost::Message + Clone + Default + 'static {
    /// `tool`: its name in ids, texts and JSON.
    const KIND: &'static str;
    fn id(&self) -> &str;
    /// A tenant's own is its id; empty for a record of no tenant.
    fn tenant_id(&self) -> &str;
    fn state(&self) -> &str;
    fn created_at(&self) -> Option<Time>;
    fn updated_at(&self) -> Option<Time>;
    /// Fills what the server sets on create; `state` only where the client gave none.
    fn stamp_created(&mut self, id: String, by: String, state: &str);
    /// Faults a client's value for a field that the server alone writes.
    fn reject_output_only(&self, found: &mut Violations);
    /// Faults each member of a patch that no patch may name.
    fn reject_immutable(mask: &FieldMask, found: &mut Violations);
    /// Replaces the fields that the mask names, each whole.
    fn merge(&mut self, from: Self, mask: &FieldMask);
}

//! The ids of records: their grammar, and a type for each kind.
//!
//! An id is parsed where a request or a row is read. From then on its type guarantees its kind and
//! the form of its text (see [`Kind`]). Messages, rows and documents contain the text.
//!
//! A text that names a record which need not exist is a [`Ref`]: it has a kind, but its form is not
//! checked.

mod decision;
mod id;
mod kind;
mod parts;
mod reference;
mod tenant;
mod unique;

pub use id::{Id, InvalidId};
pub use kind::{
    ApiKey, Approval, Brand, Consultant, Decision, Delegation, Delivery, Endpoint, Entity, Event,
    Evidence, Kind, Principal, Record, Tenant,
};
pub use parts::IdParts;
pub use reference::Ref;
pub use unique::Unique;

/// `svc:tenant:<slug>`.
pub type TenantId = Id<Tenant>;
/// An agent or another principal: `svc:agent:<tenant>:<name>`, `svc:ent:<tenant>:principal:<id>`.
pub type PrincipalId = Id<Principal>;
/// A record in a tenant's registry: `svc:ent:<tenant>:<kind>:<id>`.
pub type EntityId = Id<Entity>;
/// `svc:del:<tenant>:<id>`.
pub type DelegationId = Id<Delegation>;
/// `svc:decision:<hash>`.
pub type DecisionId = Id<Decision>;
/// `svc:evidence:<hash>`, with the hash of its decision.
pub type EvidenceId = Id<Evidence>;
/// `svc:approval:<id>`.
pub type ApprovalId = Id<Approval>;
/// `svc:api_key:<id>`.
pub type ApiKeyId = Id<ApiKey>;
/// A record without a tenant in its id: `svc:<kind>:<id>`.
pub type RecordId = Id<Record>;

/// Names a tenant.
pub type TenantRef = Ref<Tenant>;
/// Names an agent or another principal.
pub type PrincipalRef = Ref<Principal>;
/// Names a record in a tenant's registry.
pub type EntityRef = Ref<Entity>;
/// Names a delegation.
pub type DelegationRef = Ref<Delegation>;
/// Names a decision.
pub type DecisionRef = Ref<Decision>;
/// Names an approval.
pub type ApprovalRef = Ref<Approval>;
/// Names a webhook endpoint.
pub type EndpointRef = Ref<Endpoint>;
/// Names an event.
pub type EventRef = Ref<Event>;
/// Names a delivery of an event to an endpoint.
pub type DeliveryRef = Ref<Delivery>;
/// Names a consultant of the programme.
pub type ConsultantRef = Ref<Consultant>;
/// Names a brand of the programme: a white-label configuration.
pub type BrandRef = Ref<Brand>;
/// Names a record without a tenant in its id.
pub type RecordRef = Ref<Record>;

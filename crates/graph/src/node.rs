//! Fields of rows that the graph keeps in addition to a decision's facts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use authority_ids::{EntityRef, PrincipalRef};
use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::indexed::{HasParent, IndexedRow};
use authority_decision::records;

/// A tenant's settings for code outside the decision crate.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub slug: String,
    pub idp_org_id: Option<String>,
    pub deleted: bool,
    /// Whether decisions commit without waiting for the disk.
    pub relaxed: bool,
    /// How long the tenant's held requests wait for approval, if the tenant sets that.
    pub approval_ttl: Option<Duration>,
    /// Whether people may approve in their own interest where a single approval suffices.
    pub self_approval: bool,
    /// The maximum time since an approver's sign-in, if the tenant sets that.
    pub approval_max_auth_age: Option<TimeDelta>,
    /// Whether the tenant's requests use ready approvals without citing them.
    pub cites_ready: bool,
    /// How long a declined request is denied again, in seconds, if the tenant sets that.
    pub declined_for: Option<u32>,
    /// The maximum number of pending requests for approval of one agent.
    pub open_requests: u32,
    /// The maximum number of decisions per second, if the tenant has a limit.
    pub decisions_per_second: Option<u32>,
}

pub(super) struct Principal {
    pub(super) fact: Arc<records::Principal>,
    pub(super) model_id: Option<EntityRef>,
    /// The principal that owns this principal.
    pub(super) owner_id: Option<PrincipalRef>,
}

pub(super) struct Membership {
    pub(super) id: EntityRef,
    pub(super) principal_id: PrincipalRef,
    pub(super) fact: Arc<records::Membership>,
}

pub(super) struct ActsIn {
    pub(super) principal_id: PrincipalRef,
    pub(super) fact: Arc<records::ActsIn>,
}

/// A `uses` row. The used record may change, and is looked up when facts are gathered.
pub(super) struct Uses {
    pub(super) agent_id: PrincipalRef,
    /// The id of the used record, or an action.
    pub(super) used_id: String,
    pub(super) used_kind: String,
    pub(super) row: Arc<records::UsesRow>,
}

pub(super) struct Policy {
    pub(super) id: EntityRef,
    pub(super) version: i64,
    pub(super) text: String,
    /// Lower-case hex SHA-256 of the text.
    pub(super) sha256: String,
    pub(super) effective: authority_decision::moment::Window,
}

pub(super) struct AppliesTo {
    pub(super) id: EntityRef,
    pub(super) policy_id: EntityRef,
    /// The stored text. An unreadable target applies everywhere.
    pub(super) target: String,
}

/// E-mail addresses by identity, for comparing people. They are not sealed.
pub(super) type Addresses = BTreeMap<String, String>;

/// The person who made an override.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Maker {
    /// Issuer and subject: `<iss>|<sub>`.
    pub identity: String,
    pub email: Option<String>,
    /// Whether the maker had an interest of their own, which the tenant's `self_approval` permits.
    pub own_interest: bool,
}

/// Implements [`IndexedRow`] with the field that contains the id.
macro_rules! impl_row {
    ($($node:ty: $($path:ident).+;)*) => { $(
        impl IndexedRow for $node {
            fn id(&self) -> &str {
                &self.$($path).+
            }
        }
    )* };
}

impl_row! {
    Principal: fact.id;
    Membership: id;
    ActsIn: fact.id;
    Uses: row.id;
    Policy: id;
    AppliesTo: id;
    records::Delegation: id;
    records::Grant: id;
    records::Purpose: id;
    records::Tool: id;
    records::Model: id;
    records::ExternalApp: id;
    records::Resource: id;
    records::Workspace: id;
    records::Project: id;
    records::StopSignal: id;
    records::Quarantine: id;
}

/// Implements [`HasParent`] with the field that contains the parent's id.
macro_rules! impl_has_parent {
    ($($node:ty: $on:ident;)*) => { $(
        impl HasParent for $node {
            fn on(&self) -> &str {
                &self.$on
            }
        }
    )* };
}

impl_has_parent! {
    Membership: principal_id;
    ActsIn: principal_id;
    Uses: agent_id;
    AppliesTo: policy_id;
    records::Delegation: delegate_id;
    records::Grant: resource_id;
    records::Purpose: slug;
    records::StopSignal: actor_id;
}

//! The members of rows that the graph keeps besides a decision's facts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::indexed::{HasParent, Row};
use authority_decision::records;

/// A tenant's settings that other code than the core needs.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub slug: String,
    pub idp_org_id: Option<String>,
    pub deleted: bool,
    /// Decisions commit without waiting for the disk.
    pub relaxed: bool,
    /// How long its held requests wait for approval, if it sets that.
    pub approval_ttl: Option<Duration>,
    /// Whether people may approve in their own interest if one approval is needed.
    pub self_approval: bool,
    /// How long ago whoever approves may have signed in, if it sets that.
    pub approval_max_auth_age: Option<TimeDelta>,
    /// Whether its requests use ready approvals without citing them.
    pub cites_ready: bool,
    /// For how many seconds a declined question is denied, if the tenant sets that.
    pub declined_for: Option<u32>,
    /// How many requests for approval one agent may have pending.
    pub open_requests: u32,
    /// How many decisions a second it may have, if that is limited.
    pub decisions_per_second: Option<u32>,
}

pub(super) struct Principal {
    pub(super) fact: Arc<records::Principal>,
    pub(super) model_id: Option<String>,
    /// The principal that owns it.
    pub(super) owner_id: Option<String>,
}

pub(super) struct Membership {
    pub(super) id: String,
    pub(super) principal_id: String,
    pub(super) fact: Arc<records::Membership>,
}

pub(super) struct ActsIn {
    pub(super) principal_id: String,
    pub(super) fact: Arc<records::ActsIn>,
}

/// A `uses` row; what it refers to is looked up when it is gathered, since either may change.
pub(super) struct Uses {
    pub(super) agent_id: String,
    pub(super) used_id: String,
    pub(super) used_kind: String,
    pub(super) row: Arc<records::UsesRow>,
}

pub(super) struct Policy {
    pub(super) id: String,
    pub(super) version: i64,
    pub(super) text: String,
    /// Lower-case hex SHA-256 of the text.
    pub(super) sha256: String,
    pub(super) effective: authority_decision::moment::Window,
}

pub(super) struct AppliesTo {
    pub(super) id: String,
    pub(super) policy_id: String,
    /// As stored; an unreadable target applies everywhere.
    pub(super) target: String,
}

/// The e-mail addresses of those who acted, by identity. They are only for comparing people, and are not sealed.
pub(super) type Addresses = BTreeMap<String, String>;

/// Who made an override.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Maker {
    /// Issuer and subject: `<iss>|<sub>`.
    pub identity: String,
    pub email: Option<String>,
    /// Whether it was in their own interest, as the tenant's `self_approval` permits.
    pub own_interest: bool,
}

/// Implements [`Row`] by the member with the id.
macro_rules! impl_row {
    ($($node:ty: $($path:ident).+;)*) => { $(
        impl Row for $node {
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

/// Implements [`HasParent`] by the member with the parent.
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

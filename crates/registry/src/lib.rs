//! The registry: tenants and the records around them, delegations, relationships. One file each.
//!
//! `entity.rs`, `queries.rs` and `flow.rs` contain the code that all records share. A record's file
//! contains only its filters, its own rules and the effect of deleting it.

mod acts_in;
mod api_key;
mod applies_to;
mod approvals;
mod attenuation;
mod audit_stream;
mod billing_account;
mod blast_radius;
mod counters;
mod delegating_key;
mod delegation;
mod delegation_line;
mod delegation_moves;
mod delegation_place;
mod destinations;
mod digest;
mod dns;
mod domain;
mod entity;
mod error;
mod event_demand;
mod export;
mod external_app;
mod flow;
mod granted_access_to;
mod ineligible;
mod legal_entity;
mod list;
mod member_of;
mod model;
mod names;
mod page;
mod patch;
mod personal_data;
mod policy;
mod policy_activations;
mod policy_check;
mod policy_cost;
mod policy_names;
mod policy_versions;
mod principal;
mod programme;
mod project;
mod purpose;
mod quarantine;
mod queries;
mod reality;
mod references;
mod relationship;
mod renewal;
mod resource;
mod rules;
mod search;
mod services;
mod signing_key;
mod states;
mod stop_signal;
mod team;
mod tenant;
mod tool;
mod tool_schema;
mod tool_warnings;
mod uses;
mod version;
mod webhook_endpoint;
mod workspace;

pub use api_key::{ApiKeys, keep_last_used, note_uses};
pub use approvals::{Approvals, expire as expire_approvals, measure_waiting};
pub use destinations::Destinations;
pub use dns::Dns;
pub use error::Error;
pub use flow::{AfterCommit, Registry};
pub use personal_data::{PersonalData, erase_by_age};
pub use programme::{Issuers, expire_certifications};
pub use reality::{
    RATE_LIMIT as SNAPSHOT_RATE_LIMIT, RealitySnapshots, SnapshotFeed, signed_snapshot,
};
pub use services::services;
pub use signing_key::SigningKeys;
pub use webhook_endpoint::WebhookEndpoints;

/// The imports that every record's file uses.
mod prelude {
    pub(super) use authority_model::{
        record::{Listing, Record},
        service::Replies,
        validate::Violations,
    };
    pub(super) use diesel::{QueryResult, pg::Pg, prelude::*, sql_types::Bool};
    pub(super) use tonic::Request;

    pub(super) use super::{
        Error, Registry,
        entity::{Entity, OnDelete, Row, SoftDelete, Stops, Verb, WriteTx},
        flow::Reply,
        names,
        page::Window,
        queries::{
            End, Queries, QueryFuture, Referenced, Save, clock_timestamp, impl_end, impl_queries,
            impl_referenced, impl_save, impl_soft_delete,
        },
        references::{self, Known},
        rules,
    };
    pub(super) use authority_api::{
        error::ErrorCode,
        idempotency::IdempotencyKey,
        identity::{Caller, admitted},
    };
    pub(super) use authority_core::store::{Db, RunQueryDsl, new_id};
    pub(super) use authority_ids::{InvalidId, TenantId};
}

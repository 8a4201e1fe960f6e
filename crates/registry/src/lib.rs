//! The registry: tenants and the records around them, delegations, relationships.
//!
//! `flow/` contains the code that all records share. `records/` contains a file for each record.
//! Records with more operations have their own folders.

mod approvals;
mod delegations;
mod flow;
mod mcp;
mod messages;
mod personal_data;
mod policies;
mod programme;
mod reality;
mod records;
mod services;
mod similar_name;
mod states;
mod stops;
mod unknown_names;
mod webhook_endpoint;

pub use approvals::{Approvals, expire as expire_approvals, measure_waiting};
pub use flow::{
    dns::Dns,
    error::Error,
    issuers::Issuers,
    registry::{AfterCommit, Destinations, Registry},
};
pub use messages::{
    ChatPost, MailError, MailSettings, MailTls, Mailer, MessageParts, Post, messages,
};
pub use personal_data::{PersonalData, erase_by_age};
pub use programme::expire_certifications;
pub use reality::{
    RATE_LIMIT as SNAPSHOT_RATE_LIMIT, RealitySnapshots, SnapshotFeed, signed_snapshot,
};
pub use records::{
    api_key::{ApiKeys, keep_last_used, note_uses},
    signing_key::SigningKeys,
};
pub use services::services;
pub use webhook_endpoint::WebhookEndpoints;

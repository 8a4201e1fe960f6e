//! The records of a tenant and the relationships between them, one file each.
//!
//! A record's file contains only its filters, its own rules and the effect of deleting the record.

pub(crate) mod acts_in;
pub(crate) mod api_key;
pub(crate) mod applies_to;
pub(crate) mod audit_stream;
pub(crate) mod billing_account;
pub(crate) mod domain;
pub(crate) mod external_app;
pub(crate) mod granted_access_to;
pub(crate) mod legal_entity;
pub(crate) mod member_of;
pub(crate) mod model;
pub(crate) mod principal;
pub(crate) mod project;
pub(crate) mod purpose;
pub(crate) mod quarantine;
pub(crate) mod resource;
pub(crate) mod signing_key;
pub(crate) mod stop_signal;
pub(crate) mod team;
pub(crate) mod tenant;
pub(crate) mod tool;
pub(crate) mod tool_schema;
pub(crate) mod tool_warnings;
pub(crate) mod uses;
pub(crate) mod workspace;

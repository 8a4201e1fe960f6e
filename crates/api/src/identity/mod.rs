//! Authentication and authorisation of calls: tokens, API keys, the rules of each method.
//!
//! Deny by default: credentials that are unknown, unreadable or cannot be checked now are refused.
//! The trait in `directory.rs` lists the data that identity reads from the graph.

pub mod api_key;
mod authenticate;
mod bearer;
mod call;
mod caller;
mod claim_path;
mod claim_rules;
mod claims;
mod client_address;
pub mod dev_provider;
mod directory;
mod error;
mod export;
mod issuer;
mod jwks;
mod jwks_address;
mod jwks_client;
mod jwt;
mod key_source;
mod layer;
mod new_keys;
mod numeric_date;
mod oidc;
mod refusals;
mod role;
mod rules;
mod usage;
mod who_may;

pub use authenticate::{Identity, Settings};
pub use call::{admitted, caller, checked, idempotency_key, take_caller};
pub use caller::{Caller, CallerKind, SecretCode};
pub use claim_path::ClaimPath;
pub use claim_rules::ClaimRules;
pub use client_address::{ClientAddress, client_address};
pub use directory::{Directory, TenantFacts};
pub use error::{ADDRESS_NOT_ALLOWED, Error, PERSON_INACTIVE, RefusedRole, TENANT_INACTIVE};
pub use export::{Exports, Holds, Pages};
pub use issuer::{Issuer, People};
pub use jsonwebtoken::Algorithm;
pub use jwks_client::{JwksClient, JwksSettings, JwksSource};
pub use key_source::KeySource;
pub use layer::{AuthenticateLayer, Authenticated};
pub use oidc::{IdClaims, LogoutClaims, OTHER_SIGN_IN};
pub use role::Role;
pub use rules::{Rules, Via, is_closed_to, may_call, permit};
pub use usage::LastUsed;
pub use who_may::{permitted_roles, who_may};

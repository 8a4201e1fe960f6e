//! The numbers of PostgreSQL advisory locks, each used for one purpose. Those marked SQL are also
//! written in the migrations.

/// Migrations run one at a time.
pub const MIGRATIONS: i64 = 4_157_000;
/// The change log: writers take it before their commit, decisions share it as their fence (SQL).
pub const CHANGE_LOG: i64 = 4_157_001;
/// New partitions are made by one node (SQL).
pub const PARTITIONS: i64 = 4_157_002;
/// The inventory of signing keys.
pub const SIGNING_KEYS: i64 = 4_157_003;
/// A tenant's log of decisions; the second number is the tenant's hash.
pub const DECISION_LOG: i32 = 4_157_004;
/// Numbering events; the second number is the shard of tenants.
pub const EVENTS: i32 = 4_157_005;
/// Events and deliveries are deleted by age by one node at a time.
pub const EVENT_RETENTION: i64 = 4_157_006;
/// New notifications are taken up for Web Push by one node at a time.
pub const PUSH: i64 = 4_157_007;
/// Fan-out of events to a webhook endpoint; the second number is the endpoint's hash.
pub const FAN_OUT: i32 = 4_157_008;
/// Contexts, observations and leads are erased by age by one node at a time.
pub const RETENTION: i64 = 4_157_009;
/// A database is taken for production or for development by one start at a time.
pub const ENVIRONMENT: i64 = 4_157_010;
/// The lock to count an agent's approval requests, one decision at a time.
///
/// The second number is the hash of the agent (SQL).
pub const OPEN_REQUESTS: i32 = 4_157_020;

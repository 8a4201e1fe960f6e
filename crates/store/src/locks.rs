//! The numbers of PostgreSQL advisory locks. Each is used for one purpose. Numbers marked SQL are
//! also used in the migrations.

/// Lets one process at a time run migrations.
pub const MIGRATIONS: i64 = 4_157_000;
/// The change log. Writers take it before their commit; decisions share it as their fence (SQL).
pub const CHANGE_LOG: i64 = 4_157_001;
/// Lets one node create new partitions (SQL).
pub const PARTITIONS: i64 = 4_157_002;
/// The inventory of signing keys.
pub const SIGNING_KEYS: i64 = 4_157_003;
/// A tenant's log of decisions. The second number is the tenant's hash.
pub const DECISION_LOG: i32 = 4_157_004;
/// Numbering of events. The second number is the shard of tenants.
pub const EVENTS: i32 = 4_157_005;
/// Lets one node at a time delete events and deliveries by age.
pub const EVENT_RETENTION: i64 = 4_157_006;
/// Lets one node at a time pick up new notifications for Web Push.
pub const PUSH: i64 = 4_157_007;
/// Fan-out of events to a webhook endpoint. The second number is the endpoint's hash.
pub const FAN_OUT: i32 = 4_157_008;
/// Lets one node at a time erase contexts, observations and leads by age.
pub const RETENTION: i64 = 4_157_009;
/// Lets one start at a time claim a database for production or for development.
pub const ENVIRONMENT: i64 = 4_157_010;
/// Lets one node at a time index the facts of decisions. Erasing a context shares it (SQL).
pub const FACT_INDEX: i64 = 4_157_011;
/// The lock for counting an agent's approval requests, one decision at a time.
///
/// The second number is the hash of the agent (SQL).
pub const OPEN_REQUESTS: i32 = 4_157_020;

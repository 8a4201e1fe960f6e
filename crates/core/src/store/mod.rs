//! Postgres: connections, transactions with their actor, and the database roles.

mod address;
mod connect;
mod dial;
pub mod embedded;
mod error;
mod ids;
mod listen;
mod lock_wait;
pub mod locks;
mod migrate;
mod partitions;
mod pool;
mod pooler;
mod prepared;
mod query;
mod roles;
mod serving;
mod silence;
mod sqlstate;
mod tls;
mod transaction;
mod usage;
mod versions;

pub use address::Address;
pub use error::Error;
pub use ids::{new_id, row_id};
pub use listen::Notification;
pub use migrate::{Migrated, may_migrate, migrate};
pub use pool::{Limits, Pooled, Store};
pub use prepared::{Prepared, prepared};
pub use query::{LoadQuery, RunQueryDsl};
pub use serving::Serving;
pub use silence::discard;
pub use transaction::{Db, SERVICE, Scope, Transact};
pub use usage::PoolUsage;
pub use versions::MIGRATIONS;

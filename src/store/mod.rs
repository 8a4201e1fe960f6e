//! Postgres: its connections, transactions that know who acts, and the roles behind them.

mod error;
mod ids;
mod pool;
mod transaction;

pub use error::Error;
pub use ids::new_id;
pub use pool::{Pooled, Store};
pub use transaction::{Db, Scope, Work};

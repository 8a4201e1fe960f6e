//! Three pools on one database, one for each role that the service takes.

use diesel_async::{AsyncPgConnection, pooled_connection::deadpool};

use super::Error;

type Pool = deadpool::Pool<AsyncPgConnection>;
/// A connection on loan; it goes back when dropped.
pub type Pooled = deadpool::Object<AsyncPgConnection>;

/// The database as the service uses it. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(super) tenant: Pool,
    pub(super) system: Pool,
    pub(super) recorder: Pool,
}

impl Store {
    /// A connection as `authority_recorder`, which writes decisions for many tenants at once.
    pub async fn recorder(&self) -> Result<Pooled, Error> {
        Ok(self.recorder.get().await?)
    }

    /// A connection as `authority_system`, which sees every tenant: the graph's tail, workers.
    pub async fn system(&self) -> Result<Pooled, Error> {
        Ok(self.system.get().await?)
    }
}

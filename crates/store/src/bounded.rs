//! Bounded waits for the database, and the end of connections that do not respond.

use std::time::Duration;

use super::{
    error::Error,
    pool::{Pooled, Store},
};

impl Store {
    /// Runs `work` on a connection within the limit.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after the limit. It is unknown whether a commit took place, and the
    /// connection is still busy: [`discard`] the connection.
    pub async fn within<T, E>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Error>
    where
        Error: From<E>,
    {
        Ok(self.silence.bound(limit, work).await??)
    }

    /// Retires all earlier connections. Call it if one of them did not respond in time, but a new
    /// connection does.
    ///
    /// The earlier connections are not used again. Work on them ends within seconds.
    pub fn renew(&self) {
        for pool in [&self.tenant, &self.system, &self.recorder, &self.events] {
            pool.retain(|_, _| false);
        }
        self.silence.renew();
    }
}

/// Closes a connection instead of returning it to the pool.
pub fn discard(db: Pooled) {
    drop(Pooled::take(db));
}

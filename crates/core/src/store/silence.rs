//! Timeouts on the client side. A silent database cannot end its own statements.
//!
//! If the server is behind a proxy, or on a host that hangs, a connection may stay open without a
//! response. The kernel does not see an error, and only the silent server could enforce
//! `statement_timeout`. Every wait for
//! the database is therefore bounded here. A connection that did not respond in time is discarded,
//! because its state is unknown.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{Error, Pooled, Store};

/// How long work in progress may continue after the database responds on a new connection.
const GRACE: Duration = Duration::from_secs(3);
/// How long a listener may receive no data before it checks its connection.
pub(super) const QUIET: Duration = Duration::from_secs(5);
/// How long a listener waits for the response, or for a new connection.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Notifies all waiting work that earlier connections are dead.
#[derive(Clone, Default)]
pub(super) struct Silence(Arc<watch::Sender<()>>);

impl Silence {
    /// Runs `work` within the limit. Ends it earlier, soon after the database responds on a new
    /// connection.
    pub(super) async fn bound<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, Error> {
        let mut renewed = self.0.subscribe();
        let too_late = async {
            if let Ok(Ok(())) = timeout(limit, renewed.changed()).await {
                sleep(GRACE).await;
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = too_late => Err(silent()),
        }
    }
}

impl Store {
    /// Runs `work` on a connection within the limit.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after the limit. It is unknown whether a commit took place, and the
    /// connection is still busy: [`discard`] it.
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

    /// Retires earlier connections, after one did not respond in time and a new one does.
    ///
    /// The earlier connections are not used again. Work on them ends within seconds.
    pub fn renew(&self) {
        for pool in [&self.tenant, &self.system, &self.recorder, &self.events] {
            pool.retain(|_, _| false);
        }
        self.silence.0.send_replace(());
    }
}

/// Closes a connection instead of returning it to the pool.
pub fn discard(db: Pooled) {
    drop(Pooled::take(db));
}

fn silent() -> Error {
    Error::Unavailable("it did not answer in time".to_owned())
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn waiting_ends_at_the_limit_and_soon_after_a_renewal() {
        let silence = Silence::default();
        assert!(silence.bound(Duration::from_millis(20), pending::<()>()).await.is_err());
        assert_eq!(silence.bound(Duration::from_secs(60), async { 7 }).await.ok(), Some(7));

        let renew = async {
            sleep(Duration::from_millis(20)).await;
            silence.0.send_replace(());
        };
        let work = silence.bound(Duration::from_secs(60), pending::<()>());
        let ended = timeout(Duration::from_secs(30), async { tokio::join!(work, renew) }).await;
        assert!(matches!(ended, Ok((Err(_), ()))), "it waits for its own limit");
    }
}

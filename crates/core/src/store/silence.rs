//! Ends on our side: a database that says nothing ends no statement itself.
//!
//! Behind a proxy, or on a host that hangs, a connection stays open and nothing answers on it; the
//! kernel sees nothing wrong, and `statement_timeout` is kept by the server that is not there. So
//! whatever waits for the database waits for a bounded time. What did not answer in it is thrown
//! away: nobody knows what its connection would say next.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{Error, Pooled, Store};

/// What still runs when the database is found to answer elsewhere has this long to end.
const GRACE: Duration = Duration::from_secs(3);
/// A listener asks whether its connection still answers when it heard nothing for so long,
pub(super) const QUIET: Duration = Duration::from_secs(5);
/// and waits for the answer, as for its connection, for so long.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Tells all who wait that the connections of before are not to be waited for.
#[derive(Clone, Default)]
pub(super) struct Silence(Arc<watch::Sender<()>>);

impl Silence {
    /// What `work` comes to within the limit, or soon after the database was found elsewhere.
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
    /// What `work` on a connection comes to within the limit.
    ///
    /// # Errors
    /// [`Error::Unavailable`] after the limit: whether a commit took place is unknown, and the
    /// connection is busy still. [`discard`] it.
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

    /// A connection did not answer in time and a new one does. Those of before are not used again;
    /// what still runs on them ends within seconds.
    pub fn renew(&self) {
        for pool in [&self.tenant, &self.system, &self.recorder] {
            pool.retain(|_, _| false);
        }
        self.silence.0.send_replace(());
    }
}

/// Closes a connection that is not for its next user.
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

//! Timeouts on the client side. A silent database cannot end its own statements.
//!
//! If the server is behind a proxy, or on a host that hangs, a connection may stay open without a
//! response. The kernel does not see an error, and only the silent server could enforce
//! `statement_timeout`. Every wait for the database is therefore bounded here, on the client side.
//! A connection that did not respond in time is discarded, because its state is unknown.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::error::Error;

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

    /// Ends the waiting work soon.
    pub(super) fn renew(&self) {
        self.0.send_replace(());
    }
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
            silence.renew();
        };
        let work = silence.bound(Duration::from_secs(60), pending::<()>());
        let ended = timeout(Duration::from_secs(30), async { tokio::join!(work, renew) }).await;
        assert!(matches!(ended, Ok((Err(_), ()))), "it waits for its own limit");
    }
}

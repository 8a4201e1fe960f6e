//! Detects a pooler in front of Postgres that shares one session between several connections, as
//! pgbouncer does with `pool_mode = transaction`.
//!
//! The service's connections keep a role, settings and prepared statements in their sessions.
//! Migrations hold a lock, and one connection listens. Behind such a pooler, all of this would be
//! lost or applied to other connections.

use tokio_postgres::{Client, SimpleQueryMessage};

use super::{Address, Error, fault::with_source};

/// The number of checks on both connections. A busy pooler may by chance give each connection the
/// same session as in the previous check.
const ROUNDS: usize = 8;

impl Address {
    /// Checks that each of two connections has a session of its own, without changing the sessions.
    ///
    /// # Errors
    /// [`Error::Address`] if they share a session.
    pub(super) async fn refuse_shared_sessions(&self) -> Result<(), Error> {
        let (one, other) = (self.client().await?, self.client().await?);
        let first = process(&one).await?;
        for _ in 0..ROUNDS {
            if process(&other).await? == first || process(&one).await? != first {
                return Err(Error::Address(format!(
                    "a pooler in front of {} gives one session to several connections in turn \
                     (pgbouncer's `pool_mode = transaction`), but the service keeps roles, \
                     settings and locks in its sessions: use `pool_mode = session`, or connect to \
                     PostgreSQL directly",
                    self.place()
                )));
            }
        }
        Ok(())
    }

    async fn client(&self) -> Result<Client, Error> {
        let dialled = self.dial().await;
        Ok(dialled.map_err(|fault| Error::Unavailable(fault.to_string()))?.client())
    }
}

/// Returns the id of the server process. Avoids a prepared statement, which a pooler may not keep.
async fn process(client: &Client) -> Result<Option<String>, Error> {
    let told = client.simple_query("SELECT pg_backend_pid()").await;
    let told = told.map_err(|error| unavailable(&error))?;
    Ok(told.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

fn unavailable(error: &tokio_postgres::Error) -> Error {
    Error::Unavailable(with_source(error))
}

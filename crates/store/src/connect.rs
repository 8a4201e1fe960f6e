//! Connects to the database. Errors name the server and the remedy. Can wait for a server that
//! starts.

use std::{fmt::Write as _, time::Duration};

use diesel::{ConnectionError, ConnectionResult};
use diesel_async::AsyncPgConnection;
use tokio::time::{Instant, sleep};
use tokio_postgres::{
    Config,
    config::Host,
    error::{DbError, SqlState},
};

use super::{Address, Error, fault::Fault, servers::port};

/// The error of tokio-postgres if the server starts every session read-only.
const READ_ONLY: &str = "database does not allow writes";
/// The pause between two attempts to reach a server that starts.
const PAUSE: Duration = Duration::from_millis(500);
/// The interval of log lines while waiting.
const LOG_EVERY: Duration = Duration::from_secs(5);

impl Address {
    /// Opens a connection outside any pool, for migrations and for LISTEN.
    ///
    /// The error does not name the server, because the public readiness response includes the
    /// error.
    pub async fn connect(&self) -> ConnectionResult<AsyncPgConnection> {
        let failed = |fault| ConnectionError::BadConnection(reason(&fault));
        self.dial().await.map_err(failed)?.diesel().await
    }

    /// Waits for a server that is absent, starting or full until it accepts connections.
    ///
    /// Each connection must have a session of its own.
    ///
    /// # Errors
    /// [`Error::Address`]: the server refuses the login or the database, does not accept a
    /// connection within `limit`, or is a pooler that shares sessions.
    pub async fn wait(&self, limit: Duration) -> Result<(), Error> {
        let since = Instant::now();
        let mut logged: Option<Instant> = None;
        loop {
            let Err(fault) = self.dial().await else {
                match self.refuse_shared_sessions().await {
                    // The server has stopped or become full since the first connection.
                    Err(error) if error.is_passing() && since.elapsed() < limit => {
                        sleep(PAUSE).await;
                    }
                    done => return done,
                }
                continue;
            };
            let reason = self.explained(&fault);
            if !is_passing(&fault) {
                return Err(Error::Address(reason));
            }
            if since.elapsed() >= limit {
                let waited = limit.as_secs();
                return Err(Error::Address(format!("{reason} (waited {waited} s for it)")));
            }
            if logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
                logged = Some(Instant::now());
                let left = limit.saturating_sub(since.elapsed()).as_secs();
                tracing::warn!(
                    error = %reason,
                    seconds_left = left,
                    "failed to connect to the database; trying again"
                );
            }
            sleep(PAUSE).await;
        }
    }

    pub fn database(&self) -> &str {
        self.config.get_dbname().or(self.config.get_user()).unwrap_or_default()
    }

    /// Describes the database and login, without the password:
    /// `db.example.org:5432/authority as authority`.
    pub fn shown(&self) -> String {
        format!("{} as {}", self.place(), self.user().unwrap_or_default())
    }

    /// Describes the database: `db.example.org:5432/authority`.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", servers(&self.config), self.database())
    }

    /// Describes the server, the reason for the failure, and the remedy.
    fn explained(&self, fault: &Fault) -> String {
        let (user, database) = (self.user().unwrap_or_default(), self.database());
        let (servers, reason) = (servers(&self.config), reason(fault));
        let mut text = format!("no connection to PostgreSQL at {servers}: {reason}");
        let remedy = match fault.answer().map(DbError::code) {
            Some(&SqlState::INVALID_PASSWORD) => {
                format!("check the password of `{user}` in the database's URL")
            }
            Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
                format!("create the login `{user}`, or admit it in pg_hba.conf")
            }
            Some(&SqlState::INVALID_CATALOG_NAME) => {
                format!("create it: CREATE DATABASE \"{database}\" OWNER \"{user}\"")
            }
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                format!("allow it: GRANT CONNECT ON DATABASE \"{database}\" TO \"{user}\"")
            }
            Some(&SqlState::TOO_MANY_CONNECTIONS) => {
                "raise max_connections, or lower the settings `database.*_connections`".to_owned()
            }
            Some(&SqlState::CANNOT_CONNECT_NOW) => "it is starting or stopping".to_owned(),
            Some(_) => return text,
            None if is_about_tls(fault) => {
                "set the URL's `sslrootcert` to the CA of the server's certificate, unless a public CA issued it, \
                 and `host` to a name in the certificate; see `sslmode` in docs/operations/production.md"
                    .to_owned()
            }
            None if reason.ends_with(READ_ONLY) => {
                "it is a standby, or the setting `default_transaction_read_only` is on for the database or the login: \
                 connect to the primary, or RESET that setting there"
                    .to_owned()
            }
            None => "check that it runs there, and check host, port and TLS mode in the database's URL \
                     (DATABASE_URL or `database.url`; DATABASE_OWNER_URL for `migrate`)"
                .to_owned(),
        };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "; {remedy}");
        text
    }
}

/// Returns the reason without DETAIL, which may contain data.
fn reason(fault: &Fault) -> String {
    fault.answer().map_or_else(|| fault.to_string(), |told| told.message().to_owned())
}

/// The errors of a server that starts, stops or is full.
const PASSING: [SqlState; 4] = [
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::TOO_MANY_CONNECTIONS,
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
];

/// Whether a later attempt may succeed.
fn is_passing(fault: &Fault) -> bool {
    if let Some(told) = fault.answer() {
        return PASSING.contains(told.code());
    }
    let Fault::Failed(error) = fault else { return true };
    // The server may still start, its name may become known, or a standby may be promoted. A
    // refused certificate will not change.
    let Some(source) = std::error::Error::source(error) else { return true };
    source.is::<std::io::Error>() && !is_about_tls(fault)
}

/// Whether the certificate was refused, or the server does not support TLS.
fn is_about_tls(fault: &Fault) -> bool {
    let Fault::Failed(error) = fault else { return false };
    let source = std::error::Error::source(error);
    let failed = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    failed.is_some_and(|error| error.kind() == std::io::ErrorKind::InvalidData)
}

/// Returns `host:port` of each server, or the folder of its socket.
fn servers(config: &Config) -> String {
    let named = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    });
    let mut names: Vec<String> = named.collect();
    if names.is_empty() {
        names = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    }
    let shown = names
        .iter()
        .enumerate()
        .map(|(at, name)| format!("{name}:{}", port(config, at).unwrap_or(5432)));
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_is_absent_is_waited_for_and_named() {
        let address = Address::parse("postgres://u:hush@127.0.0.1:9/x?sslmode=disable").unwrap();
        assert_eq!(address.shown(), "127.0.0.1:9/x as u");
        let told = address.wait(Duration::from_millis(600)).await.err().unwrap().to_string();
        assert!(told.starts_with("no connection to PostgreSQL at 127.0.0.1:9: "), "{told}");
        assert!(told.contains("DATABASE_URL") && told.contains("waited 0 s"), "{told}");
        assert!(!told.contains("hush"), "{told}");
    }
}

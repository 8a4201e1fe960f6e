//! The database of this run: the embedded one, or the one in the configuration.

use std::time::Duration;

use authority_core::{
    config::{Config, data_folder},
    store::{
        Address, Error as StoreError, Limits, Store,
        embedded::{self, Embedded},
        migrate,
    },
};

use super::development;

/// Why the database is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Embedded(#[from] embedded::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Development(#[from] development::Error),
}

/// A migrated, open database.
pub struct Database {
    pub store: Store,
    /// The versions of the migrations that this start has run.
    pub migrated: Vec<String>,
    /// Where it is and who logs in, without a password.
    pub shown: String,
    /// The embedded server, if it is used; it stops when its last user leaves.
    pub embedded: Option<Embedded>,
}

impl Database {
    /// Starts or finds the database, and migrates it to this binary's schema.
    pub async fn open(config: &Config) -> Result<Self, Error> {
        let (owner, login, embedded) = if let Some(url) = &config.database.url {
            let address = Address::parse(url.reveal())?;
            let start = Duration::from_secs(config.database.start_seconds);
            address.wait(start).await?;
            // Without the database's data; keys and the logs' last checkpoints are in it.
            if let Err(error) = data_folder(&config.data_dir, None) {
                tracing::warn!(%error, "the data folder cannot be created");
            }
            (address.clone(), address, None)
        } else {
            let options =
                embedded::Options { data_dir: config.data_dir.clone(), ..Default::default() };
            let server = Embedded::start(options).await?;
            show_place(&server);
            let owner = Address::parse(&server.owner_url())?;
            (owner, Address::parse(&server.url())?, Some(server))
        };
        let migrated = migrate(&owner, login.user().unwrap_or_default()).await?;
        let store = Store::open(&login, &limits(config))?;
        if config.production() {
            development::refuse(&store).await?;
        }
        Ok(Self { store, migrated, shown: login.shown(), embedded })
    }

    /// Leaves the database; an embedded one stops if nobody else uses it.
    pub async fn close(self) {
        self.store.close();
        if let Some(server) = self.embedded
            && let Err(error) = server.stop().await
        {
            tracing::warn!(%error, "the database was not stopped properly");
        }
    }
}

/// Says where the database is, if that is not the data folder, and what nothing leads to any more.
fn show_place(server: &Embedded) {
    if server.is_elsewhere() {
        tracing::warn!(
            home = %server.home().display(),
            "the database's user may not enter the data folder: the database is elsewhere, and `postgres` in \
             the folder is a link to it"
        );
    }
    for left in server.left_behind() {
        tracing::warn!(
            folder = %left.display(),
            "a database of a data folder that was removed from here; if nobody needs it, remove it too"
        );
    }
}

fn limits(config: &Config) -> Limits {
    Limits {
        tenant: config.database.tenant_connections,
        system: config.database.system_connections,
        recorder: config.database.recorder_connections,
        events: config.database.event_connections,
        wait: Duration::from_secs(config.database.wait_seconds),
        statement: Duration::from_secs(config.database.statement_seconds),
        ..Limits::default()
    }
}

//! The database of this run: the embedded one, or the one in the configuration.

use std::time::Duration;

use authority_config::{Config, Secret};
use authority_process::folder::data_folder;
use authority_store::{
    Address, Error as StoreError, Limits, Migrated, Serving, Store, allow_removal,
    embedded::{self, Embedded},
    may_migrate, migrate,
};

use super::environment;

/// The reason the database is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Embedded(#[from] embedded::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Environment(#[from] environment::Error),
    #[error(
        "`database.owner_url` is for `migrate` alone: set DATABASE_URL or `database.url` to the login that serves"
    )]
    NoLogin,
    #[error(
        "`database.owner_url` names the database `{0}`, but `database.url` names `{1}`: they must name the same"
    )]
    TwoDatabases(String, String),
}

/// A migrated, open database.
pub struct Database {
    pub store: Store,
    /// The versions of the migrations that this start has run.
    pub migrated: Vec<String>,
    /// The address and the login, without a password.
    pub shown: String,
    /// The embedded server, if it is used. It stops when the last process that uses it closes it.
    pub embedded: Option<Embedded>,
}

/// The logins of the database.
struct Logins {
    /// The login that runs migrations; the same as `serving` if only one login is configured.
    owner: Address,
    /// `None` if only the owner is configured.
    serving: Option<Address>,
    embedded: Option<Embedded>,
}

impl Database {
    /// Starts or finds the database, and checks that the service can use it. In production only
    /// [`Self::migrate`] migrates it; in development every command does.
    pub async fn open(config: &Config) -> Result<Self, Error> {
        let logins = Logins::of(config).await?;
        let Some(serving) = logins.serving.clone() else { return Err(Error::NoLogin) };
        if logins.embedded.is_none() {
            wait(&serving, config).await?;
        }
        if !config.production() {
            environment::refuse_others(&serving).await?;
        }
        let migrated = if config.production() {
            Vec::new()
        } else {
            // If the login may not migrate, the checks below find out whether a migration is
            // needed.
            let owner = logins.owner(config).await?;
            environment::refuse_others(owner).await?;
            if may_migrate(owner).await? {
                run(owner, &serving, config).await?.versions
            } else {
                Vec::new()
            }
        };
        let found = Serving::inspect(&serving).await?;
        warn_if_newer(found.newer.as_deref());
        if config.production() {
            warn_of_excess(config, &serving, &found.excess);
        }
        let database = Self::on(&serving, config, migrated, logins.embedded).await?;
        if !config.production() {
            environment::take_for_development(&database.store).await?;
        }
        Ok(database)
    }

    /// Migrates the database to this binary's schema, as its owner, and grants access to the
    /// serving login.
    pub async fn migrate(config: &Config) -> Result<Self, Error> {
        let logins = Logins::of(config).await?;
        let owner = logins.owner(config).await?;
        if !config.production() {
            environment::refuse_others(owner).await?;
        }
        let serving = logins.serving.as_ref().unwrap_or(owner);
        let migrated = run(owner, serving, config).await?;
        warn_if_newer(migrated.newer.as_deref());
        Self::on(owner, config, migrated.versions, logins.embedded.clone()).await
    }

    async fn on(
        login: &Address,
        config: &Config,
        migrated: Vec<String>,
        embedded: Option<Embedded>,
    ) -> Result<Self, Error> {
        let store = Store::open(login, &limits(config))?;
        if config.production() {
            environment::take_for_production(&store).await?;
        }
        Ok(Self { store, migrated, shown: login.shown(), embedded })
    }

    /// Describes the database for people: the embedded server's programs, or the address.
    pub fn description(&self) -> String {
        self.embedded.as_ref().map_or_else(|| self.shown.clone(), Embedded::description)
    }

    /// Closes the database. An embedded database stops if no other process uses it.
    pub async fn close(self) {
        self.store.close();
        if let Some(server) = self.embedded
            && let Err(error) = server.stop().await
        {
            tracing::warn!(%error, "failed to stop the database");
        }
    }
}

impl Logins {
    async fn of(config: &Config) -> Result<Self, Error> {
        let parse = |url: &Secret| Address::parse(url.reveal());
        let serving = config.database.url.as_ref().map(parse).transpose()?;
        let owner = config.database.owner_url.as_ref().map(parse).transpose()?;
        if let (Some(owner), Some(serving)) = (&owner, &serving)
            && owner.database() != serving.database()
        {
            let [owner, serving] = [owner, serving].map(|login| login.database().to_owned());
            return Err(Error::TwoDatabases(owner, serving));
        }
        if let Some(owner) = owner.or_else(|| serving.clone()) {
            // The data folder is still needed: it contains keys and the logs' last checkpoints.
            if let Err(error) = data_folder(&config.data_dir, None) {
                tracing::error!(%error, "failed to create the data folder");
            }
            return Ok(Self { owner, serving, embedded: None });
        }
        let options = embedded::Options { data_dir: config.data_dir.clone(), ..Default::default() };
        let server = Embedded::start(options).await?;
        show_place(&server);
        let owner = Address::parse(&server.owner_url())?;
        let serving = Some(Address::parse(&server.url())?);
        Ok(Self { owner, serving, embedded: Some(server) })
    }

    /// Returns the owner's address, once the server accepts connections.
    async fn owner(&self, config: &Config) -> Result<&Address, Error> {
        if self.embedded.is_none() {
            wait(&self.owner, config).await?;
        }
        Ok(&self.owner)
    }
}

async fn wait(address: &Address, config: &Config) -> Result<(), Error> {
    let limit = Duration::from_secs(config.database.start_seconds);
    Ok(address.wait(limit).await?)
}

async fn run(owner: &Address, serving: &Address, config: &Config) -> Result<Migrated, Error> {
    let migrated = migrate(owner, serving.user().unwrap_or_default()).await?;
    let is_held = config.personal_data.legal_hold.is_some();
    allow_removal(owner, config.has_archive() && !is_held).await?;
    Ok(migrated)
}

fn warn_if_newer(migrations: Option<&str>) {
    if let Some(migrations) = migrations {
        tracing::warn!(
            migrations,
            "found a database schema that is newer than this binary; run the newer release soon"
        );
    }
}

/// Logs the database's location if it is not the data folder, and lists databases of removed data
/// folders.
fn show_place(server: &Embedded) {
    if server.is_elsewhere() {
        tracing::warn!(
            file.path = %server.home().display(),
            "placed the database outside of the data folder, which its user may not enter"
        );
    }
    for left in server.left_behind() {
        tracing::warn!(
            file.path = %left.display(),
            "found the database of a removed data folder; remove it if it is not needed"
        );
    }
}

/// Warns about rights that serving does not need. This is only a warning, because an installation
/// with one login for everything works.
fn warn_of_excess(config: &Config, login: &Address, excess: &[String]) {
    let login = login.user().unwrap_or_default();
    if !excess.is_empty() {
        tracing::warn!(
            db.user = login,
            excess = excess.join("; "),
            "found a database login with more rights than serving needs"
        );
    }
    if config.database.owner_url.is_some() {
        tracing::warn!("found database.owner_url in the settings of a node; only migrate needs it");
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

//! Runs the service: the database, the services, the listeners, from start to the last drained
//! connection.

use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use axum::Router;
use chrono::TimeDelta;
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    addresses::{Addresses, ListenError, Listening},
    build::{App, Parts, RING_FILE},
    database::{Database, Error as DatabaseError},
    demo::{self, Demo},
    descriptors,
    error::Error,
    named,
};
use crate::{
    telemetry::Metrics,
    transport::{self, Budget, Settings, Surfaces, Tls, TlsError},
};
use authority_api::identity::dev_provider::{Holder, ISSUER};
use authority_config::Config;
use authority_ids::{IdParts, TenantRef};
use authority_process::{shutdown, worker::Supervisor};
use authority_store::embedded;

/// The lifetime of a token of the development identity provider.
const TOKEN_LIFETIME: TimeDelta = TimeDelta::hours(12);
/// The owner's default name.
const OPERATOR: &str = "operator@localhost";

/// The reason the service cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Build(#[from] Error),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Demo(#[from] demo::Error),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(
        "no service was started with the data folder `{}` yet: run this in the folder where it was \
         started, give its --data-dir, or start it with `agent-authority serve`",
        .0.display()
    )]
    NoInstallation(PathBuf),
    #[error(
        "reset removes the files of a development server from its data folder; a database in \
         DATABASE_URL or `database.url`, and any production data, is yours to remove"
    )]
    NotOurs,
    #[error(transparent)]
    Embedded(#[from] embedded::Error),
    #[error("tokens come from your identity provider: the built-in one is for development")]
    NoProvider,
    #[error("a listener ended: {0}")]
    Listener(#[from] tokio::task::JoinError),
}

/// Runs until SIGTERM or SIGINT. The service then reports that it is not ready, accepts connections
/// for a while, and drains. `ready` receives the demonstration tenant, which only development has,
/// and a description of the database.
pub async fn serve(config: &Config, ready: impl FnOnce(&Demo, &str)) -> Result<(), Failure> {
    // Runs before any step that would have to be undone.
    let addresses = Addresses::take(config)?;
    let supervisor = Supervisor::new(shutdown::on_signal()?);
    let (metrics, exporter) = (Metrics::install(), named::exporter(config)?);
    let (tls, reload) = Tls::load(config)?.unzip();
    let told = supervisor.shutdown();
    let database = tokio::select! {
        database = Database::open(config) => database?,
        // Only waiting for an external database can be interrupted: it may be unavailable for a
        // while. An embedded server must not be left partly started.
        () = told.cancelled(), if config.database.url.is_some() => return Ok(()),
    };
    if let Some(server) = &database.embedded {
        supervisor.run([server.watch()]);
    }
    let parts = Parts::new(config.clone(), database.store.clone())?;
    // Boxed: the future is large.
    let building = Box::pin(App::build(Parts { supervisor: supervisor.clone(), ..parts }));
    let (app, workers) = building.await?;
    let budget = Budget::new(config.limits.node_unsent_bytes);
    let (gauges, measured) = (app.gauges.clone(), Arc::clone(&budget));
    let read = move || {
        gauges.read();
        measured.measure();
        metrics.clone()
    };
    let exporting = exporter.as_ref().map(|exporter| exporter.worker(read.clone()));
    supervisor.run(workers.into_iter().chain(reload).chain(exporting));
    let listening = addresses.listen()?;
    let connections = descriptors::connections(config, listening.surfaces.len());
    log_start(config, &database);
    if app.provider.is_some() {
        let token = app.service_token()?;
        let key_file = config.data_dir.join("demo-api-key");
        let demo = demo::seed(&app.entry.router, &token, Some(&key_file)).await?;
        demo::webhook::seed(&app.entry.router, &token, config).await;
        ready(&demo, &database.description());
    }
    let ops = transport::ops({
        let read = read.clone();
        move || read().render()
    });
    let closing = supervisor.shutdown();
    let served = listening.serve(config, connections, &app, (ops, budget), tls, closing).await;
    supervisor.stop().await;
    if let Some(exporter) = exporter
        && let Err(error) = exporter.send(&read()).await
    {
        tracing::warn!(%error, "failed to send the last metrics");
    }
    drop(app);
    database.close().await;
    served
}

/// Refuses a data folder in which no service was started: otherwise, a command for an existing
/// installation would create another installation there.
pub fn require_installation(config: &Config) -> Result<(), Failure> {
    let ring = config.keys.ring.is_some() || config.keys.ring_file.is_some();
    let folder = &config.data_dir;
    // The first start of a development server creates the ring, for any database.
    let exists = match (ring, config.database.url.is_some()) {
        (false, _) => folder.join(RING_FILE).is_file(),
        (true, false) => folder.is_dir(),
        (true, true) => true,
    };
    if exists { Ok(()) } else { Err(Failure::NoInstallation(folder.clone())) }
}

/// The files of a development server in its data folder, besides its database.
const MADE: [&str; 6] =
    [RING_FILE, "push.pem", "demo-api-key", demo::webhook::FILE, "logs", "archive"];

/// Removes the files of a development server from its data folder: the database, the keys, the logs
/// and the archive. Returns the removed paths; other files stay.
pub async fn reset(config: &Config) -> Result<Vec<PathBuf>, Failure> {
    if config.production() || config.database.url.is_some() {
        return Err(Failure::NotOurs);
    }
    let folder = &config.data_dir;
    let mut removed = Vec::new();
    if embedded::remove(folder).await? {
        removed.push(folder.join("postgres"));
    }
    for path in MADE.map(|name| folder.join(name)) {
        let done = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match done {
            Ok(()) => removed.push(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Fails if the folder contains other files.
    let _ = fs::remove_dir(folder);
    Ok(removed)
}

/// Logs the information that operators need most. It contains no password.
fn log_start(config: &Config, database: &Database) {
    let issuer = config.identity.issuer.as_deref();
    let listen = config.listen.plan().into_iter().map(|(address, _)| address.to_string());
    let environment = if config.production() { "production" } else { "development" };
    tracing::info!(
        service.version = env!("CARGO_PKG_VERSION"),
        deployment.environment.name = environment,
        listen = listen.collect::<Vec<_>>().join(", "),
        ops = %config.listen.ops,
        tls = config.tls.is_on(),
        public_url = config.public_url(),
        database = database.shown,
        issuer = issuer.unwrap_or(if config.dev_provider() { ISSUER } else { "none" }),
        migrations = database.migrated.len(),
        "starting"
    );
}

/// Runs one command on the service without listening, alone or next to a running service.
pub async fn with_app<T>(config: Config, act: impl AsyncFnOnce(&App) -> T) -> Result<T, Failure> {
    let database = Database::open(&config).await?;
    let parts = Parts::new(config, database.store.clone())?;
    let supervisor = parts.supervisor.clone();
    let (app, workers) = Box::pin(App::build(parts)).await?;
    // The public URL of a command may differ from the server's. Its messages would have wrong links.
    supervisor.run(workers.into_iter().filter(|worker| worker.name() != "messages"));
    let done = act(&app).await;
    supervisor.stop().await;
    drop(app);
    database.close().await;
    Ok(done)
}

impl App {
    /// A JWT for the service's own calls as the owner, from the development identity provider.
    pub fn service_token(&self) -> Result<String, Failure> {
        self.issue(&Holder::Service)
    }

    /// A JWT of the development identity provider: for a tenant's member in a role, otherwise for
    /// the owner. A member without a name is a person of the tenant, such as
    /// `approver@acme.example`, never the owner.
    pub fn token(
        &self,
        member: Option<(TenantRef, String)>,
        email: Option<String>,
    ) -> Result<String, Failure> {
        self.issue(&match member {
            None => Holder::Owner { email: email.unwrap_or_else(|| OPERATOR.to_owned()) },
            Some((tenant_id, role)) => {
                let slug =
                    IdParts::of(&tenant_id).and_then(|id| id.tenant_slug).unwrap_or_default();
                let email = email.unwrap_or_else(|| format!("{role}@{slug}.example"));
                Holder::Member { tenant_id, role, email }
            }
        })
    }

    fn issue(&self, holder: &Holder) -> Result<String, Failure> {
        let provider = self.provider.as_ref().ok_or(Failure::NoProvider)?;
        provider.issue(holder, TOKEN_LIFETIME).ok_or(Failure::NoProvider)
    }
}

impl Listening {
    async fn serve(
        self,
        config: &Config,
        connections: usize,
        app: &App,
        (ops, budget): (Router, Arc<Budget>),
        tls: Option<Tls>,
        shutdown: &CancellationToken,
    ) -> Result<(), Failure> {
        let mut serving = JoinSet::new();
        for (listener, surfaces) in self.surfaces {
            let mut settings = Settings::new(config, surfaces);
            settings.bounds.limit(connections);
            settings.budget = Arc::clone(&budget);
            settings.tls = tls.as_ref().map(|tls| tls.on(surfaces));
            let router = transport::Answers::layered(app.entry.clone(), &settings);
            let closing = closing(shutdown, config.lame_duck());
            serving.spawn(transport::serve(listener, router, closing, settings));
        }
        let mut settings = Settings::new(config, Surfaces::ALL);
        settings.bounds.limit(connections.min(descriptors::OPS_CONNECTIONS));
        settings.budget = budget;
        settings.tls = tls.as_ref().map(Tls::on_ops);
        let closing = closing(shutdown, config.lame_duck());
        serving.spawn(transport::serve(self.ops, ops, closing, settings));
        while let Some(ended) = serving.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// Completes when the service stops accepting connections: by then load balancers have seen that it
/// is not ready.
fn closing(
    shutdown: &CancellationToken,
    lame_duck: Duration,
) -> impl Future<Output = ()> + Send + use<> {
    let shutdown = shutdown.clone();
    async move {
        shutdown.cancelled().await;
        sleep(lame_duck).await;
    }
}

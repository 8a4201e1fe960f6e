//! Serving: the database, the rooms, the listeners; from start to the last drained connection.

use std::{io, net::SocketAddr};

use chrono::TimeDelta;
use tokio::{net::TcpListener, task::JoinSet};

use super::{
    App, Database, DatabaseError, Error, Parts,
    demo::{self, Demo},
};
use crate::{
    config::Config,
    identity::dev_provider::Holder,
    shutdown::Shutdown,
    telemetry::{self, Metrics},
    transport::{self, Settings, Surfaces},
};

/// How long a token of the development identity provider lasts.
const TOKEN_LIFETIME: TimeDelta = TimeDelta::hours(12);
/// Who acts where nobody is named.
const OPERATOR: &str = "operator@localhost";

/// Why the service does not run.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Build(#[from] Error),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Demo(#[from] demo::Error),
    #[error(transparent)]
    Metrics(#[from] telemetry::Error),
    #[error(
        "cannot listen on {0}: {1}; name another address with --listen or, for metrics, \
         AGENT_AUTHORITY__LISTEN__OPS"
    )]
    Listen(SocketAddr, io::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("tokens come from your identity provider: the built-in one is for development")]
    NoProvider,
    #[error("a listener ended: {0}")]
    Listener(#[from] tokio::task::JoinError),
}

/// Runs until SIGTERM or SIGINT, then drains. `ready` hears of the demonstration tenant, which
/// only development has.
pub async fn serve(config: &Config, ready: impl FnOnce(&Demo)) -> Result<(), Failure> {
    let shutdown = Shutdown::on_signal()?;
    let metrics = Metrics::install()?;
    let database = Database::open(config).await?;
    if let Some(server) = &database.embedded {
        server.watch();
    }
    let parts = Parts::new(config.clone(), database.store.clone())?;
    let app = App::build(Parts { shutdown: shutdown.clone(), ..parts }).await?;
    // Before anything is announced: a port that is taken is told at once.
    let bound = Bound::new(config).await?;
    if app.provider.is_some() {
        let key_file = config.data_dir.join("demo-api-key");
        ready(&demo::seed(&app.router, &app.owner_token()?, Some(&key_file)).await?);
    }
    let served = bound.serve(config, &app, metrics, &shutdown).await;
    drop(app);
    database.close().await;
    served
}

/// Does one thing with the service, beside a running one or alone, without listening.
pub async fn with_app<T, E: From<Failure>>(
    config: Config,
    act: impl AsyncFnOnce(&App) -> Result<T, E>,
) -> Result<T, E> {
    let database = Database::open(&config).await.map_err(Failure::from)?;
    let parts = Parts::new(config, database.store.clone()).map_err(Failure::from)?;
    let app = App::build(parts).await.map_err(Failure::from)?;
    let done = act(&app).await;
    drop(app);
    database.close().await;
    done
}

impl App {
    /// A JWT of the installation's owner, from the development identity provider.
    pub fn owner_token(&self) -> Result<String, Failure> {
        self.token(None, None)
    }

    /// A JWT of the development identity provider: of a tenant's member in a role, else the owner's.
    pub fn token(
        &self,
        member: Option<(String, String)>,
        email: Option<String>,
    ) -> Result<String, Failure> {
        let email = email.unwrap_or_else(|| OPERATOR.to_owned());
        let holder = match member {
            None => Holder::Owner { email },
            Some((tenant_id, role)) => Holder::Member { tenant_id, role, email },
        };
        let provider = self.provider.as_ref().ok_or(Failure::NoProvider)?;
        provider.issue(&holder, TOKEN_LIFETIME).ok_or(Failure::NoProvider)
    }
}

/// Every address that the service listens on, taken.
struct Bound {
    surfaces: Vec<(TcpListener, Surfaces)>,
    ops: TcpListener,
}

impl Bound {
    async fn new(config: &Config) -> Result<Self, Failure> {
        let mut surfaces = Vec::new();
        for (address, served) in transport::plan(&config.listen) {
            surfaces.push((bind(address).await?, served));
        }
        Ok(Self { surfaces, ops: bind(config.listen.ops).await? })
    }

    async fn serve(
        self,
        config: &Config,
        app: &App,
        metrics: Metrics,
        shutdown: &Shutdown,
    ) -> Result<(), Failure> {
        let mut serving = JoinSet::new();
        for (listener, surfaces) in self.surfaces {
            let settings = Settings::new(config, surfaces);
            let router = transport::dress(app.router.clone(), &settings);
            serving.spawn(transport::serve(listener, router, shutdown.wait(), settings));
        }
        let rendered = metrics.clone();
        tokio::spawn(metrics.keep());
        let ops = transport::ops(move || rendered.render());
        let settings = Settings::new(config, Surfaces::ALL);
        serving.spawn(transport::serve(self.ops, ops, shutdown.wait(), settings));
        while let Some(ended) = serving.join_next().await {
            ended??;
        }
        Ok(())
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| Failure::Listen(address, error))
}

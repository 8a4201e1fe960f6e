//! Runs the service: the database, the services, the listeners, from start to the last drained
//! connection.

use std::{io, net::SocketAddr};

use chrono::TimeDelta;
use tokio::{
    net::{TcpListener, TcpSocket},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    App, Database, DatabaseError, Error, Parts,
    demo::{self, Demo},
    descriptors,
};
use crate::{
    telemetry::{self, Metrics},
    transport::{self, Settings, Surfaces},
};
use authority_api::identity::dev_provider::Holder;
use authority_core::{config::Config, shutdown, worker::Supervisor};
use authority_ids::IdParts;

/// How long a token of the development identity provider lasts.
const TOKEN_LIFETIME: TimeDelta = TimeDelta::hours(12);
/// The owner's default name.
const OPERATOR: &str = "operator@localhost";

/// Why the service cannot run.
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

/// Runs until SIGTERM or SIGINT, then drains. `ready` receives the demonstration tenant, which only
/// development has.
pub async fn serve(config: &Config, ready: impl FnOnce(&Demo)) -> Result<(), Failure> {
    let supervisor = Supervisor::new(shutdown::on_signal()?);
    let metrics = Metrics::install()?;
    supervisor.run([metrics.upkeep()]);
    let database = Database::open(config).await?;
    if let Some(server) = &database.embedded {
        supervisor.run([server.watch()]);
    }
    let parts = Parts::new(config.clone(), database.store.clone())?;
    let (app, workers) = App::build(Parts { supervisor: supervisor.clone(), ..parts }).await?;
    supervisor.run(workers);
    // Before anything else, so that a port in use is reported at once.
    let bound = Bound::new(config)?;
    if app.provider.is_some() {
        let token = app.service_token()?;
        let key_file = config.data_dir.join("demo-api-key");
        let demo = demo::seed(&app.router, &token, Some(&key_file)).await?;
        demo::webhook::seed(&app.router, &token, config).await;
        ready(&demo);
    }
    let served = bound.serve(config, &app, metrics, supervisor.shutdown()).await;
    supervisor.stop().await;
    drop(app);
    database.close().await;
    served
}

/// Runs one command on the service without listening, alone or beside a running service.
pub async fn with_app<T, E: From<Failure>>(
    config: Config,
    act: impl AsyncFnOnce(&App) -> Result<T, E>,
) -> Result<T, E> {
    let database = Database::open(&config).await.map_err(Failure::from)?;
    let parts = Parts::new(config, database.store.clone()).map_err(Failure::from)?;
    let supervisor = parts.supervisor.clone();
    let (app, workers) = App::build(parts).await.map_err(Failure::from)?;
    supervisor.run(workers);
    let done = act(&app).await;
    supervisor.stop().await;
    drop(app);
    database.close().await;
    done
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
        member: Option<(String, String)>,
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

/// Every address that the service listens on, bound.
struct Bound {
    surfaces: Vec<(TcpListener, Surfaces)>,
    ops: TcpListener,
}

impl Bound {
    fn new(config: &Config) -> Result<Self, Failure> {
        let mut surfaces = Vec::new();
        for (address, served) in transport::plan(&config.listen) {
            surfaces.push((bind(address)?, served));
        }
        Ok(Self { surfaces, ops: bind(config.listen.ops)? })
    }

    async fn serve(
        self,
        config: &Config,
        app: &App,
        metrics: Metrics,
        shutdown: &CancellationToken,
    ) -> Result<(), Failure> {
        let mut serving = JoinSet::new();
        let connections = descriptors::connections(config, self.surfaces.len());
        for (listener, surfaces) in self.surfaces {
            let mut settings = Settings::new(config, surfaces);
            settings.bounds.connections = connections;
            let router = transport::with_response_layer(app.router.clone(), &settings);
            serving.spawn(transport::serve(
                listener,
                router,
                shutdown.clone().cancelled_owned(),
                settings,
            ));
        }
        let ops = transport::ops(move || metrics.render());
        let mut settings = Settings::new(config, Surfaces::ALL);
        settings.bounds.connections = connections.min(descriptors::OPS_CONNECTIONS);
        serving.spawn(transport::serve(
            self.ops,
            ops,
            shutdown.clone().cancelled_owned(),
            settings,
        ));
        while let Some(ended) = serving.join_next().await {
            ended??;
        }
        Ok(())
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    listen(address).map_err(|error| Failure::Listen(address, error))
}

/// The backlog of connections that wait to be accepted. Beyond it the kernel drops a client's first
/// packet, and the client tries again a second later.
const BACKLOG: u32 = 1024;

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As in `TcpListener::bind`: a restart need not wait until old connections have timed out.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{net::TcpStream, time::timeout};

    use super::*;

    /// More than the 128 connections of `TcpListener::bind` can wait without a second packet.
    #[tokio::test]
    async fn many_may_wait_to_be_accepted() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        for _ in 0..300 {
            let connected = timeout(Duration::from_millis(900), TcpStream::connect(address)).await;
            waiting.push(connected.expect("the kernel takes it").unwrap());
        }
        assert_eq!(waiting.len(), 300);
    }
}

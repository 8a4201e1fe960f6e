//! The binary: the commands of `cli/`, done by the service.

mod cli;

use std::process::ExitCode;

use agent_authority::{
    app::{App, Database, Parts, demo},
    config::Config,
    directory::OPENAPI,
    identity::dev_provider::Holder,
    telemetry::Metrics,
    transport::{self, Shutdown},
};
use chrono::TimeDelta;
use cli::{ApiKeyRequest, Failure, TokenRequest, banner};
use tokio::{net::TcpListener, task::JoinSet};

fn main() -> ExitCode {
    cli::run(&Service)
}

/// Who a command line acts as, where nobody is named.
const OPERATOR: &str = "operator@localhost";
/// How long a token of the development identity provider lasts.
const TOKEN_LIFETIME: TimeDelta = TimeDelta::hours(12);

struct Service;

impl cli::Actions for Service {
    async fn serve(&self, config: Config) -> Result<(), Failure> {
        let shutdown = Shutdown::on_signal().map_err(Failure::new)?;
        let metrics = Metrics::install().map_err(Failure::new)?;
        let database = Database::open(&config).await.map_err(Failure::new)?;
        let app = build(&config, &database).await?;
        if app.provider.is_some() {
            let demo = demo::seed(&app.router, &owner_token(&app)?).await.map_err(Failure::new)?;
            eprintln!("{}", banner::text(&config, &demo));
        }
        let served = listen(&config, &app, metrics, &shutdown).await;
        drop(app);
        database.close().await;
        served
    }

    async fn token(&self, config: Config, request: TokenRequest) -> Result<String, Failure> {
        with_app(config, async |app| {
            let email = |email: Option<String>| email.unwrap_or_else(|| OPERATOR.to_owned());
            let holder = match request {
                TokenRequest::Owner { email: named } => Holder::Owner { email: email(named) },
                TokenRequest::Tenant { tenant, role, email: named } => {
                    Holder::Member { tenant_id: tenant_id(&tenant), role, email: email(named) }
                }
            };
            token(app, &holder)
        })
        .await
    }

    async fn api_key(&self, config: Config, request: ApiKeyRequest) -> Result<String, Failure> {
        with_app(config, async |app| {
            let token = owner_token(app)?;
            let ApiKeyRequest { tenant, scopes, label } = request;
            let tenant = tenant_id(&tenant);
            let made = demo::api_key(&app.router, &token, &tenant, &scopes, &label).await;
            made.map_err(Failure::new)
        })
        .await
    }

    async fn migrate(&self, config: Config) -> Result<Vec<String>, Failure> {
        let mut database = Database::open(&config).await.map_err(Failure::new)?;
        let migrated = std::mem::take(&mut database.migrated);
        database.close().await;
        Ok(migrated)
    }

    async fn seed_demo(&self, config: Config) -> Result<String, Failure> {
        let shown = config.clone();
        with_app(config, async |app| {
            let demo = demo::seed(&app.router, &owner_token(app)?).await.map_err(Failure::new)?;
            Ok(banner::text(&shown, &demo))
        })
        .await
    }

    fn openapi(&self) -> &'static str {
        OPENAPI
    }
}

async fn build(config: &Config, database: &Database) -> Result<App, Failure> {
    let parts = Parts::new(config.clone(), database.store.clone()).map_err(Failure::new)?;
    App::build(parts).await.map_err(Failure::new)
}

/// Does one thing with the service, beside a running one or alone, without listening.
async fn with_app<T>(
    config: Config,
    act: impl AsyncFnOnce(&App) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let database = Database::open(&config).await.map_err(Failure::new)?;
    let app = build(&config, &database).await?;
    let done = act(&app).await;
    drop(app);
    database.close().await;
    done
}

fn owner_token(app: &App) -> Result<String, Failure> {
    token(app, &Holder::Owner { email: OPERATOR.to_owned() })
}

fn token(app: &App, holder: &Holder) -> Result<String, Failure> {
    let provider = app.provider.as_ref().ok_or_else(|| {
        Failure::new("tokens come from your identity provider: the built-in one is for development")
    })?;
    provider
        .issue(holder, TOKEN_LIFETIME)
        .ok_or_else(|| Failure::new("the development identity provider has no key"))
}

/// A tenant by its id or its slug.
fn tenant_id(named: &str) -> String {
    if named.starts_with("svc:") { named.to_owned() } else { format!("svc:tenant:{named}") }
}

/// Serves every address until the signal, then drains.
async fn listen(
    config: &Config,
    app: &App,
    metrics: Metrics,
    shutdown: &Shutdown,
) -> Result<(), Failure> {
    let mut serving = JoinSet::new();
    for (address, surfaces) in transport::plan(&config.listen) {
        let listener = bind(address).await?;
        let settings = transport::Settings::new(config, surfaces);
        let router = transport::dress(app.router.clone(), &settings);
        serving.spawn(transport::serve(listener, router, shutdown.wait(), settings));
    }
    let rendered = metrics.clone();
    tokio::spawn(metrics.keep());
    let settings = transport::Settings::new(config, transport::Surfaces::ALL);
    let ops = transport::ops(move || rendered.render());
    serving.spawn(transport::serve(
        bind(config.listen.ops).await?,
        ops,
        shutdown.wait(),
        settings,
    ));
    while let Some(ended) = serving.join_next().await {
        ended.map_err(Failure::new)?.map_err(Failure::new)?;
    }
    Ok(())
}

async fn bind(address: std::net::SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address)
        .await
        .map_err(|error| Failure::new(format!("cannot listen on {address}: {error}")))
}

//! The binary: implements the commands of `cli/` with the service.

mod cli;

use std::process::ExitCode;

use agent_authority::app::{self, Database, demo, with_app};
use authority_core::config::Config;
use cli::{ApiKeyRequest, Failure, TokenRequest, banner, tenant_id};
use serde_json::json;

/// A decision makes about a hundred small allocations on one thread and frees many of them on
/// another. With the system's allocator, these took a sixth of a decision's CPU time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run(&Service)
}

struct Service;

impl cli::Actions for Service {
    fn check(&self, config: &Config) -> Result<(), Failure> {
        app::check(config).map_err(Failure::usage)
    }

    async fn serve(&self, config: Config) -> Result<(), Failure> {
        app::serve(&config, |demo| eprintln!("{}", banner::text(&config, demo))).await?;
        Ok(())
    }

    async fn token(&self, config: Config, request: TokenRequest) -> Result<String, Failure> {
        app::require_installation(&config)?;
        with_app(config, async |app| {
            Ok(match request {
                TokenRequest::Owner { email } => app.token(None, email)?,
                TokenRequest::Tenant { tenant, role, email } => {
                    app.token(Some((tenant_id(&tenant), role)), email)?
                }
            })
        })
        .await
    }

    async fn api_key(&self, config: Config, request: ApiKeyRequest) -> Result<String, Failure> {
        let ApiKeyRequest { tenant, scopes, principal_ids, label } = request;
        let bound = (!principal_ids.is_empty()).then_some(principal_ids);
        let key = json!({"tenant_id": tenant_id(&tenant), "label": label, "scopes": scopes,
                         "principal_ids": bound});
        app::require_installation(&config)?;
        with_app(config, async |app| {
            let token = app.service_token()?;
            demo::api_key(&app.entry.router, &token, key).await.map_err(|error| match error {
                demo::Error::Refused { body, .. } => Failure::refused(&body),
                error => Failure::new(error),
            })
        })
        .await
    }

    async fn rewrap(&self, config: Config) -> Result<usize, Failure> {
        app::require_installation(&config)?;
        with_app(config, async |app| app.keys.rewrap().await.map_err(Failure::new)).await
    }

    async fn migrate(&self, config: Config) -> Result<Vec<String>, Failure> {
        let mut database = Database::migrate(&config).await.map_err(Failure::new)?;
        let migrated = std::mem::take(&mut database.migrated);
        database.close().await;
        Ok(migrated)
    }

    async fn reset(&self, config: Config) -> Result<Vec<String>, Failure> {
        let removed = app::reset(&config).await?;
        Ok(removed.iter().map(|path| path.display().to_string()).collect())
    }

    async fn seed_demo(&self, config: Config) -> Result<String, Failure> {
        let shown = config.clone();
        with_app(config, async |app| {
            let token = app.service_token()?;
            let made = demo::seed(&app.entry.router, &token, None).await.map_err(Failure::new)?;
            demo::webhook::seed(&app.entry.router, &token, &shown).await;
            Ok(banner::text(&shown, &made))
        })
        .await
    }

    fn openapi(&self) -> String {
        app::contract(&Config::default().public_url())
    }
}

impl From<app::Failure> for Failure {
    fn from(failure: app::Failure) -> Self {
        Self::new(failure)
    }
}

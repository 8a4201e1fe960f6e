//! The commands that run the service in this process. The configuration is loaded and valid.

use agent_authority::app::{self, Database, demo, with_app};
use authority_cli::{Failure, TokenRequest, tenant_id};
use authority_config::Config;
use serde_json::json;

use super::{args::ApiKeyRequest, banner};

/// Checks the objects that the settings refer to: the key ring, the database's address.
pub(super) fn check(config: &Config) -> Result<(), Failure> {
    app::check(config).map_err(Failure::usage)
}

/// Runs until SIGTERM.
pub(super) async fn serve(config: &Config) -> Result<(), Failure> {
    let served = app::serve(config, |demo, database| {
        eprintln!("{}", banner::text(config, demo, Some(database)));
    })
    .await;
    served.map_err(Failure::new)
}

/// Returns a JWT of the development identity provider.
pub(super) async fn token(config: Config, request: TokenRequest) -> Result<String, Failure> {
    app::require_installation(&config).map_err(Failure::new)?;
    with_app(config, async |app| match request {
        TokenRequest::Owner { email } => app.token(None, email),
        TokenRequest::Tenant { tenant, role, email } => {
            app.token(Some((tenant_id(&tenant), role)), email)
        }
    })
    .await
    .flatten()
    .map_err(Failure::new)
}

/// Returns a new API key, which is not shown again.
pub(super) async fn api_key(config: Config, request: ApiKeyRequest) -> Result<String, Failure> {
    let ApiKeyRequest { tenant, scopes, principal_ids, label } = request;
    let bound = (!principal_ids.is_empty()).then_some(principal_ids);
    let key = json!({"tenant_id": tenant_id(&tenant), "label": label, "scopes": scopes,
                     "principal_ids": bound});
    app::require_installation(&config).map_err(Failure::new)?;
    with_app(config, async |app| {
        let token = app.service_token().map_err(Failure::new)?;
        demo::api_key(&app.entry.router, &token, key).await.map_err(|error| match error {
            demo::Error::Refused { body, .. } => Failure::refused(&body),
            error => Failure::new(error),
        })
    })
    .await
    .map_err(Failure::new)?
}

/// Encrypts the stored secrets again under the key ring's first key, and returns their number.
pub(super) async fn rewrap(config: Config) -> Result<usize, Failure> {
    app::require_installation(&config).map_err(Failure::new)?;
    let rewrapped = with_app(config, async |app| app.keys.rewrap().await).await;
    rewrapped.map_err(Failure::new)?.map_err(Failure::new)
}

/// Runs the pending migrations, and returns their names.
pub(super) async fn migrate(config: &Config) -> Result<Vec<String>, Failure> {
    let mut database = Database::migrate(config).await.map_err(Failure::new)?;
    let migrated = std::mem::take(&mut database.migrated);
    database.close().await;
    Ok(migrated)
}

/// Removes a development server's database, keys, logs and archive, and returns the removed
/// paths.
pub(super) async fn reset(config: &Config) -> Result<Vec<String>, Failure> {
    let removed = app::reset(config).await.map_err(Failure::new)?;
    Ok(removed.iter().map(|path| path.display().to_string()).collect())
}

/// Creates the demo tenant, and returns instructions for people.
pub(super) async fn seed_demo(config: Config) -> Result<String, Failure> {
    let shown = config.clone();
    with_app(config, async |app| {
        let token = app.service_token().map_err(Failure::new)?;
        let made = demo::seed(&app.entry.router, &token, None).await.map_err(Failure::new)?;
        demo::webhook::seed(&app.entry.router, &token, &shown).await;
        Ok(banner::text(&shown, &made, None))
    })
    .await
    .map_err(Failure::new)?
}

/// Returns the `OpenAPI` 3.1 document.
pub(super) fn openapi() -> String {
    app::contract(&Config::default().public_url())
}

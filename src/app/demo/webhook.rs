//! The demonstration's webhook endpoint: a receiver on this machine, `agent-authority listen`.

use std::{fs, io, path::Path};

use authority_config::{Config, DEMO_TENANT};
use authority_ids::{EndpointRef, TenantId};
use axum::Router;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Client, Error, keep, text};

/// The default address on which `listen` receives.
pub const ADDRESS: &str = "127.0.0.1:4000";
const DESCRIPTION: &str = "Development only: `agent-authority listen` on this machine";
pub(crate) const FILE: &str = "demo-webhook.json";

/// The endpoint, and the keys with which a receiver verifies its deliveries.
///
/// It is kept in a file of the data folder that only the file's owner may read. It has no `Debug`,
/// to keep the secret out of logs.
#[derive(Serialize, Deserialize)]
pub struct Webhook {
    pub endpoint_id: EndpointRef,
    pub url: String,
    pub secret: String,
    /// The service's published keys.
    pub jwks_url: String,
}

impl Webhook {
    /// Reads the endpoint of the service with this data folder, if any.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(folder.join(FILE)).ok()?).ok()
    }

    fn keep(&self, folder: &Path) -> Result<(), Error> {
        Ok(keep(&folder.join(FILE), &serde_json::to_string(self)?)?)
    }
}

/// Creates the endpoint, unless it existed before: a deleted endpoint stays deleted. The service
/// works without it. A failure is therefore only a warning.
pub async fn seed(router: &Router, owner_token: &str, config: &Config) {
    if let Err(error) = seed_at(&format!("http://{ADDRESS}/"), router, owner_token, config).await {
        tracing::warn!(%error, "failed to create the demonstration's webhook endpoint");
    }
}

/// Like [`seed`], at another URL, for tests.
pub async fn seed_at(
    url: &str,
    router: &Router,
    owner_token: &str,
    config: &Config,
) -> Result<(), Error> {
    let (client, folder) = (Client { router, token: owner_token }, &config.data_dir);
    let tenant_id = TenantId::complete(DEMO_TENANT);
    let path = format!("/api/v1/webhook-endpoints?tenant_id={tenant_id}&deleted=true&limit=500");
    let list = client.call("GET", &path, None).await?;
    let mut endpoints = list["webhook_endpoints"].as_array().into_iter().flatten();
    let (endpoint_id, secret) = match endpoints.find(|endpoint| endpoint["url"] == url) {
        None => {
            let body = json!({"tenant_id": tenant_id, "url": url, "description": DESCRIPTION});
            let made = client.call("POST", "/api/v1/webhook-endpoints", Some(body)).await?;
            (text(&made["webhook_endpoint"]["id"]).into(), text(&made["secret"]))
        }
        Some(endpoint) if endpoint["state"] == "deleted" => return forget(folder),
        Some(endpoint) => {
            let id = text(&endpoint["id"]).into();
            let secret = kept_or_new(&client, folder, &id).await?;
            (id, secret)
        }
    };
    let jwks_url = format!("{}/.well-known/jwks.json", config.public_url());
    Webhook { endpoint_id, url: url.to_owned(), secret, jwks_url }.keep(folder)
}

/// Returns the secret that an earlier run kept, or a new one if it is lost.
async fn kept_or_new(
    client: &Client<'_>,
    folder: &Path,
    id: &EndpointRef,
) -> Result<String, Error> {
    if let Some(kept) = Webhook::read(folder).filter(|kept| kept.endpoint_id == *id) {
        return Ok(kept.secret);
    }
    let path = format!("/api/v1/webhook-endpoints/{id}:rotate-secret");
    let rotated = client.call("POST", &path, Some(json!({}))).await?;
    Ok(text(&rotated["secret"]))
}

fn forget(folder: &Path) -> Result<(), Error> {
    match fs::remove_file(folder.join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

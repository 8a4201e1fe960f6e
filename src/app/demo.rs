//! The demonstration tenant `acme`.
//!
//! It is created through the service's own REST API, with requests that any client may make
//! (`demo.json`).

pub mod webhook;

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::Duration,
};

use authority_config::DEMO_TENANT;
use authority_ids::TenantId;
use authority_store::new_id;
use axum::{Router, body::Body};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

const STEPS: &str = include_str!("demo.json");

/// The scopes of its API key.
const SCOPES: [&str; 5] =
    ["runtime:read", "runtime:write", "evidence:read", "evidence:write", "events:read"];

/// How long requests are repeated. A service that has just started may not know yet whether its
/// copy of the records is current. Until then, it answers 503.
const PATIENCE: Duration = Duration::from_secs(30);
const BETWEEN: Duration = Duration::from_millis(200);

/// The reason the demonstration could not be created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the demonstration's records cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{method} {path} answered {status}: {body}")]
    Refused { method: &'static str, path: String, status: StatusCode, body: Value },
    #[error("the service does not answer: {0}")]
    Service(String),
    #[error("the data folder: {0}")]
    Folder(#[from] io::Error),
}

/// A record to create.
#[derive(Deserialize)]
struct DemoRecord {
    /// The name of the record's id in later bodies: `$name`.
    #[serde(rename = "as")]
    name: Option<String>,
    path: String,
    /// The member of the response that contains the record.
    take: Option<String>,
    body: Value,
}

/// The data for the banner.
#[derive(Clone)]
pub struct Demo {
    /// An API key of the tenant. It cannot be read again.
    pub api_key: String,
    pub delegation_id: String,
}

/// Creates the tenant, unless it exists, and an API key for it. A key that an earlier run left in
/// `key_file` is used again if it is still valid, to avoid a new key at every start.
pub async fn seed(
    router: &Router,
    owner_token: &str,
    key_file: Option<&Path>,
) -> Result<Demo, Error> {
    let client = Client { router, token: owner_token };
    if !client.exists(&format!("/api/v1/tenants/{DEMO_TENANT}")).await? {
        client.make_all().await?;
    }
    let tenant = TenantId::complete(DEMO_TENANT);
    let api_key = if let Some(key) = kept(router, key_file).await {
        key
    } else {
        let key = json!({"tenant_id": tenant, "label": "demonstration", "scopes": SCOPES});
        self::api_key(router, owner_token, key).await?
    };
    if let Some(file) = key_file
        && let Err(error) = keep(file, &api_key)
    {
        tracing::warn!(%error, "failed to store the demonstration's API key");
    }
    let path = format!("/api/v1/delegations?tenant_id={tenant}&limit=1");
    let delegations = client.call("GET", &path, None).await?;
    let delegation_id = text(&delegations["delegations"][0]["id"]);
    Ok(Demo { api_key, delegation_id })
}

/// The key of an earlier run, if it is still valid and has the most recently added scope.
async fn kept(router: &Router, file: Option<&Path>) -> Option<String> {
    let key = fs::read_to_string(file?).ok()?;
    let client = Client { router, token: &key };
    let open = client.call("GET", "/v1/events?limit=1", None).await.is_ok();
    open.then_some(key)
}

/// Stores a secret in a file that only its owner may read.
fn keep(file: &Path, secret: &str) -> io::Result<()> {
    let mut open = OpenOptions::new();
    open.write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)?
        .write_all(secret.as_bytes())
}

/// Creates an API key with this record. Only this response contains the key's text.
pub async fn api_key(router: &Router, owner_token: &str, key: Value) -> Result<String, Error> {
    let client = Client { router, token: owner_token };
    let made = client.call("POST", "/api/v1/api-keys", Some(key)).await?;
    Ok(text(&made["secret"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

struct Client<'a> {
    router: &'a Router,
    token: &'a str,
}

impl Client<'_> {
    async fn make_all(&self) -> Result<(), Error> {
        let mut ids = HashMap::new();
        for mut step in serde_json::from_str::<Vec<DemoRecord>>(STEPS)? {
            fill(&mut step.body, &ids);
            let made = self.call("POST", &step.path, Some(step.body)).await?;
            if let (Some(name), Some(member)) = (step.name, step.take) {
                let id = made[member.as_str()]["id"].as_str().unwrap_or_default();
                ids.insert(name, id.to_owned());
            }
        }
        Ok(())
    }

    async fn exists(&self, path: &str) -> Result<bool, Error> {
        match self.call("GET", path, None).await {
            Ok(_) => Ok(true),
            Err(Error::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the response body. On a 503 the request is repeated under the same idempotency key,
    /// to avoid creating a record twice.
    async fn call(
        &self,
        method: &'static str,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, Error> {
        let key = new_id().to_string();
        let until = Instant::now() + PATIENCE;
        loop {
            let (status, answer) = self.call_once(method, path, body.as_ref(), &key).await?;
            match status {
                status if status.is_success() => return Ok(answer),
                StatusCode::SERVICE_UNAVAILABLE if Instant::now() < until => sleep(BETWEEN).await,
                status => {
                    return Err(Error::Refused {
                        method,
                        path: path.to_owned(),
                        status,
                        body: answer,
                    });
                }
            }
        }
    }

    async fn call_once(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
        key: &str,
    ) -> Result<(StatusCode, Value), Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Service(error.to_string());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", key)
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))
            .map_err(|error| failed(&error))?;
        let answer = self.router.clone().oneshot(request).await.map_err(|error| failed(&error))?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await.map_err(|error| failed(&error))?;
        Ok((status, serde_json::from_slice(&bytes.to_bytes()).unwrap_or_default()))
    }
}

/// Replaces each `$name` with its id.
fn fill(value: &mut Value, ids: &HashMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(id) = text.strip_prefix('$').and_then(|name| ids.get(name)) {
                text.clone_from(id);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, ids)),
        Value::Object(members) => members.values_mut().for_each(|member| fill(member, ids)),
        _ => {}
    }
}

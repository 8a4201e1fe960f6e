//! The service's published keys, fetched when a delivery needs an unknown key.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use authority_client::is_loopback;
use reqwest::{Client, Url, redirect::Policy};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::{http::deepest, outcome::Failure};

const TIMEOUT: Duration = Duration::from_secs(5);
/// How long fetched keys are used without fetching them again. The service lets caches keep its
/// keys for the same time: a revoked key is not used for longer.
const FRESH: Duration = Duration::from_secs(300);
/// The minimum interval between two requests, for any number of unknown keys.
const INTERVAL: Duration = Duration::from_secs(1);
/// The maximum size of a response in bytes; a JWKS has a few thousand.
const LARGEST: usize = 256 * 1024;

pub struct Jwks {
    pub url: Url,
    http: Client,
    /// The result of the last request; locked during the next request.
    last: Mutex<Option<Fetched>>,
}

struct Fetched {
    at: Instant,
    keys: Result<Arc<Value>, String>,
}

impl Jwks {
    pub fn new(url: Url) -> Result<Self, Failure> {
        // A redirect could lead from https to anywhere.
        let http = Client::builder().timeout(TIMEOUT).redirect(Policy::none());
        let http = if is_loopback(&url) { http.no_proxy() } else { http };
        Ok(Self { url, http: http.build().map_err(Failure::new)?, last: Mutex::default() })
    }

    /// Returns the known keys; none if they are too old.
    pub async fn known(&self) -> Arc<Value> {
        let last = self.last.lock().await;
        let fresh = last.as_ref().filter(|last| last.at.elapsed() < FRESH);
        let keys = fresh.and_then(|last| last.keys.as_ref().ok().map(Arc::clone));
        keys.unwrap_or_else(|| Arc::new(json!({"keys": []})))
    }

    /// Returns the current keys.
    pub async fn fetched(&self) -> Result<Arc<Value>, String> {
        let mut last = self.last.lock().await;
        if let Some(last) = last.as_ref().filter(|last| last.at.elapsed() < INTERVAL) {
            return last.keys.clone();
        }
        let keys = self.fetch().await.map(Arc::new);
        let keys = keys.map_err(|why| format!("no keys from {}: {why}", self.url));
        *last = Some(Fetched { at: Instant::now(), keys: keys.clone() });
        keys
    }

    async fn fetch(&self) -> Result<Value, String> {
        let mut answer = self.http.get(self.url.clone()).send().await.map_err(deepest)?;
        if !answer.status().is_success() {
            return Err(format!("status {}", answer.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(deepest)? {
            body.extend_from_slice(&chunk);
            if body.len() > LARGEST {
                return Err("the document is too large".to_owned());
            }
        }
        let keys: Value = serde_json::from_slice(&body).map_err(|_| "it is not JSON")?;
        if keys["keys"].is_array() { Ok(keys) } else { Err("it has no `keys`".to_owned()) }
    }
}

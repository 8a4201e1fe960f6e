//! An identity provider's keys over the network: kept, refreshed, and outliving short outages.
//!
//! One request at a time asks the provider, however many wait; a token with an unknown kid makes
//! it ask at once, but no more often than the least interval, so that nobody can aim us at it.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::DecodingKey;
use parking_lot::RwLock;
use reqwest::{Client, Url, redirect::Policy};
use tokio::sync::Mutex;

use super::{
    Error,
    jwks::{KeySet, read},
};
use authority_core::clock::Clock;

/// A JWKS is a few kilobytes.
const LARGEST: usize = 256 * 1024;

/// How a provider is asked.
#[derive(Clone, Debug)]
pub struct JwksSettings {
    /// `https`, or `http` on this machine.
    pub url: String,
    /// For connection, answer and body together.
    pub timeout: Duration,
    /// Keys older than this are asked for again.
    pub refresh_after: TimeDelta,
    /// However many unknown kids come, no sooner than this after the last time.
    pub least_interval: TimeDelta,
    /// Keys serve on while the provider fails, until they are this old.
    pub stale_for: TimeDelta,
}

impl JwksSettings {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            timeout: Duration::from_secs(5),
            refresh_after: TimeDelta::minutes(10),
            least_interval: TimeDelta::seconds(30),
            stale_for: TimeDelta::hours(4),
        }
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub struct JwksClient(Arc<Inner>);

struct Inner {
    settings: JwksSettings,
    url: Url,
    http: Client,
    clock: Clock,
    held: RwLock<Held>,
    /// Held by the one who asks the provider.
    asking: Mutex<Option<Attempt>>,
}

#[derive(Clone, Default)]
struct Held {
    keys: Arc<KeySet>,
    since: Option<DateTime<Utc>>,
}

#[derive(Clone, Copy)]
struct Attempt {
    at: DateTime<Utc>,
    worked: bool,
}

impl JwksClient {
    /// # Errors
    /// What is wrong with the settings.
    pub fn new(settings: JwksSettings, clock: Clock) -> Result<Self, String> {
        let url = Url::parse(&settings.url).map_err(|e| format!("`{}`: {e}", settings.url))?;
        if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
            return Err(format!("`{url}`: keys may come over https only"));
        }
        let http = Client::builder()
            .timeout(settings.timeout)
            .connect_timeout(settings.timeout)
            // A redirect could lead from https to anywhere.
            .redirect(Policy::none())
            .build()
            .map_err(|e| format!("no HTTP client: {e}"))?;
        let (held, asking) = (RwLock::default(), Mutex::default());
        Ok(Self(Arc::new(Inner { settings, url, http, clock, held, asking })))
    }

    pub(super) async fn key(&self, kid: &str) -> Result<DecodingKey, Error> {
        let inner = &self.0;
        let held = inner.held.read().clone();
        let known = held.keys.get(kid);
        if let Some(key) = known
            && inner.is_younger(&held, inner.settings.refresh_after)
        {
            return Ok(key.clone());
        }
        // Serve on with what there is while somebody else asks.
        if let Some(key) = known
            && inner.asking.try_lock().is_err()
            && inner.is_younger(&held, inner.settings.stale_for)
        {
            return Ok(key.clone());
        }
        let attempt = self.refresh().await?;
        let held = inner.held.read().clone();
        match held.keys.get(kid) {
            Some(key) if inner.is_younger(&held, inner.settings.stale_for) => Ok(key.clone()),
            None if attempt.worked => Err(Error::Token("no key of its issuer has its `kid`")),
            Some(_) | None => Err(Error::Unavailable),
        }
    }

    /// Asks the provider, unless that was done within the least interval. In a task of its own: a
    /// caller who hangs up does not stop what others wait for.
    async fn refresh(&self) -> Result<Attempt, Error> {
        let inner = Arc::clone(&self.0);
        let asked = tokio::spawn(async move {
            let mut last = inner.asking.lock().await;
            let now = inner.clock.now();
            if let Some(last) = *last
                && now - last.at < inner.settings.least_interval
            {
                return last;
            }
            let found =
                inner.fetch().await.and_then(|document| read(&document).map_err(str::to_owned));
            let worked = found.is_ok();
            match found {
                Ok(keys) => {
                    *inner.held.write() = Held { keys: Arc::new(keys), since: Some(now) };
                }
                Err(problem) => tracing::warn!(url = %inner.url, %problem, "no JWKS"),
            }
            *last.insert(Attempt { at: now, worked })
        });
        asked.await.map_err(|_| Error::Unavailable)
    }
}

impl Inner {
    fn is_younger(&self, held: &Held, than: TimeDelta) -> bool {
        held.since.is_some_and(|since| self.clock.now() - since < than)
    }

    async fn fetch(&self) -> Result<Vec<u8>, String> {
        let text = |error: reqwest::Error| error.without_url().to_string();
        let mut answer = self.http.get(self.url.clone()).send().await.map_err(text)?;
        if answer.status() != http::StatusCode::OK {
            return Err(format!("it answered {}", answer.status()));
        }
        let mut document = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(text)? {
            if document.len() + chunk.len() > LARGEST {
                return Err("it is over 256 KiB".to_owned());
            }
            document.extend_from_slice(&chunk);
        }
        Ok(document)
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

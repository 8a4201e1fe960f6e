//! Fetches an identity provider's keys, caches and refreshes them, and keeps them during short
//! outages.
//!
//! There is one request to the provider at a time, for any number of waiting callers. A token with
//! an unknown kid causes a request at once, but no more often than the minimum interval: otherwise
//! anyone could use this service to flood the provider. Without a usable key, a request may follow
//! every second.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::Algorithm;
use parking_lot::RwLock;
use reqwest::{Client, redirect::Policy};
use tokio::{
    sync::{Mutex, Semaphore},
    task::JoinHandle,
};

use serde_json::Value;

use super::{
    error::Error,
    jwks::{self, Document, VerifyingKey},
    jwks_address::{Address, safe},
};
use authority_process::clock::Clock;

/// How keys are fetched.
#[derive(Clone, Debug)]
pub struct JwksSettings {
    pub source: JwksSource,
    /// The algorithms of usable keys. A document without such a key counts as a failure.
    pub algorithms: Vec<Algorithm>,
    /// The timeout of each request as a whole: connection, response and body.
    pub timeout: Duration,
    /// Keys older than this are fetched again.
    pub refresh_after: TimeDelta,
    /// The minimum interval between requests, for any number of unknown kids.
    pub least_interval: TimeDelta,
    /// The minimum interval between requests while every key is missing or unusable.
    pub first_interval: TimeDelta,
    /// While the provider fails, keys are used up to this age.
    pub stale_for: TimeDelta,
}

/// The address of the keys. It must be `https`, or `http` on this machine.
#[derive(Clone, Debug)]
pub enum JwksSource {
    Url(String),
    /// The `jwks_uri` of the issuer's `/.well-known/openid-configuration`, if that exists and
    /// belongs to this issuer; otherwise the issuer's `/.well-known/jwks.json`.
    Issuer(String),
}

impl JwksSettings {
    pub fn new(url: impl Into<String>) -> Self {
        Self::of(JwksSource::Url(url.into()))
    }

    pub fn of(source: JwksSource) -> Self {
        Self {
            source,
            algorithms: vec![Algorithm::RS256],
            timeout: Duration::from_secs(5),
            refresh_after: TimeDelta::minutes(10),
            least_interval: TimeDelta::seconds(30),
            first_interval: TimeDelta::seconds(1),
            stale_for: TimeDelta::hours(4),
        }
    }
}

/// The maximum number of callers that wait for a request. Further callers are refused: without a key
/// that verifies it, each token is only a claim.
const MOST_WAITING: usize = 256;

/// Reads a document's keys by kid.
type Read<K> = Box<dyn Fn(&[u8]) -> Result<Document<K>, &'static str> + Send + Sync>;

/// The keys of one document, by default for tokens. Cheap to clone.
#[derive(Clone)]
pub struct JwksClient<K = VerifyingKey>(Arc<Inner<K>>);

struct Inner<K> {
    settings: JwksSettings,
    address: Address,
    http: Client,
    clock: Clock,
    read: Read<K>,
    held: RwLock<CachedKeys<K>>,
    /// The last attempt; locked during a request to the provider.
    asking: Mutex<Option<Attempt>>,
    /// The free places of [`MOST_WAITING`].
    places: Arc<Semaphore>,
}

#[derive(Clone)]
struct CachedKeys<K> {
    keys: Arc<HashMap<String, K>>,
    since: Option<DateTime<Utc>>,
    /// Whether the last attempt to read the keys failed.
    failing: bool,
}

#[derive(Clone, Copy)]
struct Attempt {
    /// When it ended: everyone who waited for it has its result.
    at: DateTime<Utc>,
    worked: bool,
    /// When a failure was last logged.
    logged: Option<DateTime<Utc>>,
}

impl JwksClient {
    /// # Errors
    /// The settings are invalid.
    pub fn new(settings: JwksSettings, clock: Clock) -> Result<Self, String> {
        let algorithms = settings.algorithms.clone();
        Self::reading(settings, clock, Box::new(move |text| jwks::read(text, &algorithms)))
    }

    /// Starts to fetch the keys if they are due. Calls then rarely have to wait for the provider.
    pub fn look(&self) {
        let inner = &self.0;
        let is_due = !inner.is_younger(&inner.held.read(), inner.settings.refresh_after);
        // If the lock is taken, a request is already in progress.
        if is_due && inner.asking.try_lock().is_ok() {
            drop(self.ask());
        }
    }

    /// Whether tokens can be verified.
    ///
    /// # Errors
    /// A description of the fault that is safe to publish. It omits the address, which is only in
    /// the log.
    pub fn state(&self) -> Result<(), String> {
        let inner = &self.0;
        let held = inner.held.read();
        if !inner.has_usable(&held) {
            return Err("no key of the identity provider was read yet, or the last read was too long ago: tokens \
                        are refused until a key is read; the log has the reason"
                .to_owned());
        }
        if held.failing {
            return Err("the last read of the identity provider's keys failed, and earlier keys are used; the log \
                        has the reason"
                .to_owned());
        }
        Ok(())
    }
}

impl JwksClient<Value> {
    /// Reads keys that sign documents, each as its JWK with its `alg`.
    ///
    /// # Errors
    /// The settings are invalid.
    pub fn of_signatures(settings: JwksSettings, clock: Clock) -> Result<Self, String> {
        Self::reading(settings, clock, Box::new(jwks::read_signing))
    }
}

impl<K: Clone + Send + Sync + 'static> JwksClient<K> {
    fn reading(settings: JwksSettings, clock: Clock, read: Read<K>) -> Result<Self, String> {
        let address = match &settings.source {
            JwksSource::Url(url) => Address::Set(safe(url)?),
            JwksSource::Issuer(issuer) => Address::of_issuer(issuer)?,
        };
        let http = Client::builder()
            .timeout(settings.timeout)
            .connect_timeout(settings.timeout)
            // A redirect could lead from https to anywhere.
            .redirect(Policy::none())
            .build()
            .map_err(|e| format!("no HTTP client: {e}"))?;
        let held = RwLock::new(CachedKeys { keys: Arc::default(), since: None, failing: false });
        let asking = Mutex::default();
        let places = Arc::new(Semaphore::new(MOST_WAITING));
        Ok(Self(Arc::new(Inner { settings, address, http, clock, read, held, asking, places })))
    }

    /// Returns the key with this kid.
    ///
    /// # Errors
    /// [`Error::Token`] if the document has no such key; [`Error::Unavailable`] if the keys cannot
    /// be read now.
    pub async fn key(&self, kid: &str) -> Result<K, Error> {
        let inner = &self.0;
        let held = inner.held.read().clone();
        let known = held.keys.get(kid);
        if let Some(key) = known
            && inner.is_younger(&held, inner.settings.refresh_after)
        {
            return Ok(key.clone());
        }
        // Use the cached keys while another task fetches.
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

    /// Fetches the keys, unless they were fetched within the minimum interval. The request runs in
    /// its own task: a caller who disconnects must not cancel a request that others wait for.
    async fn refresh(&self) -> Result<Attempt, Error> {
        let asked = self.ask().ok_or(Error::Unavailable)?;
        asked.await.map_err(|_| Error::Unavailable)
    }

    /// Returns `None` if too many callers wait already.
    fn ask(&self) -> Option<JoinHandle<Attempt>> {
        let inner = Arc::clone(&self.0);
        let place = Arc::clone(&inner.places).try_acquire_owned().ok()?;
        Some(tokio::spawn(async move {
            // A caller who disconnects leaves the task, which keeps its place until it ends.
            let _place = place;
            let mut last = inner.asking.lock().await;
            let now = inner.clock.now();
            let settings = &inner.settings;
            let usable = inner.has_usable(&inner.held.read());
            let interval = if usable { settings.least_interval } else { settings.first_interval };
            if let Some(last) = *last
                && now - last.at < interval
            {
                return last;
            }
            let found = inner.address.fetch(&inner.http).await;
            let found = found.and_then(|text| (inner.read)(&text).map_err(str::to_owned));
            let problem = inner.keep(found, now).err();
            let mut logged = last.and_then(|last| last.logged);
            if let Some(problem) = &problem
                && logged.is_none_or(|at| now - at >= settings.least_interval)
            {
                tracing::warn!(
                    error = %problem,
                    "failed to fetch usable keys of an identity provider"
                );
                logged = Some(now);
            }
            *last.insert(Attempt { at: inner.clock.now(), worked: problem.is_none(), logged })
        }))
    }
}

impl<K: Clone> Inner<K> {
    /// Replaces the keys with the fetched keys. If no fetched key is usable, the earlier keys stay,
    /// except the revoked keys.
    fn keep(&self, found: Result<Document<K>, String>, now: DateTime<Utc>) -> Result<(), String> {
        let mut held = self.held.write();
        let Document { keys, revoked } = found.inspect_err(|_| held.failing = true)?;
        if !keys.is_empty() {
            *held = CachedKeys { keys: Arc::new(keys), since: Some(now), failing: false };
            return Ok(());
        }
        held.failing = true;
        if held.keys.keys().any(|kid| revoked.contains(kid)) {
            Arc::make_mut(&mut held.keys).retain(|kid, _| !revoked.contains(kid));
        }
        Err("it has no key that can be used".to_owned())
    }

    fn has_usable(&self, held: &CachedKeys<K>) -> bool {
        !held.keys.is_empty() && self.is_younger(held, self.settings.stale_for)
    }

    fn is_younger(&self, held: &CachedKeys<K>, than: TimeDelta) -> bool {
        held.since.is_some_and(|since| self.clock.now() - since < than)
    }
}

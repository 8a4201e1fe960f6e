//! The whole service in this process, with a database of its own, listening on a real socket.

use std::{
    net::SocketAddr,
    sync::{Arc, LazyLock},
    time::Duration,
};

use agent_authority::{
    app::{
        App, Parts,
        demo::{self, Demo},
    },
    transport::{self, Surfaces},
};
use authority_api::identity::dev_provider::{AUDIENCE, Holder, ISSUER};
use authority_client::{Base, Surface};
use authority_config::{self as config, Config};
use authority_crypto::KeyRing;
use authority_graph as graph;
use authority_keys::Keys;
use authority_process::{
    clock::Clock,
    compute::{self, ComputePool},
    worker::Supervisor,
};
use authority_runtime::{FactIndex, PolicyObserver, UsageRollUp};
use authority_store::{Address, Limits, Store};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime, sync::OnceCell};

use super::{Answered, database::Database, seeded};

/// A running service. Dropping it stops the service.
pub(crate) struct TestApp {
    pub(crate) database: Arc<Database>,
    pub(crate) app: App,
    base_url: String,
    /// The connections of all clients of [`TestApp::client`].
    http: reqwest::Client,
    owner: String,
    ring: String,
    pub(crate) supervisor: Supervisor,
    /// The demonstration tenant, if the copied database already had it.
    seeded: Option<Demo>,
}

/// The options with which a test starts the service.
#[derive(Clone)]
pub(crate) struct Wishes {
    pub(crate) graph: graph::Settings,
    pub(crate) clock: Clock,
    /// Whether the fence is on. Tests turn it off to show that it is necessary.
    pub(crate) fenced: bool,
    /// The time between two heartbeats of a stream.
    pub(crate) heartbeat: Duration,
    /// The maximum number of streams that a tenant may have open.
    pub(crate) tenant_streams: usize,
    /// Whether the node has files of its own. Otherwise, all nodes on a database share their files.
    pub(crate) own_files: bool,
    /// An address to use instead of the database's own, such as a proxy's.
    pub(crate) address: Option<Address>,
    /// The URL of the NATS server for audit streams.
    pub(crate) nats: Option<String>,
    /// Whether Web Push is on.
    pub(crate) push: bool,
    /// The SMTP server for e-mail.
    pub(crate) smtp: config::SmtpConfig,
    /// The DNS servers to use. If empty, the system's servers are used.
    pub(crate) dns: Vec<SocketAddr>,
    /// The JWKS URLs of issuers that may sign certifications.
    pub(crate) issuers: Vec<String>,
    /// The installation's legal hold.
    pub(crate) legal_hold: Option<String>,
    /// Whether the service takes a caller's address from `X-Forwarded-For`.
    pub(crate) proxied: bool,
    /// The settings of the identity provider, and of the console's client there.
    pub(crate) identity: config::Identity,
    pub(crate) console: config::ConsoleConfig,
    /// The URL under which browsers reach the service.
    pub(crate) public_url: Option<String>,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            graph: graph::Settings::default(),
            clock: Clock::default(),
            fenced: true,
            heartbeat: Duration::from_secs(15),
            tenant_streams: 2000,
            own_files: false,
            address: None,
            nats: None,
            push: false,
            smtp: config::SmtpConfig::default(),
            dns: Vec::new(),
            issuers: Vec::new(),
            legal_hold: None,
            proxied: false,
            identity: config::Identity::default(),
            console: config::ConsoleConfig::default(),
            public_url: None,
        }
    }
}

impl TestApp {
    pub(crate) async fn start() -> Self {
        Self::with_ring(seeded::started().await, seeded::RING).await
    }

    /// Starts the service with the demonstration tenant, which [`TestApp::demo`] returns.
    pub(crate) async fn seeded() -> Self {
        let (database, demo) = seeded::demonstration().await;
        let mut app = Self::with_ring(database, seeded::RING).await;
        app.seeded = Some(demo);
        app
    }

    /// Returns a service with the demonstration tenant that several tests use at the same time. It
    /// is started once for each process.
    ///
    /// It is for tests that do not change the database: they read published documents, or are
    /// refused.
    pub(crate) async fn shared() -> &'static Self {
        static APP: OnceCell<TestApp> = OnceCell::const_new();
        // The runtime of a test ends with the test.
        static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
        let start = async || {
            let mut app = RUNTIME.spawn(Self::seeded()).await.unwrap();
            // A kept connection would end with the test that opened it.
            let http = reqwest::Client::builder().tls_certs_only([]).pool_max_idle_per_host(0);
            app.http = http.build().unwrap();
            app
        };
        APP.get_or_init(start).await
    }

    /// Starts the service on a database with keys that this ring encrypts.
    pub(super) async fn with_ring(database: Database, ring: &str) -> Self {
        Box::pin(Self::node(Arc::new(database), ring.to_owned(), Wishes::default())).await
    }

    pub(crate) async fn wished(wishes: Wishes) -> Self {
        Self::on(Arc::new(Database::fresh().await), wishes).await
    }

    /// Starts the service on an existing database.
    pub(crate) async fn on(database: Arc<Database>, wishes: Wishes) -> Self {
        Box::pin(Self::node(database, KeyRing::generate().unwrap(), wishes)).await
    }

    /// Starts another node on the same database, with files of its own.
    pub(crate) async fn apart(&self, wishes: Wishes) -> Self {
        let wishes = Wishes { own_files: true, ..wishes };
        Box::pin(Self::node(Arc::clone(&self.database), self.ring.clone(), wishes)).await
    }

    /// Starts another node on the same database, with the same files.
    pub(crate) async fn beside(&self, wishes: Wishes) -> Self {
        Box::pin(Self::node(Arc::clone(&self.database), self.ring.clone(), wishes)).await
    }

    async fn node(database: Arc<Database>, ring: String, wishes: Wishes) -> Self {
        super::callers::show_callers();
        // If a test fails, its output shows the service's warnings.
        let told = tracing_subscriber::fmt().with_test_writer();
        let _ = told.with_max_level(tracing::Level::WARN).try_init();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config::default();
        config.listen.main = listener.local_addr().unwrap();
        let base_url = config.public_url();
        config.listen.public_url = wishes.public_url;
        config.identity = wishes.identity;
        config.console = wishes.console;
        config.data_dir = database.folder();
        config.nats.url = wishes.nats;
        config.push.subject = wishes.push.then(|| "mailto:ops@example.org".to_owned());
        config.smtp = wishes.smtp;
        config.dns.servers = wishes.dns;
        config.programme.issuers = wishes.issuers;
        config.personal_data.legal_hold = wishes.legal_hold;
        if wishes.proxied {
            config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        }
        if wishes.own_files {
            config.data_dir = config.data_dir.join("apart");
        }
        let supervisor = Supervisor::default();
        let parts = Parts {
            store: match &wishes.address {
                Some(address) => Store::open(address, &Limits::default()).unwrap(),
                None => database.store(),
            },
            ring: KeyRing::parse(&ring).unwrap(),
            clock: wishes.clock,
            graph: wishes.graph,
            fenced: wishes.fenced,
            heartbeat: wishes.heartbeat,
            tenant_streams: wishes.tenant_streams,
            supervisor: supervisor.clone(),
            config: config.clone(),
        };
        let (app, workers) = App::build(parts).await.unwrap();
        supervisor.run(workers);
        let settings = transport::Settings::new(&config, Surfaces::ALL);
        let router = transport::Answers::layered(app.entry.clone(), &settings);
        let shutdown = supervisor.shutdown().clone().cancelled_owned();
        tokio::spawn(transport::serve(listener, router, shutdown, settings));
        let holder = Holder::Owner { email: "owner@example.org".to_owned() };
        let owner = app.provider.as_ref().unwrap().issue(&holder, TimeDelta::hours(1)).unwrap();
        Self { database, app, base_url, http: http(), owner, ring, supervisor, seeded: None }
    }

    /// Serves this service at another address, which serves only these surfaces.
    pub(crate) async fn listening(&self, surfaces: Surfaces) -> String {
        let settings = transport::Settings { surfaces, ..transport::Settings::default() };
        format!("http://{}", self.listening_as(settings).await)
    }

    /// Serves this service at another address with these settings.
    pub(crate) async fn listening_as(&self, settings: transport::Settings) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = transport::Answers::layered(self.app.entry.clone(), &settings);
        let shutdown = self.supervisor.shutdown().clone().cancelled_owned();
        tokio::spawn(transport::serve(listener, router, shutdown, settings));
        address
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    pub(crate) fn owner_token(&self) -> &str {
        &self.owner
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.app.keys
    }

    /// Returns the key ring, for another process that uses the same database.
    pub(crate) fn ring(&self) -> &str {
        &self.ring
    }

    /// Returns a JWT of a tenant user.
    pub(crate) fn member_token(&self, tenant_id: &str, role: &str) -> String {
        let holder = Holder::Member {
            tenant_id: tenant_id.into(),
            role: role.to_owned(),
            email: format!("{role}@example.org"),
        };
        self.issue(&holder)
    }

    /// Returns a client for the user of a tenant who has this role and address.
    pub(crate) fn person(&self, tenant_id: &str, role: &str, email: &str) -> Client {
        let holder = Holder::Member {
            tenant_id: tenant_id.into(),
            role: role.to_owned(),
            email: email.to_owned(),
        };
        self.client(&self.issue(&holder))
    }

    #[track_caller]
    fn issue(&self, holder: &Holder) -> String {
        self.app.provider.as_ref().unwrap().issue(holder, TimeDelta::hours(1)).unwrap()
    }

    /// Returns a token of the development provider that is valid for an hour, with these claims
    /// replaced.
    #[track_caller]
    pub(crate) fn token(&self, claims: &Value) -> String {
        let signer = self.app.keys.token_signer().unwrap();
        let now = Clock::default().now().timestamp();
        let mut all = json!({"iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 3600});
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": signer.kid()});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&header), encode(&all));
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signer.sign(text.as_bytes()).unwrap()))
    }

    /// Returns a client for the owner with a new token, for tests that have moved the clock.
    pub(crate) fn owner_now(&self) -> Client {
        self.owner_named("owner@example.org")
    }

    /// Returns a client for an owner with this address.
    pub(crate) fn owner_named(&self, email: &str) -> Client {
        self.client(&self.issue(&Holder::Owner { email: email.to_owned() }))
    }

    /// Returns a client for the owner.
    pub(crate) fn owner(&self) -> Client {
        self.client(&self.owner)
    }

    /// Returns a client with any credential.
    pub(crate) fn client(&self, token: &str) -> Client {
        let (base, http) = (self.base_url.clone(), self.http.clone());
        Client { base, token: token.to_owned(), http }
    }

    /// Creates an API key of a tenant.
    pub(crate) async fn api_key(&self, tenant_id: &str, scopes: &[&str]) -> String {
        let body = json!({"tenant_id": tenant_id, "label": "test", "scopes": scopes});
        let made = self.owner().post("/api/v1/api-keys", body).await.assert_status(201);
        made["secret"].as_str().unwrap().to_owned()
    }

    /// Counts the stored decisions, as if more than a minute had passed. Decisions of the next minute
    /// are not counted afterwards. Open transactions of other tests can delay it.
    pub(crate) async fn count_usage(&self) {
        let (roll_up, now) = (UsageRollUp::new(self.database.store()), Clock::default().now());
        for _ in 0..600 {
            let looked = "UPDATE usage_cursor SET seen_at = transaction_timestamp() + interval '2 minutes', \
                 seen_xid = pg_current_xact_id()::text::bigint";
            self.database.run(looked).await;
            while roll_up.round().await.unwrap() {}
            let (_, found) = self.owner().get("/api/v1/usage").await;
            let until: DateTime<Utc> = found["counted_until"].as_str().unwrap().parse().unwrap();
            if until > now {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("decisions are not counted");
    }

    /// Counts the stored decisions for the observing versions of policies, as if more than a minute had
    /// passed. Open transactions of other tests can delay it.
    pub(crate) async fn count_observations(&self) {
        let pool = ComputePool::start(compute::Limits::default()).unwrap();
        let observer = PolicyObserver::new(self.database.store(), pool);
        let now = Clock::default().now();
        for _ in 0..600 {
            self.settle_observed().await;
            while observer.round().await.unwrap() {}
            let (_, found) = self.owner().get("/api/v1/policies").await;
            let policies = found["policies"].as_array().unwrap().iter();
            let mut until = policies.filter_map(|one| one["observation"]["counted_until"].as_str());
            if until.all(|until| until.parse::<DateTime<Utc>>().unwrap() > now) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("decisions are not counted");
    }

    /// Lets the stored decisions be counted for observing versions, as if more than a minute had passed.
    /// Open transactions of other tests can delay it.
    pub(crate) async fn settle_observed(&self) {
        let looked = "UPDATE observation_cursor SET seen_at = transaction_timestamp() + interval '2 minutes', \
             seen_xid = pg_current_xact_id()::text::bigint";
        self.database.run(looked).await;
    }

    /// Indexes the facts of the stored decisions, as if more than a minute had passed. Decisions of
    /// the next minute are not indexed afterwards. Open transactions of other tests can delay it.
    pub(crate) async fn index_facts(&self) {
        let (index, now) = (self.fact_index(), Clock::default().now());
        for _ in 0..600 {
            let looked = "UPDATE fact_cursor SET seen_at = transaction_timestamp() + interval '2 minutes', \
                 seen_xid = pg_current_xact_id()::text::bigint";
            self.database.run(looked).await;
            while index.round().await.unwrap() {}
            let (_, found) = self.owner().get("/api/v1/search?q=x").await;
            let until: DateTime<Utc> = found["indexed_until"].as_str().unwrap().parse().unwrap();
            if until > now {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("decisions are not indexed");
    }

    pub(crate) fn fact_index(&self) -> FactIndex {
        let (keys, graph) = (self.app.keys.clone(), Arc::clone(&self.app.graph));
        FactIndex::new(self.database.store(), keys, graph)
    }

    /// Indexes all decisions again, also those since [`TestApp::index_facts`].
    pub(crate) async fn reindex_facts(&self) {
        self.index_facts().await;
        self.database.run("SELECT reindex_decision_facts(current_date - 2)").await;
        self.index_facts().await;
    }

    /// Returns the demonstration tenant with its API key.
    pub(crate) async fn demo(&self) -> Demo {
        if let Some(demo) = &self.seeded {
            return demo.clone();
        }
        let token = self.app.service_token().unwrap();
        demo::seed(&self.app.entry.router, &token, None).await.unwrap()
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.supervisor.cancel();
    }
}

/// Returns a client that closes an idle connection before the service would. The service closes an
/// unused connection after `first_byte_seconds`, and a request at that moment would fail. The
/// client trusts no certificates, because calls are in plain text and reading the system's
/// certificates took longer than the calls of most tests.
pub(crate) fn http() -> reqwest::Client {
    let client = reqwest::Client::builder().tls_certs_only([]);
    client.pool_idle_timeout(Duration::from_secs(2)).build().unwrap()
}

/// A REST client with one credential.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) base: String,
    pub(crate) token: String,
    pub(crate) http: reqwest::Client,
}

impl Client {
    pub(crate) fn new(base: &str, token: &str) -> Self {
        Self { base: base.to_owned(), token: token.to_owned(), http: http() }
    }

    /// Returns the client of the command line with the same credential, and the credential's
    /// surface.
    #[track_caller]
    pub(crate) fn service(&self) -> (authority_client::Client, Surface) {
        let base = Base::Named(self.base.parse().unwrap());
        (authority_client::Client::new(base, &self.token).unwrap(), Surface::of(&self.token))
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("POST", path, Some(body), &[]).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("PATCH", path, Some(body), &[]).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, None, &[]).await
    }

    /// Makes a call with any method and returns the body as text.
    pub(crate) async fn text(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> (u16, String) {
        let method = method.parse().unwrap();
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if !self.token.is_empty() {
            request = request.bearer_auth(&self.token);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Makes a call with any method and returns the body as JSON. Any other body is returned as
    /// null.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> (u16, Value) {
        let method = method.parse().unwrap();
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        request = request.bearer_auth(&self.token);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        match request.send().await {
            Ok(answer) => (answer.status().as_u16(), answer.json().await.unwrap_or_default()),
            Err(error) => (0, json!({"error": error.to_string()})),
        }
    }
}

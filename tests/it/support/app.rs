//! The whole service in this process, on a database of its own, listening on a real socket.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use agent_authority::{
    app::{
        App, Parts,
        demo::{self, Demo},
    },
    transport::{self, Surfaces},
};
use authority_api::identity::dev_provider::{AUDIENCE, Holder, ISSUER};
use authority_core::{
    clock::Clock,
    config::{self, Config},
    graph,
    keys::Keys,
    store::{Address, Limits, Store},
    worker::Supervisor,
};
use authority_crypto::KeyRing;
use authority_model::{proto::runtime::EvaluateRequest, wire::Json};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{database::Database, seeded};

/// A running service. Dropping it ends it.
pub(crate) struct TestApp {
    pub(crate) database: Arc<Database>,
    pub(crate) app: App,
    base_url: String,
    owner: String,
    ring: String,
    pub(crate) supervisor: Supervisor,
    /// The demonstration tenant, if the database had it from the start.
    seeded: Option<Demo>,
}

/// Options of a test.
#[derive(Clone)]
pub(crate) struct Wishes {
    pub(crate) graph: graph::Settings,
    pub(crate) clock: Clock,
    /// Whether the fence is on; false shows what it is for.
    pub(crate) fenced: bool,
    /// The interval of a stream's heartbeats.
    pub(crate) heartbeat: Duration,
    /// The most open streams of a tenant.
    pub(crate) tenant_streams: usize,
    /// Files of its own, instead of those of the other nodes on its database.
    pub(crate) own_files: bool,
    /// Another address of the database.
    pub(crate) address: Option<Address>,
    /// The NATS server of audit streams.
    pub(crate) nats: Option<String>,
    /// Whether Web Push is on.
    pub(crate) push: bool,
    /// The DNS servers; the system's if empty.
    pub(crate) dns: Vec<SocketAddr>,
    /// URLs of the JWKS of those who may sign certifications.
    pub(crate) issuers: Vec<String>,
    /// The installation's legal hold.
    pub(crate) legal_hold: Option<String>,
    /// Whether a call's `X-Forwarded-For` says where it comes from.
    pub(crate) proxied: bool,
    /// The identity provider, and the console's client there.
    pub(crate) identity: config::Identity,
    pub(crate) console: config::ConsoleConfig,
    /// The URL by which browsers are taken to reach it.
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

    /// With the demonstration tenant, which [`TestApp::demo`] returns.
    pub(crate) async fn seeded() -> Self {
        let (database, demo) = seeded::demonstration().await;
        let mut app = Self::with_ring(database, seeded::RING).await;
        app.seeded = Some(demo);
        app
    }

    /// On a database with keys that are sealed by this ring.
    pub(super) async fn with_ring(database: Database, ring: &str) -> Self {
        Box::pin(Self::node(Arc::new(database), ring.to_owned(), Wishes::default())).await
    }

    pub(crate) async fn wished(wishes: Wishes) -> Self {
        Self::on(Arc::new(Database::fresh().await), wishes).await
    }

    /// On an existing database.
    pub(crate) async fn on(database: Arc<Database>, wishes: Wishes) -> Self {
        Box::pin(Self::node(database, KeyRing::generate().unwrap(), wishes)).await
    }

    /// Another node on the same database, with files of its own.
    pub(crate) async fn apart(&self, wishes: Wishes) -> Self {
        let wishes = Wishes { own_files: true, ..wishes };
        Box::pin(Self::node(Arc::clone(&self.database), self.ring.clone(), wishes)).await
    }

    /// Another node on the same database.
    pub(crate) async fn beside(&self, wishes: Wishes) -> Self {
        Box::pin(Self::node(Arc::clone(&self.database), self.ring.clone(), wishes)).await
    }

    async fn node(database: Arc<Database>, ring: String, wishes: Wishes) -> Self {
        super::callers::show_callers();
        // A test that fails shows what the service warned of.
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
        let router = transport::with_response_layer(app.entry.clone(), &settings);
        let shutdown = supervisor.shutdown().clone().cancelled_owned();
        tokio::spawn(transport::serve(listener, router, shutdown, settings));
        let holder = Holder::Owner { email: "owner@example.org".to_owned() };
        let owner = app.provider.as_ref().unwrap().issue(&holder, TimeDelta::hours(1)).unwrap();
        Self { database, app, base_url, owner, ring, supervisor, seeded: None }
    }

    /// Another address of the same service, which serves only these surfaces.
    pub(crate) async fn listening(&self, surfaces: Surfaces) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let settings = transport::Settings { surfaces, ..transport::Settings::default() };
        let router = transport::with_response_layer(self.app.entry.clone(), &settings);
        let shutdown = self.supervisor.shutdown().clone().cancelled_owned();
        tokio::spawn(transport::serve(listener, router, shutdown, settings));
        base
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

    /// The key ring that seals private keys, for another process on the same database.
    pub(crate) fn ring(&self) -> &str {
        &self.ring
    }

    /// A JWT of a tenant's member.
    pub(crate) fn member_token(&self, tenant_id: &str, role: &str) -> String {
        let holder = Holder::Member {
            tenant_id: tenant_id.to_owned(),
            role: role.to_owned(),
            email: format!("{role}@example.org"),
        };
        self.issue(&holder)
    }

    /// REST as a certain person of a tenant.
    pub(crate) fn person(&self, tenant_id: &str, role: &str, email: &str) -> Client {
        let holder = Holder::Member {
            tenant_id: tenant_id.to_owned(),
            role: role.to_owned(),
            email: email.to_owned(),
        };
        self.client(&self.issue(&holder))
    }

    #[track_caller]
    fn issue(&self, holder: &Holder) -> String {
        self.app.provider.as_ref().unwrap().issue(holder, TimeDelta::hours(1)).unwrap()
    }

    /// A token of the development provider for another hour, with these claims replacing its own.
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

    /// REST as the owner, with a token made now, for a clock that was moved.
    pub(crate) fn owner_now(&self) -> Client {
        self.owner_named("owner@example.org")
    }

    /// REST as an owner with this address.
    pub(crate) fn owner_named(&self, email: &str) -> Client {
        self.client(&self.issue(&Holder::Owner { email: email.to_owned() }))
    }

    /// REST as the owner.
    pub(crate) fn owner(&self) -> Client {
        self.client(&self.owner)
    }

    /// REST with any credential.
    pub(crate) fn client(&self, token: &str) -> Client {
        Client::new(&self.base_url, token)
    }

    /// A new API key of a tenant.
    pub(crate) async fn api_key(&self, tenant_id: &str, scopes: &[&str]) -> String {
        let body = json!({"tenant_id": tenant_id, "label": "test", "scopes": scopes});
        let (status, made) = self.owner().post("/api/v1/api-keys", body).await;
        assert_eq!(status, 201, "{made:#}");
        made["secret"].as_str().unwrap().to_owned()
    }

    /// The demonstration tenant, and an API key for it.
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

/// A client that leaves a connection before the service would: one that was opened and not used is
/// closed by it after `first_byte_seconds`, and a request that meets that closing fails. It trusts no certificate: the
/// service is asked in plain text, and reading those of the system took longer than the calls of most tests.
pub(crate) fn http() -> reqwest::Client {
    let client = reqwest::Client::builder().tls_certs_only([]);
    client.pool_idle_timeout(Duration::from_secs(2)).build().unwrap()
}

/// A question of the demonstration tenant: the banner's three are this one's.
pub(crate) fn asking(amount: f64, jurisdiction: &str) -> Value {
    json!({
        "subject": "svc:agent:acme:invoice-bot",
        "action": "payment.execute",
        "purpose": "invoice-settlement",
        "context": {"amount": amount, "currency": "EUR", "jurisdiction": jurisdiction},
    })
}

/// The same over gRPC, with any context.
#[track_caller]
pub(crate) fn evaluate(context: &Value) -> EvaluateRequest {
    EvaluateRequest {
        subject: "svc:agent:acme:invoice-bot".to_owned(),
        action: "payment.execute".to_owned(),
        purpose: "invoice-settlement".to_owned(),
        context: Some(Json(context.as_object().unwrap().clone())),
        ..EvaluateRequest::default()
    }
}

/// REST with one credential.
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

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("POST", path, Some(body), &[]).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("PATCH", path, Some(body), &[]).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.call("GET", path, None, &[]).await
    }

    /// Any call, with the raw body.
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

    /// Any call; a body that is not JSON becomes null.
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

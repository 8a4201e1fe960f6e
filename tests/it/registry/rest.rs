//! Runs the registry alone, over REST, with its own database.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicUsize, Ordering},
};

use agent_authority::routes::ROUTES;
use authority_api::{
    error::ErrorCode,
    identity::{Caller, CallerKind, Exports},
};
use authority_graph::{self as graph, Graph};
use authority_keys::Keys;
use authority_process::{
    clock::Clock,
    compute::{ComputePool, Limits},
};
use authority_registry::{Dns, Issuers, Registry, services};
use axum::{Router, body::Body};
use gateway_rest::{Fault, Host, Route};
use http::{HeaderMap, Request, StatusCode, request::Parts};
use serde_json::{Value, json};
use tonic::{Status, service::Routes};
use tower::ServiceExt;

use crate::support::{Members, database::Database, new_principal, new_tenant, run_workers};

pub(super) struct App {
    pub(super) database: Database,
    caught_up: Arc<AtomicUsize>,
    router: Router,
}

/// A complete response.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Answer {
    /// Returns the fields that the error reports as invalid.
    #[track_caller]
    pub(super) fn fields(&self) -> Vec<&str> {
        let details = self.body["details"].as_array();
        details.unwrap().iter().map(|detail| detail["field"].as_str().unwrap()).collect()
    }

    #[track_caller]
    pub(super) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:#}", self.body);
        self
    }
}

/// All tests share these keys, which never change, because generating an RSA key takes longer than
/// most tests.
static KEYS: LazyLock<Keys> = LazyLock::new(|| Keys::ephemeral(Clock::default()).unwrap());

impl App {
    pub(super) async fn start() -> Self {
        let database = Database::fresh().await;
        let caught_up = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&caught_up);
        let settings = graph::Settings::default();
        let keys = KEYS.clone();
        let store = database.store();
        let loading = Graph::load(store.clone(), settings, Clock::default(), keys.erased_names());
        let graph = loading.await.unwrap();
        run_workers([graph.worker(), store.listener()]);
        let registry = Registry {
            store: database.store(),
            clock: Clock::default(),
            keys,
            graph,
            pool: ComputePool::start(Limits::default()).unwrap(),
            exports: Exports::new(Arc::new(|_| Ok(()))),
            destinations: Arc::default(),
            dns: Dns::new(&[]),
            issuers: Issuers::new(&[], &Clock::default()).unwrap(),
            after_commit: Arc::new(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                Box::pin(async {})
            }),
        };
        let services = services(registry).into_iter();
        let grpc = services.fold(Router::new(), |router, service| {
            service
                .paths()
                .fold(router, |router, path| router.route_service(&path, service.clone()))
        });
        let router = gateway_rest::router(ROUTES, Routes::from(grpc).prepare(), TestHost);
        Self { database, caught_up, router }
    }

    /// Returns how many calls have waited for the graph.
    pub(super) fn caught_up(&self) -> usize {
        self.caught_up.load(Ordering::Relaxed)
    }

    /// Makes a call as the owner.
    pub(super) async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        self.call_as("owner", method, path, body, &[]).await
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, Value::Null).await
    }

    /// Makes a call as `who`: `owner`, or a tenant's id for a user of that tenant. The user is an
    /// admin named Ada, unless the headers `x-role`, `x-actor` and `x-subject` override this.
    pub(super) async fn call_as(
        &self,
        who: &str,
        method: &str,
        path: &str,
        body: Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header("x-caller", who)
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let response = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 4 << 20).await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Creates a record and returns it.
    pub(super) async fn make(&self, path: &str, body: Value) -> Value {
        let answer = self.call("POST", path, body).await.is(201);
        let (_, record) =
            answer.body.as_object().unwrap().iter().find(|(key, _)| *key != "ok").unwrap();
        record.clone()
    }

    pub(super) async fn tenant(&self, slug: &str) -> String {
        id(&self.make("/tenants", new_tenant(slug, slug)).await)
    }

    pub(super) async fn principal(&self, tenant: &str, class: &str, name: &str) -> String {
        let body = new_principal(class, name).with("tenant_id", tenant);
        id(&self.make("/principals", body).await)
    }
}

#[track_caller]
pub(super) fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

struct TestHost;

impl Host for TestHost {
    async fn admit(&self, _route: &'static Route, parts: &mut Parts) -> Result<(), Status> {
        let said = |name: &str| {
            let value = parts.headers.get(name)?;
            std::str::from_utf8(value.as_bytes()).ok()
        };
        let (who, role) = (said("x-caller"), said("x-role").unwrap_or("admin"));
        let actor = said("x-actor").unwrap_or("ada@example.com").to_owned();
        let subject = said("x-subject").unwrap_or(&actor).to_owned();
        let issuer = "test".to_owned();
        let email = Some(actor.clone());
        let kind = match who {
            Some("owner") => CallerKind::Owner { issuer, subject, email },
            Some(tenant) => CallerKind::Member {
                tenant_id: tenant.parse().unwrap(),
                role: role.into(),
                issuer,
                subject,
                email,
            },
            None => CallerKind::Anonymous,
        };
        parts.extensions.insert(Caller { actor, kind, until: None, authenticated_at: None });
        Ok(())
    }

    fn status(&self, fault: &Fault) -> StatusCode {
        let known = ErrorCode::ALL.iter().find(|code| code.word() == fault.reason);
        known.map_or_else(|| fault.default_status(), |code| code.http())
    }

    fn render(&self, fault: &Fault, _request_id: Option<&str>) -> Vec<u8> {
        let details: Vec<_> = fault
            .problems
            .iter()
            .map(|problem| json!({"field": problem.field, "problem": problem.problem}))
            .collect();
        json!({"ok": false, "error": fault.reason, "message": fault.message, "details": details})
            .to_string()
            .into_bytes()
    }
}

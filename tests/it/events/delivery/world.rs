//! A service with a tenant, endpoints and events in its database.

use std::time::Duration;

use authority_keys::EndpointColumn;
use authority_store::{RunQueryDsl, new_id};
use authority_webhook::signing::Secret;
use diesel::{QueryableByName, sql_types::Jsonb};
use serde_json::{Value, json};

use crate::support::{Answered, Members, TestApp, Wishes, new_tenant, only};

pub(crate) struct World {
    pub(crate) app: TestApp,
    pub(crate) tenant_id: String,
}

/// The settings of an endpoint to create.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    pub(crate) event_types: Vec<&'static str>,
    pub(crate) filter: Option<&'static str>,
    pub(crate) retry_policy: Value,
    pub(crate) suites: Vec<&'static str>,
    pub(crate) rate: i32,
    pub(crate) headers: Value,
    /// Also sets a previous secret, which is valid for another hour.
    pub(crate) rotated: bool,
}

impl Endpoint {
    pub(crate) fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            event_types: vec!["*"],
            filter: None,
            retry_policy: json!({"schedule_seconds": [1, 1], "jitter": 0.0}),
            suites: vec!["standard-webhooks/v1", "rfc9421", "jwt"],
            rate: 1000,
            headers: only("x-environment", "test"),
            rotated: false,
        }
    }
}

/// An endpoint that was created.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) id: String,
    pub(crate) url: String,
    /// The current secret comes first.
    pub(crate) secrets: Vec<String>,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::wished(Wishes::default()).await
    }

    pub(crate) async fn wished(wishes: Wishes) -> Self {
        let app = TestApp::wished(wishes).await;
        let tenant_id = Self::tenant(&app, "acme").await;
        Self { app, tenant_id }
    }

    /// Creates another tenant.
    pub(crate) async fn tenant(app: &TestApp, slug: &str) -> String {
        let body = new_tenant(slug, slug).with("state", "active");
        app.owner().create_tenant(body).await.assert_status(201);
        format!("svc:tenant:{slug}")
    }

    pub(crate) async fn endpoint(&self, wished: Endpoint) -> Made {
        self.endpoint_of(&self.tenant_id, wished).await
    }

    pub(crate) async fn endpoint_of(&self, tenant_id: &str, wished: Endpoint) -> Made {
        let id = format!("svc:endpoint:{}", new_id());
        let seal = |column, plain: &[u8]| {
            hex::encode(self.app.app.keys.seal_endpoint(&id, column, plain).unwrap())
        };
        let fresh = || authority_crypto::random::<32>().unwrap();
        let (secret, previous) = (fresh(), fresh());
        let sealed = seal(EndpointColumn::Secret, &secret);
        let sealed_before = seal(EndpointColumn::PreviousSecret, &previous);
        let headers = seal(EndpointColumn::Headers, wished.headers.to_string().as_bytes());
        let (before, until) = if wished.rotated {
            (format!("'\\x{sealed_before}'"), "now() + interval '1 hour'")
        } else {
            ("NULL".to_owned(), "NULL")
        };
        let list = |items: &[&str]| {
            format!(
                "'{{{}}}'",
                items.iter().map(|i| format!("\"{i}\"")).collect::<Vec<_>>().join(",")
            )
        };
        let filter = wished.filter.map_or("NULL".to_owned(), |filter| format!("$f${filter}$f$"));
        let Endpoint { url, retry_policy, rate, .. } = &wished;
        self.run(&format!(
            "INSERT INTO webhook_endpoints (id, tenant_id, state, url, event_types, filter, \
                 retry_policy, signing_suites, rate_limit_per_second, headers, created_by, secret, \
                 previous_secret, previous_until, sealed_headers) \
             VALUES ('{id}', '{tenant_id}', 'active', '{url}', {}, {filter}, '{retry_policy}', {}, \
                 {rate}, '{{}}', 'test', '\\x{sealed}', {before}, {until}, '\\x{headers}'); \
             INSERT INTO webhook_cursors (endpoint_id, tenant_id, sequence) VALUES ('{id}', \
                 '{tenant_id}', coalesce((SELECT sequence FROM event_heads \
                                          WHERE tenant_id = '{tenant_id}'), 0))",
            list(&wished.event_types),
            list(&wished.suites),
        ))
        .await;
        let secrets = if wished.rotated { vec![secret, previous] } else { vec![secret] };
        let secrets = secrets.into_iter().map(|bytes| Secret::new(bytes).reveal()).collect();
        Made { id, url: url.clone(), secrets }
    }

    /// Adds this many numbered events of one type, each in a row of its own.
    pub(crate) async fn events(&self, count: usize) {
        self.events_of(&self.tenant_id, count, "svc.authority.suspended").await;
    }

    pub(crate) async fn events_of(&self, tenant_id: &str, count: usize, event_type: &str) {
        self.run(&format!(
            "WITH head AS ( \
                 INSERT INTO event_heads (tenant_id, sequence) VALUES ('{tenant_id}', {count}) \
                 ON CONFLICT (tenant_id) DO UPDATE \
                     SET sequence = event_heads.sequence + EXCLUDED.sequence \
                 RETURNING sequence), \
             new AS ( \
                 SELECT head.sequence - {count} + n AS sequence, 'svc:event:' \
                     || lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0') \
                     || substr(md5(random()::text || n), 1, 20) AS id \
                 FROM head, generate_series(1, {count}) AS n) \
             INSERT INTO events (id, tenant_id, last_sequence, event_types, bodies) \
             SELECT id, '{tenant_id}', sequence, '{event_type}', convert_to( \
                 json_build_object('event_id', id, 'event_type', '{event_type}', 'tenant_id', \
                     '{tenant_id}', 'sequence', sequence, 'data', json_build_object())::text, 'UTF8') \
             FROM new"
        ))
        .await;
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.app.database.run(sql).await;
    }

    /// Returns rows as JSON.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Value> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = Jsonb)]
            row: Value,
        }
        let sql = format!("SELECT to_jsonb(found) AS row FROM ({sql}) AS found");
        let rows: Vec<Row> =
            diesel::sql_query(sql).load(&mut self.app.database.owner().await).await.unwrap();
        rows.into_iter().map(|row| row.row).collect()
    }

    /// The endpoint's deliveries, oldest event first.
    pub(crate) async fn deliveries(&self, endpoint: &Made) -> Vec<Value> {
        let id = &endpoint.id;
        self.rows(&format!(
            "SELECT * FROM webhook_deliveries WHERE endpoint_id = '{id}' ORDER BY sequence, id"
        ))
        .await
    }

    pub(crate) async fn attempts(&self, endpoint: &Made) -> Vec<Value> {
        let id = &endpoint.id;
        self.rows(&format!(
            "SELECT a.* FROM webhook_attempts a JOIN webhook_deliveries d ON d.id = a.id \
             WHERE d.endpoint_id = '{id}' ORDER BY a.at, a.attempt"
        ))
        .await
    }

    pub(crate) async fn cursor(&self, endpoint: &Made) -> Value {
        let sql = format!("SELECT * FROM webhook_cursors WHERE endpoint_id = '{}'", endpoint.id);
        self.rows(&sql).await.remove(0)
    }

    /// Waits until the query returns a row.
    pub(crate) async fn wait_for(&self, sql: String) -> Value {
        for _ in 0..600 {
            if let Some(row) = self.rows(&sql).await.pop() {
                return row;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no row after 30 s: {sql}");
    }

    /// Waits until this many deliveries of the endpoint have ended.
    pub(crate) async fn wait_until_ended(&self, endpoint: &Made, count: usize) -> Vec<Value> {
        let id = &endpoint.id;
        self.wait_for(format!(
            "SELECT 1 AS one FROM webhook_deliveries WHERE endpoint_id = '{id}' \
             HAVING count(*) FILTER (WHERE state <> 'open') >= {count}"
        ))
        .await;
        self.deliveries(endpoint).await
    }
}

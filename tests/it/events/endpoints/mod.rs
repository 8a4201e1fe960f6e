//! Webhook endpoints: the record, its secrets, access to it, and what pauses or disables it.

mod access;
mod demands;
mod record;
mod secrets;
mod stopping;

use authority_store::Db;
use diesel::{
    QueryableByName,
    sql_types::{Nullable, Text},
};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use serde_json::{Value, json};

use crate::support::{Answered, Client, TestApp, new_api_key, only};

pub(super) const OWNERS: &str = "/api/v1/webhook-endpoints";
pub(super) const ADMINS: &str = "/api/v1/app/webhook-endpoints";
pub(super) const KEYS: &str = "/v1/webhook-endpoints";
pub(super) const TENANT: &str = "svc:tenant:acme";
pub(super) const OTHER: &str = "svc:tenant:other";
pub(super) const ANN: &str = "ann@acme.example";

/// A service with two tenants, and an admin of the first.
pub(super) struct World {
    pub(super) app: TestApp,
    pub(super) admin: Client,
}

impl World {
    pub(super) async fn start() -> Self {
        let app = TestApp::start().await;
        for slug in ["acme", "other"] {
            assert_eq!(app.owner().create_tenant(json!({"name": slug, "slug": slug})).await.0, 201);
        }
        let admin = app.person(TENANT, "admin", ANN);
        Self { app, admin }
    }

    /// Creates an API key that may manage endpoints; returns its id and a client with it.
    pub(super) async fn key(&self) -> (String, Client) {
        let body = new_api_key("hooks", &["webhooks:write"]);
        let made = self.app.owner().create_api_key(body).await.assert_status(201);
        let id = made["api_key"]["id"].as_str().unwrap().to_owned();
        (id, self.app.client(made["secret"].as_str().unwrap()))
    }

    pub(super) async fn db(&self) -> Db {
        self.app.database.owner().await
    }

    pub(super) async fn run(&self, sql: &str) {
        self.db().await.batch_execute(sql).await.unwrap();
    }

    /// The single value of a query, as text; `None` for NULL or without a row.
    pub(super) async fn value(&self, sql: &str) -> Option<String> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = Nullable<Text>)]
            value: Option<String>,
        }
        let sql = format!("SELECT ({sql})::text AS value");
        let row: Row = diesel::sql_query(sql).get_result(&mut self.db().await).await.unwrap();
        row.value
    }

    /// A column of an endpoint's row, as text.
    async fn column(&self, id: &str, column: &str) -> Option<String> {
        self.value(&format!("SELECT {column} FROM webhook_endpoints WHERE id = '{id}'")).await
    }
}

pub(super) fn body(more: Value) -> Value {
    let mut body = only("url", "https://hooks.example.com/a");
    if let Value::Object(more) = more {
        body.as_object_mut().unwrap().extend(more);
    }
    body
}

/// Creates an endpoint; returns its record and its secret.
pub(super) async fn made_at(client: &Client, path: &str, more: Value) -> (Value, String) {
    let answer = client.post(path, body(more)).await.assert_status(201);
    let secret = answer["secret"].as_str().unwrap().to_owned();
    (answer["webhook_endpoint"].clone(), secret)
}

/// Creates an endpoint as the admin; returns its id.
pub(super) async fn made(client: &Client, more: Value) -> String {
    id(&made_at(client, ADMINS, more).await.0)
}

/// Returns the SQL that binds an API key to a principal.
pub(super) fn bind(key_id: &str, principal: &str) -> String {
    format!(
        "UPDATE api_keys SET principal_ids = '{{{principal}}}', updated_at = clock_timestamp()
         WHERE id = '{key_id}'"
    )
}

#[track_caller]
pub(super) fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

/// The fields that an error names.
#[track_caller]
fn fields(answer: &Value) -> Vec<&str> {
    let details = answer["details"].as_array().unwrap();
    details.iter().map(|detail| detail["field"].as_str().unwrap()).collect()
}

//! The consultant programme: its records, and what tenants and the public see of them. It grants no
//! authority.

mod brands;
mod certifications;
mod consultants;
mod directory;
pub(crate) mod dns;
mod domains;
mod leads;
mod links;
mod no_authority;
mod public_leads;
mod tenants;
mod widgets;

use authority_process::clock::Clock;
use serde_json::{Value, json};

use crate::support::{Answered, Client, Plain, TestApp, Wishes, only};

/// A service and its owner, with helpers for requests and responses.
pub(super) struct World {
    pub(super) app: TestApp,
    pub(super) owner: Client,
}

/// The status and the body of a response.
pub(super) type Answer = (u16, Value);

#[track_caller]
pub(super) fn is(answer: &Answer, status: u16, error: &str) {
    assert_eq!((answer.0, answer.1["error"].text()), (status, error), "{:#}", answer.1);
}

/// Checks that the response has status 400 and an error about this field.
#[track_caller]
pub(super) fn is_about(answer: &Answer, member: &str) {
    assert_eq!(answer.0, 400, "{:#}", answer.1);
    let fields = answer.1["details"].as_array().unwrap().iter().map(|detail| &detail["field"]);
    let mut fields: Vec<_> = fields.collect();
    fields.dedup();
    assert_eq!(fields, [member], "{:#}", answer.1);
}

/// Returns the only record in a body.
#[track_caller]
pub(super) fn record(body: &Value) -> Value {
    let mut found = body.as_object().unwrap().values().filter(|value| value.is_object());
    found.next().unwrap_or_else(|| panic!("no record in {body:#}")).clone()
}

#[track_caller]
pub(super) fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

impl World {
    pub(super) async fn start() -> Self {
        Self::wished(Wishes::default()).await
    }

    pub(super) async fn wished(wishes: Wishes) -> Self {
        let app = TestApp::wished(wishes).await;
        let owner = app.owner();
        Self { app, owner }
    }

    /// Starts the service with a clock that only the test advances.
    pub(super) async fn at_a_fixed_time() -> (Self, Clock) {
        let clock = Clock::fixed(Clock::default().now());
        let wishes = Wishes { clock: clock.clone(), proxied: true, ..Wishes::default() };
        (Self::wished(wishes).await, clock)
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Answer {
        self.owner.post(&format!("/api/v1{path}"), body).await
    }

    pub(super) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.owner.patch(&format!("/api/v1{path}"), body).await
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.owner.get(&format!("/api/v1{path}")).await
    }

    pub(super) async fn delete(&self, path: &str) -> Answer {
        self.owner.call("DELETE", &format!("/api/v1{path}"), None, &[]).await
    }

    /// Creates a record.
    pub(super) async fn make(&self, path: &str, body: Value) -> Value {
        let (status, made) = self.post(path, body).await;
        assert_eq!(status, 201, "{path}: {made:#}");
        record(&made)
    }

    /// Returns the ids of the records in a list.
    pub(super) async fn ids(&self, path: &str) -> Vec<String> {
        let (status, body) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {body:#}");
        let rows = body.as_object().unwrap().values().find_map(Value::as_array).unwrap();
        rows.iter().map(id).collect()
    }

    /// Creates a tenant with this slug and returns its id.
    pub(super) async fn tenant(&self, slug: &str) -> String {
        id(&self.make("/tenants", json!({"name": slug, "slug": slug})).await)
    }

    /// Creates a consultant with this name and returns their id.
    pub(super) async fn consultant(&self, name: &str) -> String {
        let body = json!({"display_name": name, "email": format!("{name}@advice.example")});
        id(&self.make("/consultants", body).await)
    }

    /// Creates a consultant with a valid certification.
    pub(super) async fn certified(&self, name: &str) -> String {
        let id = self.consultant(name).await;
        self.post(&format!("/consultants/{id}/certify"), only("level", "master"))
            .await
            .assert_status(201);
        id
    }

    /// Creates a link with this status and returns its id.
    pub(super) async fn link(&self, consultant: &str, tenant: &str, status: &str) -> String {
        let body = json!({"consultant_id": consultant, "tenant_id": tenant, "status": status});
        id(&self.make("/consultant-tenant-links", body).await)
    }
}

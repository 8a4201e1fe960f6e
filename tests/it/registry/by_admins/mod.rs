//! A tenant's admins create records of their tenant, within the limits that keep authority with the
//! installation's owner.

mod delegating;
mod kinds;
mod policies;
mod refused;

use serde_json::{Value, json};

use crate::support::{Answered, Client, Members, Plain, TENANT, TestApp, new_principal};

const OTHER: &str = "svc:tenant:other";
const ANN: &str = "ann@acme.example";
const BOB: &str = "bob@acme.example";

/// Two tenants, and admins of both.
struct Acme {
    app: TestApp,
    /// Admins of the first tenant.
    ann: Client,
    bob: Client,
    /// An admin of the second tenant.
    stranger: Client,
}

impl Acme {
    async fn start() -> Self {
        let app = TestApp::start().await;
        for slug in ["acme", "other"] {
            app.owner().create_tenant(json!({"name": slug, "slug": slug})).await.assert_status(201);
        }
        let [ann, bob] = [ANN, BOB].map(|email| app.person(TENANT, "admin", email));
        let stranger = app.person(OTHER, "admin", "eve@other.example");
        Self { app, ann, bob, stranger }
    }

    /// Creates a record as the owner.
    #[track_caller]
    fn made(&self, path: &str, body: Value) -> impl Future<Output = Value> {
        make(self.app.owner(), format!("/api/v1/{path}"), body)
    }

    /// Creates a record as the first admin.
    #[track_caller]
    fn by_ann(&self, path: &str, body: Value) -> impl Future<Output = Value> {
        make(self.ann.clone(), format!("/api/v1/app/{path}"), body)
    }

    /// Creates a principal of class human as the owner, for the person with this address.
    async fn person(&self, email: &str) -> String {
        let body = new_principal("human", email).with("external_subject", format!("dev|{email}"));
        id(&self.made("principals", body).await)
    }
}

async fn make(by: Client, path: String, body: Value) -> Value {
    let (status, made) = by.post(&path, body).await;
    assert_eq!(status, 201, "{path}: {made:#}");
    made.as_object().unwrap().values().find(|member| member.is_object()).unwrap().clone()
}

#[track_caller]
fn id(record: &Value) -> String {
    record["id"].as_str().unwrap_or_else(|| panic!("{record:#}")).to_owned()
}

/// Checks the status and the code of a refusal, and that its text contains `text`.
#[track_caller]
fn refused((status, answer): (u16, Value), expected: u16, code: &str, text: &str) {
    assert_eq!((status, answer["error"].text()), (expected, code), "{answer:#}");
    assert!(answer.to_string().contains(text), "{text}: {answer:#}");
}

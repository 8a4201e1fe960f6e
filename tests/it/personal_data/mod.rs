//! People's data: exported, erased on request or by age, or kept by a legal hold. Signed data still
//! verify afterwards.

mod acts;
mod crashed;
mod dump;
mod erased;
mod evidence;
mod exported;
mod held;
mod overrides;
mod requests;
mod retention;

use serde_json::{Value, json};

use crate::support::{
    Answered, Client, Members, Plain, TENANT, TestApp, Wishes, new_principal, only,
};

/// The person to export or erase.
const ANN: &str = "ann@example.org";
/// Another person. Their data must remain.
const BOB: &str = "bob@example.org";

/// The demonstration tenant, the installation's owner, and an API key that decides and seals.
struct World {
    app: TestApp,
    owner: Client,
    key: Client,
}

impl World {
    async fn start() -> Self {
        Self::wished(Wishes::default()).await
    }

    async fn wished(wishes: Wishes) -> Self {
        let app = TestApp::wished(wishes).await;
        app.demo().await;
        let scopes = ["runtime:read", "runtime:write", "evidence:read", "evidence:write"];
        let key = app.client(&app.api_key(TENANT, &scopes).await);
        Self { owner: app.owner(), app, key }
    }

    /// Returns a client of a user of the tenant.
    fn person(&self, role: &str, email: &str) -> Client {
        self.app.person(TENANT, role, email)
    }

    /// Creates a lead with this address and returns its id.
    async fn lead(&self, email: &str) -> String {
        let body = json!({"submitter_email": email, "submitter_name": "A Lead", "message": "Call me.",
                          "consent_marketing": true});
        self.owner.create_lead(body).await.assert_made("lead")
    }

    /// Creates a human principal and returns its id.
    async fn human(&self, email: &str, subject: &str) -> String {
        let body = new_principal("human", "A Human")
            .with("email", email)
            .with("external_subject", subject);
        self.owner.create_principal(body).await.assert_made("principal")
    }

    async fn shown(&self, path: &str, record: &str) -> Value {
        let (status, mut shown) = self.owner.get(path).await;
        assert_eq!(status, 200, "{path}: {shown:#}");
        shown[record].take()
    }

    /// Requests a payment to this payee, which is held. Returns the ids of the decision and the
    /// approval.
    async fn held(&self, asker: &Client, payee: &str) -> (String, String) {
        let mut ask = crate::support::asking(25_000.0, "DE");
        ask["context"]["payee"] = json!(payee);
        let (status, answer) = asker.evaluate(ask).await;
        assert_eq!((status, answer["decision"].text()), (200, "require_approval"), "{answer:#}");
        let id = |member: &str| answer[member].as_str().unwrap().to_owned();
        (id("decision_id"), id("approval_id"))
    }

    async fn act(&self, person: &Client, approval: &str, verb: &str, body: Value) -> (u16, Value) {
        person.act_on_approval(approval, verb, body).await
    }

    async fn erase(&self, named: Value) -> (u16, Value) {
        let body = named.with("reason", "request 17");
        self.owner.erase_personal_data(body).await
    }

    /// Erases Ann everywhere and returns the erasure.
    async fn erase_ann(&self) -> Value {
        let (status, mut erased) = self.erase(only("email", ANN)).await;
        assert_eq!(status, 200, "{erased:#}");
        erased["erasure"].take()
    }

    /// Returns the lines of an export, and separately its last line.
    async fn export(&self, named: Value) -> (Vec<Value>, Value) {
        let path = "/api/v1/personal-data:export";
        let (status, text) = self.owner.text("POST", path, Some(named)).await;
        assert_eq!(status, 200, "{text}");
        let lines = text.lines().filter(|line| !line.is_empty());
        let mut lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let last = lines.pop().unwrap();
        assert_eq!(last["end"], true, "{text}");
        (lines, last)
    }
}

//! MCP servers: an admin adds one, its tools are reported and pinned, and requests for them are decided.

mod bound;
mod decided;
mod observed;
mod pinned;
mod records;
mod resources;

use serde_json::{Value, json};

use crate::support::{Client, TestApp};

const TENANT: &str = "svc:tenant:acme";
const AGENT: &str = "svc:agent:acme:dev";
const ACTION: &str = "mcp.github.create_issue";

/// A tenant with an MCP server and an agent that may use it, made by an admin of the tenant.
struct World {
    app: TestApp,
    admin: Client,
    /// A key that requests decisions and reports definitions.
    key: Client,
    /// The id of the server's external app.
    server: String,
}

impl World {
    async fn start() -> Self {
        let app = TestApp::start().await;
        for slug in ["acme", "other"] {
            let body = json!({"name": slug, "slug": slug});
            assert_eq!(app.owner().post("/api/v1/tenants", body).await.0, 201);
        }
        let admin = app.person(TENANT, "admin", "ann@acme.example");
        let agent = json!({"tenant_id": TENANT, "principal_class": "agent", "display_name": "Dev",
            "name": "dev"});
        made(&admin, "principals", agent).await;
        let purpose = json!({"tenant_id": TENANT, "slug": "work", "name": "Work",
            "allowed_actions": ["*"]});
        made(&admin, "purposes", purpose).await;
        let server = made(&admin, "external-apps", server("github")).await["id"].clone();
        let grant = json!({"agent_id": AGENT, "used_id": server, "used_kind": "external_app"});
        made(&admin, "relationships/uses", grant).await;
        let scopes =
            ["runtime:read", "runtime:write", "tools:observe", "evidence:read", "evidence:write"];
        let key = app.client(&app.api_key(TENANT, &scopes).await);
        Self { server: server.as_str().unwrap().to_owned(), app, admin, key }
    }

    /// Reports definitions of the server's tools.
    async fn reported(&self, definitions: &[Value]) -> Vec<Value> {
        let body = json!({"definitions": definitions});
        let (status, answer) = self.key.post("/v1/mcp-servers/github:observe", body).await;
        assert_eq!(status, 200, "{answer:#}");
        answer["tools"].as_array().unwrap().clone()
    }

    /// Reads a tool with its definitions.
    async fn tool(&self, id: &str) -> Value {
        let (status, found) = self.admin.get(&format!("/api/v1/app/tools/{id}")).await;
        assert_eq!(status, 200, "{found:#}");
        found["tool"].clone()
    }

    /// Pins a definition as the admin, who declares that the tool only reads.
    async fn pin(&self, id: &str, digest: &Value) -> (u16, Value) {
        let body = json!({"definition_digest": digest,
            "action_declaration": {"effect_class": "informational", "reversibility": "reversible"},
            "action_risk_classification": {"risk_tier": "minimal"}});
        self.admin.post(&format!("/api/v1/app/tools/{id}/pin"), body).await
    }

    /// Reports and pins a definition. Returns the tool's id and the digest.
    async fn with_pinned(&self, definition: &Value) -> (String, String) {
        let reported = self.reported(std::slice::from_ref(definition)).await;
        let id = reported[0]["id"].as_str().unwrap().to_owned();
        let digest = &reported[0]["definition_digest"];
        let (status, pinned) = self.pin(&id, digest).await;
        assert_eq!(status, 200, "{pinned:#}");
        (id, digest.as_str().unwrap().to_owned())
    }

    /// Requests a decision. Returns the decision and its reason code.
    async fn decided(&self, more: Value) -> (String, String) {
        let (status, answer) = self.key.post("/api/v1/runtime/evaluate", asking(&more)).await;
        assert_eq!(status, 200, "{answer:#}");
        let word = |name: &str| answer[name].as_str().unwrap().to_owned();
        (word("decision"), word("reason_code"))
    }

    async fn reason(&self, more: Value) -> String {
        self.decided(more).await.1
    }
}

fn server(slug: &str) -> Value {
    json!({"tenant_id": TENANT, "vendor_name": slug, "connector_kind": "mcp", "mcp": {"slug": slug}})
}

/// Returns a definition of a tool.
fn definition(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object",
        "required": ["title"], "properties": {"title": {"type": "string"}}}})
}

/// Returns a request for the action with these members.
fn asking(more: &Value) -> Value {
    let mut body = json!({"subject": AGENT, "action": ACTION, "purpose": "work",
        "context": {"arguments": {"title": "x"}}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Creates a record as an admin.
async fn made(admin: &Client, path: &str, body: Value) -> Value {
    let (status, made) = admin.post(&format!("/api/v1/app/{path}"), body).await;
    assert_eq!(status, 201, "{path}: {made:#}");
    made.as_object().unwrap().values().find(|member| member.is_object()).unwrap().clone()
}

/// Checks the status and the code of a refusal, and that its text contains `text`.
#[track_caller]
fn refused((status, answer): (u16, Value), expected: u16, code: &str, text: &str) {
    assert_eq!((status, &answer["error"]), (expected, &json!(code)), "{answer:#}");
    assert!(answer.to_string().contains(text), "{text}: {answer:#}");
}

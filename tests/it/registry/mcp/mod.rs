//! MCP servers: an admin adds one, its tools are reported and pinned, and requests for them are decided.

mod advice;
mod bound;
mod decided;
mod observed;
mod pinned;
mod records;
mod resources;

use serde_json::{Value, json};

use crate::support::{
    Answered, Client, Members, Plain, TENANT, TestApp, new_principal, new_purpose, only,
};

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
            assert_eq!(app.owner().create_tenant(json!({"name": slug, "slug": slug})).await.0, 201);
        }
        let admin = app.person(TENANT, "admin", "ann@acme.example");
        made(&admin, "principals", new_principal("agent", "Dev").with("name", "dev")).await;
        made(&admin, "purposes", new_purpose("work", "Work", &["*"])).await;
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
        let body = only("definitions", definitions);
        let answer = self.key.observe_mcp_server("github", body).await.assert_status(200);
        answer["tools"].as_array().unwrap().clone()
    }

    /// Reads a tool with its definitions.
    async fn tool(&self, id: &str) -> Value {
        let found = self.admin.get_tool(id).await.assert_status(200);
        found["tool"].clone()
    }

    /// Pins a definition as the admin, who declares that the tool only reads.
    async fn pin(&self, id: &str, digest: &Value) -> (u16, Value) {
        let body = json!({"definition_digest": digest,
            "action_declaration": {"effect_class": "informational", "reversibility": "reversible"},
            "action_risk_classification": {"risk_tier": "minimal"}});
        self.admin.pin_tool(id, body).await
    }

    /// Reports and pins a definition. Returns the tool's id and the digest.
    async fn with_pinned(&self, definition: &Value) -> (String, String) {
        let reported = self.reported(std::slice::from_ref(definition)).await;
        let id = reported[0]["id"].as_str().unwrap().to_owned();
        let digest = &reported[0]["definition_digest"];
        self.pin(&id, digest).await.assert_status(200);
        (id, digest.as_str().unwrap().to_owned())
    }

    /// Requests a decision. Returns the decision and its reason code.
    async fn decided(&self, more: Value) -> (String, String) {
        let answer = self.key.evaluate(asking(&more)).await.assert_status(200);
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
    json!({"subject": AGENT, "action": ACTION, "purpose": "work",
        "context": {"arguments": {"title": "x"}}})
    .and(more)
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
    assert_eq!((status, answer["error"].text()), (expected, code), "{answer:#}");
    assert!(answer.to_string().contains(text), "{text}: {answer:#}");
}

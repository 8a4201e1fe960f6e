//! Each tightening has its own agent so that a single service can serve the whole table.

use serde_json::{Value, json};

use crate::support::{Answered, Client, TestApp, only};

pub(super) const TENANT: &str = "svc:tenant:acme";

/// The shared service. Starting a second one would take longer than testing the whole table.
pub(super) struct World {
    pub(super) app: TestApp,
    pub(super) client: Client,
    delegator: String,
    /// A workspace, a purpose and an action that no agent's request uses.
    pub(super) elsewhere: String,
    /// A tool of an MCP server with a pinned definition. It performs no agent's action.
    pub(super) pinned: String,
}

/// An agent with all records that its request needs.
pub(super) struct Agent {
    pub(super) number: usize,
    pub(super) id: String,
    pub(super) delegation: String,
    pub(super) purpose: String,
    pub(super) workspace: String,
    pub(super) resource: String,
    pub(super) grant: String,
    pub(super) tool: String,
}

impl World {
    pub(super) async fn new() -> Self {
        let (app, client, delegation) = super::demo().await;
        let (_, found) = app.owner().get_delegation(&delegation).await;
        let delegator = found["delegation"]["delegator_id"].as_str().unwrap().to_owned();
        let (elsewhere, pinned) = (String::new(), String::new());
        let mut world = Self { app, client, delegator, elsewhere, pinned };
        world.elsewhere = world.made("workspaces", only("name", "Elsewhere")).await;
        world.pinned = world.pinned_tool().await;
        let other = json!({"slug": "elsewhere", "name": "Elsewhere", "allowed_actions": ["*"]});
        world.made("purposes", other).await;
        world
    }

    async fn pinned_tool(&self) -> String {
        let server = json!({"vendor_name": "x", "connector_kind": "mcp", "mcp": {"slug": "files"}});
        self.made("external-apps", server).await;
        let report = json!({"tenant_id": TENANT, "definitions": [{"name": "pay"}]});
        let seen = self.app.owner().observe_mcp_server("files", report).await.assert_status(200);
        let id = seen["tools"][0]["id"].as_str().unwrap().to_owned();
        let pin = only("definition_digest", &seen["tools"][0]["definition_digest"]);
        self.does(("POST", format!("tools/{id}/pin"), pin)).await;
        id
    }

    /// Creates a record in the tenant and returns its id.
    pub(super) async fn made(&self, path: &str, mut body: Value) -> String {
        body["tenant_id"] = TENANT.into();
        self.row(path, body).await
    }

    async fn row(&self, path: &str, body: Value) -> String {
        let (status, made) = self.app.owner().post(&format!("/api/v1/{path}"), body).await;
        assert_eq!(status, 201, "{path}: {made:#}");
        let mut records = made.as_object().unwrap().values();
        let id = records.find_map(|record| record["id"].as_str());
        id.map(str::to_owned).unwrap_or_default()
    }

    pub(super) async fn agent(&self, number: usize) -> Agent {
        let name = format!("rep-{number}");
        let body = json!({"principal_class": "agent", "name": name, "display_name": name});
        let id = self.made("principals", body).await;
        let actions = json!([format!("rep{number}.*")]);
        let slug = format!("rep-{number}");
        let body = json!({"slug": slug, "name": slug, "allowed_actions": actions});
        let purpose = self.made("purposes", body).await;
        let workspace = self.made("workspaces", only("name", &name)).await;
        let body = json!({"kind": "ledger", "name": name, "workspace_id": workspace});
        let resource = self.made("resources", body).await;
        let body = json!({"name": name, "function_signature": "pay()", "actions": actions});
        let tool = self.made("tools", body).await;
        let body = json!({"principal_id": id, "workspace_id": workspace});
        self.row("relationships/acts-in", body).await;
        let body = json!({"resource_id": resource, "grantee_id": id,
                          "grantee_kind": "principal", "access_level": "execute"});
        let grant = self.row("relationships/granted-access-to", body).await;
        let body = json!({"delegate_id": id, "delegator_id": self.delegator, "actions": actions,
                          "currency": "EUR", "max_amount": "100"});
        let delegation = self.made("delegations", body).await;
        Agent { number, id, delegation, purpose, workspace, resource, grant, tool }
    }

    /// Makes a change of authority and checks that it succeeds.
    pub(super) async fn does(&self, (verb, path, body): (&str, String, Value)) {
        let path = format!("/api/v1/{path}");
        let body = Some(body).filter(|body| !body.is_null());
        let (status, answer) = self.app.owner().call(verb, &path, body, &[]).await;
        assert!(status == 200 || status == 201, "{verb} {path}: {status} {answer:#}");
    }
}

impl Agent {
    pub(super) fn action(&self) -> String {
        format!("rep{}.pay", self.number)
    }

    /// Returns the agent's request in normal form.
    pub(super) fn asking(&self, names_tool: bool) -> Value {
        let mut ask = json!({
            "subject": self.id,
            "action": self.action(),
            "purpose": format!("rep-{}", self.number),
            "resource_id": self.resource,
            "workspace_id": self.workspace,
            "supported_obligations": [],
            "context": {"amount": 10, "currency": "EUR", "jurisdiction": "DE"},
        });
        if names_tool {
            ask["tool_id"] = json!(self.tool);
        }
        ask
    }

    /// Narrows the agent's delegation to these bounds.
    pub(super) fn narrowed(&self, bounds: Value) -> (&'static str, String, Value) {
        ("POST", format!("delegations/{}/narrow", self.delegation), bounds)
    }
}

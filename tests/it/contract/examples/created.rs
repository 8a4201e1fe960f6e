//! The records that the examples create, for the examples of operations on them.

use serde_json::{Value, json};

use super::{TENANT, World};

impl World {
    /// Stores the id of a created record by its kind, and its texts as `kind.field`.
    pub(super) fn remember(&mut self, answer: &Value) {
        for (kind, record) in answer.as_object().into_iter().flatten() {
            if let Some(id) = record["id"].as_str() {
                self.known.insert(kind.clone(), id.to_owned());
            }
            for (name, value) in record.as_object().into_iter().flatten() {
                let text = value.as_str().map(str::to_owned);
                self.known.extend(text.map(|text| (format!("{kind}.{name}"), text)));
            }
        }
    }

    /// Creates a delegation below the delegation to the agent of the delegating key (`parent`) or to
    /// the admin (`held`), who can renew it; returns its id.
    pub(super) async fn lent(&mut self, below: &str) -> String {
        let body = json!({
            "tenant_id": TENANT, "parent_id": self.known[below],
            "delegate_id": "svc:agent:acme:support-bot", "actions": ["payment.execute"],
            "purposes": ["invoice-settlement"], "max_amount": "50", "currency": "EUR",
        });
        self.made("delegations", body).await
    }

    /// Creates an MCP server with this slug; returns the id of its external app.
    pub(super) async fn mcp_server(&self, slug: &str) -> String {
        let body = json!({"tenant_id": TENANT, "vendor_name": slug, "connector_kind": "mcp",
            "mcp": {"slug": slug}});
        let (_, made) = self.app.owner().post("/api/v1/external-apps", body).await;
        made["external_app"]["id"].as_str().unwrap_or_default().to_owned()
    }

    /// Creates a tool of an MCP server; returns its id.
    pub(super) async fn quarantined_tool(&mut self) -> String {
        self.mcp_server("pinned").await;
        let name = format!("tool-{}", self.known.len());
        let body = json!({"definitions": [{"name": name}]});
        let (status, seen) = self.key.post("/v1/mcp-servers/pinned:observe", body).await;
        assert_eq!(status, 200, "{seen:#}");
        let text = |field: &str| seen["tools"][0][field].as_str().unwrap().to_owned();
        self.known.insert("definition_digest".to_owned(), text("definition_digest"));
        self.known.insert(format!("tool-{}", self.known.len()), String::new());
        text("id")
    }

    /// Returns the address of the created relationship; `None` for a path of another record.
    pub(super) fn relationship(&self, path: &str) -> Option<String> {
        let (_, collection) = path.strip_suffix("/{id}")?.split_once("/relationships/")?;
        let (kind, keys): (_, &[&str]) = match collection {
            "acts-in" => ("acts_in", &["principal_id", "workspace_id"]),
            "member-of" => ("member_of", &["team_id", "principal_id"]),
            "uses" => ("uses", &["agent_id", "used_id", "used_kind"]),
            _ => return None,
        };
        let key = |key: &&str| format!("{key}={}", self.known[&format!("{kind}.{key}")]);
        let query: Vec<_> = keys.iter().map(key).collect();
        Some(path.replace("{id}", &format!("_?{}", query.join("&"))))
    }
}

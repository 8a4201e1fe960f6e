//! The service's operations on MCP servers and their tools.

use authority_client::SURFACE;
use authority_ids::TenantRef;
use serde_json::{Value, json};

use crate::{outcome::Failure, server::Server, text::of};

/// The most tools on a page.
const PAGE: u16 = 500;

/// An MCP server at the service, as its tenant's people see it.
pub(super) struct Servers<'a> {
    pub(super) server: &'a Server,
    pub(super) tenant: Option<&'a TenantRef>,
}

impl Servers<'_> {
    /// Reads a server by its slug.
    pub(super) async fn find(&self, slug: &str) -> Result<Value, Failure> {
        let query = json!({"tenant_id": self.tenant.map(ToString::to_string)});
        let body = self.server.get(&["v1", "mcp-servers", slug], &query).await?;
        self.server.json(&body)
    }

    /// Reads a server by its slug; `None` if the service does not know it.
    pub(super) async fn known(&self, slug: &str) -> Result<Option<Value>, Failure> {
        match self.find(slug).await {
            Ok(found) => Ok(Some(found)),
            Err(failure) if failure.to_string().starts_with("not_found") => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Lists the external apps that are MCP servers.
    pub(super) async fn all(&self) -> Result<Vec<Value>, Failure> {
        let query =
            json!({"tenant_id": self.tenant.map(ToString::to_string), "connector_kind": "mcp"});
        let apps = self.pages("external-apps", "external_apps", query).await?;
        Ok(apps.into_iter().filter(|app| app["mcp"].is_object()).collect())
    }

    /// Lists the tools of a server, without the texts of their definitions.
    pub(super) async fn tools(&self, server_id: &str) -> Result<Vec<Value>, Failure> {
        let query = json!({"tenant_id": self.tenant.map(ToString::to_string), "server_id": server_id,
            "state": "active"});
        self.pages("tools", "tools", query).await
    }

    async fn pages(
        &self,
        path: &str,
        member: &str,
        mut query: Value,
    ) -> Result<Vec<Value>, Failure> {
        let path = self.server.path(&[SURFACE, path]);
        query["limit"] = json!(PAGE);
        let mut found = Vec::new();
        loop {
            let page = self.server.json(&self.server.get(&path, &query).await?)?;
            found.extend(page[member].as_array().cloned().unwrap_or_default());
            match page["next_page_token"].as_str() {
                Some(token) => query["page_token"] = json!(token),
                None => return Ok(found),
            }
        }
    }

    /// Reads a tool with the texts of its definitions.
    pub(super) async fn whole(&self, tool: &Value) -> Result<Value, Failure> {
        let path = self.server.path(&[SURFACE, "tools", of(tool, "id")]);
        let mut read = self.server.json(&self.server.get(&path, &()).await?)?;
        Ok(read["tool"].take())
    }

    /// Pins the newest seen definition of a tool.
    pub(super) async fn pin(&self, tool: &Value) -> Result<(), Failure> {
        let path = self.server.path(&[SURFACE, "tools", of(tool, "id"), "pin"]);
        let body = json!({"definition_digest": tool["mcp"]["seen_digest"]});
        self.server.post(&path, &body).await.map(drop)
    }

    /// Creates a record. Returns the response.
    pub(super) async fn create(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        let path = self.server.path(&[&[SURFACE][..], path].concat());
        let made = self.server.post(&path, body).await?;
        self.server.json(&made)
    }
}

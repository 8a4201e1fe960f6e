//! `mcp add`: from the command of an MCP server to the line in an agent's configuration.

use std::{env, path::Path};

use crate::mcp::{Introduction, instructions_digest};
use authority_client::SURFACE;
use authority_ids::TenantRef;
use clap::Args;
use serde_json::json;

use super::{api::Servers, definitions::waits, pin::pin_each, upstream};
use crate::{
    arguments::tenant_id,
    confirm::Confirm,
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    place::quoted,
    server::Server,
    text::{of, plain},
};

#[derive(Debug, Args)]
pub struct Add {
    /// The name of the MCP server in actions: lower-case letters, digits and `-`
    #[arg(value_name = "SLUG")]
    slug: String,
    /// The agent that may use it, by its id; created if it does not exist
    #[arg(long, value_name = "ID")]
    agent: String,
    /// The purpose of its calls, by its slug
    #[arg(long, value_name = "SLUG")]
    purpose: Option<String>,
    /// Pin every tool, grant the server and create the agent without a confirmation
    #[arg(long)]
    accept_all: bool,
    #[command(flatten)]
    service: ServerArgs,
    /// The command that starts the MCP server, after `--`
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The scopes of the key in the agent's configuration.
const SCOPES: [&str; 3] = ["runtime:write", "runtime:read", "tools:observe"];

impl Add {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let (tenant, name) = agent(&self.agent)?;
        // The client that starts it may have another PATH.
        let program = env::current_exe().map_err(Failure::new)?;
        let introduced = upstream::introduced(&self.command).await?;
        let server = connector.connect(self.service.clone()).await?;
        if server.has_api_key() {
            return Err(Failure::usage(
                "sign in as a tenant's admin or as the owner: an API key can't pin tools",
            ));
        }
        let servers = Servers { server: &server, tenant: Some(&tenant) };
        let confirm = Confirm { yes: self.accept_all };
        self.agent_exists(&servers, &tenant, &name, confirm).await?;
        let app_id = self.registered(&servers, &tenant, &introduced, confirm).await?;
        self.observed(&server, &tenant, &introduced).await?;
        let tools: Vec<_> = servers.tools(&app_id).await?.into_iter().filter(waits).collect();
        let pinned = pin_each(&servers, &tools, confirm).await?;
        self.granted(&servers, &app_id, confirm).await?;
        let key = self.key(&servers, &tenant).await?;
        Ok(self.output(&program, &server, &key, &pinned, tools.len(), &introduced))
    }

    async fn agent_exists(
        &self,
        servers: &Servers<'_>,
        tenant: &TenantRef,
        name: &str,
        confirm: Confirm,
    ) -> Result<(), Failure> {
        let path = servers.server.path(&[SURFACE, "principals", &self.agent]);
        match servers.server.get(&path, &()).await {
            Ok(_) => return Ok(()),
            Err(failure) if failure.to_string().starts_with("not_found") => {}
            Err(failure) => return Err(failure),
        }
        let shown = format!("The agent {} does not exist.", plain(&self.agent));
        confirm.agree(&shown, "Create it?")?;
        let body = json!({"tenant_id": tenant.to_string(), "principal_class": "agent", "name": name,
            "display_name": name});
        servers.create(&["principals"], &body).await.map(drop)
    }

    /// Returns the id of the server's external app, which is created if it does not exist.
    async fn registered(
        &self,
        servers: &Servers<'_>,
        tenant: &TenantRef,
        introduced: &Introduction,
        confirm: Confirm,
    ) -> Result<String, Failure> {
        if let Some(known) = servers.known(&self.slug).await? {
            return Ok(of(&known, "id").to_owned());
        }
        let mut mcp = json!({"slug": self.slug});
        if let Some(text) = &introduced.instructions {
            let shown = format!("The server's instructions for the model:\n{}", lines(text));
            if confirm
                .agree(&shown, "Show them to the model, as long as they do not change?")
                .is_ok()
            {
                mcp["instructions_digest"] = json!(instructions_digest(text));
            }
        }
        let body = json!({"tenant_id": tenant.to_string(), "vendor_name": self.slug, "connector_kind": "mcp",
            "actions": [format!("mcp.{}.*", self.slug)], "mcp": mcp});
        let made = servers.create(&["external-apps"], &body).await?;
        Ok(of(&made["external_app"], "id").to_owned())
    }

    /// Reports the server's definitions, which creates its tools.
    async fn observed(
        &self,
        server: &Server,
        tenant: &TenantRef,
        introduced: &Introduction,
    ) -> Result<(), Failure> {
        if introduced.definitions.is_empty() {
            return Err(Failure::new("the MCP server has no tools"));
        }
        let definitions: Vec<_> = introduced.definitions.iter().map(|one| &one.value).collect();
        let body = json!({"tenant_id": tenant.to_string(), "definitions": definitions});
        let path = format!("{}:observe", self.slug);
        server.post(&["v1", "mcp-servers", &path], &body).await.map(drop)
    }

    async fn granted(
        &self,
        servers: &Servers<'_>,
        app_id: &str,
        confirm: Confirm,
    ) -> Result<(), Failure> {
        let shown = format!(
            "{} may then call the pinned tools of `{}`, by the rules of your policies.",
            plain(&self.agent),
            plain(&self.slug)
        );
        if confirm.agree(&shown, "Grant it?").is_err() {
            return Ok(());
        }
        let body = json!({"agent_id": self.agent, "used_id": app_id, "used_kind": "external_app"});
        match servers.create(&["relationships", "uses"], &body).await {
            // It has the grant.
            Err(failure) if failure.to_string().starts_with("already_exists") => Ok(()),
            made => made.map(drop),
        }
    }

    /// Creates the key of the agent's configuration.
    async fn key(&self, servers: &Servers<'_>, tenant: &TenantRef) -> Result<String, Failure> {
        let body = json!({"tenant_id": tenant.to_string(), "label": format!("mcp wrap {}", self.slug),
            "scopes": SCOPES, "principal_ids": [self.agent]});
        let made = servers.create(&["api-keys"], &body).await?;
        Ok(of(&made, "secret").to_owned())
    }

    fn output(
        &self,
        program: &Path,
        server: &Server,
        key: &str,
        pinned: &[String],
        waiting: usize,
        introduced: &Introduction,
    ) -> CommandOutput {
        let mut words = ["mcp", "wrap", "--url"].map(str::to_owned).to_vec();
        words.push(server.address());
        words.extend([
            "--server".to_owned(),
            self.slug.clone(),
            "--agent".to_owned(),
            self.agent.clone(),
        ]);
        words.extend(
            self.purpose.iter().flat_map(|purpose| ["--purpose".to_owned(), purpose.clone()]),
        );
        words.push("--".to_owned());
        words.extend(self.command.iter().cloned());
        let program = program.display().to_string();
        let entry =
            json!({"command": program, "args": words, "env": {"AGENT_AUTHORITY_TOKEN": key}});
        let typed: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        let configuration = json!({"mcpServers": {&self.slug: entry}});
        let text = serde_json::to_string_pretty(&configuration).unwrap_or_default();
        let mut aside = format!(
            "{} of {waiting} tools were pinned.\nThe key is shown once. For Claude Code:\n\
             claude mcp add {} -e AGENT_AUTHORITY_TOKEN={key} -- {} {}",
            pinned.len(),
            self.slug,
            quoted(&program),
            typed.join(" ")
        );
        for why in introduced.unreadable.iter().cloned().chain(upstream::unfixed(&self.command)) {
            aside.push_str("\nwarning: ");
            aside.push_str(&plain(&why));
        }
        CommandOutput {
            text,
            json: Some(configuration.to_string()),
            aside,
            ..CommandOutput::default()
        }
    }
}

/// Splits an agent's id into its tenant and its name.
fn agent(id: &str) -> Result<(TenantRef, String), Failure> {
    match id.split(':').collect::<Vec<&str>>()[..] {
        ["svc", "agent", tenant, name] => Ok((tenant_id(tenant), name.to_owned())),
        _ => Err(Failure::usage("--agent: must be an agent's id, such as svc:agent:acme:dev")),
    }
}

/// A text for people, line by line.
fn lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

//! The arguments of an installed hook, and the hook in the form of the settings.

use std::{
    env,
    path::{PathBuf, absolute},
};

use authority_client::Base;
use authority_decision::hooks::Client;
use clap::Args;
use serde_json::{Value, json};

use crate::{
    commands::hook::{Guard, client},
    outcome::Failure,
    place::quoted,
};

/// The variable with the API key of an HTTP hook.
const VARIABLE: &str = "AGENT_AUTHORITY_TOKEN";
/// The timeout of an HTTP hook, in seconds. The service answers within 2 seconds.
const HTTP_TIMEOUT: u64 = 10;

/// An installed hook.
#[derive(Debug, Args)]
pub struct Installed {
    /// The coding agent
    #[arg(value_parser = client())]
    pub(super) client: Client,
    #[command(flatten)]
    pub(super) guard: Guard,
    /// The settings [default: .claude/settings.json or .cursor/hooks.json in this folder]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Call the service directly, without waiting for people: only Claude Code, which reads the key
    /// from the variable `AGENT_AUTHORITY_TOKEN`
    #[arg(long)]
    http: bool,
}

impl Installed {
    pub(super) fn file(&self) -> PathBuf {
        let default = match self.client {
            Client::ClaudeCode => ".claude/settings.json",
            Client::Cursor => ".cursor/hooks.json",
        };
        self.file.clone().unwrap_or_else(|| default.into())
    }

    /// The hook, as the settings have it.
    pub(super) fn handler(&self) -> Result<Value, Failure> {
        let command = || self.command();
        Ok(match (self.client, self.http) {
            (Client::ClaudeCode, false) => json!({
                "type": "command", "command": command()?, "timeout": self.guard.timeout,
                "onFailure": "block",
            }),
            (Client::ClaudeCode, true) => json!({
                "type": "http", "url": self.address()?,
                "headers": {"Authorization": format!("Bearer ${VARIABLE}")},
                "allowedEnvVars": [VARIABLE], "timeout": HTTP_TIMEOUT, "onFailure": "block",
            }),
            (Client::Cursor, false) => json!({
                "command": command()?, "timeout": self.guard.timeout, "failClosed": true,
            }),
            (Client::Cursor, true) => {
                return Err(Failure::usage("--http: Cursor has no HTTP hooks; leave it out"));
            }
        })
    }

    /// The address of the operation.
    pub(super) fn address(&self) -> Result<String, Failure> {
        let base = Base::Named(self.guard.url.clone());
        let client = authority_client::Client::new(base, "").map_err(Failure::new)?;
        let query = json!({
            "purpose": self.guard.purpose, "wrapped_servers": self.guard.wrapped_servers,
        });
        let url = client.url(&["v1", "hooks", self.client.word()], &query);
        Ok(url.map_err(Failure::new)?.to_string())
    }

    pub(super) fn command(&self) -> Result<String, Failure> {
        let guard = &self.guard;
        let program = env::current_exe().map_err(Failure::new)?;
        let key_file = absolute(&guard.key_file).map_err(Failure::new)?.display().to_string();
        let mut words =
            vec![program.display().to_string(), "hook".to_owned(), self.client.word().to_owned()];
        let timeout = guard.timeout.to_string();
        for (flag, value) in [
            ("--url", guard.url.as_str()),
            ("--key-file", key_file.as_str()),
            ("--agent", &*guard.agent),
            ("--purpose", guard.purpose.as_str()),
            ("--timeout", timeout.as_str()),
        ] {
            words.extend([flag.to_owned(), value.to_owned()]);
        }
        for server in &guard.wrapped_servers {
            words.extend(["--wrapped-server".to_owned(), server.clone()]);
        }
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        Ok(words.join(" "))
    }
}

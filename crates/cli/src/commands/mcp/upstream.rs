//! The command that starts an MCP server.

use std::path::Path;

use crate::mcp::{Introduction, Server, introduce};

use crate::outcome::Failure;

/// The credential of this command, which the server must not get.
const CREDENTIAL: &str = "AGENT_AUTHORITY_TOKEN";

/// Starts the server. It gets the environment of this command, without the credential.
pub(super) fn start(command: &[String]) -> Result<Server, Failure> {
    let started = Server::start(command, &[CREDENTIAL]);
    started.map_err(|why| Failure::new(format!("`{}` does not start: {why}", command.join(" "))))
}

/// Starts the server, and asks it for its instructions and tools.
pub(super) async fn introduced(command: &[String]) -> Result<Introduction, Failure> {
    introduce(start(command)?).await.map_err(|why| Failure::new(format!("the MCP server: {why}")))
}

/// Returns a warning if the command may run another version tomorrow.
pub(super) fn unfixed(command: &[String]) -> Option<String> {
    let program = Path::new(command.first()?).file_name()?.to_str()?;
    let arguments = command.iter().skip(1).filter(|word| !word.starts_with('-'));
    let mut arguments =
        arguments.filter(|word| !matches!(word.as_str(), "dlx" | "exec" | "run" | "x"));
    let package = match program {
        "npx" | "bunx" | "pnpx" | "pnpm" | "uvx" | "pipx" => arguments.next()?,
        "docker" | "podman" => {
            command.iter().find(|word| word.contains('/') && !word.starts_with('-'))?
        }
        _ => return None,
    };
    (!has_version(package)).then(|| {
        format!("`{package}` has no fixed version: its tools can change with each start, and are then denied")
    })
}

/// Whether a package is named with its version: `pkg@1.2.3`, `pkg==1.2.3`, `image@sha256:…`.
fn has_version(package: &str) -> bool {
    let digit = |version: &str| version.starts_with(|c: char| c.is_ascii_digit());
    let npm = package.get(1..).and_then(|rest| rest.rsplit_once('@'));
    npm.is_some_and(|(_, version)| digit(version) || version.starts_with("sha256:"))
        || package.split_once("==").is_some_and(|(_, version)| digit(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_a_fixed_version_is_noticed() {
        let warns = |typed: &str| {
            let words: Vec<_> = typed.split(' ').map(str::to_owned).collect();
            unfixed(&words).is_some()
        };
        for typed in [
            "npx -y @modelcontextprotocol/server-everything",
            "npx -y server@latest",
            "uvx mcp-server-git",
            "pnpm dlx server",
            "docker run -i example/server",
        ] {
            assert!(warns(typed), "{typed}");
        }
        for typed in [
            "npx -y @modelcontextprotocol/server-everything@2026.8.31",
            "uvx mcp-server-git==1.0.1",
            "uvx mcp-server-git@1.0.1",
            "docker run -i example/server@sha256:00",
            "/usr/bin/my-server --stdio",
            "node server.js",
        ] {
            assert!(!warns(typed), "{typed}");
        }
    }
}

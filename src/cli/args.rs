//! The command line's arguments.

use std::{net::SocketAddr, path::PathBuf};

use authority_cli::{
    Archive, Confirm, Hook, Hooks, LoginArgs, LogoutArgs, Remote, Replay, ServerArgs, TokenRequest,
    Verify, View,
};
use authority_config::Sources;
use authority_ids::PrincipalRef;
use clap::{Parser, Subcommand};
use clap_complete::Shell;

use super::listen::Listen;

const SECOND_SERVER: &str = "A second server on this machine needs its own --data-dir and --listen, and its own \
                             address for metrics: AGENT_AUTHORITY__LISTEN__OPS=127.0.0.1:9465";

/// Decides whether an AI agent's action is permitted, explains why, and proves it.
#[derive(Debug, Parser)]
#[command(name = "agent-authority", version, propagate_version = true)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// Address for gRPC, gRPC-web and REST [default: 127.0.0.1:8080]
    #[arg(long, global = true, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Folder of the service's own Postgres and development keys [default: .agent-authority; of
    /// `dev`: a folder of the user]
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Settings in TOML
    #[arg(long, global = true, value_name = "FILE", env = "AGENT_AUTHORITY_CONFIG")]
    config: Option<PathBuf>,
    /// Refuse the development defaults: needs issuer, key ring, database and public URL
    #[arg(long, global = true)]
    production: bool,
    /// Print JSON, for scripts
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Show times in UTC [default: in the zone of this machine]
    #[arg(long, global = true)]
    utc: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the service (also without any command)
    Serve,
    /// Run a development server, by default with its data in the user's data folder
    #[command(after_help = SECOND_SERVER)]
    Dev,
    /// Print a JWT of the development identity provider
    #[command(subcommand)]
    Token(TokenRequest),
    /// Create an API key
    #[command(subcommand)]
    ApiKey(ApiKey),
    /// Run the pending database migrations
    Migrate,
    /// Remove a development server's database, keys, logs and archive, to start afresh
    Reset(Confirm),
    /// Seed the database with records
    #[command(subcommand)]
    Seed(Seed),
    /// Log in to a service, or to the development server as a demonstration user
    Login(LoginArgs),
    /// Forget a login
    Logout(LogoutArgs),
    /// Show the service that commands call, and the current login
    Whoami(ServerArgs),
    #[command(flatten)]
    Remote(Box<Remote>),
    /// Receive webhook deliveries on this machine, verify them and print them
    Listen(Listen),
    /// Decide a tool call of a coding agent, which runs this as its hook; waits while people decide
    Hook(Box<Hook>),
    /// Install the hook of a coding agent, and test it
    #[command(subcommand)]
    Hooks(Box<Hooks>),
    /// Look up keys, or encrypt the stored secrets again
    #[command(subcommand)]
    Keys(Keys),
    /// Verify an evidence file or an export of decisions, offline
    Verify(Verify),
    /// Decide again on the facts in an evidence bundle, offline
    Replay(Replay),
    /// Verify, read and list archived months of decisions, offline
    #[command(subcommand)]
    Archive(Archive),
    /// Print the `OpenAPI` 3.1 document
    Openapi,
    /// Check whether a running service is ready
    Healthcheck,
    /// Check the settings
    Config {
        /// Print the effective settings, secrets masked
        #[arg(long)]
        print: bool,
        /// Also print settings without a value
        #[arg(long, requires = "print")]
        all: bool,
    },
    /// Print a completion script for a shell
    Completions { shell: Shell },
    /// Print the manual page, for packages
    #[command(hide = true)]
    Man,
}

#[derive(Debug, Subcommand)]
pub(super) enum ApiKey {
    /// Create a key and print it, once
    Create(ApiKeyRequest),
}

#[derive(Debug, clap::Args)]
pub(super) struct ApiKeyRequest {
    /// The tenant's slug or id
    #[arg(long)]
    pub(super) tenant: String,
    /// A scope of the key (`runtime:write`); repeat it, or separate scopes by commas
    #[arg(long = "scope", required = true, value_delimiter = ',')]
    pub(super) scopes: Vec<String>,
    /// An agent that the key may act for, by its id; repeat it [default: all of the tenant's]
    #[arg(long = "principal", value_name = "ID")]
    pub(super) principal_ids: Vec<PrincipalRef>,
    /// A name for the key
    #[arg(long, default_value = "made on the command line")]
    pub(super) label: String,
}

#[derive(Debug, Subcommand)]
pub(super) enum Seed {
    /// The tenant `acme` with its agents, people, policies and tools
    Demo,
}

#[derive(Debug, Subcommand)]
pub(super) enum Keys {
    #[command(flatten)]
    Remote(authority_cli::Keys),
    /// Encrypt every stored secret again under the key ring's first key
    Rewrap,
}

impl Args {
    /// The format of the output.
    pub(super) fn view(&self) -> View {
        View { json: self.json, utc: self.utc }
    }

    /// The sources of settings: flags override the environment, which overrides the file.
    pub(super) fn sources(&self) -> Sources {
        let mut flags = Vec::new();
        // The command `listen` uses `--listen` for its own address.
        let receives = matches!(self.command, Some(Command::Listen(_)));
        if let Some(listen) = self.listen.filter(|_| !receives) {
            flags.push(("listen.main", listen.to_string()));
        }
        if let Some(folder) = &self.data_dir {
            flags.push(("data_dir", folder.display().to_string()));
        }
        if self.production {
            flags.push(("environment", "production".to_owned()));
        }
        Sources { file: self.config.clone(), flags, ..Sources::process() }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_commands_fit_together() {
        Args::command().debug_assert();
    }

    #[test]
    fn keys_are_read_and_rewrapped() {
        for typed in ["x keys rewrap --data-dir /d", "x --data-dir /d keys rewrap"] {
            let args = Args::try_parse_from(typed.split(' ')).unwrap();
            assert!(matches!(args.command, Some(Command::Keys(Keys::Rewrap))));
            assert_eq!(args.data_dir, Some(PathBuf::from("/d")), "{typed}");
        }
        let args = Args::try_parse_from(["x", "keys", "list"]).unwrap();
        assert!(matches!(args.command, Some(Command::Keys(Keys::Remote(_)))));
        // `keys rewrap` works on the database, not through a service.
        assert!(
            Args::try_parse_from(["x", "keys", "rewrap", "--url", "https://a.example"]).is_err()
        );
    }

    #[test]
    fn no_command_means_serve_and_flags_go_anywhere() {
        let parse = |typed: &str| Args::try_parse_from(typed.split(' '));
        assert!(parse("x").unwrap().command.is_none());
        let args = parse("x api-key create --tenant acme --scope a,b --scope c --json").unwrap();
        assert!(args.json);
        let Some(Command::ApiKey(ApiKey::Create(request))) = args.command else { panic!() };
        assert_eq!(request.scopes, ["a", "b", "c"]);
        assert!(parse("x token tenant --tenant acme --role approver --listen 127.0.0.1:1").is_ok());
        assert!(parse("x token tenant --tenant acme").is_err());
        // A tenant's member is never the owner, and an unknown role is a typing error.
        for role in ["owner", "Owner", "admn", ""] {
            assert!(
                parse(&format!("x token tenant --tenant acme --role={role}")).is_err(),
                "{role}"
            );
        }
        assert!(parse("x api-key create --tenant acme").is_err());
    }
}

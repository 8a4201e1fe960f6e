//! The command line: its arguments and commands.
//!
//! Commands act through [`Actions`]. This module depends only on that part of the service.

mod archive;
mod args;
pub(crate) mod banner;
mod confirm;
mod health;
mod http;
mod listen;
mod login;
mod outcome;
mod paint;
mod remote;
mod settings;
mod text;
mod verify;
mod view;

use std::process::ExitCode;

use agent_authority::telemetry;
use authority_core::config::{self, Config};
use clap::{CommandFactory, Parser};
use tokio::runtime::Runtime;

use args::{ApiKey, Args, Command, Keys, Seed};
pub(crate) use args::{ApiKeyRequest, TokenRequest, tenant_id};
use confirm::Confirm;
pub(crate) use outcome::Failure;
use outcome::{CommandOutput, print};
use remote::Connector;

/// The operations of the service that commands use. The configuration is loaded and valid.
pub(crate) trait Actions {
    /// Checks the objects that the settings refer to: the key ring, the database's address.
    fn check(&self, config: &Config) -> Result<(), Failure>;
    /// Runs until SIGTERM.
    async fn serve(&self, config: Config) -> Result<(), Failure>;
    /// Returns a JWT of the development identity provider.
    async fn token(&self, config: Config, request: TokenRequest) -> Result<String, Failure>;
    /// Returns a new API key, which is not shown again.
    async fn api_key(&self, config: Config, request: ApiKeyRequest) -> Result<String, Failure>;
    /// Encrypts the stored secrets again under the key ring's first key, and returns their number.
    async fn rewrap(&self, config: Config) -> Result<usize, Failure>;
    /// Runs the pending migrations, and returns their names.
    async fn migrate(&self, config: Config) -> Result<Vec<String>, Failure>;
    /// Removes a development server's database, keys, logs and archive, and returns the removed
    /// paths.
    async fn reset(&self, config: Config) -> Result<Vec<String>, Failure>;
    /// Creates the demo tenant, and returns instructions for people.
    async fn seed_demo(&self, config: Config) -> Result<String, Failure>;
    /// Returns the `OpenAPI` 3.1 document.
    fn openapi(&self) -> String;
}

/// Runs the command; the exit code is 0, 1 for a failure, 2 for wrong usage or settings.
pub(crate) fn run(actions: &impl Actions) -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Printing fails if the terminal is gone. The error is then lost.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let json = args.json;
    print(perform(actions, args), json)
}

fn perform(actions: &impl Actions, args: Args) -> Result<CommandOutput, Failure> {
    match &args.command {
        Some(Command::Openapi) => return Ok(CommandOutput::whole(actions.openapi())),
        Some(Command::Verify(verify)) => return verify.run(),
        Some(Command::Replay(replay)) => return replay.run(),
        Some(Command::Archive(archive)) => return runtime()?.block_on(archive.run()),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "agent-authority", &mut script);
            return Ok(CommandOutput::whole(String::from_utf8_lossy(&script)));
        }
        _ => {}
    }
    let sources = args.sources();
    let connector = Connector { actions, sources: &sources, view: args.view() };
    let command = match args.command.unwrap_or(Command::Serve) {
        Command::Remote(command) => return runtime()?.block_on(command.run(&connector)),
        Command::Keys(Keys::Remote(command)) => {
            return runtime()?.block_on(command.run(&connector));
        }
        Command::Login(login) => return runtime()?.block_on(login.run(&connector)),
        Command::Logout(logout) => return runtime()?.block_on(logout.run(&connector)),
        Command::Whoami(server) => {
            return Ok(runtime()?.block_on(connector.connect(server))?.whoami());
        }
        Command::Listen(listen) => return runtime()?.block_on(listen.run(&sources, args.json)),
        command => command,
    };
    let config = Config::load(&sources)?;
    if let Command::Config { print, all } = command {
        let aside = settings::readable_secrets(&sources)?.unwrap_or_default();
        return Ok(CommandOutput { aside, ..shown(actions, &config, print, all)? });
    }
    if !matches!(command, Command::Healthcheck) {
        config.validate()?;
    }
    let filter = match command {
        Command::Serve => "info",
        _ => "warn",
    };
    let traces = matches!(command, Command::Serve).then_some(&config.traces);
    let runtime = runtime()?;
    let entered = runtime.enter();
    telemetry::log(&config.logs, traces, filter).map_err(Failure::usage)?;
    drop(entered);
    let done = runtime.block_on(act(actions, command, config));
    telemetry::traces::flush();
    done
}

fn runtime() -> Result<Runtime, Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // A large stack takes address space, not memory. Decisions then never need to allocate a
    // further stack.
    runtime.thread_stack_size(16 * 1024 * 1024);
    runtime.enable_all().build().map_err(Failure::new)
}

async fn act(
    actions: &impl Actions,
    command: Command,
    config: Config,
) -> Result<CommandOutput, Failure> {
    Ok(match command {
        Command::Serve => {
            actions.serve(config).await?;
            CommandOutput::nothing()
        }
        Command::Token(request) => {
            CommandOutput::named("token", actions.token(config, request).await?)
        }
        Command::ApiKey(ApiKey::Create(request)) => {
            CommandOutput::named("api_key", actions.api_key(config, request).await?)
        }
        Command::Migrate => migrated(&actions.migrate(config).await?),
        Command::Reset(confirm) => reset(actions, config, confirm).await?,
        Command::Seed(Seed::Demo) => CommandOutput::named("demo", actions.seed_demo(config).await?),
        Command::Keys(Keys::Rewrap) => rewrapped(actions.rewrap(config).await?),
        Command::Healthcheck => {
            CommandOutput::named("status", health::check(config.listen.main).await?)
        }
        Command::Openapi
        | Command::Remote(_)
        | Command::Listen(_)
        | Command::Login(_)
        | Command::Logout(_)
        | Command::Whoami(_)
        | Command::Keys(Keys::Remote(_))
        | Command::Verify(_)
        | Command::Replay(_)
        | Command::Archive(_)
        | Command::Completions { .. }
        | Command::Config { .. } => CommandOutput::nothing(),
    })
}

fn migrated(names: &[String]) -> CommandOutput {
    let text = match names {
        [] => "the database is up to date".to_owned(),
        [one] => format!("1 migration was run: {one}"),
        [.., last] => format!("{} migrations were run, the last is {last}", names.len()),
    };
    CommandOutput { text, ..CommandOutput::list("migrations", names) }
}

fn rewrapped(count: usize) -> CommandOutput {
    let text = match count {
        0 => {
            "every secret is already encrypted under the key ring's first key, and can be decrypted"
                .to_owned()
        }
        1 => "1 secret was encrypted again under the key ring's first key".to_owned(),
        more => format!("{more} secrets were encrypted again under the key ring's first key"),
    };
    CommandOutput { text, ..CommandOutput::named("rewrapped", count.to_string()) }
}

/// Removes the development server's data, after a confirmation.
async fn reset(
    actions: &impl Actions,
    config: Config,
    confirm: Confirm,
) -> Result<CommandOutput, Failure> {
    let folder = config.data_dir.display().to_string();
    let shown = format!(
        "This removes the development server's database, keys, logs and archive in `{folder}`, for \
         good: tenants, decisions, evidence, API keys."
    );
    confirm.type_name(&shown, "remove them", &folder)?;
    let removed = actions.reset(config).await?;
    let mut output = CommandOutput::list("removed", &removed);
    if removed.is_empty() {
        output.aside = format!("no development server data in `{folder}`");
    }
    Ok(output)
}

/// Prints the effective configuration, even if it is invalid; the command then fails.
fn shown(
    actions: &impl Actions,
    config: &Config,
    print: bool,
    all: bool,
) -> Result<CommandOutput, Failure> {
    if !print {
        config.validate()?;
        actions.check(config)?;
        return Ok(CommandOutput::named("config", "sound"));
    }
    let text = settings::text(config, all)?;
    let json = serde_json::to_string(config).map_err(Failure::new)?;
    Ok(CommandOutput { text, json: Some(json), ..CommandOutput::default() })
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        Self::usage(error)
    }
}

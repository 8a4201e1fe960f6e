//! The command line: its arguments, and the commands of the server itself.
//!
//! The commands that call a service, or verify evidence offline, are in `crates/cli`.

mod args;
mod banner;
mod data_home;
mod listen;
mod manual;
mod service;
mod settings;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use agent_authority::telemetry;
use authority_cli::{
    CommandOutput, Confirm, Connector, Failure, health, print, runtime, with_huge_pages,
};
use authority_config::Config;
use clap::{CommandFactory, Parser};
use futures_util::FutureExt;

use args::{ApiKey, Args, Command, Keys, Seed};

/// Runs the command; the exit code is 0, 1 for a failure, 2 for wrong usage or settings.
pub(crate) fn run() -> ExitCode {
    // Only the server needs much memory.
    let args = match with_huge_pages(false, Args::try_parse) {
        Ok(args) => args,
        Err(error) => {
            // Printing fails if the terminal is gone. The error is then lost.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if let Some(Command::Hook(hook)) = args.command {
        return hook.run();
    }
    let json = args.json;
    print(perform(args), json)
}

fn perform(args: Args) -> Result<CommandOutput, Failure> {
    match &args.command {
        Some(Command::Openapi) => return Ok(CommandOutput::whole(service::openapi())),
        Some(Command::Verify(verify)) => return verify.run(),
        Some(Command::Replay(replay)) => return replay.run(),
        Some(Command::Archive(archive)) => return runtime()?.block_on(archive.run()),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "agent-authority", &mut script);
            return Ok(CommandOutput::whole(String::from_utf8_lossy(&script)));
        }
        Some(Command::Man) => return Ok(CommandOutput::whole(manual::page(Args::command()))),
        _ => {}
    }
    let sources = args.sources();
    let issue = |config: Config, request| {
        async move {
            // The database is needed only for the token. Its log would be a distraction.
            telemetry::log(&config.logs, None, "error").map_err(Failure::usage)?;
            Box::pin(service::token(config, request)).await
        }
        .boxed_local()
    };
    let connector = Connector { issue: &issue, sources: &sources, view: args.view() };
    let command = match args.command.unwrap_or(Command::Serve) {
        Command::Remote(command) => {
            return command.runtime()?.block_on(command.run(&connector));
        }
        Command::Keys(Keys::Remote(command)) => {
            return runtime()?.block_on(command.run(&connector));
        }
        Command::Login(login) => return runtime()?.block_on(login.run(&connector)),
        Command::Logout(logout) => return runtime()?.block_on(logout.run(&connector)),
        Command::Hooks(command) => return command.run(),
        Command::Whoami(server) => {
            return Ok(runtime()?.block_on(connector.connect(server))?.whoami());
        }
        Command::Listen(listen) => return runtime()?.block_on(listen.run(&sources, args.json)),
        command => command,
    };
    let mut config = Config::load(&sources)?;
    if matches!(command, Command::Dev) {
        if config.production() {
            return Err(Failure::usage(
                "`dev` runs a development server; use `serve` for production",
            ));
        }
        data_home::apply(&mut config, &sources)?;
    }
    if let Command::Config { print, all } = command {
        let aside = settings::readable_secrets(&sources)?.unwrap_or_default();
        return Ok(CommandOutput { aside, ..shown(&config, print, all)? });
    }
    if !matches!(command, Command::Healthcheck) {
        config.validate()?;
    }
    let filter = match command {
        Command::Serve | Command::Dev => "info",
        _ => "warn",
    };
    let traces = matches!(command, Command::Serve | Command::Dev).then_some(&config.traces);
    let runtime = runtime()?;
    let entered = runtime.enter();
    telemetry::log(&config.logs, traces, filter).map_err(Failure::usage)?;
    drop(entered);
    let done = runtime.block_on(act(command, config));
    telemetry::traces::flush();
    done
}

async fn act(command: Command, config: Config) -> Result<CommandOutput, Failure> {
    Ok(match command {
        Command::Serve | Command::Dev => {
            service::serve(&config).await?;
            CommandOutput::nothing()
        }
        Command::Token(request) => {
            CommandOutput::named("token", Box::pin(service::token(config, request)).await?)
        }
        Command::ApiKey(ApiKey::Create(request)) => {
            CommandOutput::named("api_key", Box::pin(service::api_key(config, request)).await?)
        }
        Command::Migrate => migrated(&service::migrate(&config).await?),
        Command::Reset(confirm) => reset(&config, confirm).await?,
        Command::Seed(Seed::Demo) => {
            CommandOutput::named("demo", Box::pin(service::seed_demo(config)).await?)
        }
        Command::Keys(Keys::Rewrap) => rewrapped(Box::pin(service::rewrap(config)).await?),
        Command::Healthcheck => CommandOutput::named("status", health::check(&config).await?),
        Command::Openapi
        | Command::Hook(_)
        | Command::Hooks(_)
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
        | Command::Man
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
async fn reset(config: &Config, confirm: Confirm) -> Result<CommandOutput, Failure> {
    let folder = config.data_dir.display().to_string();
    let shown = format!(
        "This removes the development server's database, keys, logs and archive in `{folder}`, for \
         good: tenants, decisions, evidence, API keys."
    );
    confirm.type_name(&shown, "remove them", &folder)?;
    let removed = service::reset(config).await?;
    let mut output = CommandOutput::list("removed", &removed);
    if removed.is_empty() {
        output.aside = format!("no development server data in `{folder}`");
    }
    Ok(output)
}

/// Prints the effective configuration, even if it is invalid; the command then fails.
fn shown(config: &Config, print: bool, all: bool) -> Result<CommandOutput, Failure> {
    if !print {
        config.validate()?;
        service::check(config)?;
        return Ok(CommandOutput::named("config", "sound"));
    }
    let text = settings::text(config, all)?;
    let json = serde_json::to_string(config).map_err(Failure::new)?;
    Ok(CommandOutput { text, json: Some(json), ..CommandOutput::default() })
}

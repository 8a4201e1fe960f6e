//! `hooks`: installs the hook of a coding agent, and tests it.

mod doors;
mod installed;
mod settings;

use std::{
    fs,
    path::{Path, PathBuf},
};

use authority_process::clock::Clock;
use clap::{Args, Subcommand};

use crate::{
    confirm::Confirm,
    outcome::{CommandOutput, Failure},
    runtime::runtime,
};

use installed::Installed;
use settings::Settings;

#[derive(Debug, Subcommand)]
pub enum Hooks {
    /// Write the hook into a coding agent's settings: shows the change, asks, keeps the old file
    Install(Install),
    /// Check that no failure lets a call pass, on the service and in the settings; decides one call
    Test(Installed),
}

#[derive(Debug, Args)]
pub struct Install {
    #[command(flatten)]
    hook: Installed,
    #[command(flatten)]
    confirm: Confirm,
}

impl Hooks {
    pub fn run(self) -> Result<CommandOutput, Failure> {
        match self {
            Self::Install(install) => install.run(),
            Self::Test(hook) => runtime()?.block_on(doors::test(&hook)),
        }
    }
}

impl Install {
    fn run(self) -> Result<CommandOutput, Failure> {
        let Self { hook, confirm } = self;
        hook.guard.key()?;
        let file = hook.file();
        let before = Settings::read(hook.client, &file)?;
        let handler = hook.handler()?;
        let after = before.with(&handler)?;
        let shown = file.display().to_string();
        if after == before {
            return Ok(CommandOutput::whole(format!("{shown} has this hook already")));
        }
        let removed = before.own()?;
        let removed: Vec<_> = removed.iter().map(|own| format!("\n- {own:#}")).collect();
        let change =
            format!("The hook in {shown}, for every tool:{}\n+ {handler:#}", removed.concat());
        confirm.agree(&change, "Write it?")?;
        let kept = keep(&file)?;
        after.write(&file)?;
        let kept =
            kept.map_or(String::new(), |kept| format!("; the old file is {}", kept.display()));
        Ok(CommandOutput::whole(format!("{shown} has the hook{kept}")))
    }
}

/// Copies a file that is about to change, if it exists. Returns the copy.
fn keep(file: &Path) -> Result<Option<PathBuf>, Failure> {
    if !file.exists() {
        return Ok(None);
    }
    let at = Clock::default().now().format("%Y%m%dT%H%M%S%.3f");
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".before-{at}"));
    let copy = PathBuf::from(name);
    fs::copy(file, &copy).map_err(|error| Failure::new(format!("{}: {error}", copy.display())))?;
    Ok(Some(copy))
}

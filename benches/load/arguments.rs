//! The options of `script/bench`.

use std::{path::PathBuf, time::Duration};

use clap::{Parser, Subcommand, ValueEnum};

/// Measures decisions per second, latency, CPU and memory.
#[derive(Parser)]
#[command(name = "script/bench")]
pub(crate) struct Arguments {
    /// Measured seconds for each row, at full and again at half load.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// The parts to measure. `lists` is not a default: it takes a quarter of an hour and 12 GB.
    #[arg(long = "only", value_delimiter = ',', default_values = ["engine", "ceiling", "product", "events", "sealing", "archive", "reality", "overload", "cerbos"])]
    pub(crate) parts: Vec<Part>,
    /// The number of decisions that `--only lists` creates.
    #[arg(long, default_value_t = 8_000_000)]
    pub(crate) decisions: u64,
    /// The Cerbos program. Without it, the rows for Cerbos are left out.
    #[arg(long)]
    pub(crate) cerbos: Option<PathBuf>,
    /// The program of another build. The bench only compares this build with it, in alternating
    /// rounds.
    #[arg(long)]
    pub(crate) guard: Option<PathBuf>,
    /// A file to which the table is also written.
    #[arg(long)]
    pub(crate) markdown: Option<PathBuf>,
    /// The folder of the servers' data. It should be on a disk, to include fsync in the
    /// measurement.
    #[arg(long, default_value = "/var/tmp")]
    pub(crate) folder: PathBuf,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Arguments {
    pub(crate) fn measured(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serves the ceiling. The bench itself starts this command.
    #[command(hide = true)]
    Ceiling { port: u16 },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Part {
    Engine,
    Ceiling,
    Product,
    Events,
    Sealing,
    Archive,
    Reality,
    Overload,
    Lists,
    Cerbos,
}

impl Part {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Ceiling => "ceiling",
            Self::Product => "Agent Authority",
            Self::Events => "events",
            Self::Sealing => "sealing",
            Self::Archive => "archive",
            Self::Reality => "reality",
            Self::Overload => "overload",
            Self::Lists => "lists",
            Self::Cerbos => "Cerbos",
        }
    }
}

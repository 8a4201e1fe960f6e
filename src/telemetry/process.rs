//! Metrics of the process and of the build. The process metrics have the names that Prometheus'
//! client libraries use.

use std::{fmt::Write, fs};

use nix::sys::{
    resource::{Resource, UsageWho, getrlimit, getrusage},
    time::TimeValLike,
};

/// Renders the families in Prometheus' text format. Values that this system does not provide are
/// left out.
pub(super) fn render(started: f64) -> String {
    let mut text = String::new();
    family(
        &mut text,
        "process_start_time_seconds",
        "gauge",
        "Start of the process, as Unix time in seconds.",
        Some(started),
    );
    let cpu = getrusage(UsageWho::RUSAGE_SELF).ok();
    let cpu = cpu.map(|usage| {
        seconds(usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
    });
    family(
        &mut text,
        "process_cpu_seconds_total",
        "counter",
        "User and system CPU time, in seconds.",
        cpu,
    );
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name| kibibytes(&status, name).map(|kibibytes| number(kibibytes * 1024));
    family(
        &mut text,
        "process_resident_memory_bytes",
        "gauge",
        "Resident memory in bytes; without the embedded database.",
        bytes("VmRSS:"),
    );
    family(
        &mut text,
        "process_virtual_memory_bytes",
        "gauge",
        "Virtual memory in bytes.",
        bytes("VmSize:"),
    );
    let open = fs::read_dir("/proc/self/fd").ok().map(|files| number(files.count() as u64));
    family(&mut text, "process_open_fds", "gauge", "Open file descriptors.", open);
    let most = getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| number(soft));
    family(
        &mut text,
        "process_max_fds",
        "gauge",
        "The most file descriptors that may be open.",
        most,
    );
    let build = "authority_build_info";
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "# HELP {build} The version of this service; always 1.\n# TYPE {build} gauge\n\
         {build}{{version=\"{}\"}} 1",
        env!("CARGO_PKG_VERSION")
    );
    text
}

fn family(text: &mut String, name: &str, kind: &str, help: &str, value: Option<f64>) {
    let Some(value) = value else { return };
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}

/// Parses a line such as `VmRSS:   12345 kB`.
fn kibibytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn seconds(micros: i64) -> f64 {
    number(micros.unsigned_abs()) / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "bytes, files and microseconds below 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}

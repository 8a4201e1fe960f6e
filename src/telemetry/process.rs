//! Metrics of the process and of the build. The process metrics have the names that Prometheus'
//! client libraries use.

use std::fs;

use nix::sys::{
    resource::{Resource, UsageWho, getrlimit, getrusage},
    time::TimeValLike,
};

use super::snapshot::{Family, Series, Value};

/// Returns the families. Values that this system does not provide are left out.
pub(super) fn families(started: f64) -> Vec<Family> {
    let cpu = getrusage(UsageWho::RUSAGE_SELF).ok();
    let cpu = cpu.map(|usage| {
        seconds(usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
    });
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name| kibibytes(&status, name).map(|kibibytes| number(kibibytes * 1024));
    let open = fs::read_dir("/proc/self/fd").ok().map(|files| number(files.count() as u64));
    let most = getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| number(soft));
    let gauge = |name, help, value: Option<f64>| Some(Family::of(name, help, Value::Gauge(value?)));
    let families = [
        gauge(
            "process_start_time_seconds",
            "Start of the process, as Unix time in seconds.",
            Some(started),
        ),
        cpu.map(|cpu| {
            let help = "User and system CPU time, in seconds.";
            Family::of("process_cpu_seconds_total", help, Value::Total(cpu))
        }),
        gauge(
            "process_resident_memory_bytes",
            "Resident memory in bytes; without the embedded database.",
            bytes("VmRSS:"),
        ),
        gauge("process_virtual_memory_bytes", "Virtual memory in bytes.", bytes("VmSize:")),
        gauge("process_open_fds", "Open file descriptors.", open),
        gauge("process_max_fds", "The most file descriptors that may be open.", most),
        Some(build()),
    ];
    families.into_iter().flatten().collect()
}

fn build() -> Family {
    let labels = vec![("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
    Family {
        name: "authority_build_info".to_owned(),
        help: "The version of this service; always 1.",
        series: vec![Series { labels, value: Value::Gauge(1.0) }],
    }
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

//! Reports tests that can't show anything on this machine.
//!
//! Such a test must not look as if it had passed. If a program that `script/features` installs is
//! missing, the test fails. If the machine forbids the test's actions, the test prints this and
//! passes.

use std::{fs, io::Write, path::Path, process::Command};

use nix::unistd::geteuid;

/// If set to 1, a test passes even if a program that it requires is missing.
const ALLOWED: &str = "AUTHORITY_ALLOW_NOT_SHOWN";
/// The number of the bit for `CAP_SYS_ADMIN` in the kernel's masks. Mounts and namespaces require
/// it.
const ADMINISTERS: u32 = 21;

/// Reports that the machine lacks a program that `script/features` installs.
///
/// # Panics
/// Panics unless `AUTHORITY_ALLOW_NOT_SHOWN` is 1.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "only tests read it")]
pub(crate) fn not_shown(reason: &str) {
    say(reason);
    let is_allowed = std::env::var(ALLOWED).is_ok_and(|text| text == "1");
    assert!(is_allowed, "NOT SHOWN: {reason}; {ALLOWED}=1 lets it pass");
}

/// Reports that the machine forbids the test's actions. `reason` states exactly which actions.
pub(crate) fn forbidden(reason: &str) {
    say(reason);
}

/// Returns why this process can't use mounts and network namespaces, or `None` if it can.
pub(crate) fn hindrance() -> Option<String> {
    if let Some(reason) = not_root() {
        return Some(reason.to_owned());
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if mask.is_none_or(|mask| mask >> ADMINISTERS & 1 == 0) {
        return Some("this root has no CAP_SYS_ADMIN, as in an unprivileged container".to_owned());
    }
    let tried = Command::new("unshare").args(["--net", "--mount", "true"]).output().unwrap();
    let told = String::from_utf8_lossy(&tried.stderr);
    (!tried.status.success()).then(|| format!("the kernel refuses namespaces: {}", told.trim()))
}

/// Returns why a test that needs root can't run, or `None` if it can.
pub(crate) fn not_root() -> Option<&'static str> {
    (!geteuid().is_root()).then_some("only root can do this, and the tests do not run as root")
}

/// Also writes the reason to a file, which `script/test` prints, because the output of a test that
/// passed is hidden.
#[track_caller]
fn say(reason: &str) {
    let thread = std::thread::current();
    let line = format!("NOT SHOWN: {reason} ({})", thread.name().unwrap_or("a test"));
    println!("{line}");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("not-shown");
    let file = fs::File::options().create(true).append(true).open(file);
    writeln!(file.unwrap(), "{line}").unwrap();
}

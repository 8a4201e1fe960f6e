//! What a test says that cannot show here what it is for.
//!
//! It must not pass as if it had: without the programs that `script/features` installs it fails. What a machine
//! forbids, it cannot be given: that is printed, and passes.

use std::{fs, io::Write, path::Path, process::Command};

use nix::unistd::geteuid;

/// Set to 1, a test passes on a machine that lacks what it needs.
const ALLOWED: &str = "AUTHORITY_ALLOW_NOT_SHOWN";
/// The bit of `CAP_SYS_ADMIN` in the kernel's masks, which mounts and namespaces need.
const ADMINISTERS: u32 = 21;

/// The machine lacks something that `script/features` installs.
///
/// # Panics
/// Unless `AUTHORITY_ALLOW_NOT_SHOWN` is 1.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "of the tests alone")]
pub(crate) fn not_shown(reason: &str) {
    say(reason);
    let is_allowed = std::env::var(ALLOWED).is_ok_and(|text| text == "1");
    assert!(is_allowed, "NOT SHOWN: {reason}; {ALLOWED}=1 lets it pass");
}

/// The machine forbids what the test does; `reason` is exactly what.
pub(crate) fn forbidden(reason: &str) {
    say(reason);
}

/// Why this process may not use mounts and network namespaces, if so.
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

/// Why what only root can do is not shown.
pub(crate) fn not_root() -> Option<&'static str> {
    (!geteuid().is_root()).then_some("only root can do this, and the tests do not run as root")
}

/// Also to a file, since the output of a test that passes is not shown: `script/test` prints it.
#[track_caller]
fn say(reason: &str) {
    let thread = std::thread::current();
    let line = format!("NOT SHOWN: {reason} ({})", thread.name().unwrap_or("a test"));
    println!("{line}");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("not-shown");
    let file = fs::File::options().create(true).append(true).open(file);
    writeln!(file.unwrap(), "{line}").unwrap();
}

//! The server's process: checks whether it is ready and whether a pid belongs to it, and stops it.

use std::{
    ffi::OsStr,
    fs,
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, fs::MetadataExt, net::UnixStream, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::place::{Other, ServerFolder};

/// Builds a command for a Postgres program, run as `user`.
///
/// The program is detached from the terminal: Ctrl-C only reaches this process.
pub(super) fn command(program: &Path, user: Option<Other>) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").current_dir("/").stdin(Stdio::null()).process_group(0);
    for name in ["PGDATA", "PGPORT", "PGHOST", "PGUSER", "PGDATABASE", "PGOPTIONS"] {
        command.env_remove(name);
    }
    if let Some(user) = user {
        // When run as root, this also drops the supplementary groups.
        command.uid(user.uid).gid(user.gid);
    }
    command
}

/// A start-up packet: length 41, protocol 3.0, then names and values, each ended by a zero byte.
const START_UP: &[u8] = b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0";

/// Whether the server accepts a start-up packet on its socket (`R`, authentication).
///
/// The server refuses the packet while it starts up or shuts down.
pub(super) fn is_ready(sockets: &Path) -> bool {
    let greet = || -> io::Result<bool> {
        let mut stream = UnixStream::connect(sockets.join(".s.PGSQL.5432"))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(START_UP)?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        Ok(first == *b"R")
    };
    greet().unwrap_or(false)
}

/// Returns the pid in the data directory's lock file, if that process is the server.
///
/// After a crash or a reboot, another process may have the same number.
pub(super) fn postmaster(place: &ServerFolder) -> Option<Pid> {
    let file = fs::read_to_string(place.data().join("postmaster.pid")).ok()?;
    let pid = Pid::from_raw(file.lines().next()?.trim().parse().ok()?);
    let is_it = pid.as_raw() > 1 && is_alive(pid) && names(pid, &place.data());
    (is_it && place.user.is_none_or(|user| is_of(pid, user))).then_some(pid)
}

/// Whether the process belongs to this user.
///
/// The writer of the lock file must not be able to choose which process root signals.
fn is_of(pid: Pid, user: Other) -> bool {
    // Without /proc, this cannot be determined.
    let found = fs::metadata(format!("/proc/{pid}"));
    found.map_or(!Path::new("/proc/self").exists(), |found| found.uid() == user.uid)
}

/// Removes the lock files of a dead server.
///
/// Postgres itself would mistake any live process with that pid for the dead server.
pub(super) fn clear_locks(place: &ServerFolder) -> io::Result<()> {
    for file in [
        place.data().join("postmaster.pid"),
        place.sockets.join(".s.PGSQL.5432.lock"),
        place.sockets.join(".s.PGSQL.5432"),
    ] {
        match fs::remove_file(file) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
            _ => {}
        }
    }
    Ok(())
}

/// Whether this path is among the process's arguments, as [`ServerFolder::data`] is for the server.
fn names(pid: Pid, data: &Path) -> bool {
    let wanted = data.as_os_str().as_bytes();
    if let Ok(arguments) = fs::read(format!("/proc/{pid}/cmdline")) {
        return arguments.split(|byte| *byte == 0).any(|argument| argument == wanted);
    }
    let listed = Command::new("ps").args(["-o", "args=", "-p", &pid.to_string()]).output();
    listed.is_ok_and(|listed| {
        let line = OsStr::from_bytes(&listed.stdout).to_string_lossy().into_owned();
        line.contains(&*data.to_string_lossy())
    })
}

/// Whether the process exists. This is also true if it belongs to another user.
fn is_alive(pid: Pid) -> bool {
    !matches!(kill(pid, None), Err(Errno::ESRCH))
}

/// Signals the server to close its connections and stop (`SIGINT`).
///
/// If `is_patient` is false, the server quits immediately and recovers at the next start
/// (`SIGQUIT`). The process may already be gone.
pub(super) fn signal_stop(pid: Pid, is_patient: bool) {
    let signal = if is_patient { Signal::SIGINT } else { Signal::SIGQUIT };
    if let Err(fault) = kill(pid, signal)
        && fault != Errno::ESRCH
    {
        tracing::warn!(error = %fault, process.pid = %pid, "failed to signal the database");
    }
}

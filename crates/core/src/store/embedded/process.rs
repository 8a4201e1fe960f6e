//! The server's process: whether it answers, whether a pid is still its own, and how it is stopped.

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

use super::place::{Other, Place};

/// A Postgres program, run as `user` and detached from the terminal, so that Ctrl-C reaches only
/// us.
pub(super) fn command(program: &Path, user: Option<Other>) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").current_dir("/").stdin(Stdio::null()).process_group(0);
    for name in ["PGDATA", "PGPORT", "PGHOST", "PGUSER", "PGDATABASE", "PGOPTIONS"] {
        command.env_remove(name);
    }
    if let Some(user) = user {
        // From root, this also gives up the supplementary groups.
        command.uid(user.uid).gid(user.gid);
    }
    command
}

/// Length 41, protocol 3.0, then names and values, each ended by a zero byte.
const START_UP: &[u8] = b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0";

/// Whether the server accepts a start-up packet on its socket (`R`, authentication); it refuses
/// them while it starts up or shuts down.
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

/// The pid in the data directory's lock file, if that process is indeed its server. After a crash
/// or a reboot another process may have the number.
pub(super) fn postmaster(place: &Place) -> Option<Pid> {
    let file = fs::read_to_string(place.data().join("postmaster.pid")).ok()?;
    let pid = Pid::from_raw(file.lines().next()?.trim().parse().ok()?);
    let is_it = pid.as_raw() > 1 && is_alive(pid) && names(pid, &place.data());
    (is_it && place.user.is_none_or(|user| is_of(pid, user))).then_some(pid)
}

/// Whether the process is this user's: the file's writer must not choose which process root
/// signals.
fn is_of(pid: Pid, user: Other) -> bool {
    // Without /proc this is unknown.
    let found = fs::metadata(format!("/proc/{pid}"));
    found.map_or(!Path::new("/proc/self").exists(), |found| found.uid() == user.uid)
}

/// Removes the lock files of a dead server: Postgres itself would mistake any live process with
/// that pid for it.
pub(super) fn clear_locks(place: &Place) -> io::Result<()> {
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

/// Whether the process was started with this path among its arguments, as [`Place::data`] is.
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

/// Whether the process exists; also true if it belongs to another user.
fn is_alive(pid: Pid) -> bool {
    !matches!(kill(pid, None), Err(Errno::ESRCH))
}

/// Signals the server to close its connections and stop (`SIGINT`) or, if that does not work, to
/// quit at once and recover at the next start (`SIGQUIT`). It may already be gone.
pub(super) fn signal_stop(pid: Pid, is_patient: bool) {
    let signal = if is_patient { Signal::SIGINT } else { Signal::SIGQUIT };
    if let Err(fault) = kill(pid, signal)
        && fault != Errno::ESRCH
    {
        tracing::warn!(%pid, %fault, "cannot signal the database");
    }
}

//! Creates a database cluster and starts its server.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use super::{
    error::Error,
    options::{LOGIN, OWNER, Options, PAUSE},
    place::ServerFolder,
    process,
    programs::Programs,
};

/// The server's settings. `fsync` and `synchronous_commit` stay on.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    ("unix_socket_permissions", "0700"),
    ("port", "5432"),
    ("cluster_name", "agent-authority"),
    ("max_connections", "100"),
    ("shared_buffers", "256MB"),
    // Decisions are written in groups. These settings give room for them between checkpoints and
    // reduce their size.
    ("wal_buffers", "16MB"),
    ("wal_compression", "on"),
    ("max_wal_size", "2GB"),
    // Backends flush their writes to tables gradually, like the checkpointer. Otherwise the kernel
    // writes them all at once half a minute later, while commits wait.
    ("backend_flush_after", "256kB"),
    // A commit that needs a new log segment does not fill it with zeros: that would block all other
    // commits for tens of milliseconds. Used segments are kept and reused.
    ("wal_init_zero", "off"),
    ("min_wal_size", "512MB"),
    ("checkpoint_timeout", "15min"),
    // Partitions take locks individually.
    ("max_locks_per_transaction", "256"),
    ("random_page_cost", "1.1"),
    // All queries here are short.
    ("jit", "off"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("lc_messages", "C"),
    ("log_min_messages", "warning"),
    ("log_checkpoints", "off"),
];

const STARTING: Duration = Duration::from_mins(1);

/// Returns whether a server runs. Waits while one starts or stops.
///
/// The caller holds the launch lock: no other process starts a server. The lock files of a dead
/// server may therefore be removed.
pub(super) fn is_running(place: &ServerFolder) -> Result<bool, Error> {
    let since = Instant::now();
    while since.elapsed() < STARTING {
        if process::is_ready(&place.sockets) {
            return Ok(true);
        }
        if process::postmaster(place).is_none() {
            process::clear_locks(place).map_err(Error::io("clear", &place.home))?;
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
    Err(Error::Slow { log: tail(&place.log()) })
}

pub(super) fn launch(place: &ServerFolder, options: &Options) -> Result<(Child, Programs), Error> {
    let programs = Programs::find(options.programs.as_deref(), place.version(), place.user)?;
    if place.version().is_none() {
        initialise(place, &programs)?;
    }
    let since = Instant::now();
    loop {
        match start_once(place, &programs, options) {
            // The children of a killed server hold its shared memory a moment longer.
            Err(Error::Stopped { log })
                if log.contains("shared memory block") && since.elapsed() < STARTING =>
            {
                std::thread::sleep(PAUSE * 10);
                process::clear_locks(place).map_err(Error::io("clear", &place.home))?;
            }
            done => return Ok((done?, programs)),
        }
    }
}

fn start_once(
    place: &ServerFolder,
    programs: &Programs,
    options: &Options,
) -> Result<Child, Error> {
    let path = place.log();
    let log = new_log(&path).map_err(Error::io("write", &path))?;
    let mut command = process::command(&programs.folder.join("postgres"), place.user);
    command.arg("-D").arg(place.data()).arg("-k").arg(&place.sockets);
    let own = SETTINGS.iter().map(|(name, value)| format!("{name}={value}"));
    let theirs = options.settings.iter().map(|(name, value)| format!("{name}={value}"));
    command.args(own.chain(theirs).flat_map(|setting| ["-c".to_owned(), setting]));
    command.stdout(log.try_clone().map_err(Error::io("write", &path))?).stderr(log);
    let mut child = command.spawn().map_err(Error::io("run", &programs.folder))?;
    let since = Instant::now();
    while since.elapsed() < STARTING {
        if process::is_ready(&place.sockets) {
            return Ok(child);
        }
        if !matches!(child.try_wait(), Ok(None)) {
            return Err(Error::Stopped { log: tail(&path) });
        }
        std::thread::sleep(PAUSE);
    }
    let _ = child.kill();
    Err(Error::Slow { log: tail(&path) })
}

/// Creates a new log file. Keeps one earlier log.
///
/// The folder belongs to the database's user, who may have put anything in the log's place. When
/// run as root, this must not follow or overwrite the user's files.
fn new_log(path: &Path) -> io::Result<File> {
    if fs::rename(path, path.with_extension("log.1")).is_err() {
        match fs::remove_file(path) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
            _ => {}
        }
    }
    File::create_new(path)
}

/// Creates the cluster under another name and renames it. A partial cluster is never used.
fn initialise(place: &ServerFolder, programs: &Programs) -> Result<(), Error> {
    let new = place.home.join("data.new");
    if let Err(fault) = fs::remove_dir_all(&new)
        && fault.kind() != io::ErrorKind::NotFound
    {
        return Err(Error::io("remove", &new)(fault));
    }
    let mut initdb = process::command(&programs.folder.join("initdb"), place.user);
    initdb.args(["--username", OWNER, "--auth=trust", "--encoding=UTF8", "--no-locale"]);
    initdb.args(["--data-checksums", "--no-instructions", "-D"]).arg(&new);
    let done = initdb.output().map_err(Error::io("run", &programs.folder))?;
    if !done.status.success() {
        return Err(Error::Init(String::from_utf8_lossy(&done.stderr).into_owned()));
    }
    // Single-user mode: one command per line, without a socket.
    let first = format!("CREATE ROLE {LOGIN} LOGIN NOINHERIT\nCREATE DATABASE {LOGIN}\n");
    let mut single = process::command(&programs.folder.join("postgres"), place.user);
    single.args(["--single", "-c", "exit_on_error=on", "-D"]).arg(&new).arg("postgres");
    single.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = single.spawn().map_err(Error::io("run", &programs.folder))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(first.as_bytes()).map_err(Error::io("write to", &programs.folder))?;
    }
    let done = child.wait_with_output().map_err(Error::io("run", &programs.folder))?;
    if !done.status.success() {
        return Err(Error::Init(String::from_utf8_lossy(&done.stderr).into_owned()));
    }
    fs::rename(&new, place.data()).map_err(Error::io("rename", &new))
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}

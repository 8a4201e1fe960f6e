//! The measured servers: started, awaited, and always stopped.

use std::{
    fs::{self, File, Permissions},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    Fault,
    meter::{Meter, inside},
};

/// The time limit for a start. Loading a million delegations takes part of this time.
const START: Duration = Duration::from_mins(2);
const STOP: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

/// A temporary folder for this run.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new(parent: &Path) -> Result<Self, Fault> {
        // The kernel reports a process's working directory with symbolic links resolved. They are
        // resolved here too, for comparison.
        let parent = parent.canonicalize()?;
        let folder = tempfile::Builder::new().prefix("authority-bench-").tempdir_in(parent)?;
        // If the benchmark runs as root, Postgres runs as another user, which needs access to its
        // data in this folder.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// A running server. Dropping it kills it and its children.
pub(crate) struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
    folder: PathBuf,
}

impl Server {
    /// Starts `command`. Its output goes to a file in `folder`.
    pub(crate) fn start(
        name: &'static str,
        command: &mut Command,
        folder: &Folder,
    ) -> Result<Self, Fault> {
        let log = folder.path().join(format!("{name}.log"));
        let output = File::create(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        Ok(Self { name, child, log, folder: folder.path().to_owned() })
    }

    pub(crate) fn meter(&self) -> Meter {
        Meter { processes: vec![self.child.id()] }
    }

    /// Waits until `ready` succeeds.
    pub(crate) async fn wait(&mut self, ready: impl AsyncFn() -> bool) -> Result<(), Fault> {
        let end = Instant::now() + START;
        while !ready().await {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("{} ended ({status}): {}", self.name, self.output_end()).into());
            }
            if Instant::now() > end {
                return Err(format!("{} is not ready: {}", self.name, self.output_end()).into());
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Returns the end of the server's output.
    fn output_end(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let mut lines: Vec<&str> = log.lines().rev().take(5).collect();
        lines.reverse();
        lines.join(" / ")
    }
}

impl Server {
    fn ends_within(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > end {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        signal(self.child.id(), Signal::SIGTERM);
        if !self.ends_within(STOP) {
            eprintln!("{} did not stop in {STOP:?}; killed", self.name);
            signal(self.child.id(), Signal::SIGKILL);
            let _ = self.child.wait();
        }
        // A service that was killed or crashed leaves its Postgres running.
        for process in inside(&self.folder) {
            signal(process, Signal::SIGQUIT);
        }
    }
}

fn signal(process: u32, signal: Signal) {
    if let Ok(process) = i32::try_from(process) {
        // The process may already have ended.
        let _ = kill(Pid::from_raw(process), signal);
    }
}

/// Returns an address without a listener.
pub(crate) fn free_address() -> Result<SocketAddr, Fault> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

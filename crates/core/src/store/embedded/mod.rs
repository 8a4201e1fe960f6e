//! An embedded Postgres server: found, initialised, started, joined and stopped, for installations
//! without a database of their own.
//!
//! Each data directory has one server, whatever the number of processes that use it. They
//! coordinate by two locks: `launch.lock` is held while one starts or stops the server,
//! `users.lock` is shared by all users. The last user to leave stops the server. A process that is
//! killed leaves the server running; the next one joins it.

mod elsewhere;
mod error;
mod launch;
mod place;
mod process;
mod programs;
mod remove;

use std::{
    fs::{File, OpenOptions, TryLockError},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Child,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use nix::{fcntl::OFlag, unistd::Pid};
use parking_lot::Mutex;

use self::place::Place;
pub use self::{error::Error, remove::remove};
use crate::worker::Worker;

/// The bootstrap superuser: owns the database and runs its migrations.
pub const OWNER: &str = "postgres";
/// The service's login role, and its database.
pub const LOGIN: &str = "authority";

const STOPPING: Duration = Duration::from_secs(30);
/// The intervals of checking the server: while it starts or stops, and while it runs.
const PAUSE: Duration = Duration::from_millis(10);
const WATCH: Duration = Duration::from_millis(500);

/// How to run the server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The service's data folder; the database is in its subfolder `postgres`.
    pub data_dir: PathBuf,
    /// The folder of `initdb` and `postgres`; `None` searches the places of packages, newest first.
    pub programs: Option<PathBuf>,
    /// Settings of `postgresql.conf` that override the defaults here.
    pub settings: Vec<(String, String)>,
}

/// A running server that this process uses; clones count as one user. When the last is dropped, it
/// leaves as [`Embedded::stop`] does.
#[derive(Clone, Debug)]
pub struct Embedded(Arc<Server>);

#[derive(Debug)]
struct Server {
    options: Options,
    place: Place,
    is_joined: bool,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    /// `None` if another process started the server.
    child: Option<Child>,
    /// Locked shared; `None` after leaving.
    users: Option<File>,
}

impl Embedded {
    /// Starts the server or joins the running one.
    pub async fn start(options: Options) -> Result<Self, Error> {
        blocking(move || Self::start_blocking(options)).await
    }

    pub fn start_blocking(options: Options) -> Result<Self, Error> {
        let place = Place::prepare(&options.data_dir)?;
        let _launch = launch_lock(&place)?;
        let users = open_lock(&place, "users.lock")?;
        users.lock_shared().map_err(Error::io("lock", &place.home))?;
        let is_joined = launch::is_running(&place)?;
        let child = if is_joined { None } else { Some(launch::launch(&place, &options)?) };
        let held = Mutex::new(Held { child, users: Some(users) });
        Ok(Self(Arc::new(Server { options, place, is_joined, held })))
    }

    /// The address for the service.
    pub fn url(&self) -> String {
        self.url_of(LOGIN)
    }

    /// The address for migrations: the same database, as its owner.
    pub fn owner_url(&self) -> String {
        self.owner_url_of(LOGIN)
    }

    /// The address of any database of the server, as the service's role.
    pub fn url_of(&self, database: &str) -> String {
        self.0.place.url(LOGIN, database)
    }

    /// The address of any database of the server, as its superuser.
    pub fn owner_url_of(&self, database: &str) -> String {
        self.0.place.url(OWNER, database)
    }

    /// The folder of the server's data, log and socket.
    pub fn home(&self) -> &Path {
        &self.0.place.home
    }

    /// Whether that is outside the data folder, since the server's user has no access to it.
    pub fn is_elsewhere(&self) -> bool {
        self.0.place.is_elsewhere
    }

    /// Databases outside the data folder that belonged to earlier folders at its place. Nothing uses them.
    pub fn left_behind(&self) -> Vec<PathBuf> {
        self.0.place.left_behind()
    }

    /// Whether the server was already running.
    pub fn is_joined(&self) -> bool {
        self.0.is_joined
    }

    /// The server's process id; `None` if it has died.
    pub fn pid(&self) -> Option<u32> {
        process::postmaster(&self.0.place).and_then(|pid| pid.as_raw().try_into().ok())
    }

    /// Restarts the server if it dies, until this process leaves. For services: a short command
    /// ends before that matters.
    pub fn watch(&self) -> Worker {
        let server = Arc::downgrade(&self.0);
        let watch = Worker::periodic("embedded_postgres", WATCH, move || {
            let server = server.upgrade();
            async {
                let Some(server) = server else { return Ok(()) };
                if let Check::Restarted = blocking(move || server.restart_if_dead()).await? {
                    tracing::warn!("the database had died and was restarted");
                }
                Ok::<_, Error>(())
            }
        });
        watch.outlasting_calls()
    }

    /// Leaves; the last user to leave shuts the server down ("fast": connections are closed,
    /// committed data is kept).
    pub async fn stop(&self) -> Result<(), Error> {
        let server = Arc::clone(&self.0);
        blocking(move || server.leave_and_stop()).await
    }

    /// Leaves and keeps the server running.
    pub fn leave(&self) {
        self.0.held.lock().users = None;
    }
}

enum Check {
    Running,
    Restarted,
}

impl Server {
    fn restart_if_dead(&self) -> Result<Check, Error> {
        let mut held = self.held.lock();
        if held.users.is_none() {
            return Ok(Check::Running);
        }
        if let Some(child) = &mut held.child
            && !matches!(child.try_wait(), Ok(None))
        {
            held.child = None;
        }
        if process::postmaster(&self.place).is_some() {
            return Ok(Check::Running);
        }
        let _launch = launch_lock(&self.place)?;
        // Another user may have restarted it already.
        if launch::is_running(&self.place)? {
            return Ok(Check::Running);
        }
        held.child = Some(launch::launch(&self.place, &self.options)?);
        Ok(Check::Restarted)
    }

    fn leave_and_stop(&self) -> Result<(), Error> {
        let mut held = self.held.lock();
        let Some(users) = held.users.take() else { return Ok(()) };
        let _launch = launch_lock(&self.place)?;
        match users.try_lock() {
            Ok(()) => self.shut_down(&mut held.child),
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(fault)) => Err(Error::io("lock", &self.place.home)(fault)),
        }
    }

    fn shut_down(&self, child: &mut Option<Child>) -> Result<(), Error> {
        let Some(pid) = process::postmaster(&self.place) else { return Ok(()) };
        for (is_patient, patience) in [(true, STOPPING), (false, STOPPING / 3)] {
            process::signal_stop(pid, is_patient);
            let since = Instant::now();
            while since.elapsed() < patience {
                if self.has_ended(pid, child) {
                    return Ok(());
                }
                thread::sleep(PAUSE);
            }
        }
        Err(Error::Stuck { pid: pid.as_raw() })
    }

    /// Our own child must be waited for. Another process's child may stay a zombie, which has also
    /// ended.
    fn has_ended(&self, pid: Pid, child: &mut Option<Child>) -> bool {
        match child {
            Some(child) => !matches!(child.try_wait(), Ok(None)),
            None => process::postmaster(&self.place) != Some(pid),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(fault) = self.leave_and_stop() {
            tracing::warn!(%fault, "the database was not stopped");
        }
    }
}

async fn blocking<T, F>(work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Error> + Send + 'static,
{
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|fault| Err(Error::Crashed(fault.to_string())))
}

/// The lock for starting and stopping the server, held until it is dropped.
fn launch_lock(place: &Place) -> Result<File, Error> {
    let launch = open_lock(place, "launch.lock")?;
    launch.lock().map_err(Error::io("lock", &place.home))?;
    Ok(launch)
}

fn open_lock(place: &Place, name: &str) -> Result<File, Error> {
    let path = place.home.join(name);
    // The folder belongs to the database's user: as root, this follows no link of theirs.
    let unfollowed = OFlag::O_NOFOLLOW.bits();
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).custom_flags(unfollowed);
    options.open(&path).map_err(Error::io("open", &path))
}

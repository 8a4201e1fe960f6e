//! A running server that this process uses: started or joined, watched and left.

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

use super::{
    error::Error,
    launch,
    options::{LOGIN, OWNER, Options, PAUSE},
    place::ServerFolder,
    process,
    programs::Programs,
};
use authority_process::worker::Worker;

const STOPPING: Duration = Duration::from_secs(30);
/// The interval of checking the running server.
const WATCH: Duration = Duration::from_millis(500);

/// A running server that this process uses. All clones count as one user.
///
/// Dropping the last clone has the effect of [`Embedded::stop`].
#[derive(Clone, Debug)]
pub struct Embedded(Arc<Server>);

#[derive(Debug)]
struct Server {
    options: Options,
    place: ServerFolder,
    /// The programs that were started; `None` if the server was already running.
    programs: Option<Programs>,
    held: Mutex<ServerHandle>,
}

#[derive(Debug)]
struct ServerHandle {
    /// The server's process; `None` if another process started it.
    child: Option<Child>,
    /// Locked as shared; `None` after leaving.
    users: Option<File>,
}

impl Embedded {
    /// Starts the server or joins the running one.
    pub async fn start(options: Options) -> Result<Self, Error> {
        blocking(move || Self::start_blocking(options)).await
    }

    pub fn start_blocking(options: Options) -> Result<Self, Error> {
        let place = ServerFolder::prepare(&options.data_dir)?;
        let _launch = launch_lock(&place)?;
        let users = open_lock(&place, "users.lock")?;
        users.lock_shared().map_err(Error::io("lock", &place.home))?;
        let (child, programs) = if launch::is_running(&place)? {
            (None, None)
        } else {
            let (child, programs) = launch::launch(&place, &options)?;
            (Some(child), Some(programs))
        };
        let held = Mutex::new(ServerHandle { child, users: Some(users) });
        Ok(Self(Arc::new(Server { options, place, programs, held })))
    }

    /// Returns the URL for the service.
    pub fn url(&self) -> String {
        self.url_of(LOGIN)
    }

    /// Returns the URL for migrations: the same database, as its owner.
    pub fn owner_url(&self) -> String {
        self.owner_url_of(LOGIN)
    }

    /// Returns the URL of any database on the server, as the service's role.
    pub fn url_of(&self, database: &str) -> String {
        self.0.place.url(LOGIN, database)
    }

    /// Returns the URL of any database on the server, as its superuser.
    pub fn owner_url_of(&self, database: &str) -> String {
        self.0.place.url(OWNER, database)
    }

    /// Returns the folder with the server's data, log and socket.
    pub fn home(&self) -> &Path {
        &self.0.place.home
    }

    /// Whether [`Self::home`] is outside the data folder, which the server's user cannot access.
    pub fn is_elsewhere(&self) -> bool {
        self.0.place.is_elsewhere
    }

    /// Returns unused databases outside the data folder, left by earlier data folders at the same
    /// path.
    pub fn left_behind(&self) -> Vec<PathBuf> {
        self.0.place.left_behind()
    }

    /// Whether the server was already running.
    pub fn is_joined(&self) -> bool {
        self.0.programs.is_none()
    }

    /// Returns the version, origin and folder of the server's programs, and the folder of its data,
    /// for people.
    pub fn description(&self) -> String {
        let programs = self.0.programs.as_ref();
        let programs =
            programs.map_or("PostgreSQL, already running".to_owned(), Programs::to_string);
        format!("{programs}, data in {}", self.home().display())
    }

    /// Returns the server's process id; `None` if it has died.
    pub fn pid(&self) -> Option<u32> {
        process::postmaster(&self.0.place).and_then(|pid| pid.as_raw().try_into().ok())
    }

    /// Returns a worker that restarts the server if it dies, until this process leaves.
    ///
    /// Services need this worker. A short command ends before a restart matters.
    pub fn watch(&self) -> Worker {
        let server = Arc::downgrade(&self.0);
        let watch = Worker::periodic("embedded_postgres", WATCH, move || {
            let server = server.upgrade();
            async {
                let Some(server) = server else { return Ok(()) };
                if let Check::Restarted = blocking(move || server.restart_if_dead()).await? {
                    tracing::warn!("restarted the database, which had died");
                }
                Ok::<_, Error>(())
            }
        });
        watch.outlasting_calls()
    }

    /// Leaves the server. The last user to leave shuts it down.
    ///
    /// The shutdown is "fast": connections are closed, and committed data is kept.
    pub async fn stop(&self) -> Result<(), Error> {
        let server = Arc::clone(&self.0);
        blocking(move || server.leave_and_stop()).await
    }

    /// Leaves the server and keeps it running.
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
        // Another user may already have restarted it.
        if launch::is_running(&self.place)? {
            return Ok(Check::Running);
        }
        held.child = Some(launch::launch(&self.place, &self.options)?.0);
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

    /// Whether the server has ended.
    ///
    /// Our own child must be waited for. Another process's child may remain as a zombie, which has
    /// also ended.
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
            tracing::warn!(error = %fault, "failed to stop the database");
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

/// Takes the lock for starting and stopping the server. The lock is held until the file is dropped.
fn launch_lock(place: &ServerFolder) -> Result<File, Error> {
    let launch = open_lock(place, "launch.lock")?;
    launch.lock().map_err(Error::io("lock", &place.home))?;
    Ok(launch)
}

fn open_lock(place: &ServerFolder, name: &str) -> Result<File, Error> {
    let path = place.home.join(name);
    // The folder belongs to the database's user. When run as root, this must not follow the user's
    // links.
    let unfollowed = OFlag::O_NOFOLLOW.bits();
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).custom_flags(unfollowed);
    options.open(&path).map_err(Error::io("open", &path))
}

//! A real Postgres of our own: found, initialised, started, rejoined and stopped, for whoever
//! has no database yet.
//!
//! One server a data directory, however many processes use it. Two locks order them: `launch.lock`
//! is held while one starts or stops the server, `users.lock` is shared by all who use it. The last
//! to leave stops it. A process that is killed leaves the server running; the next one rejoins it.

mod place;
mod process;
mod programs;

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use nix::unistd::Pid;

use self::{place::Place, programs::Programs};

/// The bootstrap superuser: owns the database and runs its migrations.
pub const OWNER: &str = "postgres";
/// The role that the service logs in as, and its database.
pub const LOGIN: &str = "authority";

/// What the server is started with; `fsync` and `synchronous_commit` stay on.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    ("unix_socket_permissions", "0700"),
    ("port", "5432"),
    ("cluster_name", "agent-authority"),
    ("max_connections", "100"),
    ("shared_buffers", "256MB"),
    // Decisions are written in groups: room for them between checkpoints, and less of each.
    ("wal_buffers", "16MB"),
    ("wal_compression", "on"),
    ("max_wal_size", "2GB"),
    ("checkpoint_timeout", "15min"),
    // Partitions take locks one by one.
    ("max_locks_per_transaction", "256"),
    ("random_page_cost", "1.1"),
    // Every query here is short.
    ("jit", "off"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("lc_messages", "C"),
    ("log_min_messages", "warning"),
    ("log_checkpoints", "off"),
];

const STARTING: Duration = Duration::from_mins(1);
const STOPPING: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// How to run the server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The service's data folder; the database lives in `postgres` below it.
    pub data_dir: PathBuf,
    /// The folder of `initdb` and `postgres`; None looks where packages put them, newest first.
    pub programs: Option<PathBuf>,
    /// Settings of `postgresql.conf` that beat ours.
    pub settings: Vec<(String, String)>,
}

/// A running server that we use. Dropping it leaves as [`Embedded::stop`] does.
#[derive(Debug)]
pub struct Embedded {
    place: Place,
    /// None where we joined a server that was running.
    child: Option<Child>,
    /// Held shared; None once left.
    users: Option<File>,
}

impl Embedded {
    /// Starts the server or joins the one that runs.
    pub async fn start(options: Options) -> Result<Self, Error> {
        blocking(move || Self::start_blocking(&options)).await
    }

    pub fn start_blocking(options: &Options) -> Result<Self, Error> {
        let place = Place::prepare(&options.data_dir)?;
        let launch = open_lock(&place, "launch.lock")?;
        launch.lock().map_err(Error::io("lock", &place.home))?;
        let users = open_lock(&place, "users.lock")?;
        users.lock_shared().map_err(Error::io("lock", &place.home))?;
        let child = if is_running(&place)? { None } else { Some(launch_server(&place, options)?) };
        Ok(Self { place, child, users: Some(users) })
    }

    /// For the service.
    pub fn url(&self) -> String {
        self.place.url(LOGIN, LOGIN)
    }

    /// For migrations: the same database as its owner.
    pub fn owner_url(&self) -> String {
        self.owner_url_of(LOGIN)
    }

    /// Any database of the server as its superuser.
    pub fn owner_url_of(&self, database: &str) -> String {
        self.place.url(OWNER, database)
    }

    /// Any database of the server as the service sees it.
    pub fn url_of(&self, database: &str) -> String {
        self.place.url(LOGIN, database)
    }

    /// Where the server keeps its data, log and socket.
    pub fn home(&self) -> &Path {
        &self.place.home
    }

    /// True when that is not below the data folder, since its user could not get there.
    pub fn is_elsewhere(&self) -> bool {
        self.place.is_elsewhere
    }

    /// True when the server was running before us.
    pub fn is_joined(&self) -> bool {
        self.child.is_none()
    }

    /// The server's process id; None when it has died.
    pub fn pid(&self) -> Option<u32> {
        process::postmaster(&self.place).and_then(|pid| pid.as_raw().try_into().ok())
    }

    /// Leaves; the last to leave shuts the server down ("fast": connections are ended, all that
    /// was committed is kept).
    pub async fn stop(mut self) -> Result<(), Error> {
        blocking(move || self.leave_and_stop()).await
    }

    /// Leaves and lets the server run on.
    pub fn leave(mut self) {
        self.users = None;
    }

    fn leave_and_stop(&mut self) -> Result<(), Error> {
        let Some(users) = self.users.take() else { return Ok(()) };
        let launch = open_lock(&self.place, "launch.lock")?;
        launch.lock().map_err(Error::io("lock", &self.place.home))?;
        match users.try_lock() {
            Ok(()) => self.shut_down(),
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(fault)) => Err(Error::io("lock", &self.place.home)(fault)),
        }
    }

    fn shut_down(&mut self) -> Result<(), Error> {
        let Some(pid) = process::postmaster(&self.place) else { return Ok(()) };
        for (is_patient, patience) in [(true, STOPPING), (false, STOPPING / 3)] {
            process::signal_stop(pid, is_patient);
            let since = Instant::now();
            while since.elapsed() < patience {
                if self.has_ended(pid) {
                    return Ok(());
                }
                std::thread::sleep(PAUSE);
            }
        }
        Err(Error::Stuck { pid: pid.as_raw() })
    }

    /// Our own child must be waited for; it would stay a zombie otherwise.
    fn has_ended(&mut self, pid: Pid) -> bool {
        match &mut self.child {
            Some(child) => !matches!(child.try_wait(), Ok(None)),
            None => !process::is_alive(pid),
        }
    }
}

impl Drop for Embedded {
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

fn open_lock(place: &Place, name: &str) -> Result<File, Error> {
    let path = place.home.join(name);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    file.map_err(Error::io("open", &path))
}

/// Waits while a server is between two states. Under the launch lock nobody else starts one, so
/// what is left of one that died may go.
fn is_running(place: &Place) -> Result<bool, Error> {
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

fn launch_server(place: &Place, options: &Options) -> Result<Child, Error> {
    let programs = Programs::find(options.programs.as_deref(), place.version())?;
    if place.version().is_none() {
        initialise(place, &programs)?;
    }
    let since = Instant::now();
    loop {
        match start_once(place, &programs, options) {
            // A killed server's children hold its memory for a moment longer.
            Err(Error::Stopped { log })
                if log.contains("shared memory block") && since.elapsed() < STARTING =>
            {
                std::thread::sleep(PAUSE * 10);
                process::clear_locks(place).map_err(Error::io("clear", &place.home))?;
            }
            done => return done,
        }
    }
}

fn start_once(place: &Place, programs: &Programs, options: &Options) -> Result<Child, Error> {
    let path = place.log();
    // What the last run said is kept once.
    let _ = fs::rename(&path, path.with_extension("log.1"));
    let log = File::create(&path).map_err(Error::io("write", &path))?;
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

/// Made under another name and then renamed: a half-made one is never taken for a good one.
fn initialise(place: &Place, programs: &Programs) -> Result<(), Error> {
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
    // One command a line, in a server without a socket.
    let first = format!("CREATE ROLE {LOGIN} LOGIN\nCREATE DATABASE {LOGIN}\n");
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

/// Why there is no embedded database, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no PostgreSQL server (version 14 or newer) was found on this machine\n\n  \
         install one:      script/postgres\n                    \
         (or: apt-get install postgresql, dnf install postgresql-server,\n                     \
         apk add postgresql, pacman -S postgresql, brew install postgresql@17)\n  \
         or use another:   DATABASE_URL=postgres://user:password@host/database"
    )]
    NoPrograms,
    #[error(
        "the database here was made by PostgreSQL {made}, whose server is not installed; \
         install that version, or choose another --data-dir"
    )]
    OtherVersion { made: u32 },
    #[error(
        "PostgreSQL does not run as root, and there is no user `postgres` or `nobody` to run it as; \
         make one, or start the service as another user"
    )]
    NoUser,
    #[error(
        "the database in `{}` cannot be entered by its user {uid} any more; \
         allow it (chmod o+x) on each folder above", path.display()
    )]
    Unreachable { path: PathBuf, uid: u32 },
    #[error("cannot {doing} `{}`: {fault}", path.display())]
    Io { doing: &'static str, path: PathBuf, fault: io::Error },
    #[error("the database could not be initialised: {0}")]
    Init(String),
    #[error("the database stopped while it was starting; its log ends:\n{log}")]
    Stopped { log: String },
    #[error("the database was not ready within a minute; its log ends:\n{log}")]
    Slow { log: String },
    #[error("the database (process {pid}) does not stop")]
    Stuck { pid: i32 },
    #[error("the launcher crashed: {0}")]
    Crashed(String),
}

impl Error {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |fault| Self::Io { doing, path, fault }
    }
}

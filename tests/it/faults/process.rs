//! Runs the real program as a new user would start it, with its own database.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    time::Duration,
};

use authority_store::{
    Address, RunQueryDsl,
    embedded::{Embedded, Options},
};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::support::{Client, asking, tls::TlsFiles};

/// A folder for a service's data, which its unprivileged database can also access.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/var/tmp/authority-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Starts the database of a service that may have been killed.
    pub(crate) async fn embedded(&self) -> Embedded {
        let options = Options { data_dir: self.0.clone(), ..Options::default() };
        Embedded::start(options).await.unwrap()
    }

    /// Returns the postmaster's process id.
    pub(crate) fn database(&self) -> Option<Pid> {
        let file = self.0.join("postgres/data/postmaster.pid");
        let pid = fs::read_to_string(file).ok()?.lines().next()?.parse().ok()?;
        Some(Pid::from_raw(pid))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(pid) = self.database() {
            let _ = kill(pid, Signal::SIGQUIT);
            std::thread::sleep(Duration::from_millis(300));
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The encryption key ring that all nodes on a database share.
const RING: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// The setting for how many seconds the service still accepts connections after the stop signal.
pub(crate) const LAME_DUCK: &str = "AGENT_AUTHORITY__LIMITS__LAME_DUCK_SECONDS";

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_agent-authority");

/// A running service.
pub(crate) struct Service {
    child: Child,
    pub(crate) client: Client,
    ops: String,
    logged: Arc<Mutex<String>>,
    banner: Arc<Mutex<String>>,
}

impl Service {
    /// Starts the service and waits for the banner, which shows a live API key.
    pub(crate) fn start(folder: &Folder) -> Self {
        Self::run(Command::new(PROGRAM), folder)
    }

    /// Like `start`, from a shell that sets this soft limit on open files, below the hard limit.
    pub(crate) fn with_open_files(soft: u32, folder: &Folder) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -Sn {soft} && exec \"$0\" \"$@\""), PROGRAM]);
        Self::run(shell, folder)
    }

    /// Like `start`, with this log filter.
    pub(crate) fn logging(filter: &str, folder: &Folder) -> Self {
        Self::with("RUST_LOG", filter, folder)
    }

    /// Like `start`, with this environment variable set.
    pub(crate) fn with(setting: &str, value: &str, folder: &Folder) -> Self {
        let mut program = Command::new(PROGRAM);
        program.env(setting, value);
        Self::run(program, folder)
    }

    /// Like `start`, with TLS on every address.
    pub(crate) fn with_tls(files: &TlsFiles, folder: &Folder) -> Self {
        let mut program = Command::new(PROGRAM);
        program.envs(files.environment());
        let mut service = Self::run(program, folder);
        for url in [&mut service.client.base, &mut service.ops] {
            *url = url.replace("http://", "https://");
        }
        service.client.http = files.http(None);
        service
    }

    /// Returns a client with a token of the installation's owner.
    pub(crate) fn owner(&self, folder: &Folder) -> Client {
        self.owner_by(Command::new(PROGRAM), folder)
    }

    /// Like `owner`, for a node that uses a shared database.
    pub(crate) fn owner_at(&self, database_url: &str, folder: &Folder) -> Client {
        let mut program = Command::new(PROGRAM);
        program.envs(shared(database_url));
        self.owner_by(program, folder)
    }

    fn owner_by(&self, mut program: Command, folder: &Folder) -> Client {
        program.args(["token", "owner", "--data-dir"]).arg(folder.path());
        let token = String::from_utf8(program.output().unwrap().stdout).unwrap();
        Client::new(&self.client.base, token.trim())
    }

    /// Returns the service's metrics.
    pub(crate) async fn metrics(&self) -> String {
        let url = format!("{}/metrics", self.ops);
        self.client.http.get(url).send().await.unwrap().text().await.unwrap()
    }

    /// Returns the output so far except the log: the banner.
    pub(crate) fn banner(&self) -> String {
        self.banner.lock().clone()
    }

    /// Returns the lines of the log so far, as JSON, without the banner.
    pub(crate) fn logged(&self) -> String {
        self.logged.lock().clone()
    }

    #[track_caller]
    fn run(program: Command, folder: &Folder) -> Self {
        Self::at(free(), program, folder)
    }

    /// Starts a node that uses a shared database at this address. After the stop signal it accepts
    /// connections for two more seconds.
    #[track_caller]
    pub(crate) fn node(main: SocketAddr, database_url: &str, folder: &Folder) -> Self {
        let mut program = Command::new(PROGRAM);
        program.envs(shared(database_url)).env(LAME_DUCK, "2");
        Self::at(main, program, folder)
    }

    #[track_caller]
    fn at(main: SocketAddr, mut program: Command, folder: &Folder) -> Self {
        let ops = free();
        let mut child = program
            .args(["serve", "--listen", &main.to_string(), "--data-dir"])
            .arg(folder.path())
            .env("AGENT_AUTHORITY__LISTEN__OPS", ops.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (found, key) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let logged = Arc::<Mutex<String>>::default();
        let log = Arc::clone(&logged);
        let banner = Arc::<Mutex<String>>::default();
        let words = Arc::clone(&banner);
        // The thread keeps reading after it has found the key, because a full pipe would block the
        // service.
        std::thread::spawn(move || {
            let mut said = String::new();
            for line in lines.map_while(Result::ok) {
                if let Some(key) = key_in(&line) {
                    let _ = found.send(Ok(key));
                }
                let mut of = if line.starts_with('{') { log.lock() } else { words.lock() };
                of.push_str(&line);
                of.push('\n');
                drop(of);
                println!("{line}"); // the test shows it when it fails
                said = line;
            }
            let _ = found.send(Err(said));
        });
        let token = match key.recv_timeout(Duration::from_secs(90)) {
            Ok(Ok(key)) => key,
            Ok(Err(said)) => panic!("it ended: {said}"),
            Err(timeout) => panic!("no banner in 90 s: {timeout}"),
        };
        let base = format!("http://{main}");
        let ops = format!("http://{ops}");
        Self { child, client: Client::new(&base, &token), ops, logged, banner }
    }

    /// Returns the service's resident memory in bytes, without its database.
    #[track_caller]
    pub(crate) fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    /// Returns the service's limits of open files, soft and hard.
    pub(crate) fn open_files(&self) -> [u64; 2] {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.child.id())).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        let mut numbers = line.split_whitespace().map(|word| word.parse().unwrap_or(u64::MAX));
        [(); 2].map(|()| numbers.next().unwrap())
    }

    /// Kills the service without time to clean up.
    #[track_caller]
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the service as an operator would.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        self.terminate();
        self.ended();
    }

    /// Sends SIGTERM without waiting until the service has exited.
    #[track_caller]
    pub(crate) fn terminate(&self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).unwrap();
    }

    /// Waits until the service has exited successfully.
    #[track_caller]
    pub(crate) fn ended(&mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The settings shared by all nodes on a database.
pub(crate) fn shared(database_url: &str) -> [(&'static str, &str); 2] {
    [("DATABASE_URL", database_url), ("AGENT_AUTHORITY__KEYS__RING", RING)]
}

/// Returns a free address, at which no server listens.
pub(crate) fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn key_in(line: &str) -> Option<String> {
    let key = line.trim().strip_prefix("export KEY=")?;
    key.starts_with("svc_").then(|| key.to_owned())
}

/// Returns a number and an id from each row of a query.
pub(crate) async fn rows(database: &Embedded, sql: &str) -> Vec<(i64, String)> {
    let mut db = Address::parse(&database.owner_url()).unwrap().connect().await.unwrap();
    let rows: Vec<Row> = diesel::sql_query(sql).load(&mut db).await.unwrap();
    rows.into_iter().map(|row| (row.number, row.id)).collect()
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = BigInt)]
    number: i64,
    #[diesel(sql_type = Text)]
    id: String,
}

/// Returns a request that the demonstration tenant permits.
pub(crate) fn allowed() -> Value {
    asking(1200.0, "DE")
}

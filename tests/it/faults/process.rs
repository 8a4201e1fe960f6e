//! The real program, started as a new user would start it, with a database of its own.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    time::Duration,
};

use authority_core::store::{
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

use crate::support::{Client, asking};

/// A folder for a service's data that its unprivileged database can reach too.
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

    /// The database of a service that may be dead.
    pub(crate) async fn embedded(&self) -> Embedded {
        let options = Options { data_dir: self.0.clone(), ..Options::default() };
        Embedded::start(options).await.unwrap()
    }

    /// The postmaster's process.
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

/// The key ring that all nodes on a database have.
const RING: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// The setting of how long connections are accepted after the stop signal, in seconds.
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
    /// Starts it and waits for the banner, which shows a live API key.
    pub(crate) fn start(folder: &Folder) -> Self {
        Self::run(Command::new(PROGRAM), folder)
    }

    /// The same from a shell with this soft limit of open files, below the hard limit.
    pub(crate) fn with_open_files(soft: u32, folder: &Folder) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -Sn {soft} && exec \"$0\" \"$@\""), PROGRAM]);
        Self::run(shell, folder)
    }

    /// The same with this filter of the log.
    pub(crate) fn logging(filter: &str, folder: &Folder) -> Self {
        Self::with("RUST_LOG", filter, folder)
    }

    /// The same with this setting, given by its environment variable.
    pub(crate) fn with(setting: &str, value: &str, folder: &Folder) -> Self {
        let mut program = Command::new(PROGRAM);
        program.env(setting, value);
        Self::run(program, folder)
    }

    /// A client with the token of the installation's owner.
    pub(crate) fn owner(&self, folder: &Folder) -> Client {
        self.owner_by(Command::new(PROGRAM), folder)
    }

    /// The same of one of the nodes on a database.
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

    /// Its metrics.
    pub(crate) async fn metrics(&self) -> String {
        let url = format!("{}/metrics", self.ops);
        self.client.http.get(url).send().await.unwrap().text().await.unwrap()
    }

    /// What it said so far that is not of the log: the banner.
    pub(crate) fn banner(&self) -> String {
        self.banner.lock().clone()
    }

    /// The lines of the log so far, as JSON; without the banner.
    pub(crate) fn logged(&self) -> String {
        self.logged.lock().clone()
    }

    #[track_caller]
    fn run(program: Command, folder: &Folder) -> Self {
        Self::at(free(), program, folder)
    }

    /// One of the nodes on a database, at this address, which still accepts connections for two seconds when
    /// it stops.
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
        // Keeps reading after the key: a full pipe would block the service.
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
            Ok(Err(said)) => panic!("the service ended: {said}"),
            Err(timeout) => panic!("no banner in 90 s: {timeout}"),
        };
        let base = format!("http://{main}");
        let ops = format!("http://{ops}");
        Self { child, client: Client::new(&base, &token), ops, logged, banner }
    }

    /// Its resident memory, in bytes; without its database's.
    #[track_caller]
    pub(crate) fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    /// Its limits of open files: soft and hard.
    pub(crate) fn open_files(&self) -> [u64; 2] {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.child.id())).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
        let mut numbers = line.split_whitespace().map(|word| word.parse().unwrap_or(u64::MAX));
        [(); 2].map(|()| numbers.next().unwrap())
    }

    /// Without time to clean up.
    #[track_caller]
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// As an operator stops it.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        self.terminate();
        self.ended();
    }

    /// Sends the signal alone.
    #[track_caller]
    pub(crate) fn terminate(&self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).unwrap();
    }

    /// Waits until it has ended by itself.
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

/// What all nodes on a database have.
pub(crate) fn shared(database_url: &str) -> [(&'static str, &str); 2] {
    [("DATABASE_URL", database_url), ("AGENT_AUTHORITY__KEYS__RING", RING)]
}

/// An address that nobody listens on.
pub(crate) fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn key_in(line: &str) -> Option<String> {
    let key = line.trim().strip_prefix("export KEY=")?;
    key.starts_with("svc_").then(|| key.to_owned())
}

/// A number and an id of each row that a query finds.
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

/// A request that the demonstration tenant permits.
pub(crate) fn allowed() -> Value {
    asking(1200.0, "DE")
}

//! A new database for each test: a copy of a migrated database, on a server that all test runs
//! share.
//!
//! The server keeps running after the tests, and the next run uses it again. Its data are in memory
//! if enough memory is free. Because fsync is off, a crash may lose the data, which only have to be
//! created again.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process,
    sync::{
        LazyLock, OnceLock,
        atomic::{AtomicU32, Ordering},
        mpsc::{self, Sender},
    },
    time::Duration,
};

use authority_store::{
    Address, Db, Limits, Store, allow_removal,
    embedded::{Embedded, LOGIN, Options},
    migrate,
};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Bool, Text},
};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use futures_util::{FutureExt, future::BoxFuture};
use nix::{
    errno::Errno,
    sys::{signal::kill, statvfs::statvfs},
    unistd::Pid,
};
use tokio::sync::{OnceCell, oneshot};

/// The memory that must be free to keep the server's data there, in bytes.
const ROOM: u64 = 2 << 30;

/// The prefix of databases that `seeded.rs` creates.
pub(super) const SEEDED: &str = "seeded_";

/// A database of its own, which is deleted when the value is dropped.
pub(crate) struct Database {
    name: String,
}

impl Database {
    /// Creates a migrated database.
    pub(crate) async fn fresh() -> Self {
        Self::copy(template().await).await
    }

    /// Copies another database, which must have no connections.
    pub(super) async fn copy(template: &str) -> Self {
        let strategy = if copies_files().await { "STRATEGY FILE_COPY" } else { "" };
        Self::make(&format!("TEMPLATE {template} {strategy}")).await
    }

    /// Copies a database to this name: the database `other`, or else the migrated one.
    pub(super) async fn named(name: &str, other: Option<&str>) -> Self {
        let template = match other {
            Some(other) => other,
            None => template().await,
        };
        run_on(&mut server().await, &format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        Self { name: name.to_owned() }
    }

    /// Creates a database without a schema.
    pub(crate) async fn empty() -> Self {
        template().await;
        Self::make("").await
    }

    async fn make(how: &str) -> Self {
        super::callers::show_callers();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let sql = format!("CREATE DATABASE {name} {how}");
        let (done, made) = oneshot::channel();
        let create: Job = Box::new(|server| {
            let created = async move { done.send(server.batch_execute(&sql).await) };
            created.map(drop).boxed()
        });
        CREATOR.send(create).unwrap();
        made.await.unwrap().unwrap();
        Self { name }
    }

    /// Returns the folder for the files of a service that uses this database.
    pub(crate) fn folder(&self) -> PathBuf {
        folder(&self.name)
    }

    /// Returns the service's URL, for `DATABASE_URL`.
    pub(crate) fn url(&self) -> String {
        cluster().url_of(&self.name)
    }

    /// Returns the URL with the login of the owner, who is a superuser.
    pub(crate) fn owner_url(&self) -> String {
        cluster().owner_url_of(&self.name)
    }

    #[track_caller]
    pub(crate) fn address(&self) -> Address {
        Address::parse(&self.url()).unwrap()
    }

    #[track_caller]
    pub(crate) fn owner_address(&self) -> Address {
        Address::parse(&self.owner_url()).unwrap()
    }

    /// Returns the login and the name of the database.
    pub(crate) fn names(&self) -> (&'static str, &str) {
        (LOGIN, &self.name)
    }

    /// Returns the path of the server's socket, as in its URL.
    pub(crate) fn socket(&self) -> PathBuf {
        let url = self.url();
        let host = url.split(['@', '/']).nth(3).unwrap_or_default();
        let mut bytes = Vec::new();
        let mut rest = host.as_bytes();
        while let Some((first, more)) = rest.split_first() {
            if let Some((digits, more)) = more.split_at_checked(2).filter(|_| *first == b'%') {
                bytes.extend(hex::decode(digits).unwrap());
                rest = more;
            } else {
                bytes.push(*first);
                rest = more;
            }
        }
        Path::new(&String::from_utf8(bytes).unwrap()).join(".s.PGSQL.5432")
    }

    #[track_caller]
    pub(crate) fn store(&self) -> Store {
        // A test has few callers, and each new connection begins without cached plans: planning took
        // a fourth of the time of all tests. The workers, which all run at the start, would open as
        // many connections as they may.
        let limits = Limits { tenant: 4, system: 5, recorder: 2, events: 2, ..Limits::default() };
        Store::open(&self.address(), &limits).unwrap()
    }

    /// Connects as the owner, to which row-level security does not apply.
    pub(crate) async fn owner(&self) -> Db {
        self.owner_address().connect().await.unwrap()
    }

    /// Drops the database now, for tests that go on to drop what depends on it.
    pub(crate) async fn remove(self) {
        drop_database(&mut server().await, &self.name).await.unwrap();
    }

    /// Runs SQL as the owner.
    pub(crate) async fn run(&self, sql: &str) {
        let done = self.owner().await.batch_execute(sql).await;
        done.unwrap_or_else(|fault| panic!("{fault}\n{sql}"));
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.folder());
        // The next run drops the databases that are left when this process ends.
        let name = self.name.clone();
        let remove: Job = Box::new(|server| {
            let dropped = async move { drop_database(server, &name).await };
            // Without a database server, the test itself has failed.
            dropped.map(drop).boxed()
        });
        let _ = DROPPER.send(remove);
    }
}

/// Work on the server.
type Job = Box<dyn for<'c> FnOnce(&'c mut Db) -> BoxFuture<'c, ()> + Send>;

/// Creates databases, and drops them. Tests do not wait until their database is dropped.
static CREATOR: LazyLock<Sender<Job>> = LazyLock::new(worker);
static DROPPER: LazyLock<Sender<Job>> = LazyLock::new(worker);

/// Returns the channel to a new thread with a connection of its own. PostgreSQL spends 5 ms of
/// processor time on each connection.
fn worker() -> Sender<Job> {
    let (sender, jobs) = mpsc::channel::<Job>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let mut server = server().await;
            for job in jobs {
                job(&mut server).await;
            }
        });
    });
    sender
}

/// Drops a database, and the roles that a service created for it.
pub(crate) async fn drop_database(server: &mut Db, name: &str) -> QueryResult<()> {
    let name = name.replace('"', "\"\"");
    server.batch_execute(&format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)")).await?;
    let roles = ["tenant", "system", "recorder"].map(|kind| format!("\"authority_{kind}_{name}\""));
    server.batch_execute(&format!("DROP ROLE IF EXISTS {}", roles.join(", "))).await
}

pub(crate) fn cluster() -> &'static Embedded {
    static CLUSTER: OnceLock<Embedded> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let data_dir = place();
        let settings = [
            ("fsync", "off"),
            ("full_page_writes", "off"),
            ("shared_buffers", "128MB"),
            ("max_connections", "300"),
            ("max_wal_size", "256MB"),
            // With compression, copying the template took a quarter of the time of all tests.
            ("wal_compression", "off"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let options = Options { data_dir: data_dir.clone(), programs: None, settings };
        Embedded::start_blocking(options).unwrap_or_else(|fault| {
            panic!(
                "no database for the tests (after a crash, remove {}): {fault}",
                data_dir.display()
            )
        })
    })
}

/// Returns the folder of the server's data. It is in memory if possible, because file-system work
/// took most of the time of copying and dropping databases.
fn place() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cluster");
    let memory = Path::new("/dev/shm");
    let mut hash = DefaultHasher::new();
    own.hash(&mut hash);
    let place = memory.join(format!("agent-authority-tests-{:016x}", hash.finish()));
    let free = statvfs(memory).map_or(0, |of| of.blocks_available() * of.fragment_size());
    if place.is_dir() || free >= ROOM { place } else { own }
}

/// Returns whether databases can be copied as files, without writing the copy to the write-ahead
/// log. PostgreSQL 14 always copies files and has no such option.
async fn copies_files() -> bool {
    static COPIES: OnceCell<bool> = OnceCell::const_new();
    let asked = async || {
        let version = diesel::select(diesel::dsl::sql::<Bool>(
            "current_setting('server_version_num')::int >= 150000",
        ));
        version.get_result(&mut server().await).await.unwrap()
    };
    place().starts_with("/dev/shm") && *COPIES.get_or_init(asked).await
}

pub(super) async fn server() -> Db {
    Address::parse(&cluster().owner_url_of("postgres")).unwrap().connect().await.unwrap()
}

/// Returns the name of the migrated database. If the migrations are new, the database is created,
/// possibly by another process at the same time.
async fn template() -> &'static str {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    TEMPLATE.get_or_init(make_template).await
}

async fn make_template() -> String {
    let name = format!("template_{:016x}", migrations());
    let mut server = server().await;
    server.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap();
    let there = databases(&mut server).await;
    sweep(&mut server, &there, &name).await;
    if !there.contains(&name) {
        let begin = "DROP DATABASE IF EXISTS building WITH (FORCE)";
        server.batch_execute(begin).await.unwrap();
        server.batch_execute("CREATE DATABASE building").await.unwrap();
        let owner = Address::parse(&cluster().owner_url_of("building")).unwrap();
        migrate(&owner, LOGIN).await.unwrap();
        allow_removal(&owner, true).await.unwrap();
        rename(&mut server, "building", &name).await;
    }
    name
}

/// Renames a database. Tries several times, because connections to it may still be closing.
pub(super) async fn rename(server: &mut Db, from: &str, to: &str) {
    let close =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{from}'");
    let rename = format!("ALTER DATABASE {from} RENAME TO {to}");
    for _ in 0..500 {
        run_on(server, &close).await;
        match server.batch_execute(&rename).await {
            Ok(()) => return,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    panic!("the database {from} stays in use");
}

pub(super) async fn run_on(server: &mut Db, sql: &str) {
    let done = server.batch_execute(sql).await;
    done.unwrap_or_else(|fault| panic!("{fault}\n{sql}"));
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("services").join(name)
}

/// Drops databases that earlier test runs or earlier migrations have left.
async fn sweep(server: &mut Db, there: &[String], template: &str) {
    for name in there {
        let of_process = name.strip_prefix("test_").and_then(|rest| rest.split('_').next());
        let is_dead = of_process
            .and_then(|pid| pid.parse().ok())
            .is_some_and(|pid| matches!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH)));
        if is_dead || (name.starts_with("template_") && name != template) {
            drop_database(server, name).await.unwrap();
            let _ = fs::remove_dir_all(folder(name));
        }
    }
}

pub(super) async fn databases(server: &mut Db) -> Vec<String> {
    #[derive(QueryableByName)]
    struct Named {
        #[diesel(sql_type = Text)]
        datname: String,
    }
    let all = diesel::sql_query("SELECT datname::text FROM pg_database WHERE datallowconn");
    let all: Vec<Named> = all.load(server).await.unwrap();
    let names = all.into_iter().map(|database| database.datname);
    let ours = ["test_", "template_", SEEDED];
    names.filter(|name| ours.iter().any(|start| name.starts_with(start))).collect()
}

/// Returns a hash that changes if any migration changes.
fn migrations() -> u64 {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = fs::read_dir(root.join("migrations"))
        .unwrap()
        .map(|folder| folder.unwrap().path().join("up.sql"))
        .chain([root.join("crates/store/src/roles.sql")])
        .collect();
    files.sort();
    let mut hash = DefaultHasher::new();
    for file in files {
        fs::read(&file).unwrap_or_default().hash(&mut hash);
    }
    hash.finish()
}

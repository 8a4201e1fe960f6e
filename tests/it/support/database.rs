//! A fresh database for each test: a copy of one that was migrated once, in one server that all
//! test runs share.
//!
//! The server keeps running when the tests end and the next run uses it again. Its data are in memory where there is room,
//! and it may lose them in a crash (fsync is off), which does not matter here.

use std::{
    collections::hash_map::DefaultHasher,
    fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use authority_core::store::{
    Address, Db, Limits, Store, allow_removal,
    embedded::{Embedded, LOGIN, Options},
    migrate,
};
use diesel::{
    QueryResult, QueryableByName,
    sql_types::{Bool, Text},
};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use nix::{
    errno::Errno,
    sys::{signal::kill, statvfs::statvfs},
    unistd::Pid,
};
use tokio::sync::OnceCell;

/// What the tests may need in memory, in bytes.
const ROOM: u64 = 2 << 30;

/// What begins the names of databases that `seeded.rs` makes.
pub(super) const SEEDED: &str = "seeded_";

/// A database of its own, gone when dropped.
pub(crate) struct Database {
    name: String,
}

impl Database {
    /// Migrated.
    pub(crate) async fn fresh() -> Self {
        Self::copy(template().await).await
    }

    /// A copy of another database, which must have no connections.
    pub(super) async fn copy(template: &str) -> Self {
        let strategy = if copies_files().await { "STRATEGY FILE_COPY" } else { "" };
        Self::make(&format!("TEMPLATE {template} {strategy}")).await
    }

    /// A copy under this name: of the migrated one if of no other.
    pub(super) async fn named(name: &str, other: Option<&str>) -> Self {
        let template = match other {
            Some(other) => other,
            None => template().await,
        };
        run_on(&mut server().await, &format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        Self { name: name.to_owned() }
    }

    /// With nothing in it.
    pub(crate) async fn empty() -> Self {
        template().await;
        Self::make("").await
    }

    async fn make(how: &str) -> Self {
        super::callers::show_callers();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut server = server().await;
        server.batch_execute(&format!("CREATE DATABASE {name} {how}")).await.unwrap();
        Self { name }
    }

    /// A folder for the files of a service on it.
    pub(crate) fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("services").join(&self.name)
    }

    /// As the service sees it: for `DATABASE_URL`.
    pub(crate) fn url(&self) -> String {
        cluster().url_of(&self.name)
    }

    /// As its owner, a superuser.
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

    /// The login and the name of the database.
    pub(crate) fn names(&self) -> (&'static str, &str) {
        (LOGIN, &self.name)
    }

    /// The address of the server, as in its URL.
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
        // A test has few callers; each connection begins with plans and caches of its own.
        let limits = Limits { tenant: 8, system: 6, recorder: 2, events: 3, ..Limits::default() };
        Store::open(&self.address(), &limits).unwrap()
    }

    /// A connection as the owner, to whom no rule applies.
    pub(crate) async fn owner(&self) -> Db {
        self.owner_address().connect().await.unwrap()
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
        let name = self.name.clone();
        // The test's own runtime may be ending.
        let done = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async { drop_database(&mut server().await, &name).await })
        });
        // A panic here would hide the test's own; the next run cleans up.
        let _ = done.join();
    }
}

/// Also the roles that a service created for it.
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
            // Of each copy of the template; it took a quarter of the time of all tests.
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

/// Where the server's data are: to copy and drop a database for each test was mostly the file system's work.
fn place() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cluster");
    let memory = Path::new("/dev/shm");
    let mut hash = DefaultHasher::new();
    own.hash(&mut hash);
    let place = memory.join(format!("agent-authority-tests-{:016x}", hash.finish()));
    let free = statvfs(memory).map_or(0, |of| of.blocks_available() * of.fragment_size());
    if place.is_dir() || free >= ROOM { place } else { own }
}

/// Whether the server can copy a database without writing the whole copy to its log as well. It does in PostgreSQL 14
/// anyway, which has no word for it.
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

/// The migrated database, created if the migrations are new. Other processes may do so as well.
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

/// Also while connections to it are still closing.
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

/// Drops databases that earlier migrations and test runs left.
async fn sweep(server: &mut Db, there: &[String], template: &str) {
    for name in there {
        let of_process = name.strip_prefix("test_").and_then(|rest| rest.split('_').next());
        let is_dead = of_process
            .and_then(|pid| pid.parse().ok())
            .is_some_and(|pid| matches!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH)));
        if is_dead || (name.starts_with("template_") && name != template) {
            drop_database(server, name).await.unwrap();
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

/// Changes with any migration.
fn migrations() -> u64 {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = fs::read_dir(root.join("migrations"))
        .unwrap()
        .map(|folder| folder.unwrap().path().join("up.sql"))
        .chain([root.join("crates/core/src/store/roles.sql")])
        .collect();
    files.sort();
    let mut hash = DefaultHasher::new();
    for file in files {
        fs::read(&file).unwrap_or_default().hash(&mut hash);
    }
    hash.finish()
}

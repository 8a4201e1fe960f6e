//! pgbouncer in front of the database: session pooling works, and shared sessions are refused.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{MetadataExt, chown},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use authority_store::{Address, Error, Limits, Scope, Serving, Store, embedded::LOGIN, migrate};
use diesel::{QueryableByName, sql_types::Text};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use nix::unistd::{Uid, User};
use tempfile::TempDir;

use crate::support::{database::Database, shown::not_shown};

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A pgbouncer in front of one database.
struct Pooler {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Pooler {
    /// Starts pgbouncer, or returns `None` if it is not installed.
    fn start(database: &Database, mode: &str) -> Option<Self> {
        if !Path::new(PROGRAM).is_file() {
            not_shown(&format!("this machine has no {PROGRAM}; script/features installs it"));
            return None;
        }
        let socket = database.socket();
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // pgbouncer may not run as root, and only the server's user can access the socket.
        let owner = fs::metadata(&socket).unwrap().uid();
        let user = User::from_uid(Uid::from_raw(owner)).unwrap().unwrap().name;
        let (users, settings) = (folder.path().join("users"), folder.path().join("ini"));
        fs::write(&users, format!("\"{LOGIN}\" \"\"\n\"postgres\" \"\"\n")).unwrap();
        let text = format!(
            "[databases]\n* = host={} port=5432\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {}\n\
             pool_mode = {mode}\nmax_client_conn = 200\ndefault_pool_size = 60\n",
            socket.parent().unwrap().display(),
            users.display()
        );
        fs::write(&settings, text).unwrap();
        for path in [folder.path(), &users, &settings] {
            chown(path, Some(owner), None).unwrap();
        }
        let mut program = Command::new(PROGRAM);
        if nix::unistd::geteuid().is_root() {
            program.args(["-u", &user]);
        }
        let child = program.arg("-q").arg(&settings).stderr(Stdio::null()).spawn().unwrap();
        Some(Self { child, port, _folder: folder })
    }

    #[track_caller]
    fn address(&self, login: &str, database: &Database) -> Address {
        let (_, name) = database.names();
        let url = format!("postgres://{login}@127.0.0.1:{}/{name}?sslmode=disable", self.port);
        Address::parse(&url).unwrap()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(QueryableByName)]
struct Role {
    #[diesel(sql_type = Text)]
    role: String,
}

/// Returns the role of a session when the next client gets it.
async fn role(address: &Address) -> String {
    let mut db = address.connect().await.unwrap();
    let role = diesel::sql_query("SELECT current_user::text AS role");
    role.get_result::<Role>(&mut db).await.unwrap().role
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_for_each_connection_works_and_leaks_no_role() {
    let database = Database::empty().await;
    migrate(&database.owner_address(), LOGIN).await.unwrap();
    let Some(pooler) = Pooler::start(&database, "session") else { return };
    let address = pooler.address(LOGIN, &database);
    address.wait(Duration::from_secs(10)).await.unwrap();
    Serving::inspect(&address).await.unwrap();
    let store = Store::open(&address, &Limits::default()).unwrap();
    assert!(store.is_current().await.unwrap());
    for connection in [store.recorder().await, store.system().await] {
        let mut db = connection.unwrap();
        let role = diesel::sql_query("SELECT current_user::text AS role");
        let role = role.get_result::<Role>(&mut db).await.unwrap().role;
        assert!(role.starts_with("authority_"), "{role}");
    }
    drop(store);
    for _ in 0..10 {
        assert_eq!(role(&address).await, LOGIN);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_sessions_are_refused_and_no_role_leaks() {
    let database = Database::empty().await;
    migrate(&database.owner_address(), LOGIN).await.unwrap();
    for mode in ["transaction", "statement"] {
        let Some(pooler) = Pooler::start(&database, mode) else { return };
        for login in [LOGIN, "postgres"] {
            let address = pooler.address(login, &database);
            let refused = address.wait(Duration::from_secs(10)).await.unwrap_err();
            let Error::Address(told) = refused else { panic!("{refused:?}") };
            for part in ["gives one session to several connections", "pool_mode = session"] {
                assert!(told.contains(part), "{mode}: {told}");
            }
        }
        // The refused attempt leaves no state in the sessions that the next client gets.
        let url = pooler.address(LOGIN, &database);
        assert_eq!(role(&url).await, LOGIN, "{mode}");
    }
}

/// Direct connections, over TCP or over a socket, are recognized as separate sessions.
#[tokio::test]
async fn sessions_of_postgres_itself_are_not_refused() {
    let database = Database::fresh().await;
    for _ in 0..20 {
        database.address().wait(Duration::from_secs(1)).await.unwrap();
    }
    let work = database.store().read_tx(&Scope::service(), async move |db| {
        Ok::<_, Error>(db.batch_execute("SELECT 1").await?)
    });
    work.await.unwrap();
}

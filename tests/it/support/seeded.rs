//! Two databases on which a service was started, the second with the demonstration tenant. They are
//! created once for each build, because creating them for each test took longer than most tests.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
};

use agent_authority::app::demo::Demo;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{
    TestApp,
    database::{self, Database},
};

/// The key ring of both databases and of their copies.
pub(super) const RING: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// The name of a database that is still being created.
const BEGUN: &str = "seeding";

/// Returns a copy of the first database.
pub(super) async fn started() -> Database {
    Database::copy(&made().await.0).await
}

/// Returns a copy of the second database, with the tenant's API key and delegation.
pub(super) async fn demonstration() -> (Database, Demo) {
    let name = &made().await.1;
    let demo: Value = serde_json::from_slice(&fs::read(file(name)).unwrap()).unwrap();
    let text = |member: &str| demo[member].as_str().unwrap().to_owned();
    let demo = Demo { api_key: text("api_key"), delegation_id: text("delegation_id") };
    (Database::copy(name).await, demo)
}

/// Returns the names of both databases. Creates them, unless another process with this build
/// already has.
async fn made() -> &'static (String, String) {
    static NAMES: OnceCell<(String, String)> = OnceCell::const_new();
    NAMES.get_or_init(make).await
}

async fn make() -> (String, String) {
    let build = build();
    let name = |kind: &str| format!("{}{kind}_{build:016x}", database::SEEDED);
    let (started, demonstration) = (name("start"), name("demo"));
    let mut server = database::server().await;
    database::run_on(&mut server, "SELECT pg_advisory_lock(2)").await;
    let there = database::databases(&mut server).await;
    if there.contains(&demonstration) && file(&demonstration).is_file() {
        return (started, demonstration);
    }
    let old = there.iter().map(String::as_str).filter(|name| name.starts_with(database::SEEDED));
    for old in old.chain([BEGUN]) {
        database::drop_database(&mut server, old).await.unwrap();
    }
    let app = TestApp::with_ring(Database::named(BEGUN, None).await, RING).await;
    stop(app, &started).await;
    let app = TestApp::with_ring(Database::named(BEGUN, Some(&started)).await, RING).await;
    let demo = app.demo().await;
    let demo = json!({"api_key": demo.api_key, "delegation_id": demo.delegation_id});
    fs::create_dir_all(file(&demonstration).parent().unwrap()).unwrap();
    fs::write(file(&demonstration), demo.to_string()).unwrap();
    stop(app, &demonstration).await;
    (started, demonstration)
}

/// Stops the service and renames its database to this name.
async fn stop(app: TestApp, name: &str) {
    app.supervisor.stop().await;
    app.app.store.close();
    database::rename(&mut database::server().await, BEGUN, name).await;
}

/// Returns the path of the file that stores the tenant's API key.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("seeded").join(name)
}

/// Returns a hash of this build. Each build's service creates a tenant of its own.
fn build() -> u64 {
    let about = fs::metadata(env::current_exe().unwrap()).unwrap();
    let mut hash = DefaultHasher::new();
    (about.modified().unwrap(), about.len()).hash(&mut hash);
    hash.finish()
}

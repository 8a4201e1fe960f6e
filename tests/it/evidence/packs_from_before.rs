//! Packs that were sealed before migration 49 and are stored whole, and the migration itself.

use std::path::Path;

use authority_core::store::{embedded::LOGIN, migrate};
use diesel::{QueryableByName, sql_types::Text};
use diesel_async::RunQueryDsl;
use serde_json::Value;

use super::{
    packs::{Packs, are_as_they_were, seal_some},
    sealing,
};
use crate::support::{TestApp, Wishes};

/// Migration 49 and the later migrations that build on it, newest first.
const MIGRATIONS: [&str; 2] = ["00000000000050_archives", "00000000000049_packs_by_month"];

/// Restores the schema before the migrations, with these packs as its rows in the order of the log,
/// as if an earlier release had sealed them.
async fn go_back(app: &TestApp, packs: &Packs) {
    app.database.run("SET session_replication_role = replica; DELETE FROM evidence_packs").await;
    for migration in MIGRATIONS {
        let down = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(migration);
        let down = std::fs::read_to_string(down.join("down.sql")).unwrap();
        let (version, _) = migration.split_once('_').unwrap();
        app.database
            .run(&format!(
                "SET session_replication_role = replica; {down};
                 DELETE FROM __diesel_schema_migrations WHERE version = '{version}'"
            ))
            .await;
    }
    for (id, pack) in packs {
        let mut leaf: Value = serde_json::from_str(pack).unwrap();
        let log = leaf.as_object_mut().unwrap().remove("log").unwrap();
        let body = hex::encode(serde_json_canonicalizer::to_vec(&leaf).unwrap());
        let text = |member: &str| log[member].as_str().unwrap().to_owned();
        app.database
            .run(&format!(
                "INSERT INTO evidence_packs
                     (decision_id, tenant_id, epoch, origin, log_index, body, proof, sealed_at)
                 VALUES ('{id}', 'svc:tenant:acme', 1, '{}', {}, '\\x{body}', '{}', {})",
                text("origin"),
                log["index"],
                text("proof"),
                leaf["sealed_at"].to_string().replace('"', "'"),
            ))
            .await;
    }
}

/// Upgrades the database from an earlier release that had sealed these packs.
pub(crate) async fn upgraded(app: &TestApp, packs: &Packs) {
    go_back(app, packs).await;
    migrate(&app.database.owner_address(), LOGIN).await.unwrap();
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    text: String,
}

async fn line(app: &TestApp, sql: &str) -> String {
    let mut owner = app.database.owner().await;
    diesel::sql_query(sql).get_result::<Line>(&mut owner).await.unwrap().text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_packs_stay_and_the_log_goes_on() {
    let (app, client) = sealing().await;
    let mut packs = seal_some(&client, 1).await;
    packs.extend(seal_some(&client, 6).await);
    go_back(&app, &packs).await;
    let owner = app.database.owner_address();
    let versions = ["00000000000049", "00000000000050"];
    assert_eq!(migrate(&owner, LOGIN).await.unwrap().versions, versions);
    // The migration ran, but its attempt ended before its version was stored.
    app.database.run("DELETE FROM __diesel_schema_migrations WHERE version LIKE '%49'").await;
    assert_eq!(migrate(&owner, LOGIN).await.unwrap().versions, ["00000000000049"]);

    let beside = app.beside(Wishes::default()).await;
    let there = beside.client(&client.token);
    are_as_they_were(&packs, &there).await;
    let last = packs.iter().max_by_key(|(_, pack)| {
        serde_json::from_str::<Value>(pack).unwrap()["log"]["index"].as_u64().unwrap()
    });
    let sealed_last = line(&app, "SELECT last_decision_id AS text FROM log_heads").await;
    assert_eq!(sealed_last, last.unwrap().0);

    // The log continues, and packs in the old and in the new form are read together.
    let more = seal_some(&there, 3).await;
    let indices = more.iter().map(|(_, pack)| {
        serde_json::from_str::<Value>(pack).unwrap()["log"]["index"].as_u64().unwrap()
    });
    let mut indices: Vec<u64> = indices.collect();
    indices.sort_unstable();
    assert_eq!(indices, [7, 8, 9]);
    packs.extend(more);
    are_as_they_were(&packs, &there).await;
    let forms = "SELECT string_agg(form, ', ') AS text FROM (
        SELECT count(*) || CASE WHEN tree_size IS NULL THEN ' whole' ELSE ' by place' END AS form
        FROM evidence_packs GROUP BY tree_size IS NULL ORDER BY 1 DESC) AS forms";
    assert_eq!(line(&app, forms).await, "7 whole, 3 by place");
}

/// The original table is now a partition. It grants no access of its own to packs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_of_before_is_a_partition_like_any_other() {
    let (app, client) = sealing().await;
    let packs = seal_some(&client, 1).await;
    go_back(&app, &packs).await;
    migrate(&app.database.owner_address(), LOGIN).await.unwrap();
    let parts = "SELECT string_agg(c.relname, ' ' ORDER BY c.relname) AS text
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'evidence_packs'::regclass AND ";
    let rights = "EXISTS (SELECT FROM aclexplode(c.relacl) r WHERE r.grantee <> c.relowner)";
    let with = |what: &str| format!("SELECT coalesce(({parts} {what}), 'none') AS text");
    let of_both = "(c.relrowsecurity OR c.relforcerowsecurity)";
    assert_eq!(line(&app, &with(rights)).await, "none");
    assert_eq!(line(&app, &with(of_both)).await, "none");
    // That partition contains the packs of the current month. The next month has its own partition.
    let next = "SELECT 'evidence_packs_' || to_char(
        date_trunc('month', now() + interval '1 day', 'UTC') + interval '1 month', 'YYYYMMDD') AS text";
    let next = line(&app, next).await;
    let named =
        line(&app, &format!("{parts} (c.relname <= '{next}' OR c.relname ~ 'before')")).await;
    assert_eq!(named, format!("{next} evidence_packs_before"));
    let mut owner = app.database.owner().await;
    let change = "DELETE FROM evidence_packs";
    let told = diesel::sql_query(change).execute(&mut owner).await.unwrap_err().to_string();
    assert!(told.contains("append-only"), "{told}");
}

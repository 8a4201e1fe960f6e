//! The order of the change log, and the fence.

use std::{collections::HashMap, time::Duration};

use authority_store::{Db, Error, Notification, Store};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use diesel_async::{AsyncConnection, RunQueryDsl, SimpleAsyncConnection};
use tokio::time::{sleep, timeout};
use tokio_stream::StreamExt;

use super::{number, of, with_tables};
use crate::support::run_workers;

const WRITERS: u32 = 32;
const WRITES: u32 = 8;

#[derive(QueryableByName, Clone)]
struct Change {
    #[diesel(sql_type = BigInt)]
    seq: i64,
    #[diesel(sql_type = BigInt)]
    tenant_revision: i64,
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Text)]
    entity_id: String,
}

async fn after(db: &mut Db, seq: i64) -> Vec<Change> {
    let sql = "SELECT seq, tenant_revision, tenant_id, entity_id FROM authority_changes
               WHERE seq > $1 ORDER BY seq";
    diesel::sql_query(sql).bind::<BigInt, _>(seq).load(db).await.unwrap()
}

/// Returns a duration of a few milliseconds that varies with the seed.
fn moment(seed: u32) -> Duration {
    Duration::from_micros(u64::from(seed.wrapping_mul(2_654_435_761) >> 20) * 2)
}

async fn write(store: Store, writer: u32) {
    for turn in 0..WRITES {
        let seed = writer * WRITES + turn;
        let scope = of(&format!("t{}", writer % 3));
        let tenant = scope.tenant.clone().unwrap();
        let wrote = store.write_tx(&scope, async move |db| {
            let insert = |id: u32| {
                format!("INSERT INTO things (id, tenant_id) VALUES ('{seed}.{id}', '{tenant}')")
            };
            db.batch_execute(&insert(0)).await?;
            sleep(moment(seed)).await;
            db.batch_execute(&insert(1)).await?;
            sleep(moment(seed + 77)).await;
            Ok::<_, Error>(())
        });
        wrote.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_by_number_misses_nothing() {
    let database = with_tables().await;
    let store = database.store();
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| tokio::spawn(write(store.clone(), writer))).collect();
    let all = usize::try_from(WRITERS * WRITES * 2).unwrap();
    let mut tail = store.system().await.unwrap();
    let (mut read, mut position) = (Vec::new(), 0);
    while read.len() < all {
        let news = after(&mut tail, position).await;
        position = news.last().map_or(position, |change| change.seq);
        read.extend(news);
        sleep(Duration::from_millis(1)).await;
        if writers.iter().all(tokio::task::JoinHandle::is_finished) {
            read.extend(after(&mut tail, position).await);
            break;
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(read.len(), all, "the reader missed changes");
    let mut revisions = HashMap::new();
    for change in &read {
        let revision: &mut i64 = revisions.entry(change.tenant_id.clone()).or_default();
        *revision += 1;
        assert_eq!(change.tenant_revision, *revision, "of {}", change.entity_id);
    }
    for (tenant, revision) in revisions {
        let sql =
            format!("SELECT revision AS n FROM tenant_revisions WHERE tenant_id = '{tenant}'");
        assert_eq!(number(&mut tail, &sql).await, revision);
    }
}

const FENCE: &str = "SELECT sum(revision)::bigint AS n FROM fence('{svc:tenant:a}')";

#[tokio::test]
async fn the_fence_waits_for_a_change_under_way_and_sees_it() {
    let database = with_tables().await;
    let store = database.store();
    let mut change = database.owner().await;
    // Runs the deferred trigger now, as in a commit that takes long.
    let held = "BEGIN; INSERT INTO things (id, tenant_id) VALUES ('1', 'svc:tenant:a');
                SET CONSTRAINTS ALL IMMEDIATE";
    change.batch_execute(held).await.unwrap();
    let fence =
        tokio::spawn(async move { number(&mut store.recorder().await.unwrap(), FENCE).await });
    sleep(Duration::from_millis(150)).await;
    assert!(!fence.is_finished(), "the fence did not wait");
    change.batch_execute("COMMIT").await.unwrap();
    assert_eq!(fence.await.unwrap(), 1, "the fence read a state from before its wait");
}

#[tokio::test]
async fn the_fence_holds_later_changes_back_and_other_fences_not() {
    let database = with_tables().await;
    let store = database.store();
    let mut recorder = store.recorder().await.unwrap();
    let (mut second, other) = (store.recorder().await.unwrap(), store.clone());
    let fenced = recorder.transaction(async |db| {
        assert_eq!(number(db, FENCE).await, 0);
        assert_eq!(number(&mut second, FENCE).await, 0);
        let change = tokio::spawn(async move {
            let insert = "INSERT INTO things (id, tenant_id) VALUES ('1', 'svc:tenant:a')";
            other
                .write_tx(&of("a"), async move |db| Ok::<_, Error>(db.batch_execute(insert).await?))
                .await
        });
        sleep(Duration::from_millis(150)).await;
        assert!(!change.is_finished(), "the change did not wait for the fence");
        Ok::<_, Error>(change)
    });
    let change = fenced.await.unwrap();
    change.await.unwrap().unwrap();
    assert_eq!(number(&mut recorder, FENCE).await, 1);
    recorder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    assert!(recorder.batch_execute("SELECT fence('{svc:tenant:a}')").await.is_err());
}

#[tokio::test]
async fn one_notice_a_transaction() {
    let database = with_tables().await;
    let store = database.store();
    let mut heard = store.notifications("authority_changes");
    run_workers([store.listener()]);
    assert_eq!(heard.next().await, Some(Notification::Listening));
    let insert = "INSERT INTO things (id, tenant_id) SELECT n::text, 'svc:tenant:a' FROM generate_series(1, 50) n";
    let scope = of("a");
    let wrote =
        store.write_tx(&scope, async move |db| Ok::<_, Error>(db.batch_execute(insert).await?));
    wrote.await.unwrap();
    assert_eq!(heard.next().await, Some(Notification::Received(String::new())));
    assert!(timeout(Duration::from_millis(100), heard.next()).await.is_err());
}

//! Tenancy, history and append-only tables.

use authority_api::error::{ApiError, ErrorCode};
use authority_ids::TenantId;
use authority_store::{Db, Error, Scope, Store};
use diesel::{
    QueryableByName,
    sql_types::{Bool, Jsonb, Nullable, Text},
};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use serde_json::{Value, json};

use super::{number, of, owner, with_tables};
use crate::support::database::Database;

async fn act(store: &Store, scope: &Scope, sql: &'static str) -> Result<(), Error> {
    store.write_tx(scope, async move |db| Ok::<_, Error>(db.batch_execute(sql).await?)).await
}

async fn count(store: &Store, scope: &Scope, sql: &'static str) -> i64 {
    let counted = store.read_tx(scope, async move |db| Ok::<_, Error>(number(db, sql).await)).await;
    counted.unwrap()
}

#[tokio::test]
async fn a_tenant_sees_and_touches_its_own_rows_alone() {
    let database = with_tables().await;
    let store = database.store();
    act(&store, &of("a"), "INSERT INTO things (id, tenant_id) VALUES ('1', 'svc:tenant:a')")
        .await
        .unwrap();
    act(&store, &of("b"), "INSERT INTO things (id, tenant_id) VALUES ('2', 'svc:tenant:b')")
        .await
        .unwrap();

    let things = "SELECT count(*) AS n FROM things";
    assert_eq!(count(&store, &of("a"), things).await, 1);
    assert_eq!(count(&store, &of("c"), things).await, 0);
    assert!(["", "a' OR 'a' = 'a"].iter().all(|slug| TenantId::from_slug(slug).is_err()));
    assert_eq!(count(&store, &owner(), things).await, 2);
    let versions = "SELECT count(*) AS n FROM record_versions";
    assert_eq!(count(&store, &of("a"), versions).await, 1);
    assert_eq!(count(&store, &of("a"), "SELECT count(*) AS n FROM authority_changes").await, 1);

    act(&store, &of("b"), "UPDATE things SET label = 'taken'").await.unwrap();
    act(&store, &of("b"), "DELETE FROM things WHERE id = '1'").await.unwrap();
    let untouched = "SELECT count(*) AS n FROM things WHERE id = '1' AND label = ''";
    assert_eq!(count(&store, &owner(), untouched).await, 1);

    for (scope, sql) in [
        (of("b"), "INSERT INTO things (id, tenant_id) VALUES ('3', 'svc:tenant:a')"),
        (of("b"), "UPDATE things SET tenant_id = 'svc:tenant:a' WHERE id = '2'"),
        (of("b"), "INSERT INTO things (id, tenant_id) VALUES ('4', '')"),
        (of("a"), "UPDATE record_versions SET actor = 'nobody'"),
        (
            of("a"),
            "INSERT INTO authority_changes VALUES (DEFAULT, 'svc:tenant:a', 9, 'x', 'x', now())",
        ),
        (of("a"), "SELECT * FROM fence('{svc:tenant:a}')"),
        (of("a"), "TRUNCATE things"),
        (owner(), "ALTER TABLE things DISABLE ROW LEVEL SECURITY"),
        (owner(), "CREATE TABLE public.more ()"),
        (owner(), "UPDATE things SET tenant_id = 'svc:tenant:a' WHERE id = '2'"),
    ] {
        let refused = act(&store, &scope, sql).await;
        assert!(refused.is_err(), "{sql}");
    }
}

/// Uses the login role itself, as on a connection for which no role was set.
#[tokio::test]
async fn the_login_role_itself_sees_nothing() {
    let database = with_tables().await;
    database.run("INSERT INTO things (id, tenant_id) VALUES ('1', 'svc:tenant:a')").await;
    let mut db = database.address().connect().await.unwrap();
    db.batch_execute("SET authority.tenant = 'svc:tenant:a'").await.unwrap();
    assert!(db.batch_execute("SELECT id FROM things").await.is_err());
}

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = Text)]
    actor: String,
    #[diesel(sql_type = Nullable<Jsonb>)]
    body: Option<Value>,
    #[diesel(sql_type = Bool)]
    is_present: bool,
    #[diesel(sql_type = Bool)]
    is_joined: bool,
}

async fn versions(db: &mut Db) -> Vec<Version> {
    diesel::sql_query(
        "SELECT actor, body, valid_to IS NULL AS is_present,
                coalesce(valid_from = lag(valid_to) OVER (ORDER BY version), true) AS is_joined
         FROM record_versions WHERE entity_id = '1' ORDER BY version",
    )
    .load(db)
    .await
    .unwrap()
}

#[tokio::test]
async fn every_change_leaves_a_version_without_secrets() {
    let database = with_tables().await;
    let store = database.store();
    let (ada, bob) = (of("a"), Scope { actor: "bob's \\ machine".to_owned(), ..of("a") });
    for (scope, sql) in [
        (&ada, "INSERT INTO things (id, tenant_id, secret) VALUES ('1', 'svc:tenant:a', 'hush')"),
        (&bob, "UPDATE things SET label = 'new' WHERE id = '1'"),
        (&bob, "UPDATE things SET label = 'new', used_at = now() WHERE id = '1'"),
        (&ada, "DELETE FROM things WHERE id = '1'"),
    ] {
        act(&store, scope, sql).await.unwrap();
    }
    let mut db = database.owner().await;
    let kept = versions(&mut db).await;
    let told: Vec<_> = kept.iter().map(|v| (v.actor.as_str(), v.body.clone())).collect();
    let body = |label| {
        Some(json!({"id": "1", "tenant_id": "svc:tenant:a", "label": label, "used_at": null}))
    };
    let expected = [("ada of a", body("")), ("bob's \\ machine", body("new")), ("ada of a", None)];
    assert_eq!(told, expected);
    assert!(kept.iter().all(|version| version.is_joined && !version.is_present));
    // The update without an effect does not count as a change of authority either.
    assert_eq!(number(&mut db, "SELECT count(*) AS n FROM authority_changes").await, 3);
    assert_eq!(number(&mut db, "SELECT max(revision) AS n FROM tenant_revisions").await, 3);

    // Personal data can be erased from stored versions too, but only by the tenant that owns them.
    act(&store, &of("b"), "SELECT forget('1', '{label}')").await.unwrap();
    let holding = "SELECT count(*) AS n FROM record_versions WHERE body ? 'label'";
    assert_eq!(number(&mut db, holding).await, 2);
    act(&store, &of("a"), "SELECT forget('1', '{label}')").await.unwrap();
    assert_eq!(number(&mut db, holding).await, 0);
}

#[tokio::test]
async fn without_an_actor_the_login_is_written_down() {
    let database = with_tables().await;
    database.run("INSERT INTO things (id, tenant_id) VALUES ('1', 'svc:tenant:a')").await;
    let kept = versions(&mut database.owner().await).await;
    assert_eq!(kept[0].actor, "database:postgres");
}

#[tokio::test]
async fn append_only_tables_refuse_all_but_inserts() {
    let database = with_tables().await;
    let parted = r#"
        CREATE TABLE acts (id text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL)
            PARTITION BY RANGE (id);
        CALL append_only('acts');
        CALL partition_by_time('acts', 'svc:act:', 'week');
        INSERT INTO acts VALUES (time_bound('svc:act:', now()), 'svc:tenant:a');
        INSERT INTO facts VALUES ('1', 'svc:tenant:a');
    "#;
    database.run(parted).await;
    let mut db = database.owner().await;
    for sql in [
        "UPDATE facts SET tenant_id = 'svc:tenant:b'",
        "DELETE FROM facts",
        "TRUNCATE facts",
        "INSERT INTO facts VALUES ('1', 'svc:tenant:b') ON CONFLICT (id) DO UPDATE SET tenant_id = 'svc:tenant:b'",
        "UPDATE acts SET tenant_id = 'svc:tenant:b'",
        "DELETE FROM acts",
        "TRUNCATE acts",
        "TRUNCATE acts_before",
        "DO $$ DECLARE part regclass := (SELECT tableoid::regclass FROM acts);
            BEGIN EXECUTE format('TRUNCATE %s', part); END $$",
        "DO $$ DECLARE part regclass := (SELECT tableoid::regclass FROM acts);
            BEGIN EXECUTE format('DELETE FROM %s', part); END $$",
    ] {
        let refused = Error::from(db.batch_execute(sql).await.unwrap_err());
        assert!(
            matches!(&refused, Error::Refused(why) if why.contains("append-only")),
            "{sql}: {refused}"
        );
    }
    let store = database.store();
    for sql in
        ["UPDATE facts SET tenant_id = 'svc:tenant:a'", "DELETE FROM facts", "TRUNCATE facts"]
    {
        assert!(act(&store, &of("a"), sql).await.is_err(), "{sql}");
        let recorder = store.recorder().await.unwrap().batch_execute(sql).await;
        assert!(recorder.is_err(), "{sql}");
    }
    let mut recorder = store.recorder().await.unwrap();
    recorder
        .batch_execute("INSERT INTO facts VALUES ('2', 'svc:tenant:a'), ('3', 'svc:tenant:b')")
        .await
        .unwrap();
    assert_eq!(number(&mut recorder, "SELECT count(*) AS n FROM facts").await, 3);
}

#[tokio::test]
async fn partitions_are_made_ahead_once() {
    let database = with_tables().await;
    let table = r#"
        CREATE TABLE acts (id text COLLATE "C" PRIMARY KEY, tenant_id text COLLATE "C" NOT NULL)
            PARTITION BY RANGE (id);
        CALL append_only('acts');
        CALL partition_by_time('acts', 'svc:act:');
    "#;
    database.run(table).await;
    let mut db = database.store().system().await.unwrap();
    let extend = "SELECT extend_partitions(now() + interval '1 year')::bigint AS n";
    assert!(number(&mut db, extend).await >= 8);
    assert_eq!(number(&mut db, extend).await, 0);
    let at = |when: &str| {
        format!("INSERT INTO acts VALUES (time_bound('svc:act:', {when}) || 'ff', 'svc:tenant:a')")
    };
    for when in ["now()", "now() - interval '9 years'", "now() + interval '1 year'"] {
        db.batch_execute(&at(when)).await.unwrap();
    }
    assert!(db.batch_execute(&at("now() + interval '3 years'")).await.is_err());
    let far = "SELECT extend_partitions(now() + interval '3 years')";
    assert!(db.batch_execute(far).await.is_err());
    let spread = "SELECT count(DISTINCT tableoid) AS n FROM acts";
    assert_eq!(number(&mut db, spread).await, 3);
}

#[tokio::test]
async fn decision_columns_are_never_analyzed() {
    let database = Database::fresh().await;
    let mut db = database.owner().await;
    let targets = |column: &str, target: u8| {
        format!(
            "SELECT count(*) AS n FROM pg_partition_tree('decisions') JOIN pg_attribute
             ON attrelid = relid WHERE attname = '{column}' AND attstattarget = {target}"
        )
    };
    let parts = "SELECT count(*) AS n FROM pg_inherits WHERE inhparent = 'decisions'::regclass";
    let before = number(&mut db, &targets("record", 0)).await;
    let had = number(&mut db, parts).await;
    number(&mut db, "SELECT extend_partitions(now() + interval '1 year')::bigint AS n").await;
    let made = number(&mut db, parts).await - had;
    assert!(before > 2 && made > 2, "{before} {made}");
    assert_eq!(number(&mut db, &targets("record", 0)).await, before + made);
    assert_eq!(number(&mut db, &targets("tenant_id", 10)).await, before + made);
}

/// PostgreSQL compresses rows above 2 KiB by default, which decisions exceed. The tables raise this
/// limit, because compression would cost as much as all other work on the row.
#[tokio::test]
async fn rows_of_decisions_stay_as_they_are() {
    let database = Database::fresh().await;
    let mut db = database.owner().await;
    let kept =
        "SELECT count(*) AS n FROM pg_partition_tree('decisions') JOIN pg_class ON oid = relid
                WHERE isleaf AND 'toast_tuple_target=4080' = ANY (reloptions)";
    let before = number(&mut db, kept).await;
    let extend = "SELECT extend_partitions(now() + interval '1 year')::bigint AS n";
    let made = number(&mut db, extend).await;
    let leaves = "SELECT count(*) AS n FROM pg_partition_tree('decisions') WHERE isleaf";
    assert_eq!(number(&mut db, kept).await, number(&mut db, leaves).await);
    assert!(before > 2 && made > 2, "{before} {made}");
    let row = |id: &str, bytes: u32| {
        format!(
            "INSERT INTO decisions (id, tenant_id, subject, action, decision, reason_code,
                 evaluated_at, record, kid, signature, context, context_salt, facts, facts_salt)
             VALUES (time_bound('svc:decision:', now()) || '{id}', 't', 's', 'a', 'deny', 'r', now(),
                 convert_to(repeat('x', {bytes}), 'UTF8'), 'k', '', '', '', '', '')"
        )
    };
    db.batch_execute(&row("a", 3000)).await.unwrap();
    db.batch_execute(&row("b", 5000)).await.unwrap();
    let whole = "SELECT count(*) AS n FROM decisions WHERE pg_column_size(record) > 3000";
    assert_eq!(number(&mut db, whole).await, 1, "only the shorter one is whole");
}

#[tokio::test]
async fn errors_are_distinguished() {
    let database = Database::fresh().await;
    database
        .run(
            "CREATE TABLE parents (id text PRIMARY KEY CHECK (id <> ''));
               CREATE TABLE children (id text PRIMARY KEY, parent text REFERENCES parents);
               CALL grant_to('{system}', 'ALL ON parents, children');
               INSERT INTO parents VALUES ('1'); INSERT INTO children VALUES ('1', '1');",
        )
        .await;
    let store = database.store();
    let fault = async |sql| act(&store, &owner(), sql).await.unwrap_err();
    for (sql, expected) in [
        ("INSERT INTO parents VALUES ('1')", "Conflict(\"parents_pkey\")"),
        ("INSERT INTO children VALUES ('2', '9')", "Reference(\"children_parent_fkey\")"),
        ("INSERT INTO parents VALUES ('')", "Refused(\"parents_id_check\")"),
        ("SET LOCAL statement_timeout = 20; SELECT pg_sleep(9)", "Timeout("),
        ("SELECT 1 / 0", "Internal("),
    ] {
        let fault = format!("{:?}", fault(sql).await);
        assert!(fault.starts_with(expected), "{sql}: {fault}");
    }
    // A missing parent and a parent that is still used give the same SQLSTATE.
    let mut db = store.system().await.unwrap();
    let in_use = db.batch_execute("DELETE FROM parents").await.unwrap_err();
    let in_use = format!("{:?}", Error::of_deletion(in_use));
    assert_eq!(in_use, "InUse(\"children_parent_fkey\")");
    let refusal = ApiError::from(fault("INSERT INTO parents VALUES ('1')").await);
    assert_eq!(refusal.code, ErrorCode::AlreadyExists);
    assert_eq!(refusal.about, [("constraint", "parents_pkey".to_owned())]);
}

/// After an ignored error, PostgreSQL answers COMMIT with the tag ROLLBACK and stores no data.
#[tokio::test]
async fn an_ignored_failure_is_no_success() {
    let database = with_tables().await;
    let store = database.store();
    let scope = of("a");
    let done = store.write_tx(&scope, async move |db| {
        db.batch_execute("INSERT INTO facts VALUES ('1', 'svc:tenant:a')").await?;
        let _ = db.batch_execute("SELECT 1 / 0").await;
        Ok::<_, Error>(())
    });
    assert!(done.await.is_err());
    assert_eq!(count(&store, &owner(), "SELECT count(*) AS n FROM facts").await, 0);
    act(&store, &of("a"), "INSERT INTO facts VALUES ('1', 'svc:tenant:a')").await.unwrap();
    let scope = of("a");
    let read = store.read_tx(&scope, async move |db| {
        Ok::<_, Error>(db.batch_execute("INSERT INTO facts VALUES ('2', 'svc:tenant:a')").await?)
    });
    assert!(read.await.is_err());
}

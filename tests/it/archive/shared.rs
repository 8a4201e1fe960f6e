//! Several tenants with rows in the same month's partition.

use authority_archive::{Archiver, Parts};
use authority_store::embedded::LOGIN;
use serde_json::json;

use super::{StepResult, TENANT, World, removed, steps};
use crate::support::{Answered, new_tenant};

const OTHER: &str = "svc:tenant:globex";
/// The tables that removing a month reads or changes.
const GUARDED: [&str; 15] = [
    "decisions",
    "decision_facts",
    "evidence_packs",
    "decision_reports",
    "replay_proofs",
    "tenants",
    "archives",
    "archive_runs",
    "archived_parts",
    "archived_times",
    "record_versions",
    "authority_changes",
    "tenant_revisions",
    "time_partitions",
    "usage_cursor",
];

/// Creates a partition for the decisions' month in these tables, as months after the installation
/// have.
pub(super) async fn partitioned(world: &World, tables: &str) {
    let month = world.month();
    world
        .app
        .database
        .run(&format!(
            "DO $$
            DECLARE
                name text;
                prefix CONSTANT text := 'svc:decision:';
                lower CONSTANT text := time_bound(prefix, month_start('{month}'));
                upper CONSTANT text := time_bound(prefix, month_end('{month}'));
                rest text;
            BEGIN
                FOR name IN SELECT table_name FROM time_partitions
                            WHERE table_name = ANY ('{{{tables}}}') LOOP
                    SELECT substring(pg_get_expr(relpartbound, oid) FROM 'TO \\(''([^'']+)''\\)') INTO rest
                    FROM pg_class WHERE relname = name || '_before';
                    EXECUTE format('DROP TABLE %I', name || '_before');
                    CALL add_time_partition(name, name || '_old', 'MINVALUE', lower);
                    CALL add_time_partition(name, name || '_month', quote_literal(lower), upper);
                    CALL add_time_partition(name, name || '_rest', quote_literal(upper), rest);
                END LOOP;
            END $$"
        ))
        .await;
}

pub(super) async fn is_there(world: &World, table: &str) -> bool {
    world.count("pg_class", &format!("relname = '{table}'")).await == 1
}

/// Starts a world with two tenants, which have five and three decisions.
async fn two() -> World {
    let world = World::start().await;
    partitioned(&world, "decisions,evidence_packs").await;
    world.decided(5).await;
    world.past.owner().create_tenant(new_tenant("Globex", "globex")).await.assert_status(201);
    world.decided_by(OTHER, "svc:agent:globex:bot", 3).await;
    world.counted().await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tenant_has_its_own_time() {
    let world = two().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.set(OTHER, json!({"retention": {"decisions_days": 300}})).await;
    let done = world.run().await;
    assert!(done.contains(&StepResult::Dropped(0)) && removed(&done) == 5, "{done:?}");
    assert!(is_there(&world, "decisions_month").await, "the other tenant's rows are there");
    assert_eq!(world.count("decisions", &format!("tenant_id = '{OTHER}'")).await, 3);
    assert!(world.objects("globex").await.is_empty());
    // Now all remaining rows of the partition are due for removal.
    world.set(OTHER, json!({"retention": {"decisions_days": 30}})).await;
    let done = world.run().await;
    assert!(done.contains(&StepResult::Archived), "{done:?}");
    assert_eq!(world.count("decisions", "true").await, 0);
    assert!(done.contains(&StepResult::Dropped(1)), "{done:?}");
    world.run().await;
    assert!(!is_there(&world, "decisions_month").await, "an empty partition must also be dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_goes_whole_when_all_of_it_is_archived() {
    let world = two().await;
    for tenant in [TENANT, OTHER] {
        world.set(tenant, json!({"retention": {"decisions_days": 30}})).await;
    }
    world.set(OTHER, json!({"legal_hold": {"reason": "case 7"}})).await;
    world.until_archived().await;
    assert!(is_there(&world, "decisions_month").await);
    world.set(OTHER, json!({"legal_hold": null})).await;
    let done = world.run().await;
    assert!(done.contains(&StepResult::Dropped(1)), "{done:?}");
    world.run().await;
    assert!(!is_there(&world, "decisions_month").await && is_there(&world, "decisions_rest").await);
    assert_eq!(world.count("decisions", "true").await, 0);
    assert_eq!(world.count("evidence_packs", "true").await, 0);
    assert_eq!(world.damages().await, [""; 0]);
    for (tenant, slug) in [(TENANT, "acme"), (OTHER, "globex")] {
        let listed =
            world.owner().list_archives(&format!("tenant_id={slug}")).await.assert_status(200);
        assert_eq!(listed["archives"][0]["tenant_id"], tenant);
        assert!(!listed["archives"][0]["removed_at"].is_null(), "{listed:#}");
    }
}

/// Rows of two tenants are due together. If one tenant is put on hold before the removal, only the
/// other tenant's rows are removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_goes_for_all_of_its_tenants_or_for_none() {
    let world = two().await;
    for tenant in [TENANT, OTHER] {
        world.set(tenant, json!({"retention": {"decisions_days": 30}})).await;
    }
    let archiver = world.until_archived().await;
    while archiver.step().await.unwrap() != StepResult::Archived {}
    world.set(OTHER, json!({"legal_hold": {"reason": "case 7"}})).await;
    let parts = world.count("archived_parts", "true").await;
    let done = steps(&archiver).await;
    assert!(done.contains(&StepResult::Dropped(0)) && removed(&done) == 5, "{done:?}");
    assert_eq!(world.count("archived_parts", "true").await, parts - 2, "only its own parts");
    assert_eq!(world.count("decisions", &format!("tenant_id = '{TENANT}'")).await, 0);
    assert_eq!(world.count("decisions", &format!("tenant_id = '{OTHER}'")).await, 3);
    assert_eq!(
        world
            .count("archives", &format!("removal_begun IS NOT NULL AND tenant_id = '{OTHER}'"))
            .await,
        0
    );
    world.set(OTHER, json!({"legal_hold": null})).await;
    world.run().await;
    world.run().await;
    assert_eq!(world.count("decisions", "true").await, 0);
    assert_eq!(world.damages().await, [""; 0]);
}

/// A copy of this database, or another installation, writes to the same archive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_database_has_archived_stays() {
    let (world, other) = (World::start().await, World::start().await);
    let ids = world.decided(6).await;
    other.decided(2).await;
    for one in [&world, &other] {
        one.counted().await;
        one.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    }
    world.run().await;
    world.run().await;
    let objects = world.objects("acme").await;
    let same = Archiver::new(Parts { bucket: world.parts().bucket, ..other.parts() });
    steps(&same).await;
    steps(&same).await;
    assert_eq!(other.count("decisions", "true").await, 0, "it must archive its own decisions");
    let now = world.objects("acme").await;
    assert!(objects.iter().all(|object| now.contains(object)) && now.len() > objects.len());
    let reader = world.reader(TENANT).await;
    for id in &ids {
        assert_eq!(reader.get_evidence_bundle(id).await.0, 200, "{id}");
    }
    // The service can't know whether the other database's archive contains the person.
    let body = json!({"email": "ann@example.org", "reason": "request 17"});
    let (status, refused) = world.owner().erase_personal_data(body).await;
    assert!(
        status == 503 && refused["message"].as_str().unwrap().contains("did not write it"),
        "{refused:#}"
    );
}

/// If the login is not a superuser, row policies apply to it although it owns the tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_owner_of_the_tables_can_remove() {
    let world = two().await;
    // The tables change owner one after another, because the service is running.
    for parent in GUARDED {
        let own = format!(
            "DO $$ DECLARE part regclass; BEGIN
                FOR part IN SELECT '{parent}'::regclass UNION SELECT relid FROM pg_partition_tree('{parent}') LOOP
                    EXECUTE format('ALTER TABLE %s OWNER TO {LOGIN}', part);
                END LOOP;
            END $$"
        );
        world.app.database.run(&own).await;
        let policies = format!(
            "DO $$ DECLARE policy text; BEGIN
                FOR policy IN SELECT policyname FROM pg_policies
                              WHERE tablename = '{parent}' AND policyname = 'bookkeeping' LOOP
                    EXECUTE format('ALTER POLICY %I ON {parent} TO {LOGIN}', policy);
                END LOOP;
            END $$"
        );
        world.app.database.run(&policies).await;
    }
    let functions = [
        "remove_archived",
        "remove_archived_rows",
        "remove_archived_part",
        "begin_removal",
        "drop_archived_partition",
    ];
    for function in functions {
        world.app.database.run(&format!("ALTER FUNCTION {function} OWNER TO {LOGIN}")).await;
    }
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    let done = world.run().await;
    assert!(removed(&done) == 5 && done.contains(&StepResult::Removed(0)), "{done:?}");
    assert_eq!(world.count("decisions", "true").await, 3, "the other tenant's");
    world.set(OTHER, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    world.run().await;
    assert_eq!(world.count("decisions", "true").await, 0);
    assert!(!is_there(&world, "decisions_month").await);
}

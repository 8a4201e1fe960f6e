//! Old and empty partitions are dropped.

use authority_store::{Db, embedded::LOGIN};
use diesel::{QueryableByName, sql_types::Integer};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use serde_json::json;

use super::{World, log, old_events, run, set};

/// Returns SQL that creates partitions with these ages in days. The first one has no lower bound.
fn partitions(table: &str, prefix: &str, ends: &[(&str, u32)]) -> String {
    let mut from = "'MINVALUE'".to_owned();
    let mut made = Vec::new();
    let part = |name: &str, from: &str, to: &str| {
        format!(
            "DO $$ BEGIN EXECUTE format('CREATE TABLE {table}_{name} PARTITION OF {table} \
                 FOR VALUES FROM (%s) TO (%s)', {from}, {to}); END $$;"
        )
    };
    for (name, days) in ends {
        let at = format!("date_trunc('day', now()) - interval '{days} days'");
        let to = format!("quote_literal(time_bound('{prefix}', {at}))");
        made.push(part(name, &from, &to));
        from = to;
    }
    made.push(part("rest", &from, "(SELECT quote_literal(upper) FROM bound)"));
    format!(
        "CREATE TEMPORARY TABLE bound AS SELECT substring( \
             pg_get_expr(relpartbound, oid) FROM 'TO \\(''([^'']+)''\\)') AS upper \
         FROM pg_class WHERE relname = '{table}_before'; \
         DROP TABLE {table}_before; {} DROP TABLE bound;",
        made.concat()
    )
}

async fn names(world: &World) -> Vec<String> {
    let all = "SELECT inhrelid::regclass::text AS name FROM pg_inherits \
               WHERE inhrelid::regclass::text ~ '_(one|two|three|rest)$' ORDER BY name";
    let all = world.rows(all).await;
    all.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

async fn dropped(db: &mut Db) -> i32 {
    #[derive(QueryableByName)]
    struct Dropped {
        #[diesel(sql_type = Integer)]
        dropped: i32,
    }
    let drop = diesel::sql_query("SELECT drop_empty_event_partitions() AS dropped");
    drop.get_result::<Dropped>(db).await.unwrap().dropped
}

#[tokio::test]
async fn old_partitions_are_dropped_when_they_are_empty_and_never_with_a_row() {
    let world = World::start().await;
    let held = World::tenant(&world.app, "held").await;
    set(&world, &held, json!({"legal_hold": {"reason": "case 7"}})).await;
    world.events(3).await;
    world.events_of(&held, 1, "svc.authority.suspended").await;
    let ends = [("one", 90), ("two", 60), ("three", 40)];
    for table in ["webhook_deliveries", "webhook_attempts"] {
        world.run(&partitions(table, "svc:delivery:", &ends)).await;
    }
    // One transaction: the service's own worker would drop the empty partitions.
    let of = |tenant_id: &str| format!("tenant_id = '{tenant_id}'");
    let made = [
        partitions("events", "svc:event:", &ends),
        old_events(100, &format!("{} AND last_sequence = 1", of(&world.tenant_id))),
        old_events(70, &format!("{} AND last_sequence = 2", of(&world.tenant_id))),
        old_events(70, &of(&held)),
    ];
    world.run(&made.concat()).await;
    // If the login is not a superuser, row policies apply to it although it owns the tables.
    world
        .run(&format!(
            "DO $$ DECLARE part regclass; BEGIN \
                 FOR part IN SELECT relid FROM time_partitions, pg_partition_tree(table_name::regclass) LOOP \
                     EXECUTE format('ALTER TABLE %s OWNER TO {LOGIN}', part); \
                 END LOOP; \
             END $$; \
             ALTER TABLE time_partitions OWNER TO {LOGIN}; \
             ALTER FUNCTION drop_event_partition OWNER TO {LOGIN}"
        ))
        .await;
    run(&world).await;
    let (kept, gone) = ("events_two", "events_one");
    let left = names(&world).await;
    assert!(left.contains(&kept.to_owned()) && !left.contains(&gone.to_owned()), "{left:?}");
    let rest = ["events_rest", kept, "webhook_attempts_rest", "webhook_deliveries_rest"];
    let mut expected = rest.map(str::to_owned);
    expected.sort();
    assert_eq!(left, expected);
    assert_eq!(log(&world, &held).await, (1, 1));
    assert_eq!(log(&world, &world.tenant_id).await, (3, 1));

    let store = world.app.database.store();
    let mut system = store.system().await.unwrap();
    assert_eq!(dropped(&mut system).await, 0);
    system.batch_execute("SELECT drop_event_partition('events_two')").await.unwrap();
    assert_eq!(log(&world, &held).await, (1, 1));
    for other in ["events_rest", "events", "decisions_before", "notifications_before", "tenants"] {
        let call = format!("SELECT drop_event_partition('{other}')");
        let refused = system.batch_execute(&call).await.unwrap_err().to_string();
        assert!(refused.contains("is not an old partition of events"), "{other}: {refused}");
    }
    // Row policies hide the partition's row from its owner. Since the partition is not empty,
    // dropping it must fail.
    let hide = |how: &str| format!("ALTER TABLE events_two {how} ROW LEVEL SECURITY");
    world.run(&(hide("ENABLE") + ";" + &hide("FORCE"))).await;
    assert!(system.batch_execute("SELECT drop_event_partition('events_two')").await.is_err());
    assert_eq!(log(&world, &held).await, (1, 1));
    world.run(&(hide("DISABLE") + ";" + &hide("NO FORCE"))).await;

    // The worker does not wait for a long-running reader.
    set(&world, &held, json!({"legal_hold": null})).await;
    let mut reader = world.app.database.owner().await;
    let open = "BEGIN; SELECT FROM events LIMIT 1";
    reader.batch_execute(open).await.unwrap();
    run(&world).await;
    assert!(names(&world).await.contains(&kept.to_owned()));
    reader.batch_execute("COMMIT").await.unwrap();
    assert_eq!(dropped(&mut system).await, 1);
    assert_eq!(dropped(&mut system).await, 0);
    assert!(!names(&world).await.contains(&kept.to_owned()));
    world.events(1).await;
    let tenant = "SET ROLE NONE; SELECT set_config('role', authority_role('tenant'), false)";
    system.batch_execute(tenant).await.unwrap();
    assert!(system.batch_execute("SELECT drop_empty_event_partitions()").await.is_err());
}

//! The migrations of events can be reverted.

use std::time::Duration;

use serde_json::json;

use super::{Endpoint, Receiver, World, one, set, told};

/// The migrations, newest first: up and down.
const MIGRATIONS: [[&str; 2]; 11] = [
    [
        include_str!("../../../../migrations/00000000000076_events_in_shared_rows/up.sql"),
        include_str!("../../../../migrations/00000000000076_events_in_shared_rows/down.sql"),
    ],
    [
        include_str!("../../../../migrations/00000000000074_renewals/up.sql"),
        include_str!("../../../../migrations/00000000000074_renewals/down.sql"),
    ],
    [
        include_str!("../../../../migrations/00000000000039_decisions_in_the_outbox/up.sql"),
        include_str!("../../../../migrations/00000000000039_decisions_in_the_outbox/down.sql"),
    ],
    [
        include_str!(
            "../../../../migrations/00000000000035_webhook_pauses_and_failing_streams/up.sql"
        ),
        include_str!(
            "../../../../migrations/00000000000035_webhook_pauses_and_failing_streams/down.sql"
        ),
    ],
    [
        include_str!("../../../../migrations/00000000000034_push_subscriptions/up.sql"),
        include_str!("../../../../migrations/00000000000034_push_subscriptions/down.sql"),
    ],
    [
        include_str!("../../../../migrations/00000000000033_event_retention/up.sql"),
        include_str!("../../../../migrations/00000000000033_event_retention/down.sql"),
    ],
    [
        include_str!("../../../../migrations/00000000000032_notifications/up.sql"),
        include_str!("../../../../migrations/00000000000032_notifications/down.sql"),
    ],
    [
        include_str!("../../../../migrations/00000000000031_audit_cursors/up.sql"),
        include_str!("../../../../migrations/00000000000031_audit_cursors/down.sql"),
    ],
    [
        include_str!("../../../../migrations/00000000000030_webhook_deliveries/up.sql"),
        include_str!("../../../../migrations/00000000000030_webhook_deliveries/down.sql"),
    ],
    [
        include_str!("../../../../migrations/00000000000029_webhook_endpoints/up.sql"),
        include_str!("../../../../migrations/00000000000029_webhook_endpoints/down.sql"),
    ],
    [
        include_str!("../../../../migrations/00000000000028_events/up.sql"),
        include_str!("../../../../migrations/00000000000028_events/down.sql"),
    ],
];

#[tokio::test]
async fn the_migrations_of_events_go_down_and_up_again_on_a_database_with_rows() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let made = world.endpoint(Endpoint::at(&receiver.base)).await;
    let stream = json!({"tenant_id": world.tenant_id, "sink": "stdout"});
    assert_eq!(world.app.owner().post("/api/v1/audit-streams", stream).await.0, 201);
    world.events(2).await;
    world.wait_until_ended(&made, 2).await;
    world
        .run(
            "UPDATE audit_cursors SET lost_from = 1, lost_to = 2; \
             UPDATE webhook_cursors SET lost_from = 1, lost_to = 2; \
             UPDATE audit_cursors SET failures = 5, failed_at = now(), last_error = 'x'",
        )
        .await;
    assert_eq!(told(&world, "audit_stream.failing").await.len(), 1);
    assert_eq!(told(&world, "audit_stream.lost").await.len(), 1);
    set(&world, &world.tenant_id, json!({"legal_hold": {"reason": "case 7"}})).await;
    world.app.supervisor.shutdown().cancel();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let [shared_rows, renewals, outbox, newest, _, retention, ..] = MIGRATIONS;
    each_event_gets_a_row_of_its_own(&world, shared_rows).await;
    world.run(shared_rows[1]).await;
    world.run(renewals[1]).await;
    what_waits_in_the_outbox_is_kept(&world, outbox).await;
    world.run(newest[1]).await;
    assert_eq!(told(&world, "audit_stream.failing").await.len(), 0);
    world.run(retention[1]).await;
    assert_eq!(told(&world, "webhook_endpoint.lost").await.len(), 1);
    world.run(retention[0]).await;
    world.run(newest[0]).await;
    world.run(renewals[0]).await;
    world.run(shared_rows[0]).await;
    for [_, down] in MIGRATIONS {
        world.run(down).await;
    }
    assert_eq!(one(&world, "SELECT count(*) FROM tenants").await, 1);
    for [up, _] in MIGRATIONS.iter().rev() {
        world.run(up).await;
    }
    assert_eq!(one(&world, "SELECT count(*) FROM audit_cursors").await, 1);
    assert_eq!(one(&world, "SELECT event_retention_days FROM tenants").await, 30);
}

/// Events that share a row get separate rows when the migration is reverted, with the same ids and
/// bytes.
async fn each_event_gets_a_row_of_its_own(world: &World, [up, down]: [&str; 2]) {
    let tenant = &world.tenant_id;
    world
        .run(&format!(
            "DELETE FROM events; \
             INSERT INTO events (id, tenant_id, last_sequence, size, event_types, bodies) VALUES \
                 ('svc:event:0198c0ffee017c4f8a2d5b6e7f80abcd', '{tenant}', 1, 1, 'svc.a', '{{}}'), \
                 ('svc:event:0198c0ffee017c4f8a2d5b6e7f810000', '{tenant}', 3, 2, 'svc.a svc.b', \
                  convert_to(E'{{\"event_type\": \"svc.b\"}}\\n{{\"event_type\": \"svc.a\"}}', 'UTF8'))"
        ))
        .await;
    world.run(down).await;
    let rows = "SELECT string_agg(concat_ws(' ', right(id, 4), sequence, event_type, \
                    convert_from(body, 'UTF8')), ', ' ORDER BY sequence) FROM events";
    let expected = r#"abcd 1 svc.a {}, 0000 2 svc.b {"event_type": "svc.b"}, 0001 3 svc.a {"event_type": "svc.a"}"#;
    assert_eq!(one(world, rows).await, expected);
    world.run(up).await;
    let rows = "SELECT string_agg(concat_ws(' ', right(id, 4), last_sequence, size, event_types), ', ' \
                    ORDER BY last_sequence) FROM events";
    assert_eq!(one(world, rows).await, "abcd 1 1 svc.a, 0000 2 1 svc.b, 0001 3 1 svc.a");
}

/// Decisions in one outbox row become separate rows when the migration is reverted, in the same
/// order.
async fn what_waits_in_the_outbox_is_kept(world: &World, [up, down]: [&str; 2]) {
    let waiting = "SELECT string_agg(event_type || ' ' || subject_ref, ', ' ORDER BY number) \
                   FROM event_outbox";
    world
        .run(
            "DELETE FROM event_outbox; \
             INSERT INTO event_outbox (tenant_id, event_type, subject_ref) VALUES ('t', 'first', 'a'); \
             INSERT INTO event_outbox (tenant_id, size, decisions) VALUES ('t', 2, ARRAY[ \
                 '{\"decision_id\": \"b\", \"decision\": \"allow_with_constraints\"}', \
                 '{\"decision_id\": \"c\", \"decision\": \"deny\"}']); \
             INSERT INTO event_outbox (tenant_id, event_type, subject_ref) VALUES ('t', 'last', 'd')",
        )
        .await;
    world.run(down).await;
    let expected = "first a, svc.decision.allowed b, svc.decision.denied c, last d";
    assert_eq!(one(world, waiting).await, expected);
    world.run(up).await;
    assert_eq!(one(world, waiting).await, expected);
    world.run("DELETE FROM event_outbox").await;
}

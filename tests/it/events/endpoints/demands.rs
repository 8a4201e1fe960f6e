//! Events that are created only while an endpoint or stream requests them, and the position at
//! which a new endpoint begins.

use serde_json::{Value, json};

use super::{ADMINS, OTHER, TENANT, World, made};
use crate::support::{LOGGED, Plain, TestApp, asking, nothing, only};

const ALL: &str = "svc.decision.allowed,svc.decision.denied,svc.evidence_pack.generated";

impl World {
    /// Returns the event types that an endpoint requests; `None` if it requests none.
    async fn demand(&self, endpoint: &str) -> Option<String> {
        let types = "(SELECT string_agg(t, ',' ORDER BY t) FROM unnest(event_types) AS t)";
        self.value(&format!("SELECT {types} FROM event_demands WHERE id = '{endpoint}'")).await
    }

    async fn revision(&self) -> i64 {
        let sql = format!("SELECT revision FROM tenant_revisions WHERE tenant_id = '{TENANT}'");
        self.value(&sql).await.unwrap().parse().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_demands_what_its_types_name() {
    let world = World::start().await;
    let before = world.revision().await;
    for (types, expected) in [
        (json!([]), None),
        (json!(["svc.authority.*", "svc.decision.requires_approval"]), None),
        (json!(["svc.decision.denied"]), Some("svc.decision.denied")),
        (json!(["svc.decision.*"]), Some("svc.decision.allowed,svc.decision.denied")),
        (json!(["*"]), Some(ALL)),
    ] {
        let endpoint = made(&world.admin, only("event_types", &types)).await;
        assert_eq!(world.demand(&endpoint).await.as_deref(), expected, "{types}");
        let changed = world.revision().await > before;
        assert_eq!(changed, expected.is_some(), "{types}");
        if expected.is_some() {
            let path = format!("{ADMINS}/{endpoint}");
            assert_eq!(world.admin.call("DELETE", &path, None, &[]).await.0, 200);
            assert_eq!(world.demand(&endpoint).await, None, "{types}");
            break_even(&world, before).await;
        }
    }
}

/// Resets the revision of the tenant to this value.
async fn break_even(world: &World, revision: i64) {
    world
        .run(&format!(
            "DELETE FROM authority_changes WHERE tenant_revision > {revision} AND tenant_id = '{TENANT}';
             UPDATE tenant_revisions SET revision = {revision} WHERE tenant_id = '{TENANT}'"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demand_follows_the_endpoints_changes() {
    let world = World::start().await;
    let endpoint = made(&world.admin, only("event_types", ["*"])).await;
    let path = format!("{ADMINS}/{endpoint}");
    let narrowed = only("event_types", ["svc.decision.allowed"]);
    assert_eq!(world.admin.patch(&path, narrowed).await.0, 200);
    assert_eq!(world.demand(&endpoint).await.unwrap(), "svc.decision.allowed");
    assert_eq!(world.admin.patch(&path, only("event_types", Value::Null)).await.0, 200);
    assert_eq!(world.demand(&endpoint).await, None);
    assert_eq!(world.admin.patch(&path, only("event_types", ["*"])).await.0, 200);
    let set = |state: &str| {
        format!("UPDATE webhook_endpoints SET state = '{state}' WHERE id = '{endpoint}'")
    };
    // Events are still created for a paused endpoint, but not for a disabled one.
    world.run(&set("paused")).await;
    assert_eq!(world.demand(&endpoint).await.unwrap(), ALL);
    world.run(&set("disabled")).await;
    assert_eq!(world.demand(&endpoint).await, None);
    assert_eq!(world.admin.patch(&path, only("rate_limit_per_second", 5)).await.0, 200);
    assert_eq!(world.demand(&endpoint).await, None);
    assert_eq!(world.admin.post(&format!("{path}:enable"), nothing()).await.0, 200);
    assert_eq!(world.demand(&endpoint).await.unwrap(), ALL);
}

/// Once the call that creates the endpoint returns, each decision has its event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_response_no_decision_lacks_its_event() {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let runtime = app.client(&demo.api_key);
    let admin = app.person(TENANT, "admin", super::ANN);
    let world = World { app, admin };
    let ask = async || {
        let (status, answer) = runtime.evaluate(asking(1200.0, "DE")).await;
        assert_eq!((status, answer["decision"].text()), (200, "allow"), "{answer:#}");
        answer["decision_id"].as_str().unwrap().to_owned()
    };
    let unheard = ask().await;
    made(&world.admin, only("event_types", ["svc.decision.allowed"])).await;
    let heard = ask().await;
    // The event may be numbered already, or may still be in the outbox.
    let told = format!(
        "SELECT string_agg(id, ',') FROM (
             SELECT each::jsonb ->> 'decision_id' AS id
             FROM event_outbox CROSS JOIN unnest(decisions) AS each
             UNION ALL
             SELECT event ->> 'subject_ref' FROM {LOGGED}
             WHERE event ->> 'event_type' = 'svc.decision.allowed') AS told"
    );
    assert_eq!(world.value(&told).await, Some(heard));
    assert_ne!(world.value(&told).await, Some(unheard));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_endpoint_begins_at_the_head() {
    let world = World::start().await;
    world
        .run(&format!(
            "INSERT INTO event_heads (tenant_id, sequence) VALUES ('{TENANT}', 41)
             ON CONFLICT (tenant_id) DO UPDATE SET sequence = 41"
        ))
        .await;
    let other = world.app.person(OTHER, "admin", "eve@other.example");
    for (client, tenant) in [(&world.admin, TENANT), (&other, OTHER)] {
        let endpoint = made(client, nothing()).await;
        let sql = format!(
            "SELECT c.sequence = coalesce(h.sequence, 0) AND c.tenant_id = '{tenant}'
             FROM webhook_cursors c LEFT JOIN event_heads h USING (tenant_id)
             WHERE endpoint_id = '{endpoint}'"
        );
        assert_eq!(world.value(&sql).await.as_deref(), Some("true"), "{tenant}");
    }
    let at = "SELECT sequence FROM webhook_cursors WHERE tenant_id = 'svc:tenant:acme'";
    assert_eq!(world.value(at).await.as_deref(), Some("41"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_an_endpoint_that_was_refused() {
    let world = World::start().await;
    let (status, _) = world.admin.post(ADMINS, only("url", "https://10.0.0.1/")).await;
    assert_eq!(status, 400);
    for table in ["webhook_endpoints", "webhook_cursors", "event_demands"] {
        let count: Value =
            world.value(&format!("SELECT count(*) FROM {table}")).await.unwrap().into();
        assert_eq!(count, "0", "{table}");
    }
}

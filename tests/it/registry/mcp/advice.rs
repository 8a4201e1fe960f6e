//! The advice of policies, for the descriptions of tools.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ACTION, TENANT, World, definition};

/// Creates a policy with these targets.
async fn policy(world: &World, targets: Value, cedar: &str) {
    let body = json!({"tenant_id": TENANT, "regime": "own", "applies_to": targets, "cedar": cedar});
    let (status, made) = world.app.owner().post("/api/v1/policies", body).await;
    assert_eq!(status, 201, "{made:#}");
}

async fn advice(world: &World) -> Value {
    let (status, found) = world.key.get("/v1/mcp-servers/github").await;
    assert_eq!(status, 200, "{found:#}");
    found["tools"][0]["advice"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_reads_the_advice_on_a_tool_if_the_tenant_wants_it() {
    let world = World::start().await;
    world.with_pinned(&definition("create_issue", "Creates an issue.")).await;
    let own = json!([format!("action:{ACTION}")]);
    let any = "(principal, action, resource)";
    let held = format!(
        "@decision(\"require_approval\") @advice(\"A person approves issues.\") forbid {any};"
    );
    let again = format!(
        "@advice(\"A person approves issues.\") forbid {any} \
         unless {{ context has purpose && context.purpose == \"work\" }};"
    );
    let obliged =
        format!("@obligation(\"audit.emit\") @advice(\"Not advice on a denial.\") permit {any};");
    let elsewhere = format!("@advice(\"Of another action.\") forbid {any};");
    for cedar in [held, again, obliged] {
        policy(&world, own.clone(), &cedar).await;
    }
    policy(&world, json!(["action:other.*"]), &elsewhere).await;
    assert_eq!(advice(&world).await, json!([]));
    let path = format!("/api/v1/app/external-apps/{}", world.server);
    let wanted = json!({"mcp": {"slug": "github", "advice_in_descriptions": true}});
    let (status, changed) = world.admin.patch(&path, wanted).await;
    assert_eq!(status, 200, "{changed:#}");
    // The node's policies follow the database within moments.
    let began = Instant::now();
    while advice(&world).await == json!([]) && began.elapsed() < Duration::from_secs(10) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(advice(&world).await, json!(["A person approves issues."]));
}

//! Drafts, targets in the call that creates a policy, and a tenant's own reason codes: their
//! effects on decisions.

use serde_json::json;

use super::{asking, demo, simulate::TENANT};
use crate::support::Client;

const OWN: &str =
    "@id(\"four-eyes\") @reason(\"x_four_eyes\")\nforbid(principal, action, resource);";

async fn reason(client: &Client) -> String {
    let (status, answer) = client.post("/v1/decisions/evaluate", asking(1.0, "DE")).await;
    assert_eq!(status, 200, "{answer:#}");
    answer["reason_code"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_is_never_evaluated_and_a_target_counts_from_the_first_moment() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    let body = json!({"tenant_id": TENANT, "regime": "own", "cedar": OWN, "state": "draft"});
    let (status, draft) = owner.post("/api/v1/policies", body).await;
    assert_eq!((status, &draft["policy"]["state"]), (201, &json!("draft")), "{draft:#}");
    assert_eq!(reason(&client).await, "permission_granted");
    let elsewhere = json!({"tenant_id": TENANT, "regime": "own", "cedar": OWN,
        "applies_to": ["action:report.*"]});
    assert_eq!(owner.post("/api/v1/policies", elsewhere).await.0, 201);
    assert_eq!(reason(&client).await, "permission_granted");
    let activate = format!("/api/v1/policies/{}/activate", draft["policy"]["id"].as_str().unwrap());
    assert_eq!(owner.post(&activate, json!({})).await.0, 200);
    assert_eq!(reason(&client).await, "x_four_eyes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_own_reason_is_recorded_and_returned() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    let refused = json!({"tenant_id": TENANT, "regime": "own", "cedar": OWN.replace("x_", "y_")});
    let (status, refused) = owner.post("/api/v1/policies", refused).await;
    let told = refused["message"].as_str().unwrap();
    assert!(
        status == 400 && told.contains("line 1, column 18") && told.contains("`x_`"),
        "{refused:#}"
    );
    let own = json!({"tenant_id": TENANT, "regime": "own", "cedar": OWN});
    assert_eq!(owner.post("/api/v1/policies", own).await.0, 201);
    let mut ask = asking(1.0, "DE");
    ask["explain"] = json!(true);
    let (_, answer) = client.post("/v1/decisions/evaluate", ask).await;
    assert_eq!(
        (&answer["decision"], &answer["reason_code"]),
        (&json!("deny"), &json!("x_four_eyes"))
    );
    assert_eq!(answer["reasons"], json!(["x_four_eyes"]), "{answer:#}");
    assert!(answer["stages"].to_string().contains("x_four_eyes"), "{answer:#}");
    let id = answer["decision_id"].as_str().unwrap();
    let (_, found) = client.get(&format!("/v1/decisions/{id}")).await;
    assert_eq!(found["reason_code"], "x_four_eyes", "{found:#}");
    let mine = format!("/api/v1/decisions?tenant_id={TENANT}&reason_code=x_four_eyes");
    let (_, listed) = owner.get(&mine).await;
    assert_eq!(listed["decisions"].as_array().unwrap().len(), 1, "{listed:#}");
    let (status, again) = owner.post(&format!("/api/v1/decisions/{id}:replay"), json!({})).await;
    assert!(status == 200 || status == 404 || status == 409, "{again:#}");
    // A policy that requires approval can also have a tenant's own reason code.
    let holding = OWN.replace("forbid", "@decision(\"require_approval\") forbid");
    let candidate = json!({"request": asking(1.0, "DE"), "without_policies": [],
        "candidate_policies": [{"cedar": holding, "policy_id": null}]});
    let (status, simulated) = client.post("/v1/decisions:simulate", candidate).await;
    assert_eq!(status, 200, "{simulated:#}");
    let (_, codes) = client.get("/v1/reason-codes").await;
    assert!(
        codes.to_string().contains("x_"),
        "the list does not mention tenants' own codes: {codes:#}"
    );
}

/// Stored jurisdictions outside the standard never match. The service logs them when it starts, and
/// a delegation that contains one has a warning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_place_outside_the_standard_is_named() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    let body = json!({"tenant_id": TENANT, "regime": "own",
        "cedar": "forbid(principal, action, resource) when { principal.class == \"system\" };"});
    let made = owner.post("/api/v1/policies", body).await.1;
    let id = made["policy"]["id"].as_str().unwrap().to_owned();
    app.database
        .run("UPDATE delegations SET jurisdictions = '{UK}' WHERE 'DE' = ANY (jurisdictions)")
        .await;
    let text = "forbid(principal, action, resource) when \
        { context has jurisdiction && context.jurisdiction == \"EL\" };";
    app.database.run(&format!("UPDATE policies SET cedar = '{text}' WHERE id = '{id}'")).await;
    for _ in 0..100 {
        if reason(&client).await == "jurisdiction_unsupported" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(reason(&client).await, "jurisdiction_unsupported");
    let cell = app.app.graph.tenant(&TENANT.parse().unwrap()).unwrap().unwrap();
    let (places, policies) = (cell.read().faulty_places(), cell.read().faulty_policies());
    assert!(places.iter().all(|one| one.contains("`UK`")) && !places.is_empty(), "{places:?}");
    let [policy] = policies.as_slice() else { panic!("{policies:?}") };
    assert!(policy.contains(&id) && policy.contains("`EL`"), "{policy}");
    let listed = owner.get(&format!("/api/v1/delegations?tenant_id={TENANT}")).await.1;
    let warned = listed["delegations"].as_array().unwrap();
    let warned = warned.iter().filter(|one| one["warnings"].to_string().contains("`GB`")).count();
    assert_eq!(warned, places.len(), "{listed:#}");
}

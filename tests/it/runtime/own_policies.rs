//! Drafts, targets in the call that creates a policy, and a tenant's own reason codes: their
//! effects on decisions.

use serde_json::json;

use super::{asking, demo, simulate::TENANT};
use crate::support::{Answered, Client, Members, Plain, new_policy, nothing};

const OWN: &str =
    "@id(\"four-eyes\") @reason(\"x_four_eyes\")\nforbid(principal, action, resource);";

async fn reason(client: &Client) -> String {
    let answer = client.evaluate_decision(asking(1.0, "DE")).await.assert_status(200);
    answer["reason_code"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_is_never_evaluated_and_a_target_counts_from_the_first_moment() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    let body = json!({"tenant_id": TENANT, "regime": "own", "cedar": OWN, "state": "draft"});
    let (status, draft) = owner.create_policy(body).await;
    assert_eq!((status, draft["policy"]["state"].text()), (201, "draft"), "{draft:#}");
    assert_eq!(reason(&client).await, "permission_granted");
    let elsewhere = json!({"tenant_id": TENANT, "regime": "own", "cedar": OWN,
        "applies_to": ["action:report.*"]});
    assert_eq!(owner.create_policy(elsewhere).await.0, 201);
    assert_eq!(reason(&client).await, "permission_granted");
    assert_eq!(owner.activate_policy(draft["policy"]["id"].as_str().unwrap()).await.0, 200);
    assert_eq!(reason(&client).await, "x_four_eyes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_own_reason_is_recorded_and_returned() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    let refused = json!({"tenant_id": TENANT, "regime": "own", "cedar": OWN.replace("x_", "y_")});
    let (status, refused) = owner.create_policy(refused).await;
    let told = refused["message"].as_str().unwrap();
    assert!(
        status == 400 && told.contains("line 1, column 18") && told.contains("`x_`"),
        "{refused:#}"
    );
    let own = json!({"tenant_id": TENANT, "regime": "own", "cedar": OWN});
    assert_eq!(owner.create_policy(own).await.0, 201);
    let (_, answer) = client.evaluate_decision(asking(1.0, "DE").with("explain", true)).await;
    assert_eq!((answer["decision"].text(), answer["reason_code"].text()), ("deny", "x_four_eyes"));
    assert_eq!(answer["reasons"].texts(), ["x_four_eyes"], "{answer:#}");
    assert!(answer["stages"].to_string().contains("x_four_eyes"), "{answer:#}");
    let id = answer["decision_id"].as_str().unwrap();
    let (_, found) = client.get_decision(id).await;
    assert_eq!(found["reason_code"], "x_four_eyes", "{found:#}");
    let (_, listed) =
        owner.list_decisions(&format!("tenant_id={TENANT}&reason_code=x_four_eyes")).await;
    assert_eq!(listed["decisions"].as_array().unwrap().len(), 1, "{listed:#}");
    let (status, again) = owner.post(&format!("/api/v1/decisions/{id}:replay"), nothing()).await;
    assert!(status == 200 || status == 404 || status == 409, "{again:#}");
    // A policy that requires approval can also have a tenant's own reason code.
    let holding = OWN.replace("forbid", "@decision(\"require_approval\") forbid");
    let candidate = json!({"request": asking(1.0, "DE"), "without_policies": [],
        "candidate_policies": [{"cedar": holding, "policy_id": null}]});
    client.simulate_decision(candidate).await.assert_status(200);
    let (_, codes) = client.list_reason_codes("").await;
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
    let body = new_policy(
        "own",
        "forbid(principal, action, resource) when { principal.class == \"system\" };",
    );
    let made = owner.create_policy(body).await.1;
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
    let listed = owner.list_delegations(&format!("tenant_id={TENANT}")).await.1;
    let warned = listed["delegations"].as_array().unwrap();
    let warned = warned.iter().filter(|one| one["warnings"].to_string().contains("`GB`")).count();
    assert_eq!(warned, places.len(), "{listed:#}");
}

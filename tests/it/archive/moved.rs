//! If an archive is not at the configured location, reading it returns an error, never "not found".

use authority_archive::Archives;
use authority_ids::DecisionId;
use authority_store::Scope;
use serde_json::json;

use super::{StepResult, TENANT, World};
use crate::support::{MINT_REPLAY_PROOF, Plain, SEAL_DECISION, Wishes, new_tenant, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archived_decisions_are_unavailable_where_the_setting_leads_elsewhere() {
    let world = World::start().await;
    let ids = world.decided(2).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.run().await;
    // Starts a node that looks for the archive in another folder.
    let moved = world.app.apart(Wishes::default()).await;
    let scopes = ["runtime:read", "evidence:read", "evidence:write"];
    let reader = moved.client(&moved.api_key(TENANT, &scopes).await);
    for path in ["/v1/evidence/", "/v1/decisions/"] {
        let (status, refused) = reader.get(&format!("{path}{}", ids[0])).await;
        assert_eq!((status, refused["error"].text()), (503, "unavailable"), "{refused:#}");
        let told = refused["message"].as_str().unwrap();
        assert!(told.contains("`archive.url`") && told.contains(&world.month()), "{told}");
        let unknown = format!("{}{}", &ids[0][..22], "0".repeat(55));
        assert_eq!(reader.get(&format!("{path}{unknown}")).await.0, 404);
    }
    for path in [MINT_REPLAY_PROOF, SEAL_DECISION] {
        let (status, refused) = reader.post(path, only("decision_id", &ids[0])).await;
        assert_eq!(status, 503, "{path}: {refused:#}");
    }
    let (status, page) = reader.text("GET", &format!("/receipts/{}", ids[0]), None).await;
    // The receipt page is public: its error must not show a folder, which has the name of a tenant.
    assert!(status == 503 && !page.contains("acme"), "{status}: {page}");
    // Another tenant does not learn that the decision exists.
    world.owner().create_tenant(new_tenant("Globex", "globex")).await;
    let foreign = moved.client(&moved.api_key("svc:tenant:globex", &scopes).await);
    assert_eq!(foreign.get_evidence(&ids[0]).await.0, 404);

    // The installation once had an archive, but its setting has been removed.
    let without = Archives::new(world.app.database.store(), world.parts().keys, None);
    let id = DecisionId::parse(&ids[0]).unwrap();
    let told = without.find(&Scope::service(), &id).await.err().unwrap().to_string();
    assert!(told.contains("set `archive.url`"), "{told}");
}

/// If rows are archived at another location, they stay in the tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_goes_that_is_archived_elsewhere() {
    let world = World::start().await;
    world.decided(2).await;
    world.counted().await;
    world.set(TENANT, json!({"retention": {"decisions_days": 30}})).await;
    world.until_archived().await;
    world.app.database.run("UPDATE archives SET checked_at = now() - interval '2 days'").await;
    let moved = world.app.apart(Wishes::default()).await;
    // No further month is archived at the new location either, because it may be an unmounted mount
    // point.
    let archiver = authority_archive::Archiver::new(moved.app.archiving.clone().unwrap());
    let told = archiver.step().await.unwrap_err().to_string();
    assert!(told.contains("`archive.url`"), "{told}");
    assert_eq!(world.count("decisions", "true").await, 2);
    assert_eq!(world.removed(TENANT).await, None);
}

/// A tenant's slug is the name of its folder in the archive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_slug_leads_out_of_the_archive_or_into_another_tenants_folder() {
    let world = World::start().await;
    for bad in ["..", ".", "a/b", "a\\b", "Acme", "ACME", "a.", "a%2f", "-a", &"a".repeat(64)] {
        let body = json!({"name": "Bad", "slug": bad});
        let (status, refused) = world.owner().create_tenant(body).await;
        assert_eq!(status, 400, "{bad}: {refused:#}");
    }
    let long = "a".repeat(63);
    assert_eq!(world.past.owner().create_tenant(new_tenant("Long", &long)).await.0, 201);
    let tenant_id = format!("svc:tenant:{long}");
    world.decided_by(&tenant_id, &format!("svc:agent:{long}:bot"), 1).await;
    world.counted().await;
    world.set(&tenant_id, json!({"retention": {"decisions_days": 30}})).await;
    assert!(world.run().await.contains(&StepResult::Removed(1)));
    assert_eq!(world.objects(&long).await.len(), 3);
    assert_eq!(world.damages().await, [""; 0]);
}

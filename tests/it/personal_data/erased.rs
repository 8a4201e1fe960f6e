//! After an erasure, the database no longer names the person but still recognizes them.

use serde_json::{Value, json};

use super::{ANN, BOB, TENANT, World, dump::columns_with};
use crate::support::{
    Answered, Members, Plain, new_policy, new_principal, new_tenant, nothing, only,
};

/// Stores data about Ann wherever possible: lead, consultant, principal, key, request, acts,
/// context, activation. Returns the ids of her principal and of an approval.
async fn ann_everywhere(world: &World) -> (String, String) {
    world.lead(ANN).await;
    world.lead(BOB).await;
    let consultant = json!({"display_name": "Ann Example", "email": "Ann@Example.org",
                            "phone": "+49 30 1234567", "notes": "knows ann@example.org"});
    world.owner.create_consultant(consultant).await.assert_made("consultant");
    let ann = world.person("admin", ANN);
    let principal = world.human(ANN, &format!("dev|{ANN}")).await;
    let key = json!({"label": "hers", "scopes": ["runtime:read", "runtime:write"]});
    ann.create_api_key(key).await.assert_status(201);
    let (_, approval) = world.held(&world.key, "Globex").await;
    world
        .act(&ann, &approval, "approve", only("comment", "fine for ann@example.org"))
        .await
        .assert_status(200);
    world.held(&world.key, "ann@example.org, privately").await;
    let ask = crate::support::asking(26_000.0, "DE")
        .with("justification", "Ann@Example.org asked for it");
    let (_, held) = world.key.evaluate(ask).await;
    assert_eq!(held["decision"], "require_approval", "{held:#}");
    let (_, listed) = ann.list_delegations("").await;
    let delegation = listed["delegations"][0]["id"].as_str().unwrap();
    assert_eq!(ann.approve_delegation(delegation).await.0, 200);
    let stop = json!({"actor_id": "svc:agent:acme:invoice-bot", "reason": "a test"});
    let stopped = ann.create_stop_signal(stop).await.assert_status(201);
    let lift =
        format!("/api/v1/app/stop-signals/{}/lift", stopped["stop_signal"]["id"].as_str().unwrap());
    assert_eq!(ann.post(&lift, nothing()).await.0, 200);
    // Ann activated a policy. Another person also did, and gave a reason that names her.
    let (_, listed) = world.owner.list_policies("").await;
    let policy = listed["policies"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/policies/{policy}/activate");
    let installer = world.app.owner_named(ANN);
    assert_eq!(installer.post(&path, only("reason", "a first")).await.0, 200);
    let agreed = only("reason", "as ann@example.org agreed");
    assert_eq!(world.owner.post(&path, agreed).await.0, 200);
    // Ann wrote a policy that another person must activate.
    let draft = new_policy(
        "internal",
        "forbid (principal, action, resource) unless { context has amount };",
    );
    ann.create_policy(draft).await.assert_status(201);
    (principal, approval)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_names_the_person_any_more() {
    let world = World::start().await;
    let (principal, approval) = ann_everywhere(&world).await;
    let before = columns_with(&world.app, ANN).await;
    assert!(before.len() > 15, "her data must be in many places: {before:#?}");
    let erasure = world.erase_ann().await;
    assert_eq!(columns_with(&world.app, ANN).await, Vec::<String>::new());
    for hers in ["Ann Example", "1234567"] {
        assert_eq!(columns_with(&world.app, hers).await, Vec::<String>::new(), "{hers}");
    }
    assert!(!columns_with(&world.app, BOB).await.is_empty(), "his data stays");
    // The record of the erasure contains counts but no names.
    let counted = &erasure["erased"];
    for (kind, count) in
        [("leads", 1), ("consultants", 1), ("principals", 1), ("voided_approvals", 1)]
    {
        assert_eq!(counted[kind], json!(count), "{kind} in {erasure:#}");
    }
    let many = ["acts", "contexts", "standing_approvals", "api_keys", "creators", "versions"];
    for kind in many.into_iter().chain(["activations"]) {
        assert!(counted[kind].as_i64().unwrap_or_default() > 0, "{kind} in {erasure:#}");
    }
    assert_eq!(erasure["by"], "owner@example.org");
    assert_eq!(erasure["tenant_id"], Value::Null);
    let (_, listed) = world.owner.list_erasures("").await;
    assert_eq!(listed["erasures"], json!([erasure]), "{listed:#}");
    // Her records remain without her data.
    let gone =
        world.shown(&format!("/api/v1/principals/{principal}?deleted=true"), "principal").await;
    assert_eq!((gone["state"].text(), gone["display_name"].text()), ("revoked", "erased"));
    let (_, found) = world.owner.list_consultants("").await;
    let retired = &found["consultants"][0];
    assert_eq!((retired["status"].text(), &retired["phone"]), ("retired", &Value::Null));
    let void = world.owner.get_approval(&approval).await.assert_shown("approval");
    assert_eq!(void["state"], "void");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn erasing_again_does_no_harm() {
    let world = World::start().await;
    world.lead(ANN).await;
    assert_eq!(world.erase_ann().await["erased"]["leads"], 1);
    assert_eq!(world.erase_ann().await["erased"], nothing());
    let (_, page) = world.owner.list_erasures("limit=1").await;
    let token = page["next_page_token"].as_str().unwrap();
    let (_, rest) = world.owner.list_erasures(&format!("limit=1&page_token={token}")).await;
    assert_eq!(rest["next_page_token"], Value::Null, "{rest:#}");
    assert!(
        page["erasures"][0]["at"].as_str() > rest["erasures"][0]["at"].as_str(),
        "newest first"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenant_keeps_its_data() {
    let world = World::start().await;
    let globex = new_tenant("Globex", "globex").with("state", "active");
    world.owner.create_tenant(globex).await.assert_made("tenant");
    let there =
        new_principal("human", "Ann").with("tenant_id", "svc:tenant:globex").with("email", ANN);
    let there = world.owner.create_principal(there).await.assert_made("principal");
    world.lead(ANN).await;
    let here = world.human(ANN, "user_1234").await;
    let erased = world.erase(json!({"email": ANN, "tenant_id": "acme"})).await.assert_status(200);
    assert_eq!(erased["erasure"]["tenant_id"], TENANT);
    assert_eq!(world.owner.get_principal(&here).await.0, 404);
    let kept = world.owner.get_principal(&there).await.assert_shown("principal");
    assert_eq!(kept["email"], ANN);
    assert_eq!(columns_with(&world.app, "user_1234").await, Vec::<String>::new());
    assert!(columns_with(&world.app, ANN).await.iter().any(|place| place.starts_with("leads.")));
    // A principal identifies a person only within the principal's tenant.
    let (status, _) = world.erase(json!({"principal_id": there, "tenant_id": "acme"})).await;
    assert_eq!(status, 404);
}

/// The subject of a further issuer's person begins with the issuer's name. A `sub` of the first issuer
/// can look the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_longer_subject_is_another_persons() {
    let world = World::start().await;
    for (n, (sub, other)) in
        [("ann", "okta|ann"), ("user_4711", "okta|user_4711"), ("auth0|4712", "okta|auth0|4712")]
            .into_iter()
            .enumerate()
    {
        let hers = world.human(&format!("hers-{n}@example.org"), sub).await;
        let others = world.human(&format!("other-{n}@example.org"), other).await;
        let before = columns_with(&world.app, other).await;
        assert!(!before.is_empty());
        let erased = world.erase(only("external_subject", sub)).await.assert_status(200);
        assert_eq!(erased["erasure"]["erased"]["principals"], 1, "{erased:#}");
        assert_eq!(world.owner.get_principal(&hers).await.0, 404);
        let kept = world.owner.get_principal(&others).await.assert_shown("principal");
        assert_eq!(kept["external_subject"], other, "{kept:#}");
        let history = |columns: Vec<String>| -> Vec<String> {
            columns.into_iter().filter(|place| place.starts_with("record_versions.")).collect()
        };
        let after = columns_with(&world.app, other).await;
        assert_eq!(history(before), history(after), "{other}");
    }
}

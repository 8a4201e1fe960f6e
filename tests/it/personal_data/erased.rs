//! After an erasure, the database no longer names the person but still recognizes them.

use serde_json::{Value, json};

use super::{ANN, BOB, TENANT, World, dump::columns_with};

/// Stores data about Ann wherever possible: lead, consultant, principal, key, request, acts,
/// context, activation. Returns the ids of her principal and of an approval.
async fn ann_everywhere(world: &World) -> (String, String) {
    world.lead(ANN).await;
    world.lead(BOB).await;
    let consultant = json!({"display_name": "Ann Example", "email": "Ann@Example.org",
                            "phone": "+49 30 1234567", "notes": "knows ann@example.org"});
    world.make("/api/v1/consultants", consultant, "consultant").await;
    let ann = world.person("admin", ANN);
    let principal = world.human(ANN, &format!("dev|{ANN}")).await;
    let key = json!({"label": "hers", "scopes": ["runtime:read", "runtime:write"]});
    let (status, made) = ann.post("/api/v1/app/api-keys", key).await;
    assert_eq!(status, 201, "{made:#}");
    let (_, approval) = world.held(&world.key, "Globex").await;
    let (status, acted) =
        world.act(&ann, &approval, "approve", json!({"comment": "fine for ann@example.org"})).await;
    assert_eq!(status, 200, "{acted:#}");
    world.held(&world.key, "ann@example.org, privately").await;
    let mut ask = crate::support::asking(26_000.0, "DE");
    ask["justification"] = json!("Ann@Example.org asked for it");
    let (_, held) = world.key.post("/api/v1/runtime/evaluate", ask).await;
    assert_eq!(held["decision"], "require_approval", "{held:#}");
    let (_, listed) = ann.get("/api/v1/app/delegations").await;
    let delegation = listed["delegations"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/app/delegations/{delegation}/approve");
    assert_eq!(ann.post(&path, json!({})).await.0, 200);
    let stop = json!({"actor_id": "svc:agent:acme:invoice-bot", "reason": "a test"});
    let (status, stopped) = ann.post("/api/v1/app/stop-signals", stop).await;
    assert_eq!(status, 201, "{stopped:#}");
    let lift =
        format!("/api/v1/app/stop-signals/{}/lift", stopped["stop_signal"]["id"].as_str().unwrap());
    assert_eq!(ann.post(&lift, json!({})).await.0, 200);
    // Ann activated a policy. Another person also did, and gave a reason that names her.
    let (_, listed) = world.owner.get("/api/v1/policies").await;
    let policy = listed["policies"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/policies/{policy}/activate");
    let installer = world.app.owner_named(ANN);
    assert_eq!(installer.post(&path, json!({"reason": "a first"})).await.0, 200);
    let agreed = json!({"reason": "as ann@example.org agreed"});
    assert_eq!(world.owner.post(&path, agreed).await.0, 200);
    // Ann wrote a policy that another person must activate.
    let draft = json!({"tenant_id": TENANT, "regime": "internal",
        "cedar": "forbid (principal, action, resource) unless { context has amount };"});
    let (status, written) = ann.post("/api/v1/app/policies", draft).await;
    assert_eq!(status, 201, "{written:#}");
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
    let (_, listed) = world.owner.get("/api/v1/erasures").await;
    assert_eq!(listed["erasures"], json!([erasure]), "{listed:#}");
    // Her records remain without her data.
    let gone =
        world.shown(&format!("/api/v1/principals/{principal}?deleted=true"), "principal").await;
    assert_eq!((&gone["state"], &gone["display_name"]), (&json!("revoked"), &json!("erased")));
    let (_, found) = world.owner.get("/api/v1/consultants").await;
    let retired = &found["consultants"][0];
    assert_eq!((&retired["status"], &retired["phone"]), (&json!("retired"), &Value::Null));
    let void = world.shown(&format!("/api/v1/approvals/{approval}"), "approval").await;
    assert_eq!(void["state"], "void");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn erasing_again_does_no_harm() {
    let world = World::start().await;
    world.lead(ANN).await;
    assert_eq!(world.erase_ann().await["erased"]["leads"], 1);
    assert_eq!(world.erase_ann().await["erased"], json!({}));
    let (_, page) = world.owner.get("/api/v1/erasures?limit=1").await;
    let token = page["next_page_token"].as_str().unwrap();
    let (_, rest) = world.owner.get(&format!("/api/v1/erasures?limit=1&page_token={token}")).await;
    assert_eq!(rest["next_page_token"], Value::Null, "{rest:#}");
    assert!(
        page["erasures"][0]["at"].as_str() > rest["erasures"][0]["at"].as_str(),
        "newest first"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenant_keeps_its_data() {
    let world = World::start().await;
    let globex = json!({"name": "Globex", "slug": "globex", "state": "active"});
    world.make("/api/v1/tenants", globex, "tenant").await;
    let there = json!({"tenant_id": "svc:tenant:globex", "principal_class": "human",
                       "display_name": "Ann", "email": ANN});
    let there = world.make("/api/v1/principals", there, "principal").await;
    world.lead(ANN).await;
    let here = world.human(ANN, "user_1234").await;
    let (status, erased) = world.erase(json!({"email": ANN, "tenant_id": "acme"})).await;
    assert_eq!(status, 200, "{erased:#}");
    assert_eq!(erased["erasure"]["tenant_id"], TENANT);
    assert_eq!(world.owner.get(&format!("/api/v1/principals/{here}")).await.0, 404);
    let kept = world.shown(&format!("/api/v1/principals/{there}"), "principal").await;
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
        let (status, erased) = world.erase(json!({"external_subject": sub})).await;
        assert_eq!(status, 200, "{erased:#}");
        assert_eq!(erased["erasure"]["erased"]["principals"], 1, "{erased:#}");
        assert_eq!(world.owner.get(&format!("/api/v1/principals/{hers}")).await.0, 404);
        let kept = world.shown(&format!("/api/v1/principals/{others}"), "principal").await;
        assert_eq!(kept["external_subject"], other, "{kept:#}");
        let history = |columns: Vec<String>| -> Vec<String> {
            columns.into_iter().filter(|place| place.starts_with("record_versions.")).collect()
        };
        let after = columns_with(&world.app, other).await;
        assert_eq!(history(before), history(after), "{other}");
    }
}

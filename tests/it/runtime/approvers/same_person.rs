//! A person with two subjects at the identity provider counts as one person if the service can
//! connect the subjects.

use super::*;
use crate::support::{Answered, Members, Plain, SEAL_DECISION, new_policy, nothing, only};

const ANN: &str = "ann@acme.example";

/// Returns a user with this subject in the token instead of the development provider's.
fn other(app: &TestApp, subject: &str, email: &str) -> Client {
    app.client(&app.token(&json!({
        "sub": subject, "email": email,
        "public_metadata": {"role": "admin", "tenant_id": TENANT},
    })))
}

async fn two_people(app: &TestApp) {
    let policy = new_policy(
        "internal",
        "@id(\"four-eyes\")\n@reason(\"approval_threshold_breach\")\n\
                  @decision(\"require_approval\")\n@approvals(\"2\")\n\
                  forbid (principal, action, resource);\n",
    )
    .with("name", "Two people");
    assert_eq!(app.owner().create_policy(policy).await.0, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_signs_twice_under_two_subjects() {
    let (app, agent, delegation) = demo().await;
    two_people(&app).await;
    let (ann, again) = (person(&app, "admin", "ann"), other(&app, "a-2", " Ann@ACME.example"));
    let id = held(&agent).await;
    assert_eq!(approve(&ann, &id).await.0, 200);
    refused(&again, &id, "you have acted on this already").await;
    approved(&person(&app, "admin", "bob"), &id).await;
    assert_eq!(claim(&agent, &id).await["decision"], "allow");
    assert_eq!(ann.approve_delegation(&delegation).await.0, 200);
    let (status, answer) = again.approve_delegation(&delegation).await;
    assert_eq!((status, answer["error"].text()), (409, "approver_not_eligible"), "{answer:#}");
    // The same rule through a principal: one identity matches its subject, the other its address.
    let carol = json!({"external_subject": "c-1", "email": "carol@acme.example"});
    principal(&app, carol).await;
    let id = held(&agent).await;
    assert_eq!(approve(&other(&app, "c-1", "c@work.example"), &id).await.0, 200);
    refused(&other(&app, "c-2", "carol@acme.example"), &id, "you have acted on this already").await;
}

/// Two principals have the same address in the tenant's records. The tokens have other addresses,
/// or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn principals_of_one_recorded_address_are_one_person() {
    let (app, agent, delegation) = demo().await;
    let first = json!({"external_subject": "e-1", "email": "eve@acme.example"});
    let first = principal(&app, first).await;
    principal(&app, json!({"external_subject": "e-2", "email": "Eve@ACME.example"})).await;
    let (one, two) = (other(&app, "e-1", "old@work.example"), other(&app, "e-2", ""));
    // The key belongs to the first identity.
    let (_, key) = key_of(&app, &one).await;
    let id = held(&key).await;
    refused(&two, &id, "created or rotated the API key").await;
    approved(&person(&app, "approver", "bob"), &id).await;
    assert_eq!(claim(&key, &id).await["decision"], "allow");
    // The delegation's standing approval needs two people.
    assert_eq!(one.approve_delegation(&delegation).await.0, 200);
    assert_eq!(two.approve_delegation(&delegation).await.0, 409);
    // The agent belongs to the first identity.
    change(&app, AGENT, only("owner_principal_id", &first)).await;
    let id = held(&agent).await;
    refused(&two, &id, "you own the agent").await;
    two_people(&app).await;
    let owner = principal(&app, nothing()).await;
    change(&app, AGENT, only("owner_principal_id", &owner)).await;
    let (status, given) = approve(&one, &id).await;
    assert_eq!((status, given["approval"]["state"].text()), (200, "pending"), "{given:#}");
    refused(&two, &id, "you have acted on this already").await;
}

/// Two signers who were unrelated count as one person after a principal connects their identities.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_identities_of_one_person_count_once() {
    let (app, agent, delegation) = demo().await;
    let one = other(&app, "c-1", "c@work.example");
    let two = other(&app, "c-2", "carol@acme.example");
    for signs in [&one, &two] {
        assert_eq!(signs.approve_delegation(&delegation).await.0, 200);
    }
    let ask = asking(100.0, "DE").with("delegation_id", &delegation).with(
        "action_risk_classification",
        json!({"risk_tier": "minimal", "required_oversight_mode": "two_person"}),
    );
    let (_, answer) = agent.evaluate(ask.clone()).await;
    assert_eq!(answer["decision"], "allow", "{answer:#}");
    two_people(&app).await;
    let id = held(&agent).await;
    assert_eq!(approve(&one, &id).await.0, 200);
    approved(&two, &id).await;
    principal(&app, json!({"external_subject": "c-1", "email": "carol@acme.example"})).await;
    assert_eq!(shown(&app, &id).await["would_be"]["decision"], "require_approval");
    assert_eq!(claim(&agent, &id).await["decision"], "require_approval");
    let policy = app.owner().list_policies(&format!("tenant_id={TENANT}")).await.1;
    let mut policies = policy["policies"].as_array().unwrap().iter();
    let two = policies.find(|policy| policy["name"] == "Two people").unwrap();
    assert_eq!(
        app.owner().update_policy(two["id"].as_str().unwrap(), only("state", "retired")).await.0,
        200
    );
    let (_, answer) = agent.evaluate(ask).await;
    assert_eq!(answer["decision"], "require_approval", "{answer:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_approves_what_they_asked_under_another_subject() {
    let (app, ..) = demo().await;
    // The installation's owner is also an approver of the tenant, with the same address.
    let id = held(&app.owner()).await;
    refused(&other(&app, "o-2", "Owner@Example.org"), &id, "you made this request").await;
    // The owner repeats the request with another address. Both addresses belong to the requester.
    let moved = app.client(&app.token(&json!({
        "sub": "dev|owner@example.org", "email": "moved@example.org",
        "public_metadata": {"role": "owner"},
    })));
    assert_eq!(held(&moved).await, id);
    for address in ["owner@example.org", "moved@example.org"] {
        refused(&other(&app, "o-2", address), &id, "you made this request").await;
    }
    approved(&person(&app, "approver", "bob"), &id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_stands_for_its_people_under_every_subject() {
    let (app, agent, _) = demo().await;
    let (ann, again) = (person(&app, "admin", "ann"), other(&app, "a-2", ANN));
    let (key, _) = key_of(&app, &ann).await;
    let path = format!("/api/v1/app/api-keys/{key}/rotate");
    for rotates in ["bob", "cy"] {
        let rotates = person(&app, "admin", rotates);
        rotates.post(&path, only("overlap_seconds", 0)).await.assert_status(200);
    }
    let (_, rotated) = person(&app, "admin", "cy").post(&path, nothing()).await;
    let keys = app.client(rotated["secret"].as_str().unwrap());
    let id = held(&keys).await;
    for (subject, address) in
        [("a-2", ANN), ("b-2", "bob@acme.example"), ("c-2", "Cy@acme.example")]
    {
        refused(&other(&app, subject, address), &id, "created or rotated the API key").await;
    }
    approved(&person(&app, "admin", "dan"), &id).await;
    assert_eq!(claim(&keys, &id).await["decision"], "allow");
    // An approval under one identity does not count either if the other identity's key uses it.
    let id = held(&agent).await;
    approved(&again, &id).await;
    let answer = claim(&keys, &id).await;
    assert_eq!(answer["decision"], "require_approval", "{answer:#}");
    assert_eq!(claim(&agent, &id).await["decision"], "allow");
}

/// The address is stored only for this check. It is not shown with the request or in public data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_of_askers_are_shown_to_nobody() {
    let (app, ..) = demo().await;
    let asker = app.client(&app.token(&json!({
        "sub": "o-1", "email": "asker@example.org", "public_metadata": {"role": "owner"},
    })));
    let id = held(&asker).await;
    let decision = shown(&app, &id).await["decision_id"].as_str().unwrap().to_owned();
    let admin = person(&app, "admin", "any");
    let reader = app.api_key(TENANT, &["evidence:write", "evidence:read", "runtime:read"]).await;
    let reader = app.client(&reader);
    let pack = only("decision_id", &decision);
    let sealed = reader.text("POST", SEAL_DECISION, Some(pack)).await;
    assert_eq!(sealed.0, 200, "{sealed:?}");
    for (client, path) in [
        (&admin, format!("/api/v1/app/approvals/{id}")),
        (&admin, "/api/v1/app/approvals:export".to_owned()),
        (&reader, format!("/v1/decisions/{decision}")),
        (&reader, format!("/v1/evidence/{decision}?bundle=true")),
        (&reader, format!("/receipts/{decision}")),
    ] {
        let (status, text) = client.text("GET", &path, None).await;
        assert!(status == 200 && !text.contains("asker@example.org"), "{path}: {status} {text}");
    }
}

//! Requesters, and the people behind the API keys that made requests.

use super::*;
use crate::support::{Answered, Members, Plain, SEAL_DECISION, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_asker_does_not_approve() {
    let (app, agent, _) = demo().await;
    let [ann, bob, cy] = ["ann", "bob", "cy"].map(|name| person(&app, "admin", name));
    let (key, anns) = key_of(&app, &ann).await;
    let id = held(&anns).await;
    refused(&ann, &id, "created or rotated the API key").await;
    // Repeating the request makes each caller a requester: another key, the seed's key, the owner.
    let (other, bobs) = key_of(&app, &bob).await;
    for _ in 0..2 {
        for asker in [&bobs, &agent, &app.owner(), &anns] {
            assert_eq!(held(asker).await, id, "no second approval opens");
        }
    }
    refused(&bob, &id, "created or rotated the API key").await;
    let (status, answer) = app.owner().approve_approval(&id).await;
    assert_eq!((status, answer["error"].text()), (409, "approver_not_eligible"), "{answer:#}");
    let found = shown(&app, &id).await;
    let askers = found["requested_by"].as_array().unwrap();
    let named = |kind: &str, id: &str| askers.contains(&json!({"kind": kind, "id": id}));
    let owner = "https://dev-idp.authority.localhost|dev|owner@example.org";
    assert!(named("api_key", &key) && named("api_key", &other) && named("person", owner));
    assert_eq!(askers.len(), 4, "each once: {askers:#?}");
    assert_eq!((found["state"].text(), found["given"].number()), ("pending", 0));
    assert_eq!(ann.decline_approval(&id, "no").await.0, 409);
    approved(&cy, &id).await;
    // The seed's key has no person behind it. The owner may approve requests made only with it.
    assert_eq!(claim(&agent, &id).await["decision"], "allow");
    let id = held(&agent).await;
    assert_eq!(app.owner().approve_approval(&id).await.0, 200);
}

/// The people who created or ever rotated a key may not approve its requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_counts_as_those_who_created_or_rotated_it() {
    let (app, ..) = demo().await;
    let [ann, bob, cy, dan] = ["ann", "bob", "cy", "dan"].map(|name| person(&app, "admin", name));
    let (key, _) = key_of(&app, &ann).await;
    let mut secret = String::new();
    for rotates in [&bob, &cy] {
        let rotated = rotates.rotate_api_key(&key).await.assert_status(200);
        assert_eq!(rotated["api_key"]["created_by"], "ann@acme.example");
        secret = rotated["secret"].as_str().unwrap().to_owned();
    }
    let (_, read) = ann.get_api_key(&key).await;
    assert_eq!(read["api_key"]["rotated_by"], "cy@acme.example", "{read:#}");
    let id = held(&app.client(&secret)).await;
    for maker in [&ann, &bob, &cy] {
        refused(maker, &id, "created or rotated the API key").await;
    }
    approved(&dan, &id).await;
}

/// A person who rotates the key after a request is behind the key from then on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_rotator_of_the_key_counts_as_well() {
    let (app, ..) = demo().await;
    let [ann, bob] = ["ann", "bob"].map(|name| person(&app, "admin", name));
    let (key, agent) = key_of(&app, &ann).await;
    let id = held(&agent).await;
    let path = format!("/api/v1/app/api-keys/{key}/rotate");
    assert_eq!(bob.post(&path, only("overlap_seconds", 600)).await.0, 200);
    refused(&bob, &id, "created or rotated the API key").await;
}

/// Only deciding and overseeing users see the requesters. API keys and public data don't show them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_key_reads_who_asked() {
    let (app, ..) = demo().await;
    let ann = person(&app, "admin", "ann");
    let (key, anns) = key_of(&app, &ann).await;
    let id = held(&anns).await;
    let decision = shown(&app, &id).await["decision_id"].as_str().unwrap().to_owned();
    for role in ["approver", "legal", "admin", "auditor"] {
        let (status, read) = person(&app, role, "any").get_approval(&id).await;
        let found = &read["approval"]["requested_by"];
        assert_eq!((status, found), (200, &json!([{"kind": "api_key", "id": key}])), "{role}");
    }
    let pack = only("decision_id", &decision);
    let body = app.api_key(TENANT, &["evidence:write", "evidence:read", "runtime:read"]).await;
    let reader = app.client(&body);
    let sealed = reader.text("POST", SEAL_DECISION, Some(pack)).await;
    assert_eq!(sealed.0, 200, "{sealed:?}");
    let mut read = vec![sealed];
    for path in [
        format!("/api/v1/app/approvals/{id}"),
        "/api/v1/app/approvals".to_owned(),
        format!("/v1/entities/{id}"),
        format!("/v1/decisions/{decision}"),
        format!("/v1/evidence/{decision}?bundle=true"),
        format!("/receipts/{decision}"),
    ] {
        read.push(reader.text("GET", &path, None).await);
    }
    assert_eq!((read[1].0, read[2].0), (403, 403), "keys can't read these");
    for (status, text) in read {
        let tells =
            text.contains("requested_by") || text.contains(&key) || text.contains("dev|ann");
        assert!(!tells, "{status} {text}");
    }
}

/// Approvals do not count for a key that the approvers created or rotated themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acts_of_the_claiming_keys_people_do_not_count() {
    let (app, agent, delegation) = demo().await;
    let [ann, bob] = ["ann", "bob"].map(|name| person(&app, "admin", name));
    let id = held(&agent).await;
    approved(&ann, &id).await;
    let (_, anns) = key_of(&app, &ann).await;
    let answer = claim(&anns, &id).await;
    assert_eq!(answer["decision"], "require_approval", "{answer:#}");
    assert_eq!(shown(&app, &id).await["state"], "approved", "not spent");
    assert_eq!(claim(&agent, &id).await["decision"], "allow");
    // Their signatures on a delegation do not count for requests of their own key either.
    let ask = asking(100.0, "DE").with("delegation_id", &delegation).with(
        "action_risk_classification",
        json!({"risk_tier": "minimal", "required_oversight_mode": "single_approver"}),
    );
    let decision = async |asker: &Client| asker.evaluate(ask.clone()).await.1["decision"].clone();
    ann.approve_delegation(&delegation).await.assert_status(200);
    assert_eq!(decision(&anns).await, "require_approval");
    assert_eq!(decision(&agent).await, "allow");
    assert_eq!(bob.approve_delegation(&delegation).await.0, 200);
    assert_eq!(decision(&anns).await, "allow", "bob's signature counts");
}

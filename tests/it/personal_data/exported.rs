//! An export contains all stored data about a person, and none about others.

use std::collections::BTreeSet;

use serde_json::json;

use super::{ANN, BOB, World};
use crate::support::{Answered, Members, Plain, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_of_the_person_and_nothing_of_others() {
    let world = World::start().await;
    let (hers, _) = (world.lead(ANN).await, world.lead(BOB).await);
    for (name, email, amount) in [("Ann", ANN, 26_000.0), ("Bob", BOB, 27_000.0)] {
        let body = json!({"display_name": name, "email": email});
        world.owner.create_consultant(body).await.assert_made("consultant");
        world.human(email, &format!("dev|{email}")).await;
        let person = world.person("admin", email);
        let key = json!({"label": format!("of {name}"), "scopes": ["runtime:read"]});
        assert_eq!(person.create_api_key(key).await.0, 201);
        let (_, approval) = world.held(&world.key, &format!("for {email}")).await;
        let said = only("comment", format!("{name} agrees"));
        assert_eq!(world.act(&person, &approval, "approve", said).await.0, 200);
        world.held(&world.app.owner_named(email), &format!("{name} asks")).await;
        let ask =
            crate::support::asking(amount, "DE").with("justification", format!("as {email} wrote"));
        let (_, held) = world.key.evaluate(ask).await;
        assert_eq!(held["decision"], "require_approval", "{held:#}");
    }
    let (lines, last) = world.export(only("email", "ANN@example.org")).await;
    let kinds: BTreeSet<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    let expected = ["lead", "consultant", "principal", "api_key", "approval", "act", "context"];
    assert_eq!(kinds, BTreeSet::from(expected), "{lines:#?}");
    assert_eq!(last["count"], json!(lines.len()));
    let lead = lines.iter().find(|line| line["kind"] == "lead").unwrap();
    assert_eq!((lead["id"].text(), lead["data"]["message"].text()), (hers.as_str(), "Call me."));
    let act = lines.iter().find(|line| line["kind"] == "act").unwrap();
    assert_eq!(act["data"]["comment"], "Ann agrees", "{act:#}");
    let text = serde_json::to_string(&lines).unwrap();
    assert!(text.contains("for ann@example.org") && text.contains("as ann@example.org wrote"));
    for his in [BOB, "Bob"] {
        assert!(!text.contains(his), "{his} in {text}");
    }
    // An export for one tenant omits data that belongs to no tenant.
    let (within, _) = world.export(json!({"email": ANN, "tenant_id": "acme"})).await;
    assert!(within.iter().all(|line| line["tenant_id"] == super::TENANT), "{within:#?}");
    assert_eq!(within.len(), lines.len() - 2);
    // An export by another of her identifiers has the same number of lines.
    let subject = only("external_subject", format!("dev|{ANN}"));
    assert_eq!(world.export(subject).await.0.len(), lines.len());
    assert_eq!(world.export(only("email", "nobody@example.org")).await.0.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_to_export_after_the_erasure() {
    let world = World::start().await;
    world.lead(ANN).await;
    let ann = world.person("approver", ANN);
    let (_, approval) = world.held(&world.key, ANN).await;
    assert_eq!(world.act(&ann, &approval, "decline", only("reason", "no")).await.0, 200);
    let (_, listed) = world.owner.list_policies("").await;
    let path =
        format!("/api/v1/policies/{}/activate", listed["policies"][0]["id"].as_str().unwrap());
    let agreed = only("reason", format!("as {ANN} agreed"));
    assert_eq!(world.owner.post(&path, agreed).await.0, 200);
    let (lines, _) = world.export(only("email", ANN)).await;
    assert_eq!(lines.len(), 4, "{lines:#?}");
    let activation = lines.iter().find(|line| line["kind"] == "activation").unwrap();
    assert_eq!(activation["data"]["reason"], format!("as {ANN} agreed"));
    world.erase_ann().await;
    assert_eq!(world.export(only("email", ANN)).await.0.len(), 0);
}

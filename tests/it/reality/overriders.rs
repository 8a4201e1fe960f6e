//! People may not override for themselves, and some overrides need two people.

use serde_json::{Value, json};

use super::{ACTION, AGENT, World, refusal};
use crate::support::{
    Answered, Client, Members, Plain, new_api_key, new_delegation, new_principal, nothing, only,
};

const PAYMENT: &str = "payment.execute";

/// Creates a check and runs it. Its anchor of the action has no snapshot.
async fn check(world: &World, action: &str, more: Value) -> String {
    world.new_anchor(only("grounds_actions", [action])).await;
    let check = world.new_check(super::with(only("action_id", action), more)).await;
    world.run(&check).await;
    check
}

#[track_caller]
fn not_permitted(answer: &(u16, Value)) {
    assert_eq!(refusal(answer), (409, "override_not_permitted".to_owned()), "{:#}", answer.1);
    // The message names the permitted role. Users of the tenant may not override.
    let message = answer.1["message"].as_str().unwrap();
    assert!(message.contains("role owner of the installation"), "{message}");
    assert!(!message.contains("legal"), "{message}");
}

/// Returns a client for the demonstration's owner, who owns the agent and delegates to it.
fn keeper(world: &World) -> Client {
    let claims = json!({"sub": "dev|owner@acme.example", "email": "owner@acme.example",
                        "public_metadata": {"role": "owner"}});
    world.app.client(&world.app.token(&claims))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_owns_the_agent_does_not_override_for_it() {
    let world = World::start().await;
    let check = check(&world, ACTION, only("actor_entity_id", AGENT)).await;
    not_permitted(&world.decide(&keeper(&world), &check, "override").await);
    assert_eq!(world.decide(&world.owner, &check, "override").await.0, 200);
}

/// A check without an actor concerns everyone who can perform the action.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_out_the_actor_permits_nobody_more() {
    let world = World::start().await;
    let check = check(&world, PAYMENT, nothing()).await;
    not_permitted(&world.decide(&keeper(&world), &check, "override").await);
    assert_eq!(world.decide(&world.owner, &check, "override").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_delegates_the_action_does_not_override_for_it() {
    let world = World::start().await;
    let delegator = world.another_owner("third@example.org");
    let principal = new_principal("human", "Third").with("email", "third@example.org");
    let principal = world.owner.create_principal(principal).await.assert_made("principal");
    let check = check(&world, PAYMENT, only("actor_entity_id", AGENT)).await;
    let given = new_delegation(&principal, AGENT, &["payment.*"]);
    world.owner.create_delegation(given).await.assert_made("delegation");
    not_permitted(&world.decide(&delegator, &check, "override").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_made_a_key_that_may_ask_does_not_override() {
    let world = World::start().await;
    let maker = world.another_owner("maker@example.org");
    let other = "svc:agent:acme:support-bot";
    let body =
        |bound: &[&str]| new_api_key("test", &["runtime:write"]).with("principal_ids", bound);
    let check = check(&world, PAYMENT, only("actor_entity_id", AGENT)).await;
    // Creating a key for another agent does not exclude the maker.
    assert_eq!(maker.create_api_key(body(&[other])).await.0, 201);
    assert_eq!(world.decide(&maker, &check, "override").await.0, 200);
    world.run(&check).await;
    let (_, made) = maker.create_api_key(body(&[AGENT])).await;
    not_permitted(&world.decide(&maker, &check, "override").await);
    let key = made["api_key"]["id"].as_str().unwrap();
    assert_eq!(world.owner.revoke_api_key(key).await.0, 200);
    assert_eq!(world.decide(&maker, &check, "override").await.0, 200);
}

/// Overriding a quarantine needs two owners. These two are one person in the tenant's records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_names_of_one_person_are_not_two_owners() {
    let world = World::start().await;
    let principal = new_principal("human", "Dual")
        .with("email", "dual-2@example.org")
        .with("external_subject", "dev|dual-1@example.org");
    world.owner.create_principal(principal).await.assert_made("principal");
    let contract = json!({"max_staleness_seconds": 60, "missing_runtime_effect": "quarantine"});
    world.new_anchor(only("freshness_contract", &contract)).await;
    let check = world.new_check(nothing()).await;
    world.run(&check).await;
    let [first, second] =
        ["dual-1@example.org", "dual-2@example.org"].map(|name| world.another_owner(name));
    let (status, pending) = world.decide(&first, &check, "override").await;
    assert_eq!((status, pending["coupling_check"]["override"]["state"].text()), (200, "pending"));
    not_permitted(&world.decide(&second, &check, "override").await);
    let (status, whole) = world.decide(&world.owner, &check, "override").await;
    assert_eq!((status, whole["coupling_check"]["override"]["state"].text()), (200, "in_force"));
}

/// For a quarantine, the first owner's override does not count if they may no longer override.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_owner_who_could_not_override_now_does_not_count() {
    let world = World::start().await;
    let contract = json!({"max_staleness_seconds": 60, "missing_runtime_effect": "quarantine"});
    world.new_anchor(only("freshness_contract", &contract)).await;
    let state = |(status, decided): &(u16, Value)| {
        let check = &decided["coupling_check"]["override"];
        (*status, check["state"].clone(), check["by"].as_array().map_or(0, Vec::len))
    };
    let (pending, whole) = ((200, json!("pending"), 1), (200, json!("in_force"), 2));
    for (first, named) in [
        ("gone-1@example.org", only("email", "gone-1@example.org")),
        ("gone-2@example.org", only("external_subject", "dev|gone-2@example.org")),
    ] {
        let check = world.new_check(nothing()).await;
        world.run(&check).await;
        let person = new_principal("human", "Gone");
        let person =
            world.owner.create_principal(super::with(person, named)).await.assert_made("principal");
        let first = world.another_owner(first);
        assert_eq!(state(&world.decide(&first, &check, "override").await), pending);
        let (status, _) = world.owner.update_principal(&person, only("state", "suspended")).await;
        assert_eq!(status, 200);
        let second = world.another_owner("second@example.org");
        assert_eq!(state(&world.decide(&second, &check, "override").await), pending);
        not_permitted(&world.decide(&second, &check, "override").await);
        let third = world.another_owner("third@example.org");
        assert_eq!(state(&world.decide(&third, &check, "override").await), whole);
    }
    // The first owner does not count either once they own the agent.
    let check = world.new_check(only("actor_entity_id", AGENT)).await;
    world.run(&check).await;
    let buyer = world.another_owner("buyer@example.org");
    assert_eq!(state(&world.decide(&buyer, &check, "override").await), pending);
    let person = new_principal("human", "Buyer").with("email", "buyer@example.org");
    let person = world.owner.create_principal(person).await.assert_made("principal");
    world
        .owner
        .update_principal(AGENT, only("owner_principal_id", &person))
        .await
        .assert_status(200);
    assert_eq!(state(&world.decide(&world.owner, &check, "override").await), pending);
}

/// The last run no longer finds the worst effect, but that effect's drift event still applies. An
/// override would lift the drift event as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_that_denies_takes_two_owners_whatever_the_last_run_found() {
    let world = World::start().await;
    let contract = json!({"max_staleness_seconds": 60, "stale_runtime_effect": "deny"});
    let denying = world
        .new_anchor(json!({"grounds_actions": ["other.x"], "freshness_contract": contract}))
        .await;
    let asking = world.new_anchor(nothing()).await;
    world.new_snapshot(&denying, 300, "sha256:old").await;
    world.new_snapshot(&asking, 300, "sha256:old").await;
    let body = json!({
        "actor_entity_id": AGENT, "anchors_consulted": [denying, asking],
        "assumptions": [{"anchor_id": asking, "expected_content_hash": "sha256:assumed"}],
    });
    let check = world.new_check(body).await;
    assert_eq!(world.run(&check).await["runtime_effect"], "deny");
    world.new_snapshot(&denying, 1, "sha256:new").await;
    world.new_snapshot(&asking, 200, "sha256:other").await;
    assert_eq!(world.run(&check).await["runtime_effect"], "require_human_review");
    let (status, first) = world.decide(&world.owner, &check, "override").await;
    assert_eq!((status, first["coupling_check"]["override"]["state"].text()), (200, "pending"));
}

//! Approvals are checked again when they are used:
//! approvers who have become requesters don't count.

use super::*;
use crate::support::{Answered, Members, new_policy, nothing, only};

/// Lets a registered person approve a held request. Returns the person's principal id and the
/// approval's id.
async fn approved_by_nora(app: &TestApp, agent: &Client) -> (String, String) {
    let nora = principal(app, only("external_subject", "dev|nora@acme.example")).await;
    let id = held(agent).await;
    approved(&person(app, "approver", "nora"), &id).await;
    assert_eq!(shown(app, &id).await["would_be"]["decision"], "allow_with_constraints");
    (nora, id)
}

/// Checks that `would_be` shows that the approval does not count, that a request citing it is held,
/// and that this request makes the approval void.
async fn counts_no_more(app: &TestApp, agent: &Client, id: &str) {
    let found = shown(app, id).await;
    assert_eq!(found["would_be"]["decision"], "require_approval", "{found:#}");
    let answer = claim(agent, id).await;
    assert_eq!(answer["decision"], "require_approval", "{answer:#}");
    assert_ne!(answer["approval_id"], id, "{answer:#}");
    let after = shown(app, id).await;
    assert_eq!(after["state"], "void", "not spent");
    assert!(after["void_reason"].is_string(), "{after:#}");
}

/// A void approval stays void even if its approvers become eligible again.
async fn stays_void(app: &TestApp, agent: &Client, id: &str) {
    assert_eq!(claim(agent, id).await["decision"], "require_approval");
    assert_eq!(shown(app, id).await["state"], "void");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_owner_of_the_agent_has_not_approved() {
    // `self_approval` does not help: the approver had no interest when they approved.
    for self_approval in [false, true] {
        let (app, agent, _) = demo().await;
        let before = principal(&app, nothing()).await;
        change(&app, AGENT, only("owner_principal_id", &before)).await;
        let (nora, id) = approved_by_nora(&app, &agent).await;
        change(&app, AGENT, only("owner_principal_id", &nora)).await;
        let body = only("self_approval", self_approval);
        assert_eq!(app.owner().update_tenant("acme", body).await.0, 200);
        counts_no_more(&app, &agent, &id).await;
        change(&app, AGENT, only("owner_principal_id", &before)).await;
        stays_void(&app, &agent, &id).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_person_has_not_approved() {
    let (app, agent, _) = demo().await;
    let (nora, id) = approved_by_nora(&app, &agent).await;
    change(&app, &nora, only("state", "suspended")).await;
    counts_no_more(&app, &agent, &id).await;
    change(&app, &nora, only("state", "active")).await;
    stays_void(&app, &agent, &id).await;
}

/// The approval stops counting because the approver is now a delegator in the chain that is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegator_of_the_authority_in_use_has_not_approved() {
    let (app, agent, _) = demo().await;
    let (nora, id) = approved_by_nora(&app, &agent).await;
    let body = json!({"tenant_id": TENANT, "delegator_id": nora, "delegate_id": AGENT,
                      "actions": ["payment.execute"], "purposes": ["invoice-settlement"],
                      "jurisdictions": ["DE"], "max_amount": "50000", "currency": "EUR"});
    let made = app.owner().create_delegation(body).await.assert_status(201);
    counts_no_more(&app, &agent, &id).await;
    assert_eq!(
        app.owner()
            .revoke_delegation(made["delegation"]["id"].as_str().unwrap(), Some("a mistake"))
            .await
            .0,
        200
    );
    stays_void(&app, &agent, &id).await;
}

/// A requester's approval does not count towards the required number either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_approval_counts_the_earlier_ones_again() {
    let (app, agent, _) = demo().await;
    people_needed(&app, 2).await;
    let nora = principal(&app, only("external_subject", "dev|nora@acme.example")).await;
    let id = held(&agent).await;
    assert_eq!(approve(&person(&app, "approver", "nora"), &id).await.0, 200);
    change(&app, AGENT, only("owner_principal_id", &nora)).await;
    let (_, given) = approve(&person(&app, "approver", "bob"), &id).await;
    let found = (&given["approval"]["state"], &given["approval"]["given"]);
    assert_eq!(found, (&json!("pending"), &json!(1)), "{given:#}");
    approved(&person(&app, "approver", "cy"), &id).await;
    assert_eq!(claim(&agent, &id).await["decision"], "allow");
}

/// A requester's signature on a delegation does not count either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signer_who_later_owns_the_agent_has_not_signed() {
    let (app, agent, delegation) = demo().await;
    let nora = principal(&app, only("external_subject", "dev|nora@acme.example")).await;
    let ask = asking(100.0, "DE").with("delegation_id", &delegation).with(
        "action_risk_classification",
        json!({"risk_tier": "minimal", "required_oversight_mode": "single_approver"}),
    );
    let decision = async || agent.evaluate(ask.clone()).await.1["decision"].clone();
    person(&app, "approver", "nora").approve_delegation(&delegation).await.assert_status(200);
    assert_eq!(decision().await, "allow");
    change(&app, AGENT, only("owner_principal_id", &nora)).await;
    assert_eq!(decision().await, "require_approval");
    assert_eq!(person(&app, "approver", "bob").approve_delegation(&delegation).await.0, 200);
    assert_eq!(decision().await, "allow");
}

/// A requester's approval does not count when more approvals become required.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn askers_do_not_count_where_more_are_needed_by_now() {
    let (app, agent, _) = demo().await;
    people_needed(&app, 2).await;
    let [ann, bob, cy] = ["ann", "bob", "cy"].map(|name| person(&app, "admin", name));
    let id = held(&agent).await;
    assert_eq!(approve(&ann, &id).await.0, 200);
    let (_, anns) = key_of(&app, &ann).await;
    assert_eq!(held(&anns).await, id, "an approver repeats it");
    assert_eq!(approve(&bob, &id).await.1["approval"]["state"], "pending");
    approved(&cy, &id).await;
    let three = people_needed(&app, 3).await;
    counts_no_more(&app, &agent, &id).await;
    retire(&app, &three).await;
    stays_void(&app, &agent, &id).await;
}

/// An approval under `self_approval` does not count if two approvers are required.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_interest_does_not_count_where_two_are_needed_by_now() {
    let (app, ..) = demo().await;
    let ann = person(&app, "admin", "ann");
    let (_, anns) = key_of(&app, &ann).await;
    assert_eq!(app.owner().update_tenant("acme", only("self_approval", true)).await.0, 200);
    let id = held(&anns).await;
    assert_eq!(approved(&ann, &id).await["acts"][0]["self"], true);
    let two = people_needed(&app, 2).await;
    counts_no_more(&app, &anns, &id).await;
    retire(&app, &two).await;
    stays_void(&app, &anns, &id).await;
}

/// Creates a policy that holds every action for this many approvers, and returns its id.
async fn people_needed(app: &TestApp, count: u32) -> String {
    let policy = new_policy(
        "internal",
        &format!(
            "@id(\"people-{count}\")\n@reason(\"approval_threshold_breach\")\n\
                  @decision(\"require_approval\")\n@approvals(\"{count}\")\n\
                  forbid (principal, action, resource);\n"
        ),
    )
    .with("name", format!("{count} people"));
    let made = app.owner().create_policy(policy).await.assert_status(201);
    made["policy"]["id"].as_str().unwrap().to_owned()
}

async fn retire(app: &TestApp, policy: &str) {
    assert_eq!(app.owner().update_policy(policy, only("state", "retired")).await.0, 200);
}

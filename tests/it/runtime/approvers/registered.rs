//! A person's relation to the agent, through the tenant's principals.

use super::*;
use crate::support::{Answered, Members, only};

/// The agent's owner is registered only by an email address, in other letter case.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_known_by_address_does_not_approve() {
    let (app, agent, _) = demo().await;
    let id = held(&agent).await;
    let nora = principal(&app, only("email", "Nora@ACME.example")).await;
    change(&app, AGENT, only("owner_principal_id", &nora)).await;
    refused(&person(&app, "approver", "nora"), &id, "you own the agent").await;
    approved(&person(&app, "approver", "ann"), &id).await;
}

/// The owner of an agent also counts as the owner of agents that this agent owns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_of_an_owner_does_not_approve() {
    let (app, agent, _) = demo().await;
    let nora = principal(&app, only("external_subject", "dev|nora@acme.example")).await;
    let between = json!({"principal_class": "agent", "name": "between",
                         "owner_principal_id": nora});
    let between = principal(&app, between).await;
    change(&app, AGENT, only("owner_principal_id", &between)).await;
    let id = held(&agent).await;
    refused(&person(&app, "approver", "nora"), &id, "you own the agent").await;
    approved(&person(&app, "approver", "ann"), &id).await;
}

/// Refuses the demonstration's delegator, the owner of an agent higher up in the chain, and each
/// delegator in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_in_the_chain_approves() {
    let (app, agent, delegation) = demo().await;
    let email = "owner-of-above@acme.example";
    let above = principal(&app, only("email", email)).await;
    change(&app, AGENT, only("owner_principal_id", &above)).await;
    let lender = principal(&app, only("external_subject", "dev|lender@acme.example")).await;
    let lent = async |from: &str, to: &str, parent: &str| {
        let body = json!({"tenant_id": TENANT, "delegator_id": from, "delegate_id": to,
                          "parent_id": parent, "actions": ["payment.*"], "can_delegate": true,
                          "purposes": ["invoice-settlement"], "jurisdictions": ["DE"],
                          "max_amount": "50000", "currency": "EUR"});
        let made = app.owner().create_delegation(body).await.assert_status(201);
        made["delegation"]["id"].as_str().unwrap().to_owned()
    };
    let between = lent(AGENT, &lender, &delegation).await;
    let helper = json!({"principal_class": "agent", "name": "helper",
                        "email": "written-to@acme.example"});
    let helper = principal(&app, helper).await;
    lent(&lender, &helper, &between).await;
    let (_, answer) = agent.evaluate(asking(AMOUNT, "DE").with("subject", &helper)).await;
    let id = answer["approval_id"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    for (name, why) in [
        ("owner", "you are a delegator"),
        ("lender", "you are a delegator"),
        ("owner-of-above", "you own the agent"),
        ("written-to", "is you"),
    ] {
        refused(&person(&app, "approver", name), id, why).await;
    }
    approved(&person(&app, "approver", "ann"), id).await;
}

/// The answer has the reason as a code, before a person tries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_has_the_reason_why_its_reader_cannot_decide() {
    let (app, _, _) = demo().await;
    let nora = principal(&app, only("email", "nora@acme.example")).await;
    change(&app, AGENT, only("owner_principal_id", &nora)).await;
    let admin = person(&app, "admin", "kim");
    let (_, keyed) = key_of(&app, &admin).await;
    let of_key = held(&keyed).await;
    let ineligibility = async |role: &str, name: &str, id: &str| {
        let found = person(&app, role, name).get_approval(id).await.assert_status(200);
        let found = found["approval"].clone();
        assert_eq!(found["not_eligible"].is_null(), found["ineligibility"].is_null());
        found["ineligibility"].clone()
    };
    for (role, name, reason) in [
        ("approver", "nora", "owner"),
        ("approver", "owner", "delegator"),
        ("admin", "kim", "key_maker"),
        ("auditor", "ann", "role"),
    ] {
        let why = ineligibility(role, name, &of_key).await;
        assert_eq!(why["reason"], reason, "{name}: {why:#}");
        let roles = json!(["admin", "approver", "legal", "owner"]);
        assert_eq!(why["permitted_roles"], roles, "{name}");
        assert!(!why["rule"].as_str().unwrap().is_empty(), "{name}");
    }
    assert_eq!(ineligibility("approver", "ann", &of_key).await, Value::Null);
    // The owner of the installation asks with their own token.
    let (_, answer) = app.owner().evaluate(asking(26_000.0, "DE").with("subject", AGENT)).await;
    let id = answer["approval_id"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    assert_eq!(shown(&app, id).await["ineligibility"]["reason"], "asker");
}

/// A delegation with a budget, made after the request was held, is now the one to be used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_present_delegator_does_not_approve() {
    let (app, agent, _) = demo().await;
    let id = held(&agent).await;
    let lender = principal(&app, only("external_subject", "dev|lender@acme.example")).await;
    let body = json!({"tenant_id": TENANT, "delegator_id": lender, "delegate_id": AGENT,
                      "actions": ["payment.execute"], "purposes": ["invoice-settlement"],
                      "jurisdictions": ["DE"], "max_amount": "50000", "currency": "EUR",
                      "max_uses": {"count": 5, "window_seconds": 86400}});
    app.owner().create_delegation(body).await.assert_status(201);
    refused(&person(&app, "approver", "lender"), &id, "you are a delegator").await;
    approved(&person(&app, "approver", "ann"), &id).await;
    let allow = claim(&agent, &id).await;
    assert_eq!(allow["decision"], "allow", "{allow:#}");
}

/// Deleted principals with a person's address still count as that person. A person who is
/// registered again still owns the deleted principal's agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_principal_of_the_address_is_theirs() {
    let (app, agent, _) = demo().await;
    let id = held(&agent).await;
    let before = principal(&app, only("email", "nora@acme.example")).await;
    change(&app, AGENT, only("owner_principal_id", &before)).await;
    assert_eq!(app.owner().delete_principal(&before).await.0, 200);
    let nora = person(&app, "approver", "nora");
    assert_eq!(approve(&nora, &id).await.0, 403, "a deleted person is refused");
    let anew = principal(&app, only("external_subject", "dev|nora@acme.example")).await;
    refused(&nora, &id, "you own the agent").await;
    // Another owner replaces the deleted person.
    let ann = principal(&app, only("external_subject", "dev|ann@acme.example")).await;
    assert_ne!(ann, anew);
    change(&app, AGENT, only("owner_principal_id", &ann)).await;
    approved(&nora, &id).await;
}

/// The response shows at once if no registered user could approve.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_nobody_could_approve_says_so() {
    let (app, agent, _) = demo().await;
    let eligible = async |id: &str| shown(&app, id).await["eligible"].clone();
    let id = held(&agent).await;
    assert_eq!(eligible(&id).await, Value::Null, "two approvers are registered");
    // The administrator and one approver are suspended. The other approver creates the key that
    // makes the request.
    let (_, found) = app.owner().list_principals(&format!("tenant_id={TENANT}&limit=100")).await;
    let of = |email: &str| {
        let mut all = found["principals"].as_array().unwrap().iter();
        let one = all.find(|one| one["email"] == email).unwrap();
        one["id"].as_str().unwrap().to_owned()
    };
    for email in ["admin@acme.example", "legal@acme.example"] {
        change(&app, &of(email), only("state", "suspended")).await;
    }
    let (_, own) = key_of(&app, &person(&app, "admin", "approver")).await;
    assert_eq!(held(&own).await, id);
    assert_eq!(eligible(&id).await, "none", "no approver remains after this request");
    let (_, answer) = own.evaluate(asking(26_000.0, "DE").with("explain", true)).await;
    assert_eq!(answer["decision"], "require_approval", "{answer:#}");
    let other = answer["approval_id"].as_str().unwrap();
    assert_eq!(eligible(other).await, "none");
    assert_eq!(answer["eligible"], "none", "{answer:#}");
    // This does not prevent an approval: an unregistered person can still approve.
    approved(&person(&app, "approver", "ann"), other).await;
}

//! `self_approval`: people may approve in their own interest if one approver is required. The act
//! has the field `self`.

use super::*;
use crate::support::{Answered, Members, Plain, new_policy, nothing, only};

async fn allow_it(app: &TestApp, on: bool) {
    let (status, changed) = app.owner().update_tenant("acme", only("self_approval", on)).await;
    assert_eq!((status, &changed["tenant"]["self_approval"]), (200, &json!(on)), "{changed:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_lifts_own_interest_where_one_is_needed() {
    let (app, ..) = demo().await;
    let ann = person(&app, "admin", "ann");
    let (_, anns) = key_of(&app, &ann).await;
    let id = held(&anns).await;
    refused(&ann, &id, "you made this request").await;
    // A tenant's admin can't set it.
    assert_eq!(ann.update_tenant("acme", only("self_approval", true)).await.0, 403);
    allow_it(&app, true).await;
    let given = approved(&ann, &id).await;
    let act = &given["acts"][0];
    assert_eq!(act["self"], true, "{act:#}");
    let record: Value = serde_json::from_str(act["record"].as_str().unwrap()).unwrap();
    assert_eq!(record["self"], true, "{record:#}");
    // The approval is valid for her own key only while the tenant permits `self_approval`.
    allow_it(&app, false).await;
    let held_again = claim(&anns, &id).await;
    assert_eq!(held_again["decision"], "require_approval");
    allow_it(&app, true).await;
    let next = held_again["approval_id"].as_str().unwrap();
    assert_ne!(next, id, "opening the next approval voids the first");
    approved(&ann, next).await;
    assert_eq!(claim(&anns, next).await["decision"], "allow");
    // The same applies to the delegator and the agent's owner. Acts of others don't have `self`.
    let id = held(&anns).await;
    assert_eq!(approved(&person(&app, "approver", "owner"), &id).await["acts"][0]["self"], true);
    assert_eq!(claim(&anns, &id).await["decision"], "allow");
    let id = held(&anns).await;
    let act = &approved(&person(&app, "approver", "bob"), &id).await["acts"][0];
    assert_eq!(act["self"], false);
    assert!(!act["record"].as_str().unwrap().contains("\"self\""));
}

/// `self_approval` does not apply if two approvers are required, or to the agent itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_lifts_nothing_else() {
    let (app, agent, delegation) = demo().await;
    allow_it(&app, true).await;
    let ann = person(&app, "admin", "ann");
    let (_, anns) = key_of(&app, &ann).await;
    let four_eyes = new_policy(
        "internal",
        "@id(\"four-eyes\")\n@reason(\"approval_threshold_breach\")\n\
                  @decision(\"require_approval\")\n@approvals(\"2\")\n\
                  forbid (principal, action, resource);\n",
    )
    .with("name", "Two people");
    let id = held(&agent).await;
    let made = app.owner().create_policy(four_eyes).await.assert_status(201);
    let policy = made["policy"]["id"].as_str().unwrap();
    // The request was held for one approver, and two are required now. Approvals in one's own
    // interest don't count.
    let owner = person(&app, "approver", "owner");
    let (status, given) = approve(&owner, &id).await;
    assert_eq!((status, given["approval"]["state"].text()), (200, "pending"), "{given:#}");
    let (_, given) = approve(&person(&app, "approver", "bob"), &id).await;
    assert_eq!(given["approval"]["state"], "pending", "{given:#}");
    approved(&person(&app, "approver", "cy"), &id).await;
    assert_eq!(claim(&agent, &id).await["decision"], "allow");
    let id = held(&anns).await;
    refused(&ann, &id, "`self_approval` applies only where one approval is needed").await;
    // Two signatures under a delegation don't count either.
    assert_eq!(app.owner().update_policy(policy, only("state", "retired")).await.0, 200);
    let ask = asking(100.0, "DE").with("delegation_id", &delegation);
    let asked = async |mode: &str| {
        let classification = json!({"risk_tier": "minimal", "required_oversight_mode": mode});
        let ask = ask.clone().with("action_risk_classification", classification);
        agent.evaluate(ask).await.1["decision"].clone()
    };
    let path = format!("/api/v1/app/delegations/{delegation}/approve");
    let (status, signed) = owner.post(&path, nothing()).await;
    assert_eq!((status, signed["delegation"]["standing"][0]["self"].as_bool()), (200, Some(true)));
    assert_eq!(asked("single_approver").await, "allow");
    assert_eq!(person(&app, "approver", "bob").post(&path, nothing()).await.0, 200);
    assert_eq!(asked("two_person").await, "require_approval");
    assert_eq!(person(&app, "approver", "cy").post(&path, nothing()).await.0, 200);
    assert_eq!(asked("two_person").await, "allow");
    // The agent itself can never approve, even with `self_approval`.
    change(&app, AGENT, only("external_subject", "dev|bot@acme.example")).await;
    let id = held(&agent).await;
    refused(&person(&app, "approver", "bot"), &id, "is you").await;
}

/// `self_approval` is also required to sign a delegation in one's own interest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standing_approval_is_given_by_others() {
    let (app, _, delegation) = demo().await;
    let (status, answer) = person(&app, "approver", "owner").approve_delegation(&delegation).await;
    assert_eq!((status, answer["error"].text()), (409, "approver_not_eligible"), "{answer:#}");
    assert!(answer["message"].as_str().unwrap().contains("you own the agent"), "{answer:#}");
    assert_eq!(person(&app, "approver", "ann").approve_delegation(&delegation).await.0, 200);
}

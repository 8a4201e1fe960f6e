//! Delegations below a renewed one, and renewals below a parent.

use serde_json::{Value, json};

use super::{
    super::demo, AGENT, END, TENANT, act, answer, chain, id, lend, quarantine, read, reason,
    release, renew, try_renew,
};
use crate::support::{
    Answered, Members, Plain, TestApp, asking, new_api_key, new_stop, nothing, only,
};

const OTHER: &str = "svc:agent:acme:support-bot";

async fn below(app: &TestApp, parent: &str, more: Value) -> String {
    let more = more.as_object().unwrap().clone();
    let mut body = json!({"tenant_id": TENANT, "parent_id": parent, "delegate_id": OTHER,
                          "actions": ["payment.execute"], "currency": "EUR", "max_amount": "100"});
    body.as_object_mut().unwrap().extend(more);
    let made = app.owner().create_delegation(body).await.assert_status(201);
    id(&made)
}

fn asked(delegation: &str, amount: f64) -> Value {
    asking(amount, "DE").with("subject", OTHER).with("delegation_id", delegation)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_continue_within_the_successor() {
    let (app, client, demo) = demo().await;
    let parent = lend(&app, &demo, json!({"can_delegate": true, "max_amount": "100"})).await;
    let child = below(&app, &parent, nothing()).await;
    let revoked = below(&app, &parent, nothing()).await;
    act(&app, &revoked, "revoke").await;
    let second = renew(&app, &parent, only("max_amount", "50")).await;
    let read_child = read(&app, &child).await;
    assert_eq!(read_child["parent_id"], second);
    assert_eq!(read_child["root_id"], parent, "the first of the chain stays");
    assert_eq!(read(&app, &revoked).await["parent_id"], parent);
    let allowed = answer(&client, asked(&child, 50.0)).await;
    assert_eq!(chain(&app, &allowed).await, json!([child, second]));
    let denied = answer(&client, asked(&child, 51.0)).await;
    assert_eq!(denied["reason_code"], "constraint_exceeded", "{denied:#}");
    // A quarantine of the parent that was renewed covers the child.
    let stopped = quarantine(&app, &parent).await;
    let denied = answer(&client, asked(&child, 1.0)).await;
    assert_eq!(denied["reason_code"], "capability_quarantined", "{denied:#}");
    release(&app, &stopped).await;
    // After a second renewal of its parent, the child can be renewed below the successor.
    let third = renew(&app, &second, only("max_amount", "60")).await;
    let renewed = renew(&app, &child, only("max_amount", "60")).await;
    let allowed = answer(&client, asked(&child, 60.0)).await;
    assert_eq!(chain(&app, &allowed).await, json!([renewed, third]));
    let late = json!({"tenant_id": TENANT, "parent_id": parent, "delegate_id": OTHER,
                      "actions": ["payment.execute"], "currency": "EUR", "max_amount": "1"});
    assert_eq!(app.owner().create_delegation(late).await.0, 409, "it has ended");
    act(&app, &parent, "revoke").await;
    let denied = answer(&client, asked(&renewed, 1.0)).await;
    assert_eq!(denied["reason_code"], "delegation_revoked", "{denied:#}");
}

/// A child's uses count for the line of its parent, before and after the renewal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parents_budget_is_one() {
    let (app, client, demo) = demo().await;
    let bounds = json!({"can_delegate": true, "max_uses": {"count": 2, "window_seconds": 86400}});
    let parent = lend(&app, &demo, bounds.clone()).await;
    let child =
        below(&app, &parent, json!({"max_uses": {"count": 2, "window_seconds": 86400}})).await;
    assert_eq!(answer(&client, asked(&child, 1.0)).await["decision"], "allow");
    let second = renew(&app, &parent, nothing()).await;
    assert_eq!(reason(&client, &second).await, "permission_granted");
    let denied = answer(&client, asked(&child, 1.0)).await;
    assert_eq!(denied["reason_code"], "constraint_exceeded", "{denied:#}");
    let renewed = renew(&app, &child, nothing()).await;
    let denied = answer(&client, asked(&renewed, 1.0)).await;
    assert_eq!(denied["reason_code"], "constraint_exceeded", "{denied:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_is_no_wider_than_the_parent() {
    let (app, _, demo) = demo().await;
    let until = "2090-01-01T00:00:00Z";
    let parent =
        lend(&app, &demo, json!({"can_delegate": true, "max_amount": "100", "expires_at": until}))
            .await;
    let child = below(&app, &parent, only("expires_at", "2080-01-01T00:00:00Z")).await;
    let (status, refused) = try_renew(&app, &child, only("max_amount", "101")).await;
    assert_eq!((status, refused["error"].text()), (409, "delegation_exceeds_parent"));
    let details = refused["details"].as_array().unwrap().iter();
    let fields: Vec<_> = details.map(|fault| fault["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["max_amount", "expires_at"], "{refused:#}");
    assert_eq!(read(&app, &child).await["renewed_by"], json!(null), "nothing was done");
    let wider = renew(&app, &child, only("expires_at", until)).await;
    // The parent is suspended: nothing is renewed below it.
    act(&app, &parent, "suspend").await;
    let (status, refused) = try_renew(&app, &wider, only("expires_at", until)).await;
    assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"));
    // Without a parent, the owner's renewal may be wider.
    let root = lend(&app, &demo, only("max_amount", "5")).await;
    let wide = renew(&app, &root, json!({"max_amount": "6", "actions": ["*"]})).await;
    assert_eq!(read(&app, &wide).await["actions"].texts(), ["*"]);
    let later = only("expires_at", "2101-01-01T00:00:00Z");
    let refused = app.owner().narrow_delegation(&wide, later).await.assert_status(409);
    let problem = refused["details"][0]["problem"].as_str().unwrap();
    assert!(problem.ends_with("to extend it, renew the delegation"), "{problem}");
}

/// An API key renews delegations that its agents made, within the parent's bounds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_renews_what_its_agents_gave() {
    let (app, client, demo) = demo().await;
    let parent = lend(&app, &demo, json!({"can_delegate": true, "max_amount": "100"})).await;
    let child = below(&app, &parent, nothing()).await;
    let key = async |agent: &str| {
        let body = new_api_key("test", &["delegations:write", "runtime:write"])
            .with("principal_ids", [agent]);
        let made = app.owner().create_api_key(body).await.assert_status(201);
        app.client(made["secret"].as_str().unwrap())
    };
    let (own, holder) = (key(AGENT).await, key(OTHER).await);
    let path = |id: &str| format!("/v1/delegations/{id}/renew");
    let until = only("expires_at", END);
    assert_eq!(holder.post(&path(&child), until.clone()).await.0, 404, "it only holds it");
    assert_eq!(client.post(&path(&child), until.clone()).await.0, 403, "a key without the scope");
    let (status, refused) = own.post(&path(&parent), until.clone()).await;
    assert!(matches!(status, 403 | 404), "{refused:#}");
    let wider = json!({"expires_at": END, "max_amount": "101"});
    let (status, refused) = own.post(&path(&child), wider).await;
    assert_eq!((status, refused["error"].text()), (409, "delegation_exceeds_parent"));
    let renewed = own.post(&path(&child), until.clone()).await.assert_status(200);
    let second = id(&renewed);
    let allowed = answer(&holder, asked(&child, 1.0)).await;
    assert_eq!(chain(&app, &allowed).await, json!([second, parent]));
    // A stopped agent can't renew, but the owner can.
    assert_eq!(app.owner().create_stop_signal(new_stop(AGENT, "test")).await.0, 201);
    let (status, refused) = own.post(&path(&second), until).await;
    assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"));
    renew(&app, &second, nothing()).await;
}

//! Delegations: each one in a chain can only be narrower than its parent.

use authority_process::clock::Clock;
use serde_json::{Value, json};

use super::rest::{App, id};
use crate::support::{Members, Plain, new_purpose, nothing, only};

struct Chain {
    app: App,
    tenant: String,
    people: Vec<String>,
}

impl Chain {
    async fn start() -> Self {
        let app = App::start().await;
        let tenant = app.tenant("acme").await;
        let mut people = Vec::new();
        for name in ["Ada", "Bot", "Cat"] {
            people.push(app.principal(&tenant, "agent", name).await);
        }
        Self { app, tenant, people }
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers pass `json!` values")]
    #[track_caller]
    fn body(&self, from: usize, to: usize, more: Value) -> Value {
        json!({
            "tenant_id": self.tenant, "delegator_id": self.people[from],
            "delegate_id": self.people[to], "actions": ["payment.*"], "can_delegate": true,
            "max_amount": "500.00", "currency": "EUR",
            "max_uses": {"count": 10, "window_seconds": 60},
        })
        .and(&more)
    }

    async fn lend(&self, from: usize, to: usize, more: Value) -> Value {
        self.app.make("/delegations", self.body(from, to, more)).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_only_narrows() {
    let chain = Chain::start().await;
    let root = chain.lend(0, 1, nothing()).await;
    assert!(id(&root).starts_with("svc:del:acme:"));
    assert_eq!((root["depth"].number(), &root["root_id"]), (0, &root["id"]));
    let child = chain.lend(1, 2, json!({"parent_id": id(&root), "max_amount": "100"})).await;
    assert_eq!((child["depth"].number(), &child["root_id"]), (1, &root["id"]));
    let wider = json!({"parent_id": id(&root), "actions": ["*"], "max_amount": "500.01",
        "max_uses": null});
    let refused = chain.app.call("POST", "/delegations", chain.body(1, 2, wider)).await.is(409);
    assert_eq!(refused.body["error"], "delegation_exceeds_parent");
    assert_eq!(refused.fields(), ["actions", "max_amount", "max_uses"]);
    let stranger = chain.body(0, 2, only("parent_id", id(&root)));
    let refused = chain.app.call("POST", "/delegations", stranger).await.is(409);
    assert_eq!(refused.fields(), ["delegator_id"]);
    let unknown = chain.body(1, 2, json!({"parent_id": "x", "purposes": null}));
    assert_eq!(
        chain.app.call("POST", "/delegations", unknown).await.is(400).fields(),
        ["parent_id"]
    );
    let bad = chain.body(0, 1, json!({"currency": null, "purposes": ["none"], "state": "active"}));
    let refused = chain.app.call("POST", "/delegations", bad).await.is(400);
    assert_eq!(refused.fields(), ["state", "currency"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_halted_narrowed_and_ended() {
    let chain = Chain::start().await;
    let root = chain.lend(0, 1, nothing()).await;
    let child = chain.lend(1, 2, only("parent_id", id(&root))).await;
    let path = format!("/delegations/{}", id(&root));
    let app = &chain.app;
    let post =
        async |verb: &str, body: Value| app.call("POST", &format!("{path}/{verb}"), body).await;
    assert_eq!(post("suspend", nothing()).await.is(200).body["delegation"]["state"], "suspended");
    post("suspend", nothing()).await.is(409);
    assert_eq!(post("reinstate", nothing()).await.is(200).body["delegation"]["state"], "active");
    post("reinstate", nothing()).await.is(409);
    let tight = post("narrow", only("max_amount", "50")).await.is(200).body;
    assert_eq!(tight["delegation"]["max_amount"], "50");
    let refused = post("narrow", json!({"max_amount": "51", "can_delegate": true})).await.is(409);
    assert_eq!(refused.fields(), ["max_amount"]);
    post("narrow", only("max_amount", Value::Null)).await.is(409);
    let fixed = post("narrow", json!({"delegate_id": chain.people[2], "id": "x"})).await.is(400);
    assert!(fixed.fields().contains(&"delegate_id"));
    let radius = app.get(&format!("{path}/blast-radius")).await.is(200).body;
    assert_eq!(radius["delegations"].as_array().unwrap().len(), 2);
    assert_eq!(radius["agents"], json!([chain.people[1], chain.people[2]]));
    let ended = post("revoke", only("reason", "done")).await.is(200).body;
    let ended = &ended["delegation"];
    assert_eq!((ended["state"].text(), ended["revoke_reason"].text()), ("revoked", "done"));
    for verb in ["revoke", "suspend", "reinstate", "narrow"] {
        let refused = post(verb, nothing()).await.is(409);
        assert_eq!(refused.body["error"], "record_is_final", "{verb}");
    }
    // The delegation below keeps its state, because every decision checks the whole chain.
    let below = app.get(&format!("/delegations/{}", id(&child))).await.body;
    assert_eq!(below["delegation"]["state"], "active");
    let late = chain.body(1, 2, only("parent_id", id(&root)));
    app.call("POST", "/delegations", late).await.is(409);
}

/// A new delegation below a revoked or expired one would have no effect: it is refused.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_below_an_ended_ancestor() {
    let chain = Chain::start().await;
    let root = chain.lend(0, 1, nothing()).await;
    let middle = chain.lend(1, 2, only("parent_id", id(&root))).await;
    // One would be below the root itself, the other below the root's child.
    let below = [(1, 0, id(&root)), (2, 0, id(&middle))];
    let end = Clock::default().now() + chrono::TimeDelta::seconds(2);
    let refused = async |word: &str| {
        for (from, to, parent) in &below {
            let body = json!({"parent_id": parent, "expires_at": end.to_rfc3339()});
            let body = chain.body(*from, *to, body);
            let refused = chain.app.call("POST", "/delegations", body).await.is(409);
            let message = refused.body["message"].as_str().unwrap();
            assert!(message.contains(&id(&root)) && message.contains(word), "{message}");
        }
    };
    let act = async |verb: &str, body: Value| {
        let path = format!("/delegations/{}/{verb}", id(&root));
        chain.app.call("POST", &path, body).await.is(200);
    };
    act("suspend", nothing()).await;
    refused("is suspended").await;
    act("reinstate", nothing()).await;
    chain.lend(2, 0, only("parent_id", id(&middle))).await;
    // The existing child was to last longer, but it now ends with its parent.
    act("narrow", only("expires_at", end.to_rfc3339())).await;
    let left = end - Clock::default().now();
    tokio::time::sleep(left.to_std().unwrap_or_default()).await;
    refused("has expired").await;
    act("revoke", nothing()).await;
    refused("is revoked").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purpose_in_use_stays() {
    let chain = Chain::start().await;
    let body = new_purpose("invoices", "Invoices", &["payment.*"]).with("tenant_id", &chain.tenant);
    let purpose = chain.app.make("/purposes", body.clone()).await;
    chain.app.call("POST", "/purposes", body).await.is(409);
    let lent = chain.lend(0, 1, only("purposes", ["invoices"])).await;
    let path = format!("/purposes/{}", id(&purpose));
    chain.app.call("DELETE", &path, Value::Null).await.is(409);
    let revoke = format!("/delegations/{}/revoke", id(&lent));
    chain.app.call("POST", &revoke, nothing()).await.is(200);
    let gone = chain.app.call("DELETE", &path, Value::Null).await.is(200);
    assert_eq!(gone.body["purpose"]["state"], "retired");
    let unknown = chain.body(0, 1, only("purposes", ["invoices"]));
    let refused = chain.app.call("POST", "/delegations", unknown).await.is(400);
    assert_eq!(refused.fields(), ["purposes[0]"]);
}

//! An admin can only delegate a part of a delegation that their own principal received.

use serde_json::{Value, json};

use super::{ANN, Acme, BOB, TENANT, id, refused};
use crate::support::{
    Answered, Members, Plain, new_agent, new_api_key, new_principal, new_purpose, new_stop,
    nothing, only,
};

const PATH: &str = "/api/v1/app/delegations";

/// The tenant with a delegation from the boss to Ann, which she may pass on, and an agent.
struct Held {
    acme: Acme,
    boss: String,
    ann: String,
    bot: String,
    root: String,
}

impl Held {
    async fn start() -> Self {
        let acme = Acme::start().await;
        let (boss, ann) = (acme.person("boss@acme.example").await, acme.person(ANN).await);
        let bot = new_agent("bot");
        let bot = id(&acme.by_ann("principals", bot).await);
        let root = id(&acme.made("delegations", root(&boss, &ann, &nothing())).await);
        Self { acme, boss, ann, bot, root }
    }

    /// A part of Ann's delegation for the agent, with these changes.
    fn part(&self, more: &Value) -> Value {
        json!({"parent_id": self.root, "delegate_id": self.bot,
            "actions": ["payment.execute"], "max_amount": "100", "currency": "EUR",
            "expires_at": "2039-01-01T00:00:00Z"})
        .and(more)
    }

    async fn given(&self) -> usize {
        let listed = self
            .acme
            .app
            .owner()
            .list_delegations(&format!("delegate_id={}", self.bot))
            .await
            .assert_status(200);
        listed["delegations"].as_array().unwrap().len()
    }
}

fn root(boss: &str, to: &str, more: &Value) -> Value {
    json!({"tenant_id": TENANT, "delegator_id": boss, "delegate_id": to,
        "actions": ["payment.*"], "can_delegate": true, "max_amount": "500", "currency": "EUR",
        "expires_at": "2040-01-01T00:00:00Z"})
    .and(more)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_is_passed_on_in_the_admins_name() {
    let held = Held::start().await;
    let made = held.acme.by_ann("delegations", held.part(&nothing())).await;
    assert_eq!(made["delegator_id"], json!(held.ann));
    assert_eq!((made["created_by"].text(), made["depth"].number()), (ANN, 1));
    let body = new_api_key("k", &["runtime:write"]).with("principal_ids", json!([held.bot]));
    let key = held.acme.ann.create_api_key(body).await.assert_status(201);
    let purpose = new_purpose("settle", "Settle", &["payment.*"]);
    held.acme.by_ann("purposes", purpose).await;
    let agent = held.acme.app.client(key["secret"].as_str().unwrap());
    for (amount, decision) in [(99, "allow"), (101, "deny")] {
        let asked = json!({"subject": held.bot, "action": "payment.execute", "purpose": "settle",
            "context": {"amount": amount, "currency": "EUR"}});
        let (status, decided) = agent.evaluate(asked).await;
        assert_eq!((status, decided["decision"].text()), (200, decision), "{decided:#}");
    }
    // She renews what she gave, within what she has.
    let renew = format!("{PATH}/{}/renew", id(&made));
    let late = only("expires_at", "2041-01-01T00:00:00Z");
    refused(held.acme.ann.post(&renew, late).await, 409, "delegation_exceeds_parent", "expires_at");
    let later = only("expires_at", "2039-06-01T00:00:00Z");
    refused(
        held.acme.bob.post(&renew, later.clone()).await,
        403,
        "forbidden",
        "your own principal",
    );
    held.acme.ann.post(&renew, later).await.assert_status(200);
    // The delegation that she received is not hers to renew.
    let renew = format!("{PATH}/{}/renew", held.root);
    let late = only("expires_at", "2041-01-01T00:00:00Z");
    refused(held.acme.ann.post(&renew, late).await, 403, "forbidden", "own principal");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_wider_or_longer_is_passed_on() {
    let held = Held::start().await;
    for (more, member) in [
        (only("actions", ["*"]), "actions"),
        (only("max_amount", "501"), "max_amount"),
        (json!({"max_amount": null, "currency": null}), "max_amount"),
        (only("currency", "USD"), "currency"),
        (only("expires_at", "2040-01-02T00:00:00Z"), "expires_at"),
        (only("expires_at", Value::Null), "expires_at"),
        (only("delegator_id", &held.boss), "delegator_id"),
    ] {
        let answer = held.acme.ann.create_delegation(held.part(&more)).await;
        refused(answer, 409, "delegation_exceeds_parent", member);
    }
    // Without a parent, only the owner delegates.
    let mut first = root(&held.ann, &held.bot, &nothing());
    refused(
        held.acme.ann.create_delegation(first.clone()).await,
        400,
        "invalid_request",
        "parent_id",
    );
    first["delegator_id"] = json!(held.boss);
    refused(held.acme.ann.create_delegation(first).await, 400, "invalid_request", "parent_id");
    assert_eq!(held.given().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_the_admin_received_is_passed_on() {
    let held = Held::start().await;
    let acme = &held.acme;
    // Bob is not registered. Later he is, but has no delegation.
    let own = "is not your own principal";
    refused(acme.bob.create_delegation(held.part(&nothing())).await, 403, "forbidden", own);
    acme.person(BOB).await;
    refused(acme.bob.create_delegation(held.part(&nothing())).await, 403, "forbidden", own);
    for role in ["approver", "legal", "auditor", "member"] {
        let other = acme.app.person(TENANT, role, ANN);
        let answer = other.create_delegation(held.part(&nothing())).await;
        refused(answer, 403, "forbidden", "a tenant's admin");
    }
    let answer = acme.stranger.create_delegation(held.part(&nothing())).await;
    refused(answer, 400, "invalid_request", "parent_id");
    // An address in a token may be unverified: it does not make a principal somebody's own.
    let named = new_principal("human", "Cy").with("email", "cy@acme.example");
    let named = id(&acme.made("principals", named).await);
    let to_cy = id(&acme.made("delegations", root(&held.boss, &named, &nothing())).await);
    let cy = acme.app.person(TENANT, "admin", "cy@acme.example");
    let answer = cy.create_delegation(held.part(&only("parent_id", &to_cy))).await;
    refused(answer, 403, "forbidden", own);
    // The authority of another person, or of an agent, is not hers.
    let bot = id(&acme.made("delegations", root(&held.boss, &held.bot, &nothing())).await);
    let cat = new_principal("agent", "cat");
    let cat = id(&acme.by_ann("principals", cat).await);
    let of_bot = held.part(&json!({"parent_id": bot, "delegate_id": cat}));
    refused(acme.ann.create_delegation(of_bot).await, 403, "forbidden", own);
    assert_eq!(held.given().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegation_that_may_not_be_passed_on_or_is_stopped_is_not() {
    let held = Held::start().await;
    let acme = &held.acme;
    let kept = root(&held.boss, &held.ann, &only("can_delegate", false));
    let kept = id(&acme.made("delegations", kept).await);
    let answer = acme.ann.create_delegation(held.part(&only("parent_id", &kept))).await;
    refused(answer, 409, "delegation_exceeds_parent", "can_delegate");
    // A stop of the agent, or of the admin's own principal.
    for actor in [&held.bot, &held.ann] {
        let stop = new_stop(actor, "test");
        let stop = id(&acme.made("stop-signals", stop).await);
        let answer = acme.ann.create_delegation(held.part(&nothing())).await;
        refused(answer, 409, "transition_not_allowed", actor);
        assert_eq!(acme.app.owner().lift_stop_signal(&stop).await.0, 200);
    }
    assert_eq!(acme.app.owner().suspend_delegation(&held.root).await.0, 200);
    let answer = acme.ann.create_delegation(held.part(&nothing())).await;
    refused(answer, 409, "transition_not_allowed", "suspended");
    assert_eq!(held.given().await, 0);
}

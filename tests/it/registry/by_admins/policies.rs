//! Policies of a tenant's admins: one person writes a text, another activates it.

use serde_json::{Value, json};

use super::{Acme, TENANT, id, refused};
use crate::support::{Answered, Client, Members, Plain, new_policy, nothing, only};

const FORBID: &str = "forbid (principal, action, resource) unless { context has amount };";
const OTHER_TEXT: &str = "forbid (principal, action, resource) unless { context has currency };";
const PATH: &str = "/api/v1/app/policies";

async fn draft(acme: &Acme) -> String {
    let made = acme.by_ann("policies", new_policy("internal", FORBID)).await;
    assert_eq!((made["state"].text(), made["version"].number()), ("draft", 1), "{made:#}");
    format!("{PATH}/{}", id(&made))
}

async fn activate(by: &Client, policy: &str, more: Value) -> (u16, Value) {
    let (_, found) = by.get(policy).await;
    let newest = [&found["policy"]["draft_version"], &found["policy"]["version"]];
    let newest = newest.iter().find_map(|version| version.as_i64()).unwrap_or(1);
    let body = json!({"reason": "reviewed", "version": newest}).and(&more);
    by.post(&format!("{policy}/activate"), body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_author_does_not_activate_and_another_admin_does() {
    let acme = Acme::start().await;
    let active = new_policy("internal", FORBID).with("state", "active");
    refused(acme.ann.create_policy(active).await, 403, "forbidden", "create a draft");
    let policy = draft(&acme).await;
    let wrote = "you wrote this text";
    refused(activate(&acme.ann, &policy, nothing()).await, 403, "forbidden", wrote);
    // A second identity with the same address is the same person.
    let again = acme.app.token(&json!({"sub": "dev|other", "email": super::ANN,
        "public_metadata": {"role": "admin", "tenant_id": TENANT}}));
    let again = acme.app.client(&again);
    refused(activate(&again, &policy, nothing()).await, 403, "forbidden", wrote);
    for role in ["approver", "legal", "auditor", "member"] {
        let other = acme.app.person(TENANT, role, "other@acme.example");
        let answer = activate(&other, &policy, nothing()).await;
        refused(answer, 403, "forbidden", "a tenant's admin");
    }
    assert_eq!(activate(&acme.stranger, &policy, nothing()).await.0, 404);
    let answer = acme.bob.post(&format!("{policy}/activate"), nothing()).await;
    refused(answer, 400, "invalid_request", "reason");
    let activated = activate(&acme.bob, &policy, nothing()).await.assert_status(200);
    let policy_now = &activated["policy"];
    assert_eq!(
        (policy_now["state"].text(), &policy_now["activated_by"]),
        ("active", &json!(super::BOB))
    );
    // A new text is a draft. Its author is Bob. Ann activates it.
    let (status, changed) = acme.bob.patch(&policy, only("cedar", OTHER_TEXT)).await;
    assert_eq!((status, changed["policy"]["cedar"].text()), (200, FORBID), "{changed:#}");
    refused(activate(&acme.bob, &policy, nothing()).await, 403, "forbidden", wrote);
    assert_eq!(activate(&acme.ann, &policy, nothing()).await.0, 200);
    // An older text may permit an action that the newest text forbids.
    let back = activate(&acme.bob, &policy, only("version", 1)).await;
    refused(back, 403, "forbidden", "not the newest");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tenant_may_let_the_author_activate() {
    let acme = Acme::start().await;
    let tenant = format!("/api/v1/tenants/{TENANT}");
    let (_, found) = acme.app.owner().get(&tenant).await;
    assert_eq!(found["tenant"]["author_activates"], false, "{found:#}");
    let policy = draft(&acme).await;
    let (status, set) = acme.app.owner().patch(&tenant, only("author_activates", true)).await;
    assert_eq!((status, set["tenant"]["author_activates"].as_bool()), (200, Some(true)), "{set:#}");
    activate(&acme.ann, &policy, nothing()).await.assert_status(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_activates_the_owners_text_and_ends_drafts_alone() {
    let acme = Acme::start().await;
    let body = new_policy("internal", FORBID).with("state", "draft");
    let policy = format!("{PATH}/{}", id(&acme.made("policies", body).await));
    assert_eq!(activate(&acme.ann, &policy, nothing()).await.0, 200);
    for change in [
        only("effective_until", "2030-01-01T00:00:00Z"),
        only("effective_from", "2030-01-01T00:00:00Z"),
        only("regime", "gdpr"),
    ] {
        refused(acme.ann.patch(&policy, change).await, 403, "forbidden", "owner changes");
    }
    let retired = only("state", "retired");
    refused(acme.ann.patch(&policy, retired.clone()).await, 403, "forbidden", "retires a policy");
    let draft = draft(&acme).await;
    let (status, ended) = acme.bob.patch(&draft, retired).await;
    assert_eq!((status, ended["policy"]["state"].text()), (200, "retired"), "{ended:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_checks_a_text_against_their_own_tenant() {
    let acme = Acme::start().await;
    let body = only("cedar", "forbid (");
    let (status, checked) = acme.ann.post(&format!("{PATH}:validate"), body).await;
    assert_eq!((status, checked["valid"].as_bool()), (200, Some(false)), "{checked:#}");
    let body = json!({"cedar": FORBID, "tenant_id": "svc:tenant:other"});
    let answer = acme.ann.post(&format!("{PATH}:validate"), body).await;
    refused(answer, 400, "invalid_request", "tenant_id");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_author_may_let_a_text_observe_and_other_roles_may_not() {
    let acme = Acme::start().await;
    let policy = draft(&acme).await;
    let (observe, end) = (format!("{policy}/observe"), format!("{policy}/unobserve"));
    for role in ["approver", "legal", "auditor", "member"] {
        let other = acme.app.person(TENANT, role, "other@acme.example");
        for verb in [&observe, &end] {
            refused(other.post(verb, nothing()).await, 403, "forbidden", "a tenant's admin");
        }
    }
    for verb in [&observe, &end] {
        assert_eq!(acme.stranger.post(verb, nothing()).await.0, 404, "{verb}");
    }
    // It changes no decision, and therefore needs no second person.
    let (status, observing) = acme.ann.post(&observe, only("version", 1)).await;
    assert_eq!((status, observing["policy"]["observing_version"].number()), (200, 1));
    let auditor = acme.app.person(TENANT, "auditor", "eve@acme.example");
    let (_, found) = auditor.get(&policy).await;
    assert_eq!(found["policy"]["observation"]["would_change"], 0, "{found:#}");
    let (status, ended) = acme.bob.post(&end, nothing()).await;
    assert_eq!((status, &ended["policy"]["observing_version"]), (200, &Value::Null), "{ended:#}");
}

//! Reading events page by page.

use serde_json::{Value, json};

use super::{AGENT, TENANT, demo, events, told};
use crate::support::{Answered, Client, Members, Plain, new_api_key, new_tenant};

async fn page(client: &Client, query: &str) -> Value {
    client.get(&format!("/v1/events{query}")).await.assert_status(200)
}

#[track_caller]
fn sequences(page: &Value) -> Vec<i64> {
    page["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["sequence"].as_i64().unwrap())
        .collect()
}

/// The values in the details of an error.
#[track_caller]
fn values(answer: &Value) -> Vec<(&str, i64)> {
    let details = answer["details"].as_array().unwrap().iter();
    details.map(|one| (one["field"].as_str().unwrap(), one["value"].as_i64().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_follow_one_another_and_pass_over_what_the_filter_leaves_out() {
    let (app, _, _) = demo().await;
    let (_, listed) = app.owner().list_delegations(&format!("tenant_id={TENANT}")).await;
    for delegation in listed["delegations"].as_array().unwrap() {
        told(&app, "svc.authority.granted", delegation["id"].text()).await;
    }
    let head = i64::try_from(events(&app).await.len()).unwrap();
    let key = app.client(&app.api_key(TENANT, &["events:read"]).await);
    let (mut after, mut seen) = (0, Vec::new());
    while after < head {
        let page = page(&key, &format!("?after={after}&limit=2")).await;
        assert_eq!((page["oldest"].number(), &page["head"]), (1, &json!(head)));
        seen.extend(sequences(&page));
        after = page["next_after"].as_i64().unwrap();
    }
    assert_eq!(seen, (1..=head).collect::<Vec<_>>());
    let first = page(&key, "?limit=1").await;
    assert_eq!((sequences(&first), first["next_after"].number()), (vec![1], 1));
    let filtered = page(&key, "?event_type=svc.authority.*").await;
    assert_eq!(filtered["next_after"], json!(head));
    assert_eq!(sequences(&filtered).len(), 2);
    let none = page(&key, "?event_type=svc.reality.*&event_type=svc.actor.stopped").await;
    assert_eq!((sequences(&none).len(), &none["next_after"]), (0, &json!(head)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_outside_the_log_is_a_conflict() {
    let (app, _, delegation) = demo().await;
    told(&app, "svc.authority.granted", &delegation).await;
    let key = app.client(&app.api_key(TENANT, &["events:read"]).await);
    let head = i64::try_from(events(&app).await.len()).unwrap();
    for path in ["/v1/events?after=900", "/v1/events:stream?after=900"] {
        let (status, ahead) = key.get(path).await;
        assert_eq!((status, ahead["error"].text()), (409, "sequence_ahead"), "{ahead:#}");
        assert_eq!(values(&ahead), [("head", head), ("oldest", 1)], "{ahead:#}");
        assert_eq!(ahead["details"][0]["problem"], format!("is {head}"));
    }
    let mut db = app.database.owner().await;
    let forget = "DELETE FROM events WHERE last_sequence < 4; UPDATE event_heads SET oldest = 4";
    diesel_async::SimpleAsyncConnection::batch_execute(&mut db, forget).await.unwrap();
    for path in ["/v1/events?after=2", "/v1/events:stream?after=0"] {
        let (status, expired) = key.get(path).await;
        assert_eq!((status, expired["error"].text()), (409, "sequence_expired"), "{expired:#}");
        assert_eq!(values(&expired), [("head", head), ("oldest", 4)], "{expired:#}");
    }
    let page = page(&key, "?after=3&limit=1").await;
    assert_eq!((sequences(&page), page["oldest"].number()), (vec![4], 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_reads_its_own_tenant_and_a_bound_key_its_own_agents() {
    let (app, client, delegation) = demo().await;
    told(&app, "svc.authority.granted", &delegation).await;
    assert_eq!(client.list_events("").await.0, 200);
    let blind = app.client(&app.api_key(TENANT, &["runtime:read"]).await);
    assert_eq!(blind.list_events("").await.0, 403, "the key has no events:read");
    for role in ["approver", "legal", "member"] {
        let person = app.client(&app.member_token(TENANT, role));
        assert_eq!(person.list_events("").await.0, 403, "{role}");
    }
    for role in ["admin", "auditor"] {
        let person = app.client(&app.member_token(TENANT, role));
        assert_eq!(person.list_events("").await.0, 200, "{role}");
    }
    let owner = app.owner();
    assert_eq!(owner.list_events("").await.0, 400);
    assert_eq!(owner.list_events("tenant_id=svc:tenant:none").await.0, 404);
    let other =
        new_tenant("Other", "other").with("env", "sandbox").with("owner_email", "o@example.org");
    assert_eq!(owner.create_tenant(other).await.0, 201);
    let stranger = app.client(&app.api_key("svc:tenant:other", &["events:read"]).await);
    assert_eq!(sequences(&page(&stranger, "").await).len(), 0);
    let foreign = format!("/v1/events?tenant_id={TENANT}");
    for tenant in [TENANT, "svc:tenant:none"] {
        let (status, refused) = stranger.list_events(&format!("tenant_id={tenant}")).await;
        assert_eq!((status, refused["error"].text()), (404, "not_found"), "{refused:#}");
        assert_eq!(refused["message"], format!("no tenant `{tenant}`"));
    }
    assert_eq!(stranger.get(&foreign.replace("events?", "events:stream?")).await.0, 404);
    let bound = new_api_key("bound", &["events:read"]).with("principal_ids", json!([AGENT]));
    let made = owner.create_api_key(bound).await.assert_status(201);
    let bound = app.client(made["secret"].as_str().unwrap());
    let own = page(&bound, "").await;
    let own = own["events"].as_array().unwrap();
    assert!(!own.is_empty() && own.len() < events(&app).await.len());
    assert!(own.iter().all(|event| event["principal_entity_id"] == AGENT), "{own:#?}");
}

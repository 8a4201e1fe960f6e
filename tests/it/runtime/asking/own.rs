//! A key reads and cancels the approvals of its own requests.

use serde_json::{Value, json};

use super::{TENANT, act, approved, approver, asked, asking, decline, demo, held, read, set};
use crate::support::{Answered, Client, Plain, TestApp, nothing, only};

const LIST: &str = "/v1/approvals";

async fn ids(client: &Client, query: &str) -> Vec<String> {
    let list = client.get(&format!("{LIST}{query}")).await.assert_status(200);
    let found = list["approvals"].as_array().unwrap().iter();
    found.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

/// Creates a key with these fields. Returns a client with it and its id.
async fn key(app: &TestApp, mut body: Value) -> (Client, String) {
    body["tenant_id"] = TENANT.into();
    body["label"] = "asks".into();
    if body["scopes"].is_null() {
        body["scopes"] = json!(["runtime:read", "runtime:write"]);
    }
    let made = app.owner().create_api_key(body).await.assert_status(201);
    let id = made["api_key"]["id"].as_str().unwrap().to_owned();
    (app.client(made["secret"].as_str().unwrap()), id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_reads_what_it_asked() {
    let (app, other, _) = demo().await;
    set(&app, only("cite_ready_approval", false)).await;
    let (own, id) = key(&app, nothing()).await;
    let asks: Vec<_> = (0..3).map(|n| asking(25_000.0 + f64::from(n), "DE")).collect();
    let pending = held(&own, &asks[0]).await;
    let ready = approved(&app, &own, &asks[1]).await;
    let declined = held(&own, &asks[2]).await;
    decline(&app, &declined, nothing()).await;
    let newest = [declined.as_str(), ready.as_str(), pending.as_str()];
    assert_eq!(ids(&own, "").await, newest);
    for (query, found) in [
        ("?state=pending", vec![&pending]),
        ("?state=approved", vec![&ready]),
        ("?state=declined", vec![&declined]),
        ("?state=used", vec![]),
        ("?since=2999-01-01T00:00:00Z", vec![]),
        ("?since=-1h&state=approved", vec![&ready]),
    ] {
        assert_eq!(
            ids(&own, query).await,
            found.into_iter().cloned().collect::<Vec<_>>(),
            "{query}"
        );
    }
    // The list has two pages.
    let (_, first) = own.get(&format!("{LIST}?limit=2")).await;
    let token = first["next_page_token"].as_str().unwrap();
    assert_eq!(first["approvals"].as_array().unwrap().len(), 2);
    let (_, last) = own.get(&format!("{LIST}?limit=2&page_token={token}")).await;
    assert_eq!(last["approvals"][0]["id"], json!(pending), "{last:#}");
    assert_eq!(
        (last["approvals"].as_array().unwrap().len(), &last["next_page_token"]),
        (1, &Value::Null)
    );
    assert_eq!(own.get(&format!("{LIST}?page_token=AAAA")).await.0, 400);
    // The response has exactly these five fields.
    let one = own.get(&format!("{LIST}/{ready}")).await.assert_status(200);
    let shown = read(&approver(&app), &ready).await;
    let expected = json!({"id": ready, "state": "approved", "action": "payment.execute",
                          "expires_at": shown["expires_at"], "digest": shown["request_digest"]});
    assert_eq!(one, expected);
    // The other key can't read these approvals until it makes the same request.
    assert!(ids(&other, "").await.is_empty());
    assert_eq!(other.get(&format!("{LIST}/{pending}")).await.0, 404);
    assert_eq!(held(&other, &asks[0]).await, pending);
    assert_eq!(ids(&other, "").await, [pending.as_str()]);
    // A key with a rotated secret is still the same key.
    let rotated = app.owner().rotate_api_key(&id).await.assert_status(200);
    let rotated = app.client(rotated["secret"].as_str().unwrap());
    assert_eq!(ids(&rotated, "").await, newest);
    // Reading requires the scope `runtime:read`. Users have their own lists.
    let (writes, _) = key(&app, only("scopes", ["runtime:write"])).await;
    assert_eq!(writes.list_asked_approvals("").await.0, 403);
    for person in [&approver(&app), &app.owner()] {
        assert_eq!(person.list_asked_approvals("").await.0, 403);
    }
    assert_eq!(app.client("").list_asked_approvals("").await.0, 401);
}

/// A key that is bound to other principals after a request can no longer read or cancel that
/// request's approval.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_key_reads_for_its_principals_alone() {
    let (app, ..) = demo().await;
    let bot = "svc:agent:acme:invoice-bot";
    let (bound, id) = key(&app, only("principal_ids", [bot])).await;
    let pending = held(&bound, &asking(25_000.0, "DE")).await;
    assert_eq!(ids(&bound, "").await, [pending.as_str()]);
    let sql = format!(
        "UPDATE api_keys SET principal_ids = '{{svc:agent:acme:support-bot}}', \
                       updated_at = clock_timestamp() WHERE id = '{id}'"
    );
    app.database.run(&sql).await;
    // The node's in-memory state gets the change from the change log.
    for _ in 0..100 {
        if ids(&bound, "").await.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(ids(&bound, "").await.is_empty());
    assert_eq!(bound.get(&format!("{LIST}/{pending}")).await.0, 404);
    assert_eq!(bound.post(&format!("{LIST}/{pending}/cancel"), nothing()).await.0, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asked_cancels_what_is_pending() {
    let (app, other, _) = demo().await;
    let (own, _) = key(&app, nothing()).await;
    let cancel = async |client: &Client, id: &str| {
        client.post(&format!("{LIST}/{id}/cancel"), nothing()).await
    };
    let ask = asking(25_000.0, "DE");
    let id = held(&own, &ask).await;
    assert_eq!(cancel(&other, &id).await.0, 404, "it made no such request");
    let (reads, _) = key(&app, only("scopes", ["runtime:read"])).await;
    assert_eq!(cancel(&reads, &id).await.0, 403);
    assert_eq!(cancel(&app.owner(), &id).await.0, 404, "nor did the owner make it");
    let (status, void) = cancel(&own, &id).await;
    assert_eq!((status, &void["id"], void["state"].text()), (200, &json!(id), "void"), "{void:#}");
    let shown = read(&approver(&app), &id).await;
    assert_eq!(
        (shown["void_reason"].text(), &shown["acts"]),
        ("cancelled by the requester", &json!([]))
    );
    assert_eq!(cancel(&own, &id).await.0, 409);
    // A cancellation is not a decline: the same request can be made again. An approval with other
    // requesters is not cancelled.
    let next = held(&own, &ask).await;
    assert_ne!(next, id);
    assert_eq!(held(&other, &ask).await, next);
    let (status, refused) = cancel(&own, &next).await;
    assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"), "{refused:#}");
    // Users can withdraw approved requests, but a key can't cancel them.
    assert_eq!(act(&approver(&app), &next, "approve", nothing()).await.1["state"], "approved");
    assert_eq!(cancel(&own, &next).await.0, 409);
    // A user can cancel with the credential that made the request.
    let owner = app.owner();
    let theirs = asked(&owner, &asking(26_000.0, "DE")).await["approval_id"].clone();
    let theirs = theirs.as_str().unwrap();
    assert_eq!(cancel(&app.owner_named("eve@example.org"), theirs).await.0, 404);
    assert_eq!(cancel(&owner, theirs).await.1["state"], "void");
}

//! The tenant's limit on an agent's open approval requests, across all credentials and nodes.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    TENANT, act, answered, approver, asked, asking, decline, demo, held, read, requests, set,
};
use crate::{
    evidence::golden,
    support::{Members, Wishes, nothing, only},
};

const LIMIT: &str = "approval_limit_reached";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_the_limit_nothing_is_opened() {
    let (app, client, _) = demo().await;
    set(&app, json!({"open_requests_per_agent": 2, "declined_for_seconds": 0})).await;
    let first = held(&client, &asking(25_001.0, "DE")).await;
    held(&client, &asking(25_002.0, "DE")).await;
    for n in 0..4 {
        let ask = asking(25_010.0 + f64::from(n), "DE").with("explain", true);
        let denied = asked(&client, &ask).await;
        let found = (&denied["decision"], &denied["reason_code"], &denied["approval_id"]);
        assert_eq!(found, (&json!("deny"), &json!(LIMIT), &Value::Null), "{denied:#}");
        assert_eq!(denied["smallest_change"], Value::Null);
        let finding = &denied["trace"][3]["findings"][0]["detail"];
        assert!(finding.as_str().unwrap().starts_with("2 requests"), "{denied:#}");
        // The denial is recorded like any other, and a replay gives the same decision.
        let (_, inspected) =
            app.owner().inspect_decision(denied["decision_id"].as_str().unwrap()).await;
        assert_eq!(inspected["decision"]["trace"][3]["reason_code"], LIMIT, "{inspected:#}");
    }
    assert_eq!(requests(&app, "pending").await.len(), 2);
    // A repeated request opens no second approval, and an allowed one needs none.
    assert_eq!(held(&client, &asking(25_001.0, "DE")).await, first);
    assert_eq!(asked(&client, &asking(1.0, "DE")).await["decision"], "allow");
    // Admins get one notification.
    let admin = app.person(TENANT, "admin", "amy@example.org");
    let (_, told) = admin.list_notifications("").await;
    let told: Vec<_> = told["notifications"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["kind"] == "approval.limit_reached")
        .collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(told[0]["subject_ref"], "svc:agent:acme:invoice-bot");
    assert_eq!(
        told[0]["data"],
        json!({"principal_id": "svc:agent:acme:invoice-bot", "pending": 2})
    );
    let (_, others) = approver(&app).list_notifications("").await;
    assert!(!others.to_string().contains("limit_reached"), "{others:#}");
    // Each approval that ends makes room for another.
    decline(&app, &first, nothing()).await;
    let third = held(&client, &asking(25_010.0, "DE")).await;
    assert_eq!(asked(&client, &asking(25_011.0, "DE")).await["reason_code"], LIMIT);
    assert_eq!(client.cancel_approval(&third).await.0, 200);
    held(&client, &asking(25_011.0, "DE")).await;
    // Another agent's open requests are counted separately.
    set(&app, only("open_requests_per_agent", 3)).await;
    held(&client, &asking(25_012.0, "DE")).await;
    assert_eq!(read(&approver(&app), &third).await["void_reason"], "cancelled by the requester");
    golden::every_kind_replays(&app).await;
}

/// The limit applies to simultaneous requests from several credentials and nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_nodes_together_open_no_more() {
    let (app, client, _) = demo().await;
    set(&app, only("open_requests_per_agent", 5)).await;
    let beside = app.beside(Wishes::default()).await;
    let other = beside.client(&app.api_key(TENANT, &["runtime:read", "runtime:write"]).await);
    // The second node reads the new key a moment later.
    while other.list_asked_approvals("").await.0 == 401 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let asks: Vec<_> = (0..24).map(|n| asking(25_000.0 + f64::from(n), "DE")).collect();
    let calls = asks
        .iter()
        .enumerate()
        .map(|(n, ask)| answered(if n % 2 == 0 { &client } else { &other }, ask));
    let answers = join_all(calls).await;
    let holds = answers.iter().filter(|answer| answer["decision"] == "require_approval").count();
    let limited = answers.iter().filter(|answer| answer["reason_code"] == LIMIT).count();
    assert_eq!((holds, limited), (5, 19), "{answers:#?}");
    assert_eq!(requests(&app, "pending").await.len(), 5);
    for id in requests(&app, "pending").await {
        assert_eq!(act(&approver(&app), &id, "approve", nothing()).await.0, 200);
    }
    // Approved requests do not count as pending.
    held(&client, &asking(26_000.0, "DE")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_is_validated() {
    let (app, ..) = demo().await;
    for most in [json!(0), json!(-1), json!(100_001), json!("5")] {
        let body = only("open_requests_per_agent", &most);
        assert_eq!(app.owner().update_tenant("acme", body).await.0, 400, "{most}");
    }
    let (_, cleared) =
        app.owner().update_tenant("acme", only("open_requests_per_agent", Value::Null)).await;
    assert_eq!(cleared["tenant"]["open_requests_per_agent"], 500, "{cleared:#}");
}

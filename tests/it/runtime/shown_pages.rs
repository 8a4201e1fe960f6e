//! Approvals as pages show them: large and deeply nested requests, and the outcome of an approval.

use authority_model::proto::approval::{
    ListApprovalsRequest, approval_service_client::ApprovalServiceClient,
};
use serde_json::{Value, json};
use tonic::{Request, metadata::MetadataValue};

use super::{
    demo,
    questions::{TENANT, act, approver, held, read},
    simulate::rows,
};
use crate::support::{Members, Plain, asking, new_policy, nothing, only};

/// A page holds as many contexts as a client accepts, and the token of the next page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_questions_make_short_pages() {
    let (app, client, _) = demo().await;
    let mut asked = Vec::new();
    for number in 0..12 {
        let mut ask = asking(25_000.0 + f64::from(number), "DE");
        ask["context"]["document"] = json!("x".repeat(200_000));
        asked.push(held(&client, &ask).await);
    }
    let ann = approver(&app);
    let (mut found, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let path = format!("/api/v1/app/approvals?limit=500&page_token={token}");
        let (status, text) = ann.text("GET", &path, None).await;
        assert_eq!(status, 200);
        assert!(text.len() < 3_000_000, "{}", text.len());
        let page: Value = serde_json::from_str(&text).unwrap();
        for one in page["approvals"].as_array().unwrap() {
            assert!(one["request"]["context"]["document"].is_string());
            found.push(one["id"].as_str().unwrap().to_owned());
        }
        pages += 1;
        let Some(next) = page["next_page_token"].as_str() else { break };
        next.clone_into(&mut token);
    }
    assert_eq!(found, asked);
    assert!(pages > 1);
}

/// The deepest context that is accepted can be read over REST and by protobuf readers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deepest_question_can_be_shown() {
    let (app, client, _) = demo().await;
    let mut deep = json!("the bottom");
    for _ in 0..31 {
        deep = only("a", &deep);
    }
    let mut ask = asking(25_000.0, "DE");
    ask["context"]["deep"] = deep;
    let id = held(&client, &ask).await;
    let ann = approver(&app);
    let shown = read(&ann, &id).await;
    assert_eq!(shown["request"]["context"]["deep"], ask["context"]["deep"]);
    let mut grpc = ApprovalServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let mut request = Request::new(ListApprovalsRequest::default());
    let bearer: MetadataValue<_> = format!("Bearer {}", ann.token).parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    let list = grpc.list_approvals(request).await.unwrap().into_inner();
    let asked = list.approvals[0].request.as_ref().unwrap();
    assert_eq!(asked.0["context"]["deep"], ask["context"]["deep"]);
}

fn outcome(shown: &Value) -> (&str, &str) {
    let would_be = &shown["would_be"];
    let text = |member: &str| would_be[member].as_str().unwrap_or_default();
    (text("decision"), text("reason_code"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_approval_is_shown_with_its_would_be() {
    let (app, client, delegation) = demo().await;
    let ann = approver(&app);
    let id = held(&client, &asking(25_000.0, "DE")).await;
    let before = rows(&app).await;
    let permitted = ("allow_with_constraints", "permission_granted");
    let shown = read(&ann, &id).await;
    assert_eq!(outcome(&shown), permitted);
    let would_be = &shown["would_be"];
    assert_eq!((&would_be["needed"], &would_be["policies"]), (&Value::Null, &json!([])));
    assert_eq!(would_be["no_longer_needed"], false, "{would_be}");
    let (_, list) = ann.list_approvals("").await;
    assert_eq!(list["approvals"][0]["would_be"], Value::Null);
    assert_eq!(rows(&app).await, before, "the preview was stored");
    // A new policy requires a second approver. With one approval the request would still be held.
    let two = "@id(\"two\") @decision(\"require_approval\") @approvals(\"2\")\n\
               forbid (principal, action, resource);";
    let policy = new_policy("internal", two).with("name", "Two");
    let (_, made) = app.owner().create_policy(policy).await;
    let waits = ("require_approval", "approval_threshold_breach");
    let shown = read(&ann, &id).await;
    assert_eq!(outcome(&shown), waits);
    let would_be = &shown["would_be"];
    assert_eq!((would_be["needed"].number(), &would_be["roles"]), (2, &json!([])), "{would_be}");
    let by: Vec<_> = would_be["policies"].as_array().unwrap().iter().collect();
    assert!(by.iter().any(|by| by["statement"] == "two" && by["name"] == "Two"), "{would_be}");
    // After the first of the two approvals, the preview assumes that the second follows.
    let (_, given) = act(&ann, &id, "approve", nothing()).await;
    assert_eq!((given["state"].text(), given["needed"].number()), ("pending", 2), "{given:#}");
    assert_eq!(outcome(&read(&ann, &id).await), permitted);
    assert_eq!(
        app.owner()
            .update_policy(made["policy"]["id"].as_str().unwrap(), only("state", "retired"))
            .await
            .0,
        200
    );
    // A request under a delegation that has ended is denied regardless of approvals.
    assert_eq!(app.owner().revoke_delegation(&delegation, None).await.0, 200);
    assert_eq!(outcome(&read(&ann, &id).await), ("deny", "delegation_revoked"));
    assert_eq!(act(&ann, &id, "decline", only("reason", "no")).await.0, 409, "has acted");
    let bob = app.person(TENANT, "approver", "bob@example.org");
    assert_eq!(act(&bob, &id, "decline", only("reason", "no")).await.0, 200);
    assert_eq!(read(&ann, &id).await["would_be"], Value::Null);
}

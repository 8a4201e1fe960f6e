//! A request with an approved, sufficient and unused approval does not open another one.

use authority_model::proto::runtime::runtime_service_client::RuntimeServiceClient;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    TENANT, act, approved, approver, asked, asking, citing, demo, held, read, requests, set,
};
use crate::support::{
    Answered, Client, Members, Plain, Wishes, evaluate, new_tenant, nothing, only,
};

const CITES: &str = "cite_ready_approval";
/// Holds every payment for two approvers.
const TWO: &str = "@id(\"two\")\n@decision(\"require_approval\")\n@approvals(\"2\")\n\
    forbid (principal, action in Svc::Action::\"payment\", resource);\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_tenant_uses_what_is_ready_and_others_choose() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    for (slug, body, uses) in [
        ("new", nothing(), true),
        ("no", json!({CITES: false}), false),
        ("yes", json!({CITES: true}), true),
    ] {
        let tenant = new_tenant(slug, slug).and(&body);
        let (status, made) = owner.create_tenant(tenant).await;
        assert_eq!((status, &made["tenant"][CITES]), (201, &json!(uses)), "{made:#}");
        assert_eq!(made["tenant"]["open_requests_per_agent"], 500, "{made:#}");
    }
    // If a tenant's setting is off, other changes do not turn it on.
    app.database.run("UPDATE tenants SET cite_ready_approval = false WHERE slug = 'new'").await;
    let (_, kept) = owner.update_tenant("new", only("notes", "old")).await;
    assert_eq!(kept["tenant"][CITES], false, "{kept:#}");
    // The demonstration's tenant is new and therefore has the setting on.
    let ask = asking(25_000.0, "DE");
    let id = approved(&app, &client, &ask).await;
    let answers = join_all((0..8).map(|_| asked(&client, &ask))).await;
    let allowed = answers.iter().filter(|answer| answer["decision"] == "allow").count();
    assert_eq!(allowed, 1, "{answers:#?}");
    assert_eq!(read(&approver(&app), &id).await["state"], "used");
}

/// Every response format names the ready approval.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_names_what_is_ready() {
    let (app, client, _) = demo().await;
    set(&app, json!({CITES: false})).await;
    let ask = asking(25_000.0, "DE");
    let id = approved(&app, &client, &ask).await;
    let names = |answer: &Value| {
        assert_eq!(answer["decision"], "require_approval", "{answer:#}");
        assert_eq!(answer["ready_approval_id"], id, "{answer:#}");
        assert_eq!(answer["approval_id"], id, "{answer:#}");
    };
    names(&asked(&client, &ask).await);
    let authorize = json!({
        "actor": {"entity_id": ask["subject"]}, "action": ask["action"], "purpose": ask["purpose"],
        "context": ask["context"],
    });
    names(&client.authorize(authorize).await.1);
    names(&client.evaluate_decision(ask.clone()).await.1);
    let batch = json!({"requests": [ask, ask, citing(&ask, "svc:approval:0")]});
    let (_, batch) = client.batch_evaluate(batch).await;
    for result in batch["results"].as_array().unwrap() {
        names(&result["answer"]);
    }
    let mut grpc = RuntimeServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let mut call = tonic::Request::new(evaluate(&ask["context"]));
    let bearer = format!("Bearer {}", client.token).parse().unwrap();
    call.metadata_mut().insert("authorization", bearer);
    let answer = grpc.evaluate(call).await.unwrap().into_inner();
    assert_eq!(answer.ready_approval_id.as_deref(), Some(id.as_str()));
    assert_eq!(requests(&app, "approved").await, [id.as_str()]);
    assert!(requests(&app, "pending").await.is_empty());
    // The held decision shows its approval's state like any other.
    let last = asked(&client, &ask).await;
    assert_eq!(
        client.get_decision(last["decision_id"].as_str().unwrap()).await.1["approval_state"],
        "approved"
    );
    assert_eq!(asked(&client, &citing(&ask, &id)).await["decision"], "allow");
    // The approval is used. The next request opens a new approval, which lists the first one.
    let next = asked(&client, &ask).await;
    assert_eq!(
        (&next["ready_approval_id"], next["approval_id"] == json!(id)),
        (&Value::Null, false)
    );
    let shown = read(&approver(&app), next["approval_id"].as_str().unwrap()).await;
    let earlier = &shown["earlier"][0];
    assert_eq!((earlier["id"].text(), earlier["state"].text()), (id.as_str(), "used"), "{shown:#}");
}

/// An approval requested with another credential of
/// the same agent is not ready for this credential.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_ready_for_another_credential_is_not_named() {
    let (app, client, _) = demo().await;
    set(&app, json!({CITES: false})).await;
    let ask = asking(25_000.0, "DE");
    let id = approved(&app, &client, &ask).await;
    let other = app.client(&app.api_key(TENANT, &["runtime:write"]).await);
    let answer = asked(&other, &ask).await;
    assert_eq!(answer["ready_approval_id"], Value::Null, "{answer:#}");
    assert_ne!(answer["approval_id"], id);
    // The first credential's approval is still ready, although the other credential's is pending.
    assert_eq!(asked(&client, &ask).await["ready_approval_id"], id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_no_longer_suffices_is_void_when_the_next_is_opened() {
    for cites in [true, false] {
        let (app, client, _) = demo().await;
        set(&app, json!({CITES: cites})).await;
        let ask = asking(25_000.0, "DE");
        let id = approved(&app, &client, &ask).await;
        let policy =
            json!({"tenant_id": TENANT, "regime": "internal", "name": "Two", "cedar": TWO});
        assert_eq!(app.owner().create_policy(policy).await.0, 201);
        assert_eq!(read(&approver(&app), &id).await["state"], "approved");
        // The result is the same whether or not the request cites the approval.
        let next = asked(&client, &if cites { ask.clone() } else { citing(&ask, &id) }).await;
        assert_eq!(next["decision"], "require_approval", "{next:#}");
        assert_eq!(next["ready_approval_id"], Value::Null, "{next:#}");
        assert_ne!(next["approval_id"], id);
        let void = read(&approver(&app), &id).await;
        assert_eq!(void["state"], "void", "{void:#}");
        let reason = void["void_reason"].as_str().unwrap();
        assert!(reason.contains("requires 2 people, and 1 of its approvals count"), "{reason}");
        assert_eq!(void["acts"].as_array().unwrap().len(), 1, "it was not withdrawn: {void:#}");
        assert_eq!(held(&client, &ask).await, next["approval_id"].as_str().unwrap());
    }
}

/// Requests made while users approve never open another approval, on any node.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn asking_and_approving_at_once_opens_one_request() {
    let (app, client, _) = demo().await;
    set(&app, json!({CITES: false})).await;
    let beside = app.beside(Wishes::default()).await;
    let there = beside.client(&client.token);
    let ann = approver(&app);
    for round in 0..12_u32 {
        let ask = asking(25_000.0 + f64::from(round), "DE");
        let id = held(&client, &ask).await;
        let on = |node: &Client| {
            let (node, ask) = (node.clone(), ask.clone());
            async move { asked(&node, &ask).await }
        };
        let asks = join_all([on(&client), on(&there), on(&client), on(&there), on(&there)]);
        let (answers, (status, _)) = tokio::join!(asks, act(&ann, &id, "approve", nothing()));
        assert_eq!(status, 200);
        for answer in &answers {
            assert_eq!(answer["approval_id"], json!(id), "{answers:#?}");
        }
    }
    assert!(requests(&app, "pending").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_equal_questions_has_one_request_and_one_allow() {
    let (app, client, _) = demo().await;
    let ask = asking(25_000.0, "DE");
    let batch = only("requests", vec![ask.clone(); 6]);
    let call = async || {
        let answer = client.batch_evaluate(batch.clone()).await.assert_status(200);
        let results = answer["results"].as_array().unwrap().clone();
        results.into_iter().map(|result| result["answer"].clone()).collect::<Vec<_>>()
    };
    let first = call().await;
    let id = first[0]["approval_id"].as_str().unwrap();
    assert!(first.iter().all(|answer| answer["approval_id"] == json!(id)), "{first:#?}");
    assert_eq!(act(&approver(&app), id, "approve", nothing()).await.1["state"], "approved");
    let second = call().await;
    let allowed =
        second.iter().filter(|answer| answer["decision"] == "allow_with_constraints").count();
    assert_eq!(allowed, 1, "{second:#?}");
    assert_eq!(requests(&app, "pending").await.len(), 1);
}

/// The response to a request that cites an approval always shows the approval's state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_what_is_cited_is_in_every_answer() {
    let (app, client, _) = demo().await;
    set(&app, json!({CITES: false, "declined_for_seconds": 0})).await;
    let mut number = 25_000.0;
    let mut question = || {
        number += 1.0;
        asking(number, "DE")
    };
    let ann = approver(&app);
    let cited = async |ask: &Value, id: &str| {
        let (status, answer) = client.evaluate(citing(ask, id)).await;
        assert_eq!((status, answer["cited_approval"]["id"].text()), (200, id), "{answer:#}");
        answer["cited_approval"]["state"].as_str().unwrap().to_owned()
    };
    let ask = question();
    let pending = held(&client, &ask).await;
    assert_eq!(cited(&ask, &pending).await, "pending");
    super::decline(&app, &pending, nothing()).await;
    assert_eq!(cited(&ask, &pending).await, "declined");
    let ask = question();
    let void = approved(&app, &client, &ask).await;
    assert_eq!(act(&ann, &void, "withdraw", only("reason", "no")).await.0, 200);
    assert_eq!(cited(&ask, &void).await, "void");
    let ask = question();
    let used = approved(&app, &client, &ask).await;
    // Cited for another request, the approval stays approved. Its own request then uses it.
    assert_eq!(cited(&question(), &used).await, "approved");
    assert_eq!(cited(&ask, &used).await, "approved");
    assert_eq!(cited(&ask, &used).await, "used");
    assert_eq!(cited(&asking(1.0, "DE"), &used).await, "used", "an allow needs none");
    assert_eq!(cited(&asking(1.0, "US"), &used).await, "used", "a denial uses none");
    assert_eq!(cited(&ask, "svc:approval:01890000000070008000000000000000").await, "unknown");
    let ask = question();
    let late = held(&client, &ask).await;
    let sql =
        format!("UPDATE approvals SET expires_at = now() - interval '1 s' WHERE id = '{late}'");
    app.database.run(&sql).await;
    assert_eq!(cited(&ask, &late).await, "expired");
    assert_eq!(asked(&client, &ask).await["cited_approval"], Value::Null);
    // Another agent's approval is reported as unknown.
    let other = question().with("subject", "svc:agent:acme:support-bot");
    assert_eq!(cited(&other, &used).await, "unknown");
}

//! A decision by its id, with its trace.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::demo;
use crate::support::{Answered, Members, Plain, TENANT, asking, new_tenant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_trace_is_that_of_the_recorded_facts() {
    let (app, client, delegation) = demo().await;
    let (_, answer) = client.evaluate(asking(25_000.0, "DE").with("explain", true)).await;
    let (_, plain) = client.evaluate(asking(25_000.0, "DE")).await;
    // Later changes do not affect the trace.
    assert_eq!(app.owner().revoke_delegation(&delegation, None).await.0, 200);
    let auditor = app.person(TENANT, "auditor", "eve@example.org");
    for decided in [&answer, &plain] {
        let id = decided["decision_id"].as_str().unwrap();
        let (status, shown) = auditor.inspect_decision(id).await;
        assert_eq!((status, shown["ok"].as_bool()), (200, Some(true)), "{shown:#}");
        let shown = &shown["decision"];
        assert_eq!(shown["trace"], answer["trace"], "{shown:#}");
        assert_eq!(shown["trace"].as_array().unwrap().len(), 4);
        // Apart from the trace, the gateway returns the same decision.
        let (_, mut gateway) = client.get_decision(id).await;
        assert_eq!(gateway["trace"], json!([]));
        gateway["trace"] = shown["trace"].clone();
        assert_eq!(&gateway, shown);
        let (_, owners) = app.owner().inspect_decision(id).await;
        assert_eq!(&owners["decision"], shown);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_its_tenants() {
    let (app, client, _) = demo().await;
    let (status, _) = app.owner().create_tenant(new_tenant("Other", "other")).await;
    assert_eq!(status, 201);
    let (_, answer) = client.evaluate(asking(1200.0, "DE")).await;
    let id = answer["decision_id"].as_str().unwrap();
    let path = format!("/api/v1/app/decisions/{id}");
    for (tenant, role, expected) in [
        (TENANT, "admin", 200),
        (TENANT, "auditor", 200),
        (TENANT, "approver", 403),
        (TENANT, "viewer", 403),
        ("svc:tenant:other", "admin", 404),
    ] {
        let person = app.person(tenant, role, "p@example.org");
        let (status, shown) = person.get(&path).await;
        assert_eq!(status, expected, "{tenant} {role}: {shown:#}");
        assert_eq!(person.get(&format!("/api/v1/decisions/{id}")).await.0, 403);
    }
    let (status, missing) = app.owner().inspect_decision("svc:decision:nothing").await;
    assert_eq!((status, missing["error"].text()), (404, "not_found"), "{missing:#}");
    assert_eq!(client.get(&path).await.0, 403);
}

/// The context and the salt of its digest are shown only on request, unless the context is erased.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_context_is_shown_on_request() {
    let (app, client, _) = demo().await;
    let (_, answer) = client.evaluate(asking(1234.5, "DE")).await;
    let path = format!("/decisions/{}", answer["decision_id"].as_str().unwrap());
    let auditor = app.person(TENANT, "auditor", "eve@example.org");
    let (_, plain) = auditor.get(&format!("/api/v1/app{path}")).await;
    assert_eq!(plain["decision"]["context"], Value::Null);
    let app_path = format!("/api/v1/app{path}?context=true");
    for (client, path) in [
        (&auditor, app_path.clone()),
        (&app.person(TENANT, "admin", "ann@example.org"), app_path.clone()),
        (&app.owner(), format!("/api/v1{path}?context=true")),
    ] {
        let shown = client.get(&path).await.assert_status(200);
        let shown = &shown["decision"];
        assert_eq!(shown["context"]["value"]["amount"], json!(1234.5), "{shown:#}");
        let salt = STANDARD.decode(shown["context"]["salt"].as_str().unwrap()).unwrap();
        let text = r#"{"amount":1234.5,"currency":"EUR","jurisdiction":"DE"}"#;
        let digest = authority_crypto::sha256(&[&salt, text.as_bytes()].concat());
        let digest = format!("sha256:{}", hex::encode(digest));
        assert_eq!(shown["record"]["request"]["context_digest"], digest, "{shown:#}");
    }
    // The gateway's decision has no context for any caller.
    for path in [format!("/v1{path}"), format!("/v1{path}?context=true")] {
        let (_, shown) = client.get(&path).await;
        assert!(!shown.to_string().contains("1234.5"), "{shown:#}");
    }
    let erase = "ALTER TABLE decisions DISABLE TRIGGER USER; UPDATE decisions SET context = ''; \
                 ALTER TABLE decisions ENABLE TRIGGER USER";
    app.database.run(erase).await;
    let (status, erased) = auditor.get(&app_path).await;
    assert_eq!((status, &erased["decision"]["context"]), (200, &Value::Null), "{erased:#}");
}

/// If a decision's facts are deleted, it has no trace. The other fields remain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_erased_leaves_no_trace() {
    let (app, client, _) = demo().await;
    let (_, answer) = client.evaluate(asking(1200.0, "DE")).await;
    let erase = "ALTER TABLE fact_blobs DISABLE TRIGGER USER; DELETE FROM fact_blobs; \
                 ALTER TABLE fact_blobs ENABLE TRIGGER USER";
    app.database.run(erase).await;
    let shown = app
        .owner()
        .inspect_decision(answer["decision_id"].as_str().unwrap())
        .await
        .assert_status(200);
    assert_eq!(shown["decision"]["trace"], Value::Array(Vec::new()));
    assert_eq!(shown["decision"]["reason_code"], "permission_granted");
}

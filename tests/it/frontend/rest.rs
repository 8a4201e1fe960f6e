//! REST: content encodings, repeated headers, and the public OpenAPI document.

use serde_json::json;

use super::{demo, post, told};
use crate::support::{Plain, TestApp, asking};

const PATH: &str = "/api/v1/runtime/evaluate";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coded_body_is_refused_and_the_coding_named() {
    let (app, client) = demo().await;
    for coding in ["br", "gzip", "x", "identity, gzip"] {
        let call = post(&client, PATH, "").header("content-encoding", coding);
        let answer = call.json(&asking(1.0, "DE")).send().await.unwrap();
        assert_eq!(answer.headers()["accept-encoding"], "identity");
        let (status, body) = told(answer).await;
        assert_eq!((status, body["error"].text()), (415, "unsupported_media_type"), "{coding}");
        let named = coding.rsplit(", ").next().unwrap();
        let message = body["message"].as_str().unwrap();
        assert!(message.contains(&format!("Content-Encoding: {named}")), "{message}");
        let call = post(&app.client(""), PATH, "").header("content-encoding", coding);
        let answer = call.json(&asking(1.0, "DE")).send().await.unwrap();
        assert_eq!(answer.status(), 401, "the credential must be checked first");
    }
    let call = post(&client, PATH, "").header("content-encoding", "Identity");
    let (status, body) = told(call.json(&asking(1.0, "DE")).send().await.unwrap()).await;
    assert_eq!((status, body["decision"].text()), (200, "allow"), "{body:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_idempotency_keys_are_refused() {
    let (app, client) = demo().await;
    let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
    for (client, path, body) in [
        (&client, PATH, asking(1.0, "DE")),
        (&app.owner(), "/api/v1/tenants", json!({"name": "B", "slug": "b"})),
        (&app.owner(), "/v1/evidence/seal", json!({"decision_id": "svc:decision:0"})),
    ] {
        let (status, refused) = client.call("POST", path, Some(body.clone()), &twice).await;
        assert_eq!((status, refused["error"].text()), (400, "invalid_request"), "{path}");
        assert_eq!(refused["details"][0]["field"], "idempotency-key", "{refused:#}");
        let nobody = post(&app.client(""), path, "").json(&body);
        let nobody = nobody.header("idempotency-key", "a").header("idempotency-key", "b");
        assert_eq!(nobody.send().await.unwrap().status(), 401, "{path}");
    }
    let (status, _) = app.owner().get("/api/v1/tenants/b").await;
    assert_eq!(status, 404, "the tenant must not exist");
}

/// Many tools look for the contract at `/openapi.json`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_is_found_under_the_name_of_its_file() {
    let app = TestApp::shared().await;
    let client = app.client("");
    let (status, document) = client.get("/openapi").await;
    assert_eq!(status, 200);
    let url = format!("{}/openapi.json", client.base);
    let found = client.http.get(&url).send().await.unwrap();
    assert_eq!((found.status().as_u16(), found.url().path()), (200, "/openapi"));
    let found: serde_json::Value = serde_json::from_str(&found.text().await.unwrap()).unwrap();
    assert_eq!(found, document);
    let head = client.http.head(&url).send().await.unwrap();
    assert_eq!((head.status().as_u16(), head.url().path()), (200, "/openapi"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_is_not_sent_again_if_unchanged() {
    let app = TestApp::shared().await;
    let client = app.client("");
    let get = |tag: &str| {
        let request = client.http.get(format!("{}/openapi", client.base));
        request.header("if-none-match", tag).send()
    };
    let first = get("\"another\"").await.unwrap();
    assert_eq!(first.status(), 200);
    assert_eq!(first.headers()["content-type"], "application/json");
    assert_eq!(first.headers()["cache-control"], "public, max-age=300");
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let document = first.text().await.unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&document).unwrap()["openapi"].is_string());
    for sent in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        let again = get(&sent).await.unwrap();
        assert_eq!(
            (again.status().as_u16(), &again.headers()["etag"]),
            (304, &tag.parse().unwrap())
        );
        assert!(again.bytes().await.unwrap().is_empty());
    }
    let (status, refused) = client.get("/openapi?x=1").await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "x"));
    // gRPC returns the same bytes as REST.
    let web = post(&client, "/authority.directory.v1.DirectoryService/GetOpenApi", "");
    let web = web.header("content-type", "application/grpc-web+proto").body(vec![0; 5]);
    let answer = web.send().await.unwrap().bytes().await.unwrap();
    let length = u32::from_be_bytes(answer[1..5].try_into().unwrap()) as usize;
    assert!(answer[5..5 + length].ends_with(document.as_bytes()));
    assert!(String::from_utf8_lossy(&answer[5 + length..]).contains("grpc-status:0"));
}

//! gRPC errors that clients expect for unknown methods and for requests that are not gRPC.

use serde_json::{Value, json};

use super::{EVALUATE, asking, demo, post, runtime, told};
use crate::support::TestApp;

/// The service looks up the method before it checks the credential.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_method_or_service_is_unimplemented() {
    let app = TestApp::shared().await;
    let nobody = app.client("");
    let web = "application/grpc-web+proto";
    for path in [
        "/authority.runtime.v1.RuntimeService/Nope",
        "/authority.runtime.v1.RuntimeService/evaluate",
        "/authority.runtime.v1.RuntimeService/Evaluate/",
        "/authority.runtime.v1.RuntimeService//Evaluate",
        "/authority.runtime.v1.RuntimeService",
        "/authority.runtime.v1.RuntimeService/Evaluate/x",
        "/authority.runtime.v1.RuntimeService/%45valuate",
        "/no.such.v1.Service/Method",
        "/grpc.health.v1.Health/Nope",
        "/grpc.health.v1.Nope/Check",
        "/api/v1/tenants",
        "/api/v1/runtime/evaluate",
    ] {
        for client in [&nobody, &app.owner()] {
            let answer = post(client, path, web).body(vec![0; 5]).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
            let headers = answer.headers();
            assert_eq!(headers["content-type"], web, "{path}");
            assert_eq!(headers["grpc-status"], "12", "{path}: {headers:?}");
        }
    }
    // A known method does require a credential.
    let answer = post(&nobody, EVALUATE, web).body(vec![0; 5]).send().await.unwrap();
    assert_eq!(answer.headers()["grpc-status"], "16");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_grpc_is_refused_on_a_grpc_path() {
    let (app, client) = demo().await;
    let nobody = app.client("");
    let error = |body: &Value| body["error"].as_str().unwrap_or_default().to_owned();
    for kind in ["application/json", "application/grpcfoo", "text/plain", ""] {
        let answer = post(&client, EVALUATE, kind).body(vec![0; 5]).send().await.unwrap();
        let (status, body) = told(answer).await;
        assert_eq!((status, error(&body).as_str()), (415, "unsupported_media_type"), "{kind}");
        assert!(body["message"].as_str().unwrap().contains("application/grpc"), "{body:#}");
        assert!(body["request_id"].is_string(), "{body:#}");
        // The credential is checked first.
        let answer = post(&nobody, EVALUATE, kind).body(vec![0; 5]).send().await.unwrap();
        assert!(answer.headers().contains_key("www-authenticate"));
        let (status, body) = told(answer).await;
        assert_eq!((status, error(&body).as_str()), (401, "unauthenticated"), "{kind}");
    }
    for method in ["GET", "PUT", "DELETE"] {
        let url = format!("{}{EVALUATE}", client.base);
        let call = client.http.request(method.parse().unwrap(), url);
        let call = call.header("content-type", "application/grpc");
        let anonymous = call.try_clone().unwrap().send().await.unwrap();
        assert_eq!(anonymous.status(), 401, "{method}");
        let answer = call.bearer_auth(&client.token).send().await.unwrap();
        assert_eq!(answer.headers()["allow"], "POST", "{method}");
        let (status, body) = told(answer).await;
        assert_eq!((status, error(&body).as_str()), (405, "method_not_allowed"), "{method}");
    }
    // A method that needs no credential returns the same error.
    let url = format!("{}/authority.directory.v1.DirectoryService/CheckHealth", client.base);
    assert_eq!(client.http.get(url).send().await.unwrap().status(), 405);
    let coded = post(&client, EVALUATE, "application/grpc").header("content-encoding", "br");
    let (status, body) = told(coded.body(vec![0; 5]).send().await.unwrap()).await;
    assert_eq!((status, error(&body).as_str()), (415, "unsupported_media_type"), "{body:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_idempotency_keys_are_refused_over_grpc_too() {
    let (app, client) = demo().await;
    let mut grpc = runtime(&app).await;
    let mut call = asking(&client.token, &json!({"amount": 1, "currency": "EUR"}));
    call.metadata_mut().append("idempotency-key", "a".parse().unwrap());
    call.metadata_mut().append("idempotency-key", "b".parse().unwrap());
    let refused = grpc.evaluate(call).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused}");
    assert!(refused.message().contains("`idempotency-key` is given more than once"), "{refused}");
}

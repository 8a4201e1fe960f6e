//! REST, gRPC and gRPC-Web behave the same.

use authority_model::proto::runtime::{
    Decision, EvaluateRequest, EvaluateResponse, runtime_service_client::RuntimeServiceClient,
};
use serde_json::{Value, json};
use tonic::{Code, Request, metadata::MetadataValue};
use tonic_types::StatusExt;

use super::demo;
use crate::support::{TestApp, evaluate};

fn asking(amount: i64) -> EvaluateRequest {
    evaluate(&json!({"amount": amount, "currency": "EUR", "jurisdiction": "DE"}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_decides_and_refuses_with_the_same_words() {
    let (app, client, _) = demo().await;
    let mut grpc = RuntimeServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let bearer: MetadataValue<_> = format!("Bearer {}", client.token).parse().unwrap();
    let with_key = |message| {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", bearer.clone());
        request
    };
    let answer = grpc.evaluate(with_key(asking(1200))).await.unwrap().into_inner();
    assert_eq!(answer.decision(), Decision::Allow);
    let held = grpc.evaluate(with_key(asking(25_000))).await.unwrap().into_inner();
    assert_eq!(held.decision(), Decision::RequireApproval);

    let stranger = grpc.evaluate(asking(1)).await.unwrap_err();
    assert_eq!(stranger.code(), Code::Unauthenticated);
    let info = stranger.get_error_details().error_info().unwrap().clone();
    assert_eq!((info.reason.as_str(), info.domain.as_str()), ("unauthenticated", "authority"));

    let bad = EvaluateRequest { subject: "bot".to_owned(), purpose: String::new(), ..asking(1) };
    let refused = grpc.evaluate(with_key(bad)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let details = refused.get_error_details();
    let fields: Vec<_> =
        details.bad_request().unwrap().field_violations.iter().map(|v| v.field.as_str()).collect();
    assert_eq!(fields, ["subject", "purpose"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_decides_over_grpc_web() {
    let (_app, client, _) = demo().await;
    let method = "/authority.runtime.v1.RuntimeService/Evaluate";
    let decided: EvaluateResponse = client.grpc_web(method, &asking(1200)).await;
    assert_eq!(decided.decision(), Decision::Allow);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reflection_and_health_answer() {
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    let (app, ..) = demo().await;
    let address = tonic::transport::Channel::from_shared(app.base_url().to_owned()).unwrap();
    let mut health = HealthClient::new(address.connect().await.unwrap());
    let asked = HealthCheckRequest { service: String::new() };
    let answer = health.check(asked).await.unwrap().into_inner();
    assert_eq!(answer.status, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_anyone_may_read() {
    let (_app, client, _) = demo().await;
    for (path, member) in [
        ("/", "service"),
        ("/health", "status"),
        ("/health/ready", "checks"),
        ("/openapi", "openapi"),
        ("/.well-known/jwks.json", "keys"),
        ("/v1/reason-codes", "reason_codes"),
    ] {
        let (status, answer) = client.get(path).await;
        assert_eq!(status, 200, "{path}");
        assert!(!answer[member].is_null(), "{path}: {answer:#}");
    }
    let (_, authority) = client.get("/v1/authority/svc:agent:acme:invoice-bot").await;
    assert_eq!(authority["grants"][0]["kind"], "delegation", "{authority:#}");
    let (status, entity) = client.get("/v1/entities/svc:agent:acme:invoice-bot").await;
    assert_eq!((status, &entity["record"]["name"]), (200, &"invoice-bot".into()));
    let early = "/v1/entities/svc:agent:acme:invoice-bot?as_of=2020-01-01T00:00:00Z";
    assert_eq!(client.get(early).await.0, 404);
    let admit = json!({"subject": "svc:agent:acme:invoice-bot", "purpose": "customer-care",
        "action": "payment.execute"});
    let (_, answer) = client.post("/v1/purpose/admit", admit).await;
    assert_eq!(answer["verdict"], "reject", "{answer:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entitys_history_has_who_changed_what_and_when() {
    let app = TestApp::start().await;
    let owner = app.owner();
    owner.post("/api/v1/tenants", json!({"name": "Acme", "slug": "acme"})).await;
    let path = "/api/v1/tenants/acme";
    owner.patch(path, json!({"name": "Acme Ltd", "region": "us-east"})).await;
    owner.patch(path, json!({"notes": "n"})).await;
    let history = "/api/v1/entities/svc:tenant:acme/history";
    let (status, whole) = owner.get(history).await;
    assert_eq!(status, 200, "{whole:#}");
    let versions = whole["versions"].as_array().unwrap();
    let changed: Vec<_> = versions.iter().map(|version| &version["changed"]).collect();
    assert_eq!(
        changed,
        [&json!(["notes", "updated_at"]), &json!(["name", "region", "updated_at"]), &json!([])]
    );
    assert_eq!(versions[1]["actor"], "owner@example.org");
    assert_eq!(versions[2]["record"]["name"], "Acme");
    assert_eq!(versions[0]["valid_to"], Value::Null);
    assert_eq!(versions[1]["valid_to"], versions[0]["valid_from"]);
    let (_, first) = owner.get(&format!("{history}?limit=2")).await;
    assert_eq!(first["versions"].as_array().unwrap()[..], versions[..2]);
    let token = first["next_page_token"].as_str().unwrap();
    let (_, last) = owner.get(&format!("{history}?limit=2&page_token={token}")).await;
    assert_eq!(last["versions"].as_array().unwrap()[..], versions[2..]);
    let (status, _) = owner.get(&format!("{history}?page_token=1.00")).await;
    assert_eq!(status, 400);
    assert_eq!(owner.get("/api/v1/entities/svc:tenant:none/history").await.0, 404);
    let member = app.client(&app.member_token("svc:tenant:acme", "admin"));
    assert_eq!(member.get(history).await.0, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_are_filtered_and_listed_newest_first() {
    let (app, client, _) = demo().await;
    for amount in [1.0, 2.0, 900_000.0] {
        let (status, _) =
            client.post("/api/v1/runtime/evaluate", super::asking(amount, "DE")).await;
        assert_eq!(status, 200);
    }
    let owner = app.owner();
    let list = async |query: &str| {
        let (status, body) = owner.get(&format!("/api/v1/decisions?{query}")).await;
        assert_eq!(status, 200, "{body:#}");
        (body["decisions"].as_array().unwrap().clone(), body["next_page_token"].clone())
    };
    let (all, _) = list("subject=svc:agent:acme:invoice-bot&tenant_id=svc:tenant:acme").await;
    let words: Vec<_> = all.iter().map(|found| found["decision"].as_str().unwrap()).collect();
    assert_eq!(words, ["deny", "allow_with_constraints", "allow_with_constraints"]);
    let (denied, _) = list("decision=deny&tenant_id=svc:tenant:acme").await;
    assert_eq!(denied, all[..1]);
    let (one, next) = list("limit=2").await;
    assert_eq!(one, all[..2]);
    let (rest, end) = list(&format!("limit=2&page_token={}", next.as_str().unwrap())).await;
    assert_eq!((&rest[..], end), (&all[2..], Value::Null));
    let (none, _) = list("until=2020-01-01T00:00:00Z").await;
    assert!(none.is_empty());
    let (later, _) = list("since=2020-01-01T00:00:00Z&action=payment.execute").await;
    assert_eq!(later, all);
    assert_eq!(list("since=-1h&until=-0s").await.0, all);
    assert!(list("until=-1h").await.0.is_empty());
    assert_eq!(owner.get("/api/v1/decisions?page_token=0.00").await.0, 400);
    let (status, refused) = owner.get("/api/v1/decisions?decision=deny").await;
    assert_eq!((status, &refused["details"][0]["field"]), (400, &Value::from("tenant_id")));
}

//! REST, gRPC and gRPC-Web behave the same.

use authority_model::{
    proto::{
        reality::{
            CouplingCheck, CreateCouplingCheckRequest,
            coupling_check_service_client::CouplingCheckServiceClient,
        },
        runtime::{
            Decision, EvaluateRequest, EvaluateResponse,
            runtime_service_client::RuntimeServiceClient,
        },
    },
    wire::Json,
};
use serde_json::{Value, json};
use tonic::{Code, Request, metadata::MetadataValue};
use tonic_types::StatusExt;

use super::demo;
use crate::support::{Answered, Members, TestApp, evaluate, new_tenant, only, wire::named};

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

/// A problem of a free-form field has one text and one path over REST and gRPC.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_and_grpc_report_a_problem_of_a_context_alike() {
    let (app, client, _) = demo().await;
    let mut grpc = RuntimeServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let bearer: MetadataValue<_> = format!("Bearer {}", client.token).parse().unwrap();
    let nested = |levels| (1..levels).fold(json!(1), |inner, _| json!([inner]));
    let members = |levels| (1..levels).fold(json!(1), |inner, _| only("a", &inner));
    let beyond = "is beyond 2^53-1, where numbers would be rounded; send an identifier as text";
    let deep = "is nested deeper than 32 levels";
    let nul = "may not contain U+0000";
    for (context, expected) in [
        (only("amount", 1e300), vec![("context.amount", beyond)]),
        (only("amount", -9_007_199_254_740_992.0_f64), vec![("context.amount", beyond)]),
        (json!({"a": {"b": 1e300}}), vec![("context.a.b", beyond)]),
        (
            json!({"a": {"b": [0, {"c": 9_007_199_254_740_992_i64}]}, "d": {"e": 1e17}}),
            vec![("context.a.b[1].c", beyond), ("context.d.e", beyond)],
        ),
        (json!({"a": {"b": ["\0"]}}), vec![("context.a.b[0]", nul)]),
        (json!({"a": {"b\0": 1}}), vec![("context.a.b\u{fffd}", nul)]),
        (only("a", nested(33)), vec![("context", deep)]),
        (only("a", members(40)), vec![("context", deep)]),
    ] {
        let body = json!({"subject": "svc:agent:acme:invoice-bot", "action": "payment.execute",
            "purpose": "invoice-settlement"})
        .with("context", &context);
        let answer = client.evaluate(body).await.assert_status(400);
        let details = answer["details"].as_array().unwrap().iter();
        let text = |of: &Value| of.as_str().unwrap().to_owned();
        let over_rest: Vec<_> =
            details.map(|one| (text(&one["field"]), text(&one["problem"]))).collect();
        let mut call = Request::new(evaluate(&context));
        call.metadata_mut().insert("authorization", bearer.clone());
        let refused = grpc.evaluate(call).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        let violations =
            refused.get_error_details().bad_request().unwrap().field_violations.clone();
        let over_grpc: Vec<_> =
            violations.into_iter().map(|one| (one.field, one.description)).collect();
        let expected: Vec<_> =
            expected.iter().map(|(field, why)| ((*field).to_owned(), (*why).to_owned())).collect();
        assert_eq!(over_rest, expected, "{context}");
        assert_eq!(over_grpc, expected, "{context}");
    }
}

/// The free-form fields of a record have the same rules, also in a list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_and_grpc_report_a_problem_of_a_records_fields_alike() {
    let app = TestApp::seeded().await;
    let mut grpc = CouplingCheckServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let body = json!({
        "tenant_id": "svc:tenant:acme", "action_id": "ledger.close", "coupling_result": "coupled",
        "runtime_effect": "continue", "assumptions": [{}, {"equals": {"b": 1e300}}, {"c": "\0"}],
    });
    let answer = app.owner().create_coupling_check(body.clone()).await.assert_status(400);
    let details = answer["details"].as_array().unwrap().iter();
    let over_rest: Vec<_> = details.map(|one| one["field"].as_str().unwrap()).collect();
    assert_eq!(over_rest, ["assumptions[1].equals.b", "assumptions[2].c"]);
    let assumptions = body["assumptions"].as_array().unwrap().iter();
    let assumptions = assumptions.map(|one| Json(one.as_object().unwrap().clone())).collect();
    let check = CouplingCheck {
        tenant_id: "svc:tenant:acme".to_owned(),
        action_id: "ledger.close".to_owned(),
        coupling_result: "coupled".to_owned(),
        runtime_effect: "continue".to_owned(),
        assumptions,
        ..CouplingCheck::default()
    };
    let mut call = Request::new(CreateCouplingCheckRequest { coupling_check: Some(check) });
    let bearer: MetadataValue<_> = format!("Bearer {}", app.owner_token()).parse().unwrap();
    call.metadata_mut().insert("authorization", bearer);
    let refused = grpc.create_coupling_check(call).await.unwrap_err();
    let fields = named(&refused);
    let whole: Vec<_> = over_rest.iter().map(|field| format!("coupling_check.{field}")).collect();
    // The rules of the record follow.
    assert!(fields.starts_with(&whole), "{fields:?}");
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
    for service in ["", "authority.runtime.v1.RuntimeService", "authority.keys.v1.ApiKeyService"] {
        let asked = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(asked).await.unwrap().into_inner();
        assert_eq!(answer.status, 1, "{service}");
    }
    let asked = HealthCheckRequest { service: "no.such.v1.Service".to_owned() };
    assert_eq!(health.check(asked).await.unwrap_err().code(), tonic::Code::NotFound);
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
    let (_, authority) = client.get_authority("svc:agent:acme:invoice-bot").await;
    assert_eq!(authority["grants"][0]["kind"], "delegation", "{authority:#}");
    let (status, entity) = client.get_entity("svc:agent:acme:invoice-bot").await;
    assert_eq!((status, &entity["record"]["name"]), (200, &"invoice-bot".into()));
    let early = "/v1/entities/svc:agent:acme:invoice-bot?as_of=2020-01-01T00:00:00Z";
    assert_eq!(client.get(early).await.0, 404);
    let admit = json!({"subject": "svc:agent:acme:invoice-bot", "purpose": "customer-care",
        "action": "payment.execute"});
    let (_, answer) = client.admit_purpose(admit).await;
    assert_eq!(answer["verdict"], "reject", "{answer:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entitys_history_has_who_changed_what_and_when() {
    let app = TestApp::start().await;
    let owner = app.owner();
    owner.create_tenant(new_tenant("Acme", "acme")).await;
    owner.update_tenant("acme", json!({"name": "Acme Ltd", "region": "us-east"})).await;
    owner.update_tenant("acme", only("notes", "n")).await;
    let history = "/api/v1/entities/svc:tenant:acme/history";
    let whole = owner.get(history).await.assert_status(200);
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
    assert_eq!(owner.list_entity_history("svc:tenant:none", "").await.0, 404);
    let member = app.client(&app.member_token("svc:tenant:acme", "admin"));
    assert_eq!(member.get(history).await.0, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_are_filtered_and_listed_newest_first() {
    let (app, client, _) = demo().await;
    for amount in [1.0, 2.0, 900_000.0] {
        let (status, _) = client.evaluate(super::asking(amount, "DE")).await;
        assert_eq!(status, 200);
    }
    let owner = app.owner();
    let list = async |query: &str| {
        let body = owner.list_decisions(query).await.assert_status(200);
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
    assert_eq!(owner.list_decisions("page_token=0.00").await.0, 400);
    let (status, refused) = owner.list_decisions("decision=deny").await;
    assert_eq!((status, &refused["details"][0]["field"]), (400, &Value::from("tenant_id")));
}

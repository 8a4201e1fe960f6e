//! Methods that decide or write refuse unknown fields from newer clients, instead of ignoring them.

use std::collections::BTreeSet;

use authority_model::proto::{
    delegation::{CreateDelegationRequest, Delegation},
    directory::DescribeServiceResponse,
    keys::ListApiKeysRequest,
    runtime::{BatchEvaluateRequest, DecisionRequest, EvaluateRequest, SimulateDecisionRequest},
};
use prost::Message;
use prost_reflect::{DescriptorPool, Value as Reflected};
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{TestApp, asking, evaluate, wire, wire::Caller};

const EVALUATE: &str = "/authority.runtime.v1.RuntimeService/Evaluate";

/// The encoded field number 1999, a varint with the value 1.
const STRANGE: [u8; 3] = [0xf8, 0x7c, 1];

fn with(mut message: Vec<u8>, more: &[u8]) -> Vec<u8> {
    message.extend_from_slice(more);
    message
}

/// Returns each method, with the HTTP verbs of its bindings.
fn methods() -> Vec<(String, BTreeSet<&'static str>)> {
    let pool = DescriptorPool::decode(authority_model::DESCRIPTORS).unwrap();
    let http = pool.get_extension_by_name("google.api.http").unwrap();
    let mut found = Vec::new();
    for service in pool.services().filter(|own| own.full_name().starts_with("authority.")) {
        for method in service.methods() {
            let options = method.options();
            let rule = options.get_extension(&http);
            let rule = rule.as_message().unwrap();
            let more = rule.get_field_by_name("additional_bindings").unwrap();
            let more = more.as_list().unwrap().iter().filter_map(Reflected::as_message);
            let verbs = ["get", "post", "put", "patch", "delete"];
            let verbs = [rule].into_iter().chain(more).flat_map(|rule| {
                verbs.into_iter().filter(|verb| rule.has_field_by_name(verb)).collect::<Vec<_>>()
            });
            found.push((format!("/{}/{}", service.full_name(), method.name()), verbs.collect()));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_not_known_is_never_dropped_from_what_is_decided() {
    let app = TestApp::seeded().await;
    let key = app.demo().await.api_key;
    let caller = Caller::owner(&app).with(Some(&key));
    let known = evaluate(&json!({"amount": 10.0, "currency": "EUR", "jurisdiction": "DE"}));
    let known = known.encode_to_vec();
    caller.grpc(EVALUATE, known.clone()).await.unwrap();
    let refused = async |rpc: &str, message: Vec<u8>, place: &str| {
        let status = caller.grpc(rpc, message).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains("1999"), "{status:?}");
        assert_eq!(
            (wire::named(&status), wire::reason(&status)),
            (vec![place.to_owned()], "invalid_request".to_owned())
        );
    };
    // The unknown field is a number, then a text, then a group.
    for strange in [&STRANGE[..], &[0xfa, 0x7c, 1, b'x'], &[0xfb, 0x7c, 0xfc, 0x7c]] {
        assert!(
            EvaluateRequest::decode(&*with(known.clone(), strange)).is_ok(),
            "protobuf accepts it"
        );
        refused(EVALUATE, with(known.clone(), strange), "").await;
        refused(EVALUATE, with(strange.to_vec(), &known), "").await;
    }
    // The unknown field is in the context, then in a declaration, then in the second request of a
    // batch.
    refused(EVALUATE, with(known.clone(), &[0x22, 3, STRANGE[0], STRANGE[1], 1]), "context").await;
    refused(
        EVALUATE,
        with(known.clone(), &[0x5a, 3, STRANGE[0], STRANGE[1], 1]),
        "action_declaration",
    )
    .await;
    let one =
        DecisionRequest { subject: "svc:agent:acme:invoice-bot".to_owned(), ..<_>::default() };
    let batch = BatchEvaluateRequest { requests: vec![one.clone(), one] }.encode_to_vec();
    let batch = with(batch, &[0x0a, 3, STRANGE[0], STRANGE[1], 1]);
    refused("/authority.runtime.v1.RuntimeService/BatchEvaluate", batch, "requests").await;
    let simulate = with(SimulateDecisionRequest::default().encode_to_vec(), &STRANGE);
    refused("/authority.runtime.v1.DecisionService/SimulateDecision", simulate, "").await;
    // REST refuses an unknown field by its name when it reads the JSON.
    let client = app.client(&key);
    let mut body = asking(10.0, "DE");
    assert_eq!(client.post("/api/v1/runtime/evaluate", body.clone()).await.0, 200);
    body["on_whom"] = "x".into();
    assert_eq!(client.post("/api/v1/runtime/evaluate", body).await.0, 400);
}

/// Exactly the methods that may change data refuse unknown fields. In a read, an unknown field
/// could only be a filter that is then not applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_method_that_writes_refuses_what_it_does_not_know() {
    let app = TestApp::shared().await;
    let caller = Caller::owner(app);
    let (mut writing, mut reading) = (0, 0);
    for (rpc, verbs) in methods() {
        let writes = verbs.iter().any(|verb| *verb != "get");
        let answer = caller.grpc(&rpc, STRANGE.to_vec()).await;
        let is_named = answer.as_ref().is_err_and(|status| status.message().contains("field 1999"));
        let is_admitted = answer.as_ref().err().is_none_or(|status| {
            ![Code::PermissionDenied, Code::Unauthenticated].contains(&status.code())
        });
        if is_admitted {
            assert_eq!(is_named, writes, "{rpc} {verbs:?}: {answer:?}");
            writing += u32::from(writes);
            reading += u32::from(!writes);
        }
    }
    assert!(writing > 80 && reading > 60, "{writing} {reading}");
    let list = with(ListApiKeysRequest::default().encode_to_vec(), &STRANGE);
    caller.grpc("/authority.keys.v1.ApiKeyService/ListApiKeys", list).await.unwrap();
    // The unknown field is in the record to create, where it could be a newer version's bound.
    let create =
        CreateDelegationRequest { delegation: Some(Delegation::default()) }.encode_to_vec();
    let create = with(create, &[0x0a, 3, STRANGE[0], STRANGE[1], 1]);
    let rpc = "/authority.delegation.v1.DelegationService/CreateDelegation";
    let status = caller.grpc(rpc, create).await.unwrap_err();
    assert_eq!(wire::named(&status), ["delegation"], "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_grpc_web_it_is_refused_as_well() {
    let app = TestApp::seeded().await;
    let key = app.demo().await.api_key;
    let message =
        with(evaluate(&json!({"amount": 1.0, "currency": "EUR"})).encode_to_vec(), &STRANGE);
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend(message);
    let request = app.client(&key).http.post(format!("{}{EVALUATE}", app.base_url())).body(frame);
    let request = request.header("content-type", "application/grpc-web+proto");
    let answer = request.bearer_auth(&key).send().await.unwrap();
    let status =
        answer.headers().get("grpc-status").map(|status| status.to_str().unwrap().to_owned());
    let body = answer.bytes().await.unwrap();
    let trailers = String::from_utf8_lossy(&body);
    let refused = status.as_deref() == Some("3") || trailers.contains("grpc-status:3");
    assert!(refused, "{status:?} {trailers}");
}

/// The listed features are fields of the messages, and are the same over both transports.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn features_are_the_members_that_may_be_left_out() {
    let app = TestApp::shared().await;
    let (_, described) = app.client("").get("/").await;
    let rpc = "/authority.directory.v1.DirectoryService/DescribeService";
    let bytes = Caller::owner(app).with(None).grpc(rpc, Vec::new()).await.unwrap();
    let over_grpc = DescribeServiceResponse::decode(bytes).unwrap().features;
    let listed: Vec<String> = serde_json::from_value(described["features"].clone()).unwrap();
    assert_eq!(listed, over_grpc);
    assert!(listed.is_sorted() && listed.len() > 20, "{listed:?}");
    let pool = DescriptorPool::decode(authority_model::DESCRIPTORS).unwrap();
    for feature in &listed {
        let (message, member) = feature.split_once('.').unwrap();
        let known = pool.all_messages().find(|own| own.name() == message).unwrap();
        assert!(known.get_field_by_name(member).is_some(), "{feature}");
    }
    let of_evaluate =
        listed.iter().filter(|feature| feature.starts_with("EvaluateRequest.")).count();
    let all =
        pool.get_message_by_name("authority.runtime.v1.EvaluateRequest").unwrap().fields().len();
    assert_eq!(of_evaluate, all - 3, "all but subject, action and purpose");
    let _: Value = described;
}

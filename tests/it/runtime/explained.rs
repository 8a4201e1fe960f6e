//! `explain` on a denial, over REST and gRPC.

use authority_model::proto::runtime::{
    EvaluateRequest, runtime_service_client::RuntimeServiceClient,
};
use serde_json::{Value, json};
use tonic::{Request, metadata::MetadataValue};

use super::{asking, demo};
use crate::support::{Answered, Members, Plain, evaluate, new_policy, nothing, only, redacted};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_and_both_values_and_what_would_help() {
    let (app, client, delegation) = demo().await;
    let ask = asking(60_000.0, "US").with("explain", true);
    let (status, answer) = client.evaluate(ask.clone()).await;
    assert_eq!((status, answer["reason_code"].text()), (200, "constraint_exceeded"));
    let findings = answer["trace"][0]["findings"].as_array().unwrap();
    let found = findings.iter().find(|one| one["check"] == format!("delegation {delegation}"));
    let told = format!("max_amount of {delegation}: 50000.00 EUR; requested: 60000.00");
    assert_eq!(found.unwrap()["detail"], told, "{answer:#}");
    // Changing only the jurisdiction or only the amount would not help.
    insta::assert_snapshot!("explained_denial", redacted(answer.clone()));
    let change = &answer["smallest_change"];
    let (_, then) = client.evaluate(asking(50_000.0, "DE")).await;
    assert_eq!(
        (&then["decision"], &then["reason_code"]),
        (&change["decision"], &change["reason_code"])
    );

    let mut grpc = RuntimeServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let body = EvaluateRequest { explain: true, ..evaluate(&ask["context"]) };
    let mut request = Request::new(body);
    let bearer: MetadataValue<_> = format!("Bearer {}", client.token).parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    let answer = grpc.evaluate(request).await.unwrap().into_inner();
    assert_eq!(answer.smallest_change.unwrap().further.len(), 1);
    assert!(answer.trace[0].findings.iter().any(|one| one.detail() == told));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finding_has_the_statement_of_its_policy() {
    let (app, client, delegation) = demo().await;
    let cedar = "@id(\"window\") @reason(\"x_change_window\") @decision(\"require_approval\")\n\
                 @advice(\"Ask the release manager first.\")\n\
                 forbid (principal, action, resource);";
    let policy = new_policy("internal", cedar);
    app.owner().create_policy(policy).await.assert_status(201);
    let (_, answer) = client.evaluate(asking(10.0, "DE").with("explain", true)).await;
    let stages = answer["trace"].as_array().unwrap().iter();
    let findings: Vec<_> = stages.flat_map(|stage| stage["findings"].as_array().unwrap()).collect();
    let of = |kind: &str| findings.iter().find(|finding| finding["kind"] == kind).unwrap();
    assert_eq!(
        (of("delegation")["id"].text(), &of("gate")["id"]),
        (delegation.as_str(), &json!(null))
    );
    let statement = |id: &str| {
        let is_own = |finding: &&&Value| finding["statement"]["id"] == id;
        let finding = findings.iter().find(is_own).unwrap_or_else(|| panic!("{id}: {answer:#}"));
        assert_eq!(finding["id"], finding["statement"]["policy_id"], "{finding:#}");
        (finding["kind"].clone(), finding["statement"]["advice"].clone())
    };
    let policy = json!("policy");
    assert_eq!(statement("window"), (policy.clone(), json!("Ask the release manager first.")));
    // This statement does not match.
    assert_eq!(statement("payment-threshold"), (policy, json!(null)));
}

/// `explain` shows why a cited approval did not count when the request is held again. The codes
/// stay the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cited_approval_that_does_not_count_says_why() {
    let (app, client, _) = demo().await;
    let ann = app.person("svc:tenant:acme", "approver", "ann@example.org");
    let ask = async |amount: f64, cited: Option<&str>| {
        let ask = asking(amount, "DE").with("explain", true).with("approval_id", cited);
        client.evaluate(ask).await.1
    };
    let act = async |id: &str, verb: &str| {
        let body = if verb == "approve" { nothing() } else { only("reason", "no") };
        ann.act_on_approval(id, verb, body).await.assert_status(200);
    };
    // Returns the finding of the `rules` stage about the approval.
    let told = |answer: &Value| -> String {
        let stages = answer["trace"].as_array().unwrap();
        let rules = stages.iter().find(|stage| stage["stage"] == "rules").unwrap();
        let mut findings = rules["findings"].as_array().unwrap().iter();
        let about = |one: &&Value| one["check"].as_str().unwrap().starts_with("approval ");
        let one = findings.find(about).unwrap_or_else(|| panic!("{answer:#}"));
        one["detail"].as_str().unwrap().to_owned()
    };
    let held = async |amount: f64| {
        let answer = ask(amount, None).await;
        answer["approval_id"].as_str().unwrap().to_owned()
    };
    // A setting of 0 seconds lets a declined request be repeated at once.
    assert_eq!(app.owner().update_tenant("acme", only("declined_for_seconds", 0)).await.0, 200);
    let unlike = async |amount: f64, id: &str, part: &str| {
        let answer = ask(amount, Some(id)).await;
        let came = (&answer["decision"], &answer["reason_code"]);
        let wanted = (&json!("require_approval"), &json!("approval_threshold_breach"));
        assert_eq!(came, wanted, "{answer:#}");
        let told = told(&answer);
        assert!(told.contains("does not count") && told.contains(part), "{part}: {told}");
    };
    let id = held(25_000.0).await;
    unlike(25_000.0, &id, "not approved yet").await;
    unlike(25_000.0, "svc:approval:none", "no such approval").await;
    act(&id, "approve").await;
    unlike(25_001.0, &id, "another question").await;
    let other = asking(25_000.0, "DE")
        .with("subject", "svc:agent:acme:support-bot")
        .with("explain", true)
        .with("approval_id", &id);
    let (_, answer) = client.evaluate(other).await;
    assert!(told(&answer).contains("another subject"), "{answer:#}");
    // An approval that is not needed is not used.
    assert!(told(&ask(10.0, Some(&id)).await).contains("another question"));
    let allowed = ask(25_000.0, Some(&id)).await;
    assert_eq!(allowed["decision"], "allow", "{allowed:#}");
    assert!(told(&allowed).starts_with("counts"), "{allowed:#}");
    unlike(25_000.0, &id, "used before").await;
    let declined = held(26_000.0).await;
    act(&declined, "decline").await;
    unlike(26_000.0, &declined, "declined").await;
    let void = held(27_000.0).await;
    act(&void, "approve").await;
    act(&void, "withdraw").await;
    unlike(27_000.0, &void, "void").await;
}

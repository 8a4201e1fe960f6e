//! Decisions in lists, exports and reads.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use authority_model::proto::runtime::{
    Decision, ListDecisionsRequest, decision_service_client::DecisionServiceClient,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::demo;
use crate::support::{Answered, Client, Members, Plain, TENANT, asking, new_policy};

/// How long a list is read again until it has names.
const PATIENCE: Duration = Duration::from_secs(20);

async fn decided(client: &Client, ask: Value, decision: &str) -> String {
    let (status, answer) = client.evaluate(ask).await;
    assert_eq!((status, answer["decision"].text()), (200, decision), "{answer:#}");
    answer["decision_id"].as_str().unwrap().to_owned()
}

/// A decision that `evaluate` returns as `allow` is also found by the filter `allow`, even if its
/// record contains `allow_with_constraints`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_with_constraints_is_found_as_an_allow() {
    let (app, client, _) = demo().await;
    let allowed = decided(&client, asking(1200.0, "DE"), "allow").await;
    let held = decided(&client, asking(25_000.0, "DE"), "require_approval").await;
    let auditor = app.person(TENANT, "auditor", "eve@example.org");
    for (word, ids) in [
        ("allow", vec![&allowed]),
        ("allow_with_constraints", vec![&allowed]),
        ("require_approval", vec![&held]),
        ("deny", vec![]),
    ] {
        let found = auditor.list_decisions(&format!("decision={word}")).await.assert_status(200);
        let found = found["decisions"].as_array().unwrap().iter();
        let found: BTreeSet<_> = found.map(|one| one["decision_id"].as_str().unwrap()).collect();
        let ids = ids.into_iter().map(String::as_str).collect();
        assert_eq!(found, ids, "{word}");
        let path = format!("/api/v1/app/decisions:export?decision={word}");
        let (_, lines) = auditor.text("GET", &path, None).await;
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines = lines.filter(|line| line["end"] != json!(true));
        let exported: BTreeSet<_> = lines
            .map(|line| line["decision"]["decision_id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(exported, found.iter().map(ToString::to_string).collect(), "{word}");
    }
    let mut grpc = DecisionServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let by = ListDecisionsRequest { decision: Some("allow".to_owned()), ..Default::default() };
    let mut call = tonic::Request::new(by);
    let bearer = format!("Bearer {}", auditor.token).parse().unwrap();
    call.metadata_mut().insert("authorization", bearer);
    let found = grpc.list_decisions(call).await.unwrap().into_inner().decisions;
    let found: Vec<_> = found.iter().map(|one| (&one.decision_id, one.decision())).collect();
    assert_eq!(found, [(&allowed, Decision::AllowWithConstraints)]);
}

/// A list shows the request's purpose and declared facts, and the policies that held it. Lines of an
/// export have exactly the members that EVIDENCE.md lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_has_declared_facts_and_the_names_of_policies() {
    let (app, client, _) = demo().await;
    let (name, held_by) = ("Large payments", "@id(\"large\") @decision(\"require_approval\")");
    let cedar = format!("{held_by} forbid (principal, action, resource);");
    let policy = new_policy("internal", &cedar).with("name", name);
    app.owner().create_policy(policy).await.assert_status(201);
    let mut ask = asking(10.0, "DE");
    ask["context"]["payee"] = " Müller AG".into();
    ask["context"]["invoice"] = "RE-1".into();
    ask["context"]["note"] = "not declared".into();
    decided(&client, ask, "require_approval").await;
    let auditor = app.person(TENANT, "auditor", "eve@example.org");
    let (_, found) = auditor.list_decisions("").await;
    let decision = &found["decisions"][0];
    assert_eq!(decision["purpose"], "invoice-settlement", "{found:#}");
    let facts =
        json!([{"role": "payee", "value": " Müller AG"}, {"role": "document", "value": "RE-1"}]);
    assert_eq!(decision["facts"], facts, "{found:#}");
    assert_eq!(decision["policies"], json!([name]), "{found:#}");
    let path = "/api/v1/app/decisions:export?context=true";
    let (_, lines) = auditor.text("GET", path, None).await;
    let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let members: BTreeSet<_> = line["decision"].as_object().unwrap().keys().cloned().collect();
    let expected = "action amount approval_id currency decision decision_id evaluated_at reason_code subject \
                    tenant_id verify_url";
    assert_eq!(members, expected.split(' ').map(str::to_owned).collect(), "{line:#}");
}

/// A list names the policies that denied the action. It names no other policy. A denial by
/// another check has no names, and neither has a denial whose context was erased.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_names_the_policies_that_denied() {
    let (app, client, _) = demo().await;
    let is_large = "context has amount && context.amount.greaterThan(decimal(\"100.0\"))";
    let is_german = "context has jurisdiction && context.jurisdiction == \"DE\"";
    let is_french = "context has jurisdiction && context.jurisdiction == \"FR\"";
    let own_reason = "@reason(\"x_closed\")";
    for (name, reason, condition) in
        [("1", own_reason, is_large), ("2", own_reason, is_german), ("3", "", is_french)]
    {
        let cedar =
            format!("{reason} forbid (principal, action, resource) when {{ {condition} }};");
        let policy =
            json!({"tenant_id": TENANT, "regime": "internal", "cedar": cedar, "name": name});
        let (status, made) = app.owner().post("/api/v1/policies", policy).await;
        assert_eq!(status, 201, "{made:#}");
    }
    let mut unknown = asking(10.0, "DE");
    unknown["purpose"] = json!("unknown-purpose");
    let auditor = app.person(TENANT, "auditor", "eve@example.org");
    let newest = async || {
        let (_, mut found) = auditor.get("/api/v1/app/decisions").await;
        let mut decision = found["decisions"][0].take();
        let names = decision["policies"].as_array_mut().unwrap();
        names.sort_unstable_by_key(|name| name.as_str().unwrap().to_owned());
        (decision["decision_id"].take(), decision["policies"].take())
    };
    for (ask, names) in [
        (asking(500.0, "DE"), json!(["1", "2"])),
        (asking(10.0, "DE"), json!(["2"])),
        (unknown, json!([])),
        (asking(10.0, "FR"), json!(["3"])),
    ] {
        let id = decided(&client, ask, "deny").await;
        // A busy node leaves names out.
        let (begun, mut found) = (Instant::now(), newest().await);
        while names != json!([]) && found.1 == json!([]) && begun.elapsed() < PATIENCE {
            sleep(Duration::from_millis(50)).await;
            found = newest().await;
        }
        assert_eq!(found, (json!(id), names));
    }
    // The list is readable without the names.
    app.database.run("ALTER TABLE policies RENAME COLUMN name TO another").await;
    assert_eq!(newest().await.1, json!([]));
    app.database.run("ALTER TABLE policies RENAME COLUMN another TO name").await;
    let erase = "ALTER TABLE decisions DISABLE TRIGGER USER; UPDATE decisions SET context = ''";
    app.database.run(erase).await;
    assert_eq!(newest().await.1, json!([]));
}

/// Wherever an allow is read, it names the approval that it used and is not pending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allow_names_the_approval_that_it_spent() {
    let (app, client, _) = demo().await;
    let (_, held) = client.evaluate(asking(25_000.0, "DE")).await;
    let approval = held["approval_id"].as_str().unwrap();
    let ann = app.person(TENANT, "approver", "ann@example.org");
    ann.approve_approval(approval).await.assert_status(200);
    let citing = asking(25_000.0, "DE").with("approval_id", approval);
    let allowed = decided(&client, citing, "allow").await;
    let (_, shown) = client.get_decision(&allowed).await;
    let told = (&shown["approval_id"], &shown["approval_state"]);
    assert_eq!(told, (&json!(approval), &json!("used")), "{shown:#}");
    let auditor = app.person(TENANT, "auditor", "eve@example.org");
    let (_, found) = auditor.list_decisions("decision=allow").await;
    assert_eq!(found["decisions"][0]["approval_id"], approval, "{found:#}");
    // The stream ends after its first line.
    let (_, lines) = client.text("GET", &format!("/v1/decisions/{allowed}:watch"), None).await;
    let [line] = lines.lines().collect::<Vec<_>>()[..] else { panic!("{lines}") };
    let update: Value = serde_json::from_str(line).unwrap();
    let told = (&update["approval_id"], &update["used_by"]);
    assert_eq!(told, (&json!(approval), &json!(allowed)), "{update:#}");
}

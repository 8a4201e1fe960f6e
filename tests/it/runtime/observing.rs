//! Observing versions of policies: decisions are the same, and show the decision with the version in force.

use std::time::Duration;

use authority_evidence::verify::{Trust, Valid, verify};
use authority_process::compute::{ComputePool, Limits};
use authority_runtime::PolicyObserver;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    demo,
    simulate::{OVER_1000, TENANT, decided, outcome},
};
use crate::{
    evidence::{golden, published, sealed},
    support::{Answered, Members, Plain, TestApp, asking, new_policy, nothing, only},
};

/// Creates a policy with this text, which observes. Returns its path.
async fn observing(app: &TestApp, cedar: &str) -> String {
    let body = new_policy("own", cedar).with("name", "Large payments").with("state", "draft");
    let made = app.owner().create_policy(body).await.assert_status(201);
    let path = format!("/api/v1/policies/{}", made["policy"]["id"].as_str().unwrap());
    app.owner().post(&format!("{path}/observe"), nothing()).await.assert_status(200);
    path
}

fn guarded() -> String {
    OVER_1000.replace("when { ", "when { context has amount && ")
}

async fn inspected(app: &TestApp, id: &str) -> Value {
    let found = app.owner().inspect_decision(id).await.assert_status(200);
    found["decision"].clone()
}

/// Returns the findings of a decision's trace about observing versions.
fn observed(decision: &Value) -> Vec<Value> {
    let stages = decision["trace"].as_array().unwrap().iter();
    let findings = stages.flat_map(|stage| stage["findings"].as_array().unwrap());
    findings.filter(|finding| finding["kind"] == "observed").cloned().collect()
}

async fn counts(app: &TestApp, path: &str) -> [i64; 4] {
    app.count_observations().await;
    let (_, found) = app.owner().get(path).await;
    let observation = &found["policy"]["observation"];
    ["would_allow", "would_require_approval", "would_deny", "would_change"]
        .map(|name| observation[name].as_i64().unwrap_or_else(|| panic!("{found:#}")))
}

/// A decision as its caller sees it, without its id, times and signature.
fn seen(answer: &Value) -> Value {
    let members = [
        "decision",
        "reason_code",
        "reasons",
        "obligations",
        "stop_conditions",
        "stages",
        "smallest_change",
        "tool_id",
        "exceeded_budgets",
    ];
    members.iter().map(|name| ((*name).to_owned(), answer[*name].clone())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_the_same_and_its_trace_shows_what_it_would_have_been() {
    let (app, client, _) = demo().await;
    let questions = || {
        [(500.0, "DE"), (1200.0, "DE"), (25_000.0, "DE"), (1200.0, "US")]
            .map(|(amount, place)| asking(amount, place).with("explain", true))
    };
    let mut before = Vec::new();
    for ask in questions() {
        before.push(decided(&client, ask).await);
    }
    let path = observing(&app, &guarded()).await;
    let id = path.rsplit('/').next().unwrap();
    let mut found = Vec::new();
    for (ask, (earlier, before)) in questions().into_iter().zip(&before) {
        let (decision, after) = decided(&client, ask).await;
        assert_eq!(seen(&after), seen(before));
        assert_eq!(observed(&inspected(&app, earlier).await), [json!(null); 0]);
        let shown = inspected(&app, &decision).await;
        let findings = observed(&shown);
        let [finding] = &findings[..] else { panic!("{shown:#}") };
        assert_eq!((finding["outcome"].text(), &finding["id"]), ("pass", &json!(id)));
        let observed = &finding["observed"];
        assert_eq!((&observed["policy_id"], observed["version"].number()), (&json!(id), 1));
        found.push((
            outcome(observed).0.to_owned(),
            outcome(observed).1.to_owned(),
            observed["would_change"].as_bool().unwrap(),
            observed["statements"].as_array().unwrap().len(),
        ));
    }
    let expected = [
        ("allow_with_constraints", "permission_granted", false, 0),
        ("deny", "policy_denied", true, 1),
        ("deny", "policy_denied", true, 1),
        // The authority refuses it before any policy.
        ("deny", "jurisdiction_unsupported", false, 0),
    ];
    let expected = expected
        .map(|(one, other, differs, count)| (one.to_owned(), other.to_owned(), differs, count));
    assert_eq!(found, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_are_counted_once_by_what_they_would_have_been() {
    let (app, client, _) = demo().await;
    decided(&client, asking(1200.0, "DE")).await;
    let path = observing(&app, &guarded()).await;
    for amount in [500.0, 600.0, 1200.0, 25_000.0] {
        decided(&client, asking(amount, "DE")).await;
    }
    assert_eq!(counts(&app, &path).await, [2, 0, 2, 2]);
    assert_eq!(counts(&app, &path).await, [2, 0, 2, 2]);
    // After its end, the counts are kept with the version.
    let (status, ended) = app.owner().post(&format!("{path}/unobserve"), nothing()).await;
    assert_eq!((status, &ended["policy"]["observation"]), (200, &json!(null)), "{ended:#}");
    let (decision, _) = decided(&client, asking(1200.0, "DE")).await;
    assert_eq!(observed(&inspected(&app, &decision).await), [json!(null); 0]);
    let (_, versions) = app.owner().get(&format!("{path}/versions")).await;
    let kept = &versions["versions"][0]["observation"];
    assert_eq!((kept["would_deny"].number(), kept["would_change"].number()), (2, 2), "{kept:#}");
    // A new observation of the same version begins at zero.
    let again = app.owner().post(&format!("{path}/observe"), nothing()).await.assert_status(200);
    let observation = &again["policy"]["observation"];
    assert_eq!((observation["would_deny"].number(), observation["would_change"].number()), (0, 0));
}

/// Refuses to store counts.
const REFUSE: &str = "
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE OF would_allow ON policy_observations
    FOR EACH ROW EXECUTE FUNCTION refuse()";

fn observer(app: &TestApp, limits: Limits) -> PolicyObserver {
    PolicyObserver::new(app.database.store(), ComputePool::start(limits).unwrap())
}

/// A round that cannot judge or store a decision leaves it to the next round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_rounds_count_no_decision_and_lose_none() {
    let (app, client, _) = demo().await;
    let path = observing(&app, &guarded()).await;
    for amount in [500.0, 1200.0, 25_000.0] {
        decided(&client, asking(amount, "DE")).await;
    }
    app.database.run(REFUSE).await;
    let full = Limits { waiting_in_all: 0, ..Limits::default() };
    for limits in [full, Limits::default()] {
        let observer = observer(&app, limits);
        let mut failed = 0;
        for _ in 0..600 {
            app.settle_observed().await;
            failed += u32::from(observer.round().await.is_err());
            // A decision that was never judged is not at fault, however often its round fails.
            if failed == 4 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(failed, 4);
    }
    app.database.run("DROP TRIGGER refuse ON policy_observations").await;
    assert_eq!(counts(&app, &path).await, [1, 0, 2, 2]);
}

/// A round judges without a lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_count_at_the_same_time_count_each_decision_once() {
    let (app, client, _) = demo().await;
    let path = observing(&app, &guarded()).await;
    for amount in [500.0, 1200.0, 25_000.0] {
        decided(&client, asking(amount, "DE")).await;
    }
    let nodes: Vec<_> = (0..4).map(|_| observer(&app, Limits::default())).collect();
    for _ in 0..10 {
        app.settle_observed().await;
        for round in join_all(nodes.iter().map(PolicyObserver::round)).await {
            round.unwrap();
        }
    }
    assert_eq!(counts(&app, &path).await, [1, 0, 2, 2]);
}

/// Otherwise every observation of the installation would be written every ten seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observation_without_decisions_is_counted_and_not_written() {
    let (app, _, _) = demo().await;
    let path = observing(&app, &guarded()).await;
    app.database.run(&REFUSE.replace("UPDATE OF would_allow", "UPDATE")).await;
    assert_eq!(counts(&app, &path).await, [0, 0, 0, 0]);
    app.database.run("DROP TRIGGER refuse ON policy_observations").await;
    app.owner().post(&format!("{path}/unobserve"), nothing()).await.assert_status(200);
    let (_, versions) = app.owner().get(&format!("{path}/versions")).await;
    let kept = &versions["versions"][0]["observation"];
    assert_eq!(kept["counted_until"], kept["ended_at"], "{kept:#}");
}

/// In its place, not in addition: the active version alone would hold.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_version_is_observed_in_the_place_of_the_active_one() {
    let (app, client, _) = demo().await;
    let owner = app.owner();
    let (_, policies) = owner.list_policies("").await;
    let threshold = &policies["policies"][0];
    let path = format!("/api/v1/policies/{}", threshold["id"].as_str().unwrap());
    let higher = threshold["cedar"].as_str().unwrap().replace("10000.00", "30000.00");
    assert_eq!(owner.patch(&path, only("cedar", &higher)).await.0, 200);
    owner.post(&format!("{path}/observe"), only("version", 2)).await.assert_status(200);
    let (decision, held) = decided(&client, asking(25_000.0, "DE")).await;
    assert_eq!(outcome(&held), ("require_approval", "approval_threshold_breach"), "{held:#}");
    let shown = inspected(&app, &decision).await;
    let finding = &observed(&shown)[0]["observed"];
    assert_eq!(outcome(finding), ("allow_with_constraints", "permission_granted"), "{shown:#}");
    assert_eq!(finding["would_change"], true);
    // It is also observed where only the active version could match.
    let elsewhere = "forbid (principal, action == Svc::Action::\"report.read\", resource);";
    assert_eq!(owner.patch(&path, only("cedar", elsewhere)).await.0, 200);
    assert_eq!(owner.post(&format!("{path}/observe"), only("version", 3)).await.0, 200);
    let (decision, _) = decided(&client, asking(25_000.0, "DE")).await;
    let shown = inspected(&app, &decision).await;
    assert_eq!(observed(&shown)[0]["observed"]["would_change"], true, "{shown:#}");
    assert_eq!(counts(&app, &path).await, [1, 0, 0, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sealed_decisions_replay_and_their_bundles_have_the_observing_text() {
    let (app, client, _) = demo().await;
    observing(&app, &guarded()).await;
    let scopes = ["runtime:write", "runtime:read", "evidence:read", "evidence:write"];
    let reader = app.client(&app.api_key(TENANT, &scopes).await);
    let (decision, _) = decided(&client, asking(1200.0, "DE")).await;
    sealed(&reader, &decision).await;
    let (status, bundle) = reader.evidence_text(&decision, "bundle=true").await;
    assert_eq!(status, 200, "{bundle}");
    let trust = Trust { keys: Some(published(&reader).await), log_key: None };
    assert_eq!(verify(bundle.as_bytes(), &trust), Ok(Valid::Trusted));
    assert!(bundle.contains("no-large-payments"), "{bundle}");
    let parsed: Value = serde_json::from_str(&bundle).unwrap();
    let index = parsed["pack"]["record"]["facts_index"].as_array().unwrap();
    let named = index.iter().filter(|read| read["kind"] == "observing_policy").count();
    assert_eq!(named, 1, "{index:#?}");
    let (status, proof) = app.owner().mint_replay_proof(only("decision_id", &decision)).await;
    assert_eq!((status, proof["result"].text()), (200, "match"), "{proof:#}");
    // The observing version would deny the first decision, and would not change the second one.
    let (unchanged, _) = decided(&client, asking(500.0, "DE")).await;
    for (id, name) in [(&decision, "observing-1"), (&unchanged, "observing-2")] {
        let bundle = golden::replays(&app, id, name).await;
        assert!(bundle.contains("no-large-payments"), "{name}: {bundle}");
    }
}

/// A statement that fails would deny. While it observes, it has no effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_an_error_nor_the_tenants_clock_reaches_the_decision() {
    let (app, client, _) = demo().await;
    let loose = json!({"policy_validation": "warn", "time_zone": "Europe/Berlin"});
    assert_eq!(app.owner().update_tenant(TENANT, loose).await.0, 200);
    let failing = observing(
        &app,
        "forbid (principal, action, resource) when { context.input.nowhere == \"x\" };",
    )
    .await;
    let timed =
        observing(&app, "forbid (principal, action, resource) when { context.local.hour >= 0 };")
            .await;
    let (decision, answer) = decided(&client, asking(1200.0, "DE")).await;
    assert_eq!(outcome(&answer).1, "permission_granted", "{answer:#}");
    let shown = inspected(&app, &decision).await;
    let reasons: Vec<_> = observed(&shown)
        .iter()
        .map(|finding| finding["observed"]["reason_code"].as_str().unwrap().to_owned())
        .collect();
    let mut expected = [(failing.as_str(), "rule_error"), (timed.as_str(), "policy_denied")];
    expected.sort_unstable();
    assert_eq!(reasons, expected.iter().map(|(_, reason)| *reason).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_simulation_shows_it_and_is_not_counted() {
    let (app, _, _) = demo().await;
    let path = observing(&app, &guarded()).await;
    let body = only("request", asking(1200.0, "DE"));
    let simulated = app.owner().simulate_decision(body).await.assert_status(200);
    assert_eq!(outcome(&simulated), ("allow_with_constraints", "permission_granted"));
    let trace = only("trace", &simulated["stages"]);
    assert_eq!(observed(&trace)[0]["observed"]["decision"], "deny", "{simulated:#}");
    assert_eq!(counts(&app, &path).await, [0, 0, 0, 0]);
}

/// An agent's runtime may simulate with its key. It must not learn which policies may come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_keys_simulation_does_not_show_it() {
    let (app, _, _) = demo().await;
    observing(&app, &guarded()).await;
    let reader = app.client(&app.api_key(TENANT, &["runtime:read"]).await);
    let ask = asking(1200.0, "DE").with("explain", true);
    let simulated = reader.simulate_decision(only("request", &ask)).await.assert_status(200);
    assert_eq!(outcome(&simulated), ("allow_with_constraints", "permission_granted"));
    assert!(!simulated["stages"].as_array().unwrap().is_empty(), "{simulated:#}");
    assert_eq!(observed(&only("trace", &simulated["stages"])), [json!(null); 0], "{simulated:#}");
}

/// An erased context can't be evaluated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_decision_is_neither_shown_nor_counted() {
    let (app, client, _) = demo().await;
    let path = observing(&app, &guarded()).await;
    let (decision, _) = decided(&client, asking(1200.0, "DE")).await;
    decided(&client, asking(500.0, "DE")).await;
    let erase =
        format!("UPDATE decisions SET context = '', context_salt = '' WHERE id = '{decision}'");
    app.database.run(&erase).await;
    assert_eq!(inspected(&app, &decision).await["trace"], json!([]));
    assert_eq!(counts(&app, &path).await, [1, 0, 0, 0]);
}

//! The impact of policy changes on past decisions.

use authority_process::clock::Clock;
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{
    asking, demo,
    simulate::{OVER_1000, TENANT, decided, outcome, rows, simulated},
};
use crate::support::{Answered, Members, Plain, new_policy, only};

const IMPACT: &str = "/api/v1/policies:impact";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_policies_is_run_over_past_decisions() {
    let (app, client, _) = demo().await;
    let mut ids = Vec::new();
    for (amount, place) in [(500.0, "DE"), (1200.0, "DE"), (25_000.0, "DE"), (1200.0, "US")] {
        ids.push(decided(&client, asking(amount, place)).await.0);
    }
    let before = rows(&app).await;
    let owner = app.owner();
    let run = async |more: Value| {
        let body = only("tenant_id", TENANT).and(&more);
        owner.impact_policies(body).await.assert_status(200)
    };
    let forbidden = run(json!({"candidate_policies": [{"cedar": OVER_1000}]})).await;
    let totals = |answer: &Value| {
        ["considered", "changed_total", "unreadable"].map(|name| answer[name].as_u64().unwrap())
    };
    assert_eq!(totals(&forbidden), [4, 2, 0], "{forbidden:#}");
    let changed: Vec<_> = forbidden["changed"].as_array().unwrap().iter().collect();
    let [held, allowed] = changed.as_slice() else { panic!("{forbidden:#}") };
    assert_eq!([&held["decision_id"], &allowed["decision_id"]], [&json!(ids[2]), &json!(ids[1])]);
    assert_eq!(outcome(&held["before"]), ("require_approval", "approval_threshold_breach"));
    assert_eq!(outcome(&allowed["before"]), ("allow_with_constraints", "permission_granted"));
    for after in [&held["after"], &allowed["after"]] {
        assert_eq!(outcome(after), ("deny", "policy_denied"));
    }
    // A policy's scope, removed and replaced policies, and the number of approvers change the
    // result.
    let elsewhere = json!({"candidate_policies": [
        {"cedar": "forbid (principal, action, resource);", "applies_to": ["action:report.*"]}]});
    assert_eq!(totals(&run(elsewhere).await), [4, 0, 0]);
    let (_, policies) = owner.list_policies("").await;
    let threshold = &policies["policies"][0];
    let without = run(json!({"without_policies": [threshold["id"]]})).await;
    assert_eq!(totals(&without), [4, 1, 0], "{without:#}");
    assert_eq!(outcome(&without["changed"][0]["after"]).0, "allow_with_constraints");
    let cedar = threshold["cedar"].as_str().unwrap();
    let two = cedar.replace("@approvals(\"1\")", "@approvals(\"2\")");
    let lower = cedar.replace("10000.00", "100.00");
    for (cedar, count) in [(cedar, 0), (&two, 1), (&lower, 2)] {
        let replaced = json!({"policy_id": threshold["id"], "cedar": cedar});
        let answer = run(json!({"candidate_policies": [replaced]})).await;
        assert_eq!(totals(&answer), [4, count, 0], "{answer:#}");
    }
    let last = json!({"candidate_policies": [{"cedar": OVER_1000}], "last": 2});
    assert_eq!(totals(&run(last).await), [2, 1, 0]);
    let since = (Clock::default().now() + TimeDelta::hours(1)).to_rfc3339();
    let late = json!({"candidate_policies": [{"cedar": OVER_1000}], "since": since});
    assert_eq!(totals(&run(late).await), [0, 0, 0]);
    let admin = app.client(&app.member_token(TENANT, "admin"));
    let own = json!({"candidate_policies": [{"cedar": OVER_1000}]});
    let answer = admin.impact_policies(own.clone()).await.assert_status(200);
    assert_eq!(totals(&answer), [4, 2, 0]);
    assert_eq!(rows(&app).await, before);
    // Each caller may query only some tenants.
    for (who, path, body, status) in [
        (&admin, "/api/v1/app/policies:impact", only("tenant_id", "svc:tenant:b"), 400),
        (&owner, IMPACT, own.clone(), 400),
        (&owner, IMPACT, json!({"tenant_id": "svc:tenant:none", "without_policies": ["x"]}), 400),
        (&owner, IMPACT, only("tenant_id", TENANT), 400),
        (&client, IMPACT, own, 403),
    ] {
        let (found, refused) = who.post(path, body.clone()).await;
        assert_eq!(found, status, "{body}\n{refused:#}");
    }
}

/// A dry run reports the findings that a write of the texts would report.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_findings_are_those_of_a_write() {
    let (app, client, _) = demo().await;
    let (id, _) = decided(&client, asking(1200.0, "DE")).await;
    let owner = app.owner();
    let when =
        |condition: &str| format!("forbid (principal, action, resource) when {{ {condition} }};");
    let unknown = when("action == Svc::Action::\"payment.excute\"");
    let place = when("context has jurisdiction && context.jurisdiction == \"UK\"");
    let sound = when("principal.class == \"system\"");
    for validation in ["enforce", "warn"] {
        let setting = only("policy_validation", validation);
        assert_eq!(owner.update_tenant(TENANT, setting).await.0, 200);
        for cedar in [OVER_1000, &unknown, &place, &sound] {
            let body = json!({"tenant_id": TENANT, "cedar": cedar});
            let (_, write) = owner.validate_policy(body).await;
            let candidates = json!([{"cedar": sound}, {"cedar": cedar}]);
            let impact = json!({"tenant_id": TENANT, "candidate_policies": candidates});
            let simulation = json!({"decision_id": id, "candidate_policies": candidates});
            for (path, body) in [(IMPACT, impact), ("/api/v1/decisions:simulate", simulation)] {
                let said = simulated(&owner, path, body).await;
                for member in ["problems", "warnings"] {
                    let mut expected = write[member].clone();
                    for one in expected.as_array_mut().unwrap() {
                        one["field"] = "candidate_policies[1].cedar".into();
                    }
                    assert_eq!(said[member], expected, "{validation}, {path}: {cedar}");
                }
            }
        }
    }
    // Without candidates, both lists are empty.
    let (_, policies) = owner.list_policies("").await;
    let without = json!({"tenant_id": TENANT, "without_policies": [policies["policies"][0]["id"]]});
    let said = owner.impact_policies(without).await.assert_status(200);
    assert_eq!((&said["problems"], &said["warnings"]), (&json!([]), &json!([])), "{said:#}");
}

/// A policy is compared with its current version, even for decisions made before it became active.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_compared_with_what_is_in_force() {
    let (app, client, _) = demo().await;
    for amount in [500.0, 1200.0, 25_000.0] {
        decided(&client, asking(amount, "DE")).await;
    }
    let owner = app.owner();
    let cedar = OVER_1000.replace("when { ", "when { context has amount && ");
    let named = json!({"tenant_id": TENANT, "regime": "internal", "name": "Large", "cedar": cedar, "state": "draft"});
    let made = owner.create_policy(named).await.assert_status(201);
    let id = made["policy"]["id"].as_str().unwrap();
    let run = async |change: Value, compared_with: Value| {
        let body = json!({"tenant_id": TENANT, "compared_with": compared_with}).and(&change);
        owner.impact_policies(body).await.assert_status(200)
    };
    let same = json!({"candidate_policies": [{"policy_id": id, "cedar": cedar}]});
    let without = only("without_policies", [id]);
    // A draft has no effect in any comparison.
    for word in [json!(null), json!("recorded"), json!("present")] {
        assert_eq!(run(same.clone(), word.clone()).await["changed_total"], 2, "{word}");
        assert_eq!(run(without.clone(), word).await["changed_total"], 0);
    }
    owner.activate_policy(id).await.assert_status(200);
    for word in [json!(null), json!("recorded")] {
        assert_eq!(run(same.clone(), word.clone()).await["changed_total"], 2, "{word}");
        assert_eq!(run(without.clone(), word).await["changed_total"], 0);
    }
    assert_eq!(run(same.clone(), json!("present")).await["changed_total"], 0);
    let ended = run(without, json!("present")).await;
    assert_eq!(ended["changed_total"], 2, "{ended:#}");
    for changed in ended["changed"].as_array().unwrap() {
        assert_eq!(outcome(&changed["before"]), ("deny", "policy_denied"), "{changed:#}");
        assert!(outcome(&changed["after"]).0 != "deny", "{changed:#}");
    }
    // An earlier denial by a policy that is now retired does not hide the effect of this change.
    let frozen = new_policy("internal", "@id(\"freeze\")\nforbid (principal, action, resource);")
        .with("name", "Freeze");
    let (status, freeze) = owner.create_policy(frozen).await;
    assert_eq!((status, freeze["policy"]["state"].text()), (201, "active"), "{freeze:#}");
    assert_eq!(decided(&client, asking(1500.0, "DE")).await.1["decision"], "deny");
    assert_eq!(
        owner
            .update_policy(freeze["policy"]["id"].as_str().unwrap(), only("state", "retired"))
            .await
            .0,
        200
    );
    let weaker = cedar.replace("1000.0", "9000.0");
    let weaker = json!({"candidate_policies": [{"policy_id": id, "cedar": weaker}]});
    assert_eq!(run(weaker, json!("present")).await["changed_total"], 2);
    let added = json!({"candidate_policies": [{"cedar": cedar}]});
    assert_eq!(run(added, json!("present")).await["changed_total"], 0, "already active");
    // A policy past its `effective_until` has no effect.
    let over = only("effective_until", "2020-01-01T00:00:00Z");
    owner.update_policy(id, over).await.assert_status(200);
    assert_eq!(run(same, json!("present")).await["changed_total"], 3);
    let body = json!({"tenant_id": TENANT, "without_policies": [id], "compared_with": "now"});
    owner.impact_policies(body).await.assert_status(400);
}

/// Tests more decisions than fit on a page. Decisions that can't be reproduced count as
/// `unreadable`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_that_cannot_be_repeated_are_counted_apart() {
    let (app, client, _) = demo().await;
    let asks: Vec<Value> = (0..60).map(|n| asking(970.0 + f64::from(n), "DE")).collect();
    for _ in 0..2 {
        let (status, _) = client.batch_evaluate(only("requests", &asks)).await;
        assert_eq!(status, 200);
    }
    let run = async |last: u32| {
        let body = json!({"tenant_id": TENANT, "last": last,
                          "candidate_policies": [{"cedar": OVER_1000}]});
        let answer = app.owner().impact_policies(body).await.assert_status(200);
        ["considered", "changed_total", "unreadable"].map(|name| answer[name].as_u64().unwrap())
    };
    assert_eq!(run(1000).await, [120, 58, 0]);
    let (id, _) = decided(&client, asking(2000.0, "DE")).await;
    // Changes the amount in the stored context, which no longer matches the decision.
    app.database
        .run(&format!(
            "SET session_replication_role = replica; \
             UPDATE decisions SET context = convert_to('{{\"amount\":60000,\"currency\":\"EUR\",\
             \"jurisdiction\":\"DE\"}}', 'UTF8') WHERE id = '{id}'"
        ))
        .await;
    assert_eq!(run(1).await, [1, 0, 1]);
    // Changes all facts, which no longer match their digests.
    let spoil = "SET session_replication_role = replica; \
                 UPDATE fact_blobs SET body = convert_to('{}', 'UTF8')";
    app.database.run(spoil).await;
    assert_eq!(run(1000).await, [121, 0, 121]);
    let body = json!({"decision_id": id, "against": "recorded"});
    let (status, refused) = client.simulate_decision(body).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "decision_id"));
}

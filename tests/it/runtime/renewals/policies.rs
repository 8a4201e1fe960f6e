//! Policies see the first delegation of a line, also under its successors. A text that names a
//! successor would never apply and is refused.

use serde_json::{Value, json};

use super::{super::demo, TENANT, answer, lend, renew, under};
use crate::support::{Answered, Plain, TestApp, new_policy, nothing, only};

/// A part of the warning about a delegation that the tenant lacks.
const NO_DELEGATION: &str = "the tenant has no delegation";

fn forbid(id: &str) -> String {
    statement("forbid", &format!("context.delegation == \"{id}\""))
}

fn statement(effect: &str, condition: &str) -> String {
    format!(
        "{effect} (principal, action, resource) when {{ context has delegation && {condition} }};"
    )
}

fn policy(cedar: &str) -> Value {
    new_policy("internal", cedar)
}

async fn made(app: &TestApp, policy: Value) -> Value {
    let made = app.owner().create_policy(policy).await.assert_status(201);
    made["policy"].clone()
}

/// Checks that a response refuses the id of a successor and names the first of the line.
#[track_caller]
fn names_the_first(response: &Value, first: &str) {
    let text = response.to_string();
    assert!(text.contains("renews another one"), "{response:#}");
    assert!(text.contains(&format!("write `{first}`")), "{response:#}");
}

/// Returns the texts that compare the used delegation with this one.
fn texts(id: &str) -> Vec<String> {
    let conditions = [
        format!("context.delegation == \"{id}\""),
        format!("context[\"delegation\"] != \"{id}\""),
        format!("[\"svc:del:acme:none\", \"{id}\"].contains(context.delegation)"),
        format!("[context.delegation].containsAny([\"{id}\"])"),
        format!("context.delegation like \"{id}\""),
        format!("context.delegation like \"{id}*\""),
    ];
    let texts =
        conditions.iter().flat_map(|one| [statement("forbid", one), statement("permit", one)]);
    let escaped = forbid(id)
        .replace("context has delegation", "context has \"deleg\\u{61}tion\"")
        .replace("context.delegation", "context[\"deleg\\u{61}tion\"]");
    texts.chain([escaped]).collect()
}

/// The policy applies before the renewal, and to every delegation of the line afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_forbids_the_first_one_applies_to_all() {
    let (app, client, demo) = demo().await;
    let first = lend(&app, &demo, nothing()).await;
    let made = made(&app, policy(&forbid(&first))).await;
    assert!(!made["warnings"].to_string().contains(NO_DELEGATION), "{made:#}");
    assert_eq!(answer(&client, under(&first, 1.0)).await["decision"], "deny");
    let second = renew(&app, &first, nothing()).await;
    let third = renew(&app, &second, nothing()).await;
    for name in [&first, &second, &third] {
        assert_eq!(answer(&client, under(name, 1.0)).await["decision"], "deny");
    }
    let (_, read) = app.owner().get_policy(made["id"].as_str().unwrap()).await;
    assert_eq!(read["policy"]["problems"], made["problems"], "{read:#}");
    let warnings = read["policy"]["warnings"].to_string();
    assert!(!warnings.contains(NO_DELEGATION), "{warnings}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_names_a_successor_is_refused_with_the_first() {
    let (app, _, demo) = demo().await;
    let first = lend(&app, &demo, nothing()).await;
    let second = renew(&app, &first, nothing()).await;
    let third = renew(&app, &second, nothing()).await;
    let good = made(&app, policy(&forbid(&first))).await;
    // The tenant's setting `warn` does not turn this error into a warning.
    for validation in ["enforce", "warn"] {
        let setting = only("policy_validation", validation);
        app.owner().update_tenant(TENANT, setting).await.assert_status(200);
        for text in texts(&second).into_iter().chain([forbid(&third)]) {
            let mut draft = policy(&text);
            draft["state"] = "draft".into();
            for body in [policy(&text), draft] {
                let (status, refused) = app.owner().create_policy(body).await;
                assert_eq!(status, 400, "{text}: {refused:#}");
                names_the_first(&refused["details"], &first);
            }
            let (status, refused) =
                app.owner().update_policy(good["id"].as_str().unwrap(), only("cedar", &text)).await;
            assert_eq!(status, 400, "{text}: {refused:#}");
            names_the_first(&refused["details"], &first);
            let body = json!({"cedar": text, "tenant_id": TENANT});
            let (_, said) = app.owner().validate_policy(body).await;
            assert_eq!(said["valid"], false, "{text}: {said:#}");
            names_the_first(&said["problems"], &first);
        }
    }
    // An id that never existed is a warning. Comparing a field of the request's context with a
    // successor's id is allowed.
    let unknown = made(&app, policy(&forbid("svc:del:acme:none"))).await;
    assert!(unknown["warnings"].to_string().contains(NO_DELEGATION), "{unknown:#}");
    let own = format!("context.input has origin && context.input.origin == \"{second}\"");
    made(&app, policy(&statement("forbid", &own))).await;
}

/// Changes the stored text, as if a release that did not refuse it had stored it.
async fn store(app: &TestApp, from: &str, to: &str) {
    let replace = format!("SET cedar = replace(cedar, '{from}', '{to}')");
    let stored = format!(
        "SET session_replication_role = replica; UPDATE policy_versions {replace};
         UPDATE policies {replace}; RESET session_replication_role"
    );
    app.database.run(&stored).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_text_that_names_a_successor_is_not_activated_and_shows_the_problem() {
    let (app, _, demo) = demo().await;
    let first = lend(&app, &demo, nothing()).await;
    let second = renew(&app, &first, nothing()).await;
    let in_force = made(&app, policy(&forbid(&first))).await;
    let mut draft = policy(&forbid(&first));
    draft["state"] = "draft".into();
    let draft = made(&app, draft).await;
    store(&app, &first, &second).await;
    let policy_id = draft["id"].as_str().unwrap();
    let (status, refused) = app.owner().activate_policy(policy_id).await;
    assert_eq!((status, refused["error"].text()), (409, "transition_not_allowed"));
    names_the_first(&refused["message"], &first);
    let (_, read) = app.owner().get_policy(policy_id).await;
    assert_eq!(read["policy"]["state"], "draft", "{read:#}");
    // A policy in force stays in force. Its record shows the problem.
    let (_, read) = app.owner().get_policy(in_force["id"].as_str().unwrap()).await;
    assert_eq!(read["policy"]["state"], "active", "{read:#}");
    names_the_first(&read["policy"]["problems"], &first);
    let (_, listed) = app.owner().list_policies("limit=500").await;
    let mut listed = listed["policies"].as_array().unwrap().iter();
    let listed = listed.find(|one| one["id"] == in_force["id"]).unwrap();
    names_the_first(&listed["problems"], &first);
    // The remedy works.
    store(&app, &second, &first).await;
    app.owner().activate_policy(draft["id"].as_str().unwrap()).await.assert_status(200);
}

/// A dry run decides with a text that a write would refuse, and reports the write's findings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_reports_a_text_that_names_a_successor() {
    let (app, client, demo) = demo().await;
    let first = lend(&app, &demo, nothing()).await;
    let second = renew(&app, &first, nothing()).await;
    let texts = [forbid(&second), forbid("svc:del:acme:none"), forbid(&first)];
    let candidates: Vec<_> = texts.iter().map(|cedar| only("cedar", cedar)).collect();
    let impact = json!({"tenant_id": TENANT, "candidate_policies": candidates});
    let simulation = json!({"request": under(&first, 1.0), "candidate_policies": candidates});
    for (path, body) in
        [("/api/v1/policies:impact", &impact), ("/api/v1/decisions:simulate", &simulation)]
    {
        let said = app.owner().post(path, body.clone()).await.assert_status(200);
        let [problem] = said["problems"].as_array().unwrap().as_slice() else { panic!("{said:#}") };
        assert_eq!(problem["field"], "candidate_policies[0].cedar", "{said:#}");
        names_the_first(problem, &first);
        let warnings = said["warnings"].as_array().unwrap();
        let unknown = warnings.iter().find(|one| one.to_string().contains(NO_DELEGATION));
        let unknown = unknown.unwrap_or_else(|| panic!("{said:#}"));
        assert_eq!(unknown["field"], "candidate_policies[1].cedar", "{said:#}");
    }
    // An agent's key gets no names of other records.
    let (status, said) = client.simulate_decision(simulation).await;
    assert_eq!((status, &said["warnings"]), (200, &json!([])), "{said:#}");
    names_the_first(&said["problems"], &first);
}

//! A declined request is denied for a set time. Afterwards, or once a person reopens it, it can be
//! made again.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    TENANT, act, answered, approved, approver, asked, asking, citing, decline, demo, held, read,
    requests, set,
};
use crate::{
    evidence::golden,
    support::{Client, Members, Plain, TestApp, Wishes, new_policy, new_principal, nothing, only},
};

const POLICIES: &str = "/api/v1/policies";

#[track_caller]
fn is_denied(answer: &Value) {
    let found = (&answer["decision"], &answer["reason_code"], &answer["approval_id"]);
    assert_eq!(found, (&json!("deny"), &json!("approval_declined"), &Value::Null), "{answer:#}");
}

async fn reopen(client: &Client, id: &str) -> (u16, Value) {
    act(client, id, "reopen", only("reason", "the invoice was found")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_declined_question_is_denied_until_it_is_reopened() {
    let (app, client, _) = demo().await;
    let ask = asking(25_000.0, "DE");
    let id = held(&client, &ask).await;
    let declined = decline(&app, &id, nothing()).await;
    assert!(declined["declined_until"].is_string(), "{declined:#}");
    is_denied(&asked(&client, &ask).await);
    // The decline also applies if the request cites it,
    // or uses another credential of the same agent.
    is_denied(&asked(&client, &citing(&ask, &id)).await);
    let other = app.client(&app.api_key(TENANT, &["runtime:write"]).await);
    is_denied(&asked(&other, &ask).await);
    // Empty declarations do not make a different request.
    for empty in [
        json!({"action_declaration": {}}),
        json!({"action_declaration": {"effect_class": null, "rollback_available": null}}),
        json!({"action_risk_classification": {}}),
        json!({"action_risk_classification": {"risk_tier": null}, "action_declaration": null}),
    ] {
        let padded = ask.clone().and(&empty);
        is_denied(&asked(&client, &padded).await);
    }
    assert!(requests(&app, "pending").await.is_empty());
    // The explanation names the approval, but suggests no change that would avoid it.
    let explained = ask.clone().with("explain", true);
    let answer = asked(&client, &explained).await;
    is_denied(&answer);
    let finding = &answer["trace"][3]["findings"][0];
    assert_eq!(finding["check"], json!(format!("approval {id}")), "{answer:#}");
    assert_eq!(answer["smallest_change"], Value::Null, "{answer:#}");
    // A different request opens an approval, which shows its approver the similar declined one.
    let changed = held(&client, &asking(25_001.0, "DE")).await;
    let shown = read(&approver(&app), &changed).await;
    let before = &shown["declined_before"][0];
    assert_eq!((&before["id"], before["state"].text()), (&json!(id), "declined"), "{shown:#}");
    assert_eq!(before["reason"], "no such invoice");
    assert_eq!(shown["earlier"], json!([]));
    let (_, listed) = approver(&app).list_approvals("state=pending").await;
    assert_eq!(
        listed["approvals"][0]["declined_before"],
        json!([]),
        "only on the read by id: {listed:#}"
    );
    let (status, reopened) = reopen(&approver(&app), &id).await;
    assert_eq!((status, reopened["state"].text()), (200, "declined"), "{reopened:#}");
    assert_eq!(reopened["declined_until"], Value::Null);
    assert!(reopened["reopened_at"].is_string(), "{reopened:#}");
    let last = reopened["acts"].as_array().unwrap().last().unwrap();
    let said: Value = serde_json::from_str(last["record"].as_str().unwrap()).unwrap();
    assert_eq!((last["verdict"].text(), said["verdict"].text()), ("reopen", "reopen"));
    assert_eq!((&said["about"], &said["question"]), (&json!(id), &reopened["request_digest"]));
    let next = held(&client, &ask).await;
    assert_ne!(next, id);
    let earlier = &read(&approver(&app), &next).await["earlier"];
    assert_eq!((&earlier[0]["id"], earlier[0]["state"].text()), (&json!(id), "declined"));
    assert_eq!(earlier[0]["at"], declined["declined_at"], "not when it was reopened");
    let (status, twice) = reopen(&approver(&app), &id).await;
    assert_eq!((status, twice["error"].text()), (409, "transition_not_allowed"), "{twice:#}");
    let (status, early) = reopen(&approver(&app), &next).await;
    assert_eq!((status, early["error"].text()), (409, "transition_not_allowed"), "{early:#}");
    golden::every_kind_replays(&app).await;
}

/// Neither the person behind the requesting key nor the agent's owner may reopen a declined
/// request, even with `self_approval`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_asking_side_does_not_reopen() {
    let (app, client, _) = demo().await;
    set(&app, only("self_approval", true)).await;
    let person = new_principal("human", "Boss").with("external_subject", "dev|boss@example.org");
    let (_, made) = app.owner().create_principal(person).await;
    let owned = only("owner_principal_id", &made["principal"]["id"]);
    assert_eq!(app.owner().update_principal("svc:agent:acme:invoice-bot", owned).await.0, 200);
    let ask = asking(25_000.0, "DE");
    let id = held(&client, &ask).await;
    decline(&app, &id, nothing()).await;
    let boss = app.person(TENANT, "approver", "boss@example.org");
    let (status, refused) = reopen(&boss, &id).await;
    assert_eq!((status, refused["error"].text()), (409, "approver_not_eligible"), "{refused:#}");
    let auditor = app.person(TENANT, "auditor", "amy@example.org");
    for who in [&client, &auditor] {
        assert_eq!(reopen(who, &id).await.0, 403);
    }
    is_denied(&asked(&client, &ask).await);
    // A person other than the decliner may reopen it.
    let bob = app.person(TENANT, "legal", "bob@example.org");
    assert_eq!(reopen(&bob, &id).await.0, 200);
    held(&client, &ask).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decline_lasts_as_long_as_tenant_and_person_say() {
    let (app, client, _) = demo().await;
    for (setting, for_seconds, is_over) in [
        (json!(0), json!(null), true),
        (json!(null), json!(0), true),
        (json!(86_400), json!(0), true),
        (json!(60), json!(86_400), false),
        (json!(86_400), json!(60), false),
        (json!(null), json!(null), false),
    ] {
        set(&app, only("declined_for_seconds", 86_400)).await;
        let amount =
            25_000.0 + f64::from(u32::try_from(requests(&app, "declined").await.len()).unwrap());
        let ask = asking(amount, "DE");
        let id = held(&client, &ask).await;
        decline(&app, &id, only("for_seconds", &for_seconds)).await;
        set(&app, only("declined_for_seconds", &setting)).await;
        let shown = read(&approver(&app), &id).await;
        assert_eq!(shown["declined_until"].is_null(), is_over, "{setting} {for_seconds} {shown:#}");
        if is_over {
            assert_ne!(held(&client, &ask).await, id, "{setting} {for_seconds}");
            continue;
        }
        is_denied(&asked(&client, &ask).await);
        // One hour after the decline, only a decline that lasts a day still applies.
        let past = format!(
            "UPDATE approvals SET declined_at = declined_at - interval '1 hour' WHERE id = '{id}'"
        );
        app.database.run(&past).await;
        let day = setting.is_null() && for_seconds.is_null();
        let answer = asked(&client, &ask).await;
        assert_eq!(answer["decision"] == "deny", day, "{setting} {for_seconds} {answer:#}");
    }
    let invalid = json!({"reason": "no", "for_seconds": 86_401});
    let id = held(&client, &asking(30_000.0, "DE")).await;
    assert_eq!(act(&approver(&app), &id, "decline", invalid).await.0, 400);
    let (status, _) = app.owner().update_tenant("acme", only("declined_for_seconds", -1)).await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_request_that_waits_shortly_is_denied_shortly() {
    let (app, client, _) = demo().await;
    set(&app, only("approval_ttl_seconds", 60)).await;
    let ask = asking(25_000.0, "DE");
    let id = held(&client, &ask).await;
    decline(&app, &id, nothing()).await;
    is_denied(&asked(&client, &ask).await);
    let past = format!(
        "UPDATE approvals SET declined_at = declined_at - interval '61 s' WHERE id = '{id}'"
    );
    app.database.run(&past).await;
    held(&client, &ask).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decline_takes_the_place_of_nothing_but_a_hold() {
    let (app, client, _) = demo().await;
    let ask = asking(25_000.0, "DE");
    let id = held(&client, &ask).await;
    decline(&app, &id, nothing()).await;
    // The decline does not change denials for other reasons.
    let forbid = new_policy("internal", "@id(\"no\")\nforbid (principal, action, resource);\n")
        .with("name", "No");
    let (_, made) = app.owner().create_policy(forbid).await;
    let no = made["policy"]["id"].as_str().unwrap().to_owned();
    assert_eq!(asked(&client, &ask).await["reason_code"], "policy_denied");
    let retired = only("state", "retired");
    assert_eq!(app.owner().patch(&format!("{POLICIES}/{no}"), retired.clone()).await.0, 200);
    is_denied(&asked(&client, &ask).await);
    // Without a policy that holds the action, the request is allowed despite the decline.
    let (_, policies) = app.owner().list_policies("").await;
    for policy in policies["policies"].as_array().unwrap() {
        let path = format!("{POLICIES}/{}", policy["id"].as_str().unwrap());
        if policy["state"] == "active" {
            assert_eq!(app.owner().patch(&path, retired.clone()).await.0, 200);
        }
    }
    assert_eq!(asked(&client, &ask).await["decision"], "allow");
}

/// A simulation shows the decline. A dry run of policies and `would_be` do not depend on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_simulation_names_it_and_a_dry_run_ignores_it() {
    let (app, client, _) = demo().await;
    let ask = asking(25_000.0, "DE");
    let id = held(&client, &ask).await;
    decline(&app, &id, nothing()).await;
    let denied = asked(&client, &ask).await;
    is_denied(&denied);
    let (_, simulated) = client.simulate_decision(only("request", &ask)).await;
    assert_eq!(simulated["reason_code"], "approval_declined", "{simulated:#}");
    let finding = &simulated["stages"][3]["findings"][0];
    assert_eq!(finding["check"], json!(format!("approval {id}")), "{simulated:#}");
    let changed = json!({"request": ask, "changes": {"amount": 25_001}});
    let (_, simulated) = client.simulate_decision(changed).await;
    assert_eq!(simulated["decision"], "require_approval", "{simulated:#}");
    let assumed = json!({"request": ask, "changes": {"approved": true}});
    let (_, simulated) = client.simulate_decision(assumed).await;
    assert_eq!(simulated["reason_code"], "permission_granted", "{simulated:#}");
    let recorded = json!({"decision_id": denied["decision_id"], "against": "recorded"});
    let (_, simulated) = client.simulate_decision(recorded).await;
    assert_eq!(simulated["would_change"], false, "{simulated:#}");
    let impact = json!({"tenant_id": TENANT, "candidate_policies": [
        {"cedar": "@id(\"none\")\n@obligation(\"a\")\npermit (principal, action, resource);\n"}]});
    let (_, impact) = app.owner().impact_policies(impact).await;
    assert_eq!(
        (impact["unreadable"].number(), impact["changed_total"].number()),
        (0, 0),
        "{impact:#}"
    );
}

/// The record contains the decline as a fact. A replay of the sealed facts gives the same decision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_decline_is_sealed_where_it_decides() {
    let (app, client, _) = demo().await;
    let ask = asking(25_000.0, "DE");
    let first = asked(&client, &ask).await;
    let id = first["approval_id"].as_str().unwrap();
    decline(&app, id, nothing()).await;
    let denied = asked(&client, &ask).await;
    for (answer, sealed) in [(&first, false), (&denied, true)] {
        let facts = own_facts(&app, answer["decision_id"].as_str().unwrap()).await;
        assert_eq!(facts["declined"]["approval_id"] == json!(id), sealed, "{facts:#}");
        assert_eq!(facts.get("declined").is_some(), sealed, "{facts:#}");
        assert_eq!(facts.get("open_requests"), None, "{facts:#}");
    }
    let (_, inspected) =
        app.owner().inspect_decision(denied["decision_id"].as_str().unwrap()).await;
    let trace = &inspected["decision"]["trace"][3];
    assert_eq!(trace["reason_code"], "approval_declined", "decided again: {inspected:#}");
}

async fn own_facts(app: &TestApp, decision_id: &str) -> Value {
    use diesel::{ExpressionMethods, QueryDsl};
    use diesel_async::RunQueryDsl;
    let mut db = app.database.owner().await;
    let decisions = authority_model::schema::decisions::table;
    let found = decisions
        .filter(authority_model::schema::decisions::id.eq(decision_id))
        .select(authority_model::schema::decisions::facts);
    let facts: Vec<u8> = found.first(&mut db).await.unwrap();
    serde_json::from_slice(&facts).unwrap()
}

/// The decline commits after the next request looked for declines, but before that request commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_question_that_races_its_decline_opens_no_request() {
    use diesel_async::SimpleAsyncConnection;
    let (app, client, _) = demo().await;
    for round in 0..3_u32 {
        let ask = asking(25_000.0 + f64::from(round), "DE");
        let id = held(&client, &ask).await;
        let mut person = app.database.owner().await;
        let declines = format!(
            "BEGIN; UPDATE approvals SET state = 'declined', declined_at = clock_timestamp(), \
             updated_at = clock_timestamp() WHERE id = '{id}'"
        );
        person.batch_execute(&declines).await.unwrap();
        // The look-up does not see the uncommitted decline. Before it opens its own approval, the
        // request waits for the decline's commit.
        let racing = tokio::spawn({
            let (client, ask) = (client.clone(), ask.clone());
            async move { asked(&client, &ask).await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        person.batch_execute("COMMIT").await.unwrap();
        is_denied(&racing.await.unwrap());
        assert!(requests(&app, "pending").await.is_empty());
    }
}

/// Races declines with requests, with people and agents on two nodes at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_request_is_open_after_its_question_was_declined() {
    let (app, client, _) = demo().await;
    let beside = app.beside(Wishes::default()).await;
    let there = beside.client(&client.token);
    for round in 0..10_u32 {
        let ask = asking(25_000.0 + f64::from(round), "DE");
        let id = held(&client, &ask).await;
        let calls = (0..8).map(|n| answered(if n % 2 == 0 { &client } else { &there }, &ask));
        let (_, answers) = tokio::join!(decline(&app, &id, nothing()), join_all(calls));
        for answer in &answers {
            let waits = answer["approval_id"] == json!(id);
            assert!(waits || answer["reason_code"] == "approval_declined", "{answer:#}");
        }
        assert!(requests(&app, "pending").await.is_empty());
    }
}

/// A response under an idempotency key is repeated, regardless of later acts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_under_a_key_is_repeated_verbatim() {
    let (app, client, _) = demo().await;
    let ask = asking(25_000.0, "DE");
    let id = held(&client, &ask).await;
    decline(&app, &id, nothing()).await;
    let keyed = async || {
        let key = [("idempotency-key", "invoice-7")];
        client.evaluate_with(ask.clone(), &key).await
    };
    let (status, first) = keyed().await;
    assert_eq!(status, 200);
    is_denied(&first);
    assert_eq!(reopen(&approver(&app), &id).await.0, 200);
    assert_eq!(keyed().await.1, first);
    let next = approved(&app, &client, &ask).await;
    assert_eq!(asked(&client, &ask).await["decision"], "allow");
    assert_eq!(read(&approver(&app), &next).await["state"], "used");
}

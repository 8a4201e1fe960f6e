//! A tool's requirements apply even if the request does not name it, in all operations of the
//! service.

use serde_json::{Value, json};

use super::demo;
use crate::support::{
    Answered, Client, EVALUATE, Members, Plain, SIMULATE_DECISION, TENANT, TestApp, asking,
    new_policy, new_tool, only,
};

async fn ask(client: &Client, body: &Value) -> Value {
    client.evaluate(body.clone()).await.assert_status(200)
}

/// Returns the id of the demonstration's tool of this name.
async fn tool(app: &TestApp, name: &str) -> String {
    let (_, found) = app.owner().list_tools(&format!("tenant_id={TENANT}")).await;
    let mut tools = found["tools"].as_array().unwrap().iter();
    tools.find(|tool| tool["name"] == name).unwrap()["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_three_requests_come_out_alike_named_and_unnamed() {
    let (app, client, _) = demo().await;
    let payments = tool(&app, "payments").await;
    for (amount, place, decision) in
        [(1200.0, "DE", "allow"), (25_000.0, "DE", "require_approval"), (1200.0, "US", "deny")]
    {
        let unnamed = asking(amount, place);
        let named = unnamed.clone().with("tool_id", &payments);
        let (unnamed, named) = (ask(&client, &unnamed).await, ask(&client, &named).await);
        assert_eq!(unnamed["decision"], decision, "{unnamed:#}");
        assert_eq!(unnamed["reason_code"], named["reason_code"], "{named:#}");
        assert_eq!(named["decision"], decision, "{named:#}");
        assert_eq!(unnamed["tool_id"], Value::Null);
        let permitted = decision != "deny";
        assert_eq!(named["tool_id"], if permitted { json!(payments) } else { Value::Null });
    }
}

/// If a `uses` relationship names a tool, response and record name the same tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_by_a_row_on_a_tool_is_for_that_tool() {
    let (app, client, _) = demo().await;
    let tickets = tool(&app, "tickets").await;
    // This tool performs the same action, but no request that names it would be permitted.
    let other = json!({"tenant_id": TENANT, "name": "wild", "function_signature": "f()",
        "actions": ["ticket.*"], "action_risk_classification": {"risk_tier": "prohibited"}});
    app.owner().create_tool(other).await.assert_status(201);
    let question = json!({"subject": "svc:agent:acme:support-bot", "action": "ticket.reply",
                          "purpose": "customer-care", "context": {}});
    let answer = ask(&client, &question).await;
    assert_eq!((answer["decision"].text(), answer["tool_id"].text()), ("allow", tickets.as_str()));
    let id = answer["decision_id"].as_str().unwrap();
    let (_, found) = client.get_decision(id).await;
    assert_eq!(found["record"]["verdict"]["tool_id"], tickets, "{found:#}");
    let authorize = json!({"actor": {"entity_id": "svc:agent:acme:support-bot"},
                           "action": "ticket.reply", "purpose": "customer-care"});
    let (status, answer) = client.authorize(authorize).await;
    assert_eq!((status, answer["tool_id"].text()), (200, tickets.as_str()), "{answer:#}");
    let (status, answer) = client.evaluate_decision(question).await;
    assert_eq!((status, answer["tool_id"].text()), (200, tickets.as_str()), "{answer:#}");
}

/// The demonstration's payment tool declares `financial`. A policy on this value also matches a
/// request that declares a riskier effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_avoids_no_policy_by_declaring_a_riskier_effect() {
    let (app, client, _) = demo().await;
    let payments = tool(&app, "payments").await;
    let mut questions = vec![asking(1200.0, "DE")];
    for effect in ["informational", "financial", "physical_actuation", "safety_critical"] {
        let mut question = asking(1200.0, "DE");
        question["action_declaration"] = only("effect_class", effect);
        questions.push(question.clone());
        question["tool_id"] = json!(payments);
        questions.push(question);
    }
    let on_effect = "forbid(principal, action, resource) \
                     when { context has effect_class && context.effect_class == \"financial\" };";
    for (cedar, target) in [
        ("forbid(principal, action, resource);", "effect_class:financial"),
        (on_effect, "action:payment.*"),
    ] {
        for question in &questions {
            let answer = ask(&client, question).await;
            assert_eq!(answer["decision"], "allow", "{question:#} {answer:#}");
        }
        let policy = new_policy("own", cedar).with("applies_to", [target]);
        let policy =
            app.owner().create_policy(policy).await.assert_status(201)["policy"]["id"].clone();
        for question in &questions {
            let answer = ask(&client, question).await;
            assert_eq!(answer["reason_code"], "policy_denied", "{question:#} {answer:#}");
        }
        assert_eq!(
            app.owner().update_policy(policy.as_str().unwrap(), only("state", "retired")).await.0,
            200
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn making_a_tool_warns_where_an_action_becomes_stricter() {
    let (app, client, _) = demo().await;
    assert_eq!(ask(&client, &asking(1200.0, "DE")).await["decision"], "allow");
    let wires = json!({"tenant_id": TENANT, "name": "wires", "function_signature": "wire()",
        "actions": ["payment.execute", "nobody.asks"], "requires": ["bic"],
        "action_risk_classification": {"risk_tier": "high"}});
    let tool = app.owner().create_tool(wires).await.assert_status(201)["tool"].clone();
    let warnings = tool["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{tool:#}");
    let warning = warnings[0].as_str().unwrap();
    assert!(
        warning.starts_with("`payment.execute`: oversight two_person, was none; "),
        "{warning}"
    );
    assert!(warning.ends_with("requires `bic`"), "{warning}");
    let answer = ask(&client, &asking(1200.0, "DE")).await;
    assert_eq!(answer["reason_code"], "context_incomplete", "{answer:#}");
    let mut explained = asking(1200.0, "DE");
    explained["explain"] = true.into();
    explained["context"]["bic"] = "GENODEF1".into();
    let answer = ask(&client, &explained).await;
    assert_eq!(answer["reason_code"], "oversight_required", "{answer:#}");
    let id = tool["id"].as_str().unwrap();
    let findings = answer["trace"][0]["findings"].as_array().unwrap();
    let own = findings.iter().find(|finding| finding["check"] == format!("tool {id}")).unwrap();
    let detail = own["detail"].as_str().unwrap();
    assert!(detail.contains("risk_tier high") && detail.contains("only its own terms"), "{detail}");

    // The response to a change lists exactly the terms that become stricter or milder.
    let tamer = json!({"action_risk_classification": {"risk_tier": "limited"}});
    let (_, changed) = app.owner().update_tool(id, tamer).await;
    let lines = changed["tool"]["warnings"].as_array().unwrap().iter();
    assert!(lines.clone().count() > 0, "{changed:#}");
    let is_milder = |line: &Value| line.as_str().is_some_and(|line| line.starts_with("milder: "));
    assert!(lines.clone().all(is_milder), "{changed:#}");
    let wilder = json!({"action_risk_classification": {"risk_tier": "prohibited"}});
    let (_, changed) = app.owner().update_tool(id, wilder).await;
    let warning = changed["tool"]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("oversight prohibited, was single_approver"), "{warning}");
    assert!(warning.contains("risk_tier prohibited, was limited"), "{warning}");
    let (_, found) = app.owner().get_tool(id).await;
    assert_eq!(found["tool"]["warnings"], changed["tool"]["warnings"]);
    app.owner().update_tool(id, json!({"warnings": []})).await.assert_status(400);
    let (status, _) = app.owner().delete_tool(id).await;
    assert_eq!(status, 200);
    assert_eq!(ask(&client, &asking(1200.0, "DE")).await["decision"], "allow");
}

/// Unreadable fields of a stored tool are treated as the strictest value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_cannot_be_read_binds_as_the_worst() {
    let (app, client, _) = demo().await;
    let harmless =
        new_tool("x", "f()", &["elsewhere.do"]).with("requires", ["nothing-that-is-there"]);
    let id = app.owner().create_tool(harmless).await.assert_status(201)["tool"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let payments = tool(&app, "payments").await;
    let named = asking(1200.0, "DE").with("tool_id", &payments);
    app.database
        .run(&format!("UPDATE tools SET actions = '{{Not A Pattern}}' WHERE id = '{id}'"))
        .await;
    let answer = settled(&client, "context_incomplete").await;
    assert_eq!(answer["reason_code"], "context_incomplete", "{answer:#}");
    assert_eq!(ask(&client, &named).await["decision"], "allow", "naming a tool narrows");
    // A subject that is denied a tool is denied every action that the tool performs.
    let denied = json!({"agent_id": "svc:agent:acme:invoice-bot", "used_id": id,
                        "used_kind": "tool", "allowed": 0});
    app.owner().create_uses(denied).await.assert_status(201);
    assert_eq!(ask(&client, &asking(1200.0, "DE")).await["reason_code"], "capability_denied");
    let query = format!("agent_id=svc:agent:acme:invoice-bot&used_id={id}&used_kind=tool");
    let path = format!("/api/v1/relationships/uses/-?{query}");
    assert_eq!(app.owner().call("DELETE", &path, None, &[]).await.0, 200);
    let unreadable = "action_risk_classification = '{\"risk_tier\": \"mauve\"}', \
                      actions = '{payment.*}', requires = '{}'";
    app.database.run(&format!("UPDATE tools SET {unreadable} WHERE id = '{id}'")).await;
    let answer = settled(&client, "risk_prohibited").await;
    assert_eq!(answer["reason_code"], "risk_prohibited", "{answer:#}");
}

/// Repeats a request until the service has noticed the write made directly to the database. Returns
/// the response.
async fn settled(client: &Client, reason: &str) -> Value {
    let mut answer = Value::Null;
    for _ in 0..100 {
        answer = ask(client, &asking(1200.0, "DE")).await;
        if answer["reason_code"] == reason {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    answer
}

/// A stored policy that compares a place with a subdivision's code denies, and is listed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_policy_that_can_never_be_true_denies_and_is_listed() {
    let (app, client, _) = demo().await;
    let policy =
        new_policy("internal", "permit(principal, action, resource);").with("name", "Places");
    let id = app.owner().create_policy(policy).await.assert_status(201)["policy"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let target = json!({"policy_id": id, "target_class": "jurisdiction:FR"});
    app.owner().create_applies_to(target).await.assert_status(201);
    let text = "forbid(principal, action, resource) when \
                { context has jurisdiction && context.jurisdiction == \"FR-75\" };";
    let (status, refused) = app.owner().update_policy(&id, only("cedar", text)).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "cedar"), "{refused:#}");
    app.database.run(&format!("UPDATE policies SET cedar = '{text}' WHERE id = '{id}'")).await;
    let target = "UPDATE applies_to SET target_class = 'jurisdiction:DEU' \
                  WHERE target_class = 'jurisdiction:FR'";
    app.database.run(target).await;
    let answer = settled(&client, "rule_error").await;
    assert_eq!(answer["reason_code"], "rule_error", "{answer:#}");
    let cell = app.app.graph.tenant(&TENANT.parse().unwrap()).unwrap().unwrap();
    let faulty = cell.read().faulty_policies();
    assert_eq!(faulty.len(), 2, "{faulty:?}");
    assert!(faulty.iter().all(|fault| fault.contains(&id)), "{faulty:?}");
    let simulated = json!({"decision_id": answer["decision_id"],
        "candidate_policies": [{"cedar": text, "applies_to": ["jurisdiction:DEU"]}]});
    let owner = app.owner();
    let (status, refused) = owner.post(SIMULATE_DECISION, simulated).await;
    let fields: Vec<_> =
        refused["details"].as_array().unwrap().iter().map(|d| d["field"].clone()).collect();
    assert_eq!(status, 400);
    assert_eq!(fields, ["candidate_policies[0].applies_to[0]", "candidate_policies[0].cedar"]);
}

/// An approval that has become unnecessary is not used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_cited_without_need_is_not_spent() {
    let (app, client, _) = demo().await;
    let held = ask(&client, &asking(25_000.0, "DE")).await;
    let id = held["approval_id"].as_str().unwrap();
    let approver = app.person(TENANT, "approver", "ann@example.org");
    assert_eq!(approver.approve_approval(id).await.0, 200);
    let (_, policies) = app.owner().list_policies(&format!("tenant_id={TENANT}")).await;
    let policy = policies["policies"][0]["id"].as_str().unwrap();
    assert_eq!(app.owner().update_policy(policy, only("state", "retired")).await.0, 200);
    let citing = asking(25_000.0, "DE").with("approval_id", id);
    for _ in 0..2 {
        assert_eq!(ask(&client, &citing).await["decision"], "allow");
    }
    let approval = app.owner().get_approval(id).await.1["approval"].clone();
    assert_eq!(approval["state"], "approved", "{approval:#}");
}

/// A stop signal on the person at the root of a chain stops actions under it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_signal_on_a_delegator_stops_the_delegate() {
    let (app, client, _) = demo().await;
    let (_, found) = app.owner().list_delegations(&format!("tenant_id={TENANT}")).await;
    let root = &found["delegations"][0]["delegator_id"];
    let signal = json!({"tenant_id": TENANT, "actor_id": root, "reason": "left"});
    app.owner().create_stop_signal(signal).await.assert_status(201);
    let answer = ask(&client, &asking(1200.0, "DE")).await;
    assert_eq!(answer["reason_code"], "actor_stopped", "{answer:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_refusal_advises_to_send_an_amount_as_text() {
    let (_app, client, _) = demo().await;
    let body = r#"{"subject": "svc:agent:acme:invoice-bot", "action": "payment.execute",
        "purpose": "invoice-settlement",
        "context": {"amount": 9007199254740993, "currency": "EUR", "jurisdiction": "DE"}}"#;
    let request = client.http.post(format!("{}{EVALUATE}", client.base)).bearer_auth(&client.token);
    let request = request.header("content-type", "application/json").body(body);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    let detail = &answer["details"][0];
    assert_eq!(detail["field"], "context.amount", "{answer:#}");
    // The error may advise to send identifiers as text, which is right for other members.
    let problem = detail["problem"].as_str().unwrap().replace("send an identifier as text", "");
    assert!(!problem.contains("string") && !problem.contains("text"), "{problem}");
}

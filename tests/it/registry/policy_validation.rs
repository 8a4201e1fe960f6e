//! The validation of policy texts against the declarations of the tenant and its tools.

use serde_json::{Value, json};

use super::rest::{App, id};
use crate::support::{Members, Plain, new_policy, new_tool, only};

const SOUND: &str = "forbid(principal, action, resource) unless { context has amount && \
    context.amount.lessThanOrEqual(decimal(\"10000.0\")) };";

fn when(condition: &str) -> String {
    format!("forbid(principal, action, resource) when {{ {condition} }};")
}

fn policy(tenant: &str, text: &str) -> Value {
    new_policy("internal", text).with("tenant_id", tenant)
}

async fn tool(app: &App, tenant: &str, kind: &str) -> String {
    let schema = json!({"type": "object", "properties": {"iban": {"type": kind}}});
    let body = new_tool(&format!("pay {kind}"), "pay()", &["payment.execute"])
        .with("tenant_id", tenant)
        .with("input_schema", &schema);
    id(&app.make("/tools", body).await)
}

/// Returns the lines and columns of a response's problems.
#[track_caller]
fn places(problems: &Value) -> Vec<(u64, u64)> {
    let number = |one: &Value, name: &str| one[name].as_u64().unwrap();
    let all = problems.as_array().unwrap().iter();
    all.map(|one| (number(one, "line"), number(one, "column"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_refused_wherever_a_text_is_written() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let held = app.make("/policies", policy(&tenant, SOUND)).await;
    let path = format!("/policies/{}", id(&held));
    for (condition, part, suggestion) in [
        ("context has amount && context.amount > 10000", "saw decimal", "greaterThan(decimal"),
        ("context.amout.greaterThan(decimal(\"1.0\"))", "`amout`", "did you mean `amount`"),
        ("principal.clas == \"agent\"", "`clas`", "did you mean `class`"),
        ("1 + \"a\" == 2", "saw String", "concatenation"),
    ] {
        let text = when(condition);
        let said = app.call("POST", "/policies:validate", only("cedar", &text)).await.is(200).body;
        assert_eq!(said["valid"], false, "{said:#}");
        let problems = said["problems"].to_string();
        assert!(problems.contains(part) && problems.contains(suggestion), "{said:#}");
        for one in said["problems"].as_array().unwrap() {
            let [summary, correction] = ["summary", "suggestion"].map(|name| one[name].as_str());
            let place = format!("line {}, column {}: ", one["line"], one["column"]);
            let correction = correction.map(|text| format!("; {text}")).unwrap_or_default();
            let whole = format!("{place}{}{correction}", summary.unwrap());
            assert_eq!(one["problem"], whole, "{one:#}");
            assert!(summary.is_some_and(|text| !text.contains("column")), "{one:#}");
        }
        assert!(
            places(&said["problems"]).iter().all(|(line, at)| *line == 1 && *at > 43),
            "{said:#}"
        );
        let refused = app.call("POST", "/policies", policy(&tenant, &text)).await.is(400);
        assert_eq!(refused.fields(), vec!["cedar"; said["problems"].as_array().unwrap().len()]);
        app.call("PATCH", &path, only("cedar", &text)).await.is(400);
    }
    let many = format!("{}\n{}", when("principal.clas == \"a\""), when("context.amout == 1"));
    let refused = app.call("POST", "/policies", policy(&tenant, &many)).await.is(400);
    let told = refused.body["details"].to_string();
    assert!(told.contains("line 1, column 44") && told.contains("line 2, column 44"), "{told}");
    let missing = json!({"cedar": when("context.input.missing > 3"), "tenant_id": tenant});
    let said = app.call("POST", "/policies:validate", missing).await.is(200).body;
    assert_eq!(
        (said["valid"].as_bool(), places(&said["warnings"])),
        (Some(true), vec![(1, 44)]),
        "{said:#}"
    );
    app.make("/policies", policy(&tenant, &when("context.input.missing > 3"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_force_stays_so_and_is_listed_as_invalid() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let first = tool(&app, &tenant, "string").await;
    let text = when("context.input has iban && context.input.iban like \"RU*\"");
    let made = app.make("/policies", policy(&tenant, &text)).await;
    let path = format!("/policies/{}", id(&made));
    assert_eq!(app.get(&path).await.is(200).body["policy"]["problems"], json!([]));
    let number = when("context.input has iban && context.input.iban > 3");
    app.call("POST", "/policies", policy(&tenant, &number)).await.is(400);
    // Tools of other tenants are ignored.
    let other = app.tenant("other").await;
    app.make("/policies", policy(&other, &number)).await;
    let schema = json!({"type": "object", "properties": {"iban": {"type": "integer"}}});
    app.call("PATCH", &format!("/tools/{first}"), only("input_schema", &schema)).await.is(200);
    let listed = app.get("/policies?tenant_id=svc:tenant:acme").await.is(200).body;
    let stale = &listed["policies"][0];
    assert_eq!((stale["state"].text(), stale["problems"].as_array().unwrap().len()), ("active", 1));
    assert_eq!(stale["problems"][0]["line"], 1, "{stale:#}");
    let activate = format!("{path}/activate");
    app.call("POST", &activate, only("version", 1)).await.is(409);
    // If two tools declare different types, the policy may use either.
    tool(&app, &tenant, "string").await;
    assert_eq!(app.get(&path).await.is(200).body["policy"]["problems"], json!([]));
    app.call("POST", &activate, only("version", 1)).await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_may_have_itself_warned_and_declares_its_input() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let wrong = when("principal.clas == \"agent\"");
    app.call("POST", "/policies", policy(&tenant, &wrong)).await.is(400);
    let tenants = format!("/tenants/{tenant}");
    app.call("PATCH", &tenants, only("policy_validation", "never")).await.is(400);
    app.call("PATCH", &tenants, only("policy_validation", "warn")).await.is(200);
    app.make("/policies", policy(&tenant, &wrong)).await;
    let body = json!({"cedar": wrong, "tenant_id": tenant});
    let said = app.call("POST", "/policies:validate", body).await.is(200).body;
    assert_eq!(
        (said["valid"].as_bool(), places(&said["warnings"])),
        (Some(true), vec![(1, 44)]),
        "{said:#}"
    );
    // A text that is not valid Cedar is always refused.
    app.call("POST", "/policies", policy(&tenant, "forbid(")).await.is(400);
    let declared = json!({"payment.*": {"rate": "decimal", "payee": {"name": "string"}}});
    let body = json!({"policy_validation": "enforce", "context_schema": declared});
    app.call("PATCH", &tenants, body).await.is(200);
    let scoped = |condition: &str| {
        let scope = "principal, action in Svc::Action::\"payment\", resource";
        policy(&tenant, &format!("forbid({scope}) when {{ {condition} }};"))
    };
    let sound = "context.input has rate && context.input.rate.lessThan(decimal(\"0.5\"))";
    app.make("/policies", scoped(sound)).await;
    let wrong = scoped("context.input has rate && context.input.rate > 3");
    app.call("POST", "/policies", wrong).await.is(400);
    let only = "forbid(principal, action == Svc::Action::\"payment.execute\", resource) when { \
                context.input has rate && context.input.rate > 3 };";
    app.call("POST", "/policies", policy(&tenant, only)).await.is(400);
    let refused = json!({"context_schema": {"payment.*": {"rate": "number"}}});
    let refused = app.call("PATCH", &tenants, refused).await.is(400);
    assert!(refused.fields()[0].ends_with("context_schema.payment.*.rate"), "{:#}", refused.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_are_given_when_it_is_made_and_a_draft_may_have_a_text() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let mut body = policy(&tenant, SOUND);
    body["applies_to"] = json!(["action:payment.*", "purpose:payroll"]);
    body["state"] = "draft".into();
    let made = app.make("/policies", body.clone()).await;
    assert_eq!((made["state"].text(), made["version"].number()), ("draft", 1));
    assert_eq!(made["applies_to"], body["applies_to"], "{made:#}");
    let path = format!("/policies/{}", id(&made));
    assert_eq!(app.get(&path).await.is(200).body["policy"]["applies_to"], body["applies_to"]);
    let rows = format!("/relationships/applies-to?policy_id={}", id(&made));
    let rows = app.get(&rows).await.is(200).body;
    assert_eq!(rows["applies_to"].as_array().unwrap().len(), 2, "{rows:#}");
    app.call("PATCH", &path, only("applies_to", ["*"])).await.is(400);
    body["applies_to"] = json!(["action:payment.*", "colour:red"]);
    let refused = app.call("POST", "/policies", body).await.is(400);
    assert_eq!(refused.fields(), ["applies_to[1]"]);
}

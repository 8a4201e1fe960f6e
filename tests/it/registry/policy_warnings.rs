//! Warnings about policies and bounds: forbids that callers can avoid, unknown names, jurisdictions
//! and currencies outside the standards, and patterns that use up a decision's steps.

use serde_json::{Value, json};

use super::rest::{App, id};
use crate::support::{
    Members, new_delegation, new_policy, new_purpose, new_tool, new_uses, nothing, only,
};

fn policy(tenant: &str, text: &str) -> Value {
    new_policy("internal", text).with("tenant_id", tenant)
}

/// Returns the problems in a list of warnings.
#[track_caller]
fn told(warnings: &Value) -> String {
    let all = warnings.as_array().unwrap_or_else(|| panic!("{warnings:#}"));
    all.iter().map(|one| one["problem"].as_str().unwrap_or_default().to_owned() + "\n").collect()
}

async fn validated(app: &App, tenant: &str, text: &str) -> Value {
    let body = json!({"cedar": text, "tenant_id": tenant});
    app.call("POST", "/policies:validate", body).await.is(200).body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbid_that_is_escaped_by_leaving_a_member_out_is_warned_of_at_every_door() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let text = "forbid(principal, action, resource) when { context has amount } \
        when { context.amount.greaterThan(decimal(\"10.0\")) };";
    let said = validated(&app, &tenant, text).await;
    assert_eq!(said["valid"], true, "{said:#}");
    assert!(told(&said["warnings"]).contains("without `context.amount` escapes"), "{said:#}");
    assert_eq!(said["warnings"][0]["column"], 44, "{said:#}");
    let made = app.call("POST", "/policies", policy(&tenant, text)).await.is(201).body;
    let path = format!("/policies/{}", id(&made["policy"]));
    assert!(told(&made["policy"]["warnings"]).contains("escapes"), "{made:#}");
    assert!(told(&app.get(&path).await.is(200).body["policy"]["warnings"]).contains("escapes"));
    let held = "@decision(\"require_approval\") forbid(principal, action, resource)\n\
        when { if context has currency then context.currency == \"EUR\" else false };";
    let changed = app.call("PATCH", &path, only("cedar", held)).await.is(200).body;
    assert!(told(&changed["policy"]["warnings"]).contains("`context.currency`"), "{changed:#}");
    let active = app.call("POST", &format!("{path}/activate"), nothing()).await.is(200).body;
    assert!(told(&active["policy"]["warnings"]).contains("`context.currency`"), "{active:#}");
    let good = "forbid(principal, action, resource)\n\
        unless { context has amount && context.amount.lessThanOrEqual(decimal(\"10.0\")) };";
    assert_eq!(validated(&app, &tenant, good).await["warnings"], json!([]));
    // If the tool requires the field, callers can't avoid the forbid.
    let of_tool = "forbid(principal, action == Svc::Action::\"payment.execute\", resource)\n\
        when { context has amount && context.amount.greaterThan(decimal(\"10.0\")) };";
    let tool = new_tool("pay", "pay()", &["payment.execute"]).with("tenant_id", &tenant);
    let tool = app.make("/tools", tool).await;
    assert!(told(&validated(&app, &tenant, of_tool).await["warnings"]).contains("escapes"));
    let requires = only("requires", ["amount"]);
    app.call("PATCH", &format!("/tools/{}", id(&tool)), requires).await.is(200);
    assert_eq!(validated(&app, &tenant, of_tool).await["warnings"], json!([]));
}

/// The records to which the policies of these tests refer.
struct Known {
    agent: String,
    delegation: String,
    resource: String,
}

async fn known(app: &App, tenant: &str) -> Known {
    let agent = app.principal(tenant, "agent", "invoice-bot").await;
    let boss = app.principal(tenant, "human", "boss").await;
    let delegation = new_delegation(&boss, &agent, &["payment.execute"]).with("tenant_id", tenant);
    let delegation = app.make("/delegations", delegation).await;
    let purpose = new_purpose("payroll", "Payroll", &["payroll.*"]).with("tenant_id", tenant);
    app.make("/purposes", purpose).await;
    let resource = json!({"tenant_id": tenant, "kind": "bank_account", "name": "Main"});
    let resource = app.make("/resources", resource).await;
    Known { agent, delegation: id(&delegation), resource: id(&resource) }
}

fn forbid(scope: &str, condition: &str) -> String {
    format!("forbid({scope}) unless {{ {condition} }};")
}

const ANY: &str = "principal, action, resource";

#[tokio::test(flavor = "multi_thread")]
async fn names_that_do_not_exist_are_warned_of_with_the_nearest() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let Known { agent, .. } = known(&app, &tenant).await;
    for (text, part, near) in [
        (
            forbid("principal, action == Svc::Action::\"payment.excute\", resource", "false"),
            "`payment.excute`",
            "`payment.execute`",
        ),
        (
            forbid("principal, action in [Svc::Action::\"paymants\"], resource", "false"),
            "`paymants`",
            "`payment`",
        ),
        (
            forbid("principal, action == Svc::Action::\"payrol.run\", resource", "false"),
            "`payrol.run`",
            "`payroll.run`",
        ),
        (
            forbid("principal in Svc::Team::\"nobody\", action, resource", "false"),
            "no team `nobody`",
            "",
        ),
        (
            forbid(ANY, &format!("principal == Svc::Principal::\"{agent}t\"")),
            "no principal",
            &agent,
        ),
        (forbid(ANY, "resource == Svc::Resource::\"x\""), "no resource `x`", ""),
        (
            forbid(ANY, "resource is Svc::Resource && resource.kind == \"bank_acount\""),
            "`bank_acount`",
            "`bank_account`",
        ),
        (
            forbid(ANY, "context has purpose && [\"payrol\"].contains(context.purpose)"),
            "no purpose `payrol`",
            "`payroll`",
        ),
        (forbid(ANY, "context has currency && context.currency == \"EURO\""), "`EURO`", "`EUR`"),
        (
            forbid(ANY, "context has delegation && context.delegation == \"d\""),
            "no delegation `d`",
            "",
        ),
    ] {
        let said = validated(&app, &tenant, &text).await;
        assert_eq!(said["valid"], true, "{text}\n{said:#}");
        let found = told(&said["warnings"]);
        assert!(found.contains(part) && found.contains(near), "{text}\n{said:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_exist_are_not_warned_of() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let Known { agent, delegation, resource } = known(&app, &tenant).await;
    for text in [
        forbid("principal, action in Svc::Action::\"payroll\", resource", "false"),
        forbid("principal, action == Svc::Action::\"payroll.run.now\", resource", "false"),
        forbid(ANY, &format!("principal == Svc::Principal::\"{agent}\"")),
        forbid(ANY, &format!("resource == Svc::Resource::\"{resource}\"")),
        forbid(ANY, &format!("context has delegation && context.delegation == \"{delegation}\"")),
    ] {
        assert_eq!(validated(&app, &tenant, &text).await["warnings"], json!([]), "{text}");
    }
    // Without a tenant, names can't be looked up: none is reported.
    let body = only("cedar", forbid(ANY, "resource == Svc::Resource::\"x\""));
    let said = app.call("POST", "/policies:validate", body).await.is(200).body;
    assert_eq!(said["warnings"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_that_do_not_exist_are_warned_of() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    known(&app, &tenant).await;
    let made = json!({"tenant_id": tenant, "regime": "internal", "state": "draft",
        "cedar": "forbid(principal, action, resource);",
        "applies_to": ["action:paymant.*", "purpose:nosuch", "resource_kind:bank_account"]});
    let made = app.make("/policies", made).await;
    let warnings = &made["warnings"];
    let fields: Vec<_> =
        warnings.as_array().unwrap().iter().map(|one| one["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["applies_to[0]", "applies_to[1]"], "{made:#}");
    let row = json!({"policy_id": id(&made), "target_class": "purpose:payrol"});
    let row = app.make("/relationships/applies-to", row).await;
    assert!(row["warnings"][0].as_str().unwrap().contains("did you mean `payroll`?"), "{row:#}");
    let body = json!({"target_class": "action:paymant.*", "tenant_id": tenant});
    let said = app.call("POST", "/policies:validate", body).await.is(200).body;
    assert_eq!(said["warnings"][0]["field"], "target_class", "{said:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_outside_closed_sets_are_errors() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    // Values outside closed sets are errors, even if the tenant's `policy_validation` is `warn`.
    let tenants = format!("/tenants/{tenant}");
    app.call("PATCH", &tenants, only("policy_validation", "warn")).await.is(200);
    for wrong in [
        "principal.class == \"robot\"",
        "context has jurisdiction && context.jurisdiction == \"Germany\"",
    ] {
        let said = validated(&app, &tenant, &forbid(ANY, wrong)).await;
        assert_eq!(said["valid"], false, "{said:#}");
        app.call("POST", "/policies", policy(&tenant, &forbid(ANY, wrong))).await.is(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn places_of_other_lists_are_refused_and_other_money_is_warned_of() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let agent = app.principal(&tenant, "agent", "bot").await;
    let boss = app.principal(&tenant, "human", "boss").await;
    let delegation = |more: Value| {
        let mut body =
            new_delegation(&boss, &agent, &["payment.execute"]).with("tenant_id", &tenant);
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (code, likely) in [
        ("UK", "`GB`"),
        ("EL", "`GR`"),
        ("EU", "each country"),
        ("UK-SCT", "`GB-SCT`"),
        ("de", "`DE`"),
        ("DEU", "`DE`"),
    ] {
        let refused = app
            .call("POST", "/delegations", delegation(only("jurisdictions", ["DE", code])))
            .await
            .is(400);
        assert!(refused.body["details"].to_string().contains(likely), "{:#}", refused.body);
    }
    let made = app
        .make(
            "/delegations",
            delegation(json!({"jurisdictions": ["GB"], "max_amount": "5", "currency": "USDC"})),
        )
        .await;
    let doubt = made["warnings"][0].as_str().unwrap();
    assert!(doubt.contains("`USDC` is not a currency of ISO 4217"), "{made:#}");
    let read = app.get(&format!("/delegations/{}", id(&made))).await.is(200).body;
    assert_eq!(read["delegation"]["warnings"], made["warnings"], "{read:#}");
    let listed = app.get("/delegations").await.is(200).body;
    assert_eq!(listed["delegations"][0]["warnings"], made["warnings"]);
    let narrowed = format!("/delegations/{}/narrow", id(&made));
    let refused = app.call("POST", &narrowed, only("jurisdictions", ["UK"])).await.is(400);
    assert!(refused.body["details"].to_string().contains("`GB`"), "{:#}", refused.body);
    let uses = new_uses(&agent, "mail.send")
        .with("constraints_json", "{\"max_amount\":\"1\",\"currency\":\"BTC\"}");
    let uses = app.make("/relationships/uses", uses).await;
    assert!(uses["warnings"][0].as_str().unwrap().contains("`BTC`"), "{uses:#}");
    for (body, path) in [
        (
            json!({"tenant_id": tenant, "legal_name": "A", "form": "ltd", "country_code": "UK"}),
            "/legal-entities",
        ),
        (
            new_purpose("p", "P", &["*"]).with("tenant_id", &tenant).with("jurisdictions", ["UK"]),
            "/purposes",
        ),
    ] {
        let refused = app.call("POST", path, body).await.is(400);
        assert!(refused.body["details"].to_string().contains("write `GB`"), "{:#}", refused.body);
    }
}

fn heavy(id: &str) -> String {
    let patterns: Vec<_> = (0..8)
        .map(|number| format!("context.input.a like \"*{number}{}\"", "a".repeat(498)))
        .collect();
    let all = patterns.join(" || ");
    format!(
        "@id(\"{id}\") forbid(principal, action, resource) unless {{ !(context.input has a && ({all})) }};"
    )
}

/// Each text has eight patterns of 499 characters, which take 4,000 steps for each of 1,024
/// characters. A decision may take 16,000,000 steps.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_would_leave_nothing_to_decide_is_refused_and_a_cheaper_one_never() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let mut made = Vec::new();
    for number in 0..3 {
        made.push(id(&app.make("/policies", policy(&tenant, &heavy(&format!("p{number}")))).await));
        settled().await;
    }
    let refused = app.call("POST", "/policies", policy(&tenant, &heavy("p4"))).await.is(409).body;
    let text = refused.to_string();
    assert!(text.contains("16000000") && text.contains("retire one first"), "{refused:#}");
    let said = validated(&app, &tenant, &heavy("p4")).await;
    assert!(told(&said["warnings"]).contains("16000000"), "{said:#}");
    let mut draft = policy(&tenant, &heavy("p4"));
    draft["state"] = "draft".into();
    let draft = id(&app.make("/policies", draft).await);
    let activate = format!("/policies/{draft}/activate");
    app.call("POST", &activate, nothing()).await.is(409);
    // The policy is accepted for an action to which no other policy applies, and refused where
    // others apply.
    let row = json!({"policy_id": made[2], "target_class": "action:b.*"});
    let row = app.make("/relationships/applies-to", row).await;
    settled().await;
    let own = json!({"policy_id": draft, "target_class": "action:c.*"});
    app.make("/relationships/applies-to", own).await;
    app.call("POST", &activate, nothing()).await.is(200);
    settled().await;
    app.call(
        "POST",
        "/relationships/applies-to",
        json!({"policy_id": draft, "target_class": "action:b.x"}),
    )
    .await
    .is(409);
    app.call("DELETE", &format!("/relationships/applies-to/{}", id(&row)), nothing()).await.is(409);
    app.call("PATCH", &format!("/policies/{}", made[0]), only("state", "retired")).await.is(200);
    settled().await;
    app.call("DELETE", &format!("/relationships/applies-to/{}", id(&row)), nothing()).await.is(200);
    settled().await;
    // Before its start, a policy adds no steps to a decision.
    let later = policy(&tenant, &heavy("p5")).with("effective_from", "2099-01-01T00:00:00Z");
    let refused = app.call("POST", "/policies", later.clone()).await.is(409).body;
    assert!(refused.to_string().contains("2099-01-01"), "{refused:#}");
    let end = only("effective_until", "2098-01-01T00:00:00Z");
    app.call("PATCH", &format!("/policies/{}", made[1]), end).await.is(200);
    settled().await;
    app.make("/policies", later).await;
    settled().await;
    let forever = only("effective_until", Value::Null);
    app.call("PATCH", &format!("/policies/{}", made[1]), forever).await.is(409);
}

/// Waits until the registry's graph has followed the changes in the background.
async fn settled() {
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
}

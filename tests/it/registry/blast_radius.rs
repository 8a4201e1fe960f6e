//! The delegations and agents that stopping a principal would affect.

use serde_json::{Value, json};

use super::rest::{App, id};
use crate::support::{Members, Plain, only};

async fn lend(app: &App, tenant: &str, (from, to): (&str, &str), more: Value) -> String {
    let body = json!({"tenant_id": tenant, "delegator_id": from, "delegate_id": to,
        "actions": ["payment.*"], "can_delegate": true})
    .and(&more);
    id(&app.make("/delegations", body).await)
}

fn ids(body: &Value) -> Vec<&str> {
    let delegations = body["delegations"].as_array().unwrap().iter();
    delegations.map(|delegation| delegation["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_principals_blast_radius_is_what_it_holds_or_gave_and_all_below() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let ada = app.principal(&tenant, "human", "Ada").await;
    let bot = app.principal(&tenant, "agent", "Bot").await;
    let cat = app.principal(&tenant, "agent", "Cat").await;
    let dog = app.principal(&tenant, "agent", "Dog").await;
    let radius = async |who: &str, query: &str| {
        app.get(&format!("/principals/{who}/blast-radius{query}")).await.is(200).body
    };
    let nothing = radius(&bot, "").await;
    assert_eq!((ids(&nothing), &nothing["agents"]), (vec![], &json!([])));
    assert_eq!((nothing["delegation_total"].number(), nothing["agent_total"].number()), (0, 0));

    let held = lend(&app, &tenant, (&ada, &bot), json!({})).await;
    let given = lend(&app, &tenant, (&bot, &cat), only("parent_id", &held)).await;
    let below = lend(&app, &tenant, (&cat, &dog), only("parent_id", &given)).await;
    lend(&app, &tenant, (&ada, &dog), json!({})).await;
    let whole = radius(&bot, "").await;
    assert_eq!(ids(&whole), [&*held, &*given, &*below]);
    // The principal itself is not in the list of agents that depend on it.
    assert_eq!(whole["agents"], json!([cat, dog]));
    assert_eq!((whole["delegation_total"].number(), whole["agent_total"].number()), (3, 2));
    assert_eq!(whole["last_used"], Value::Null);
    let cut = radius(&bot, "?limit=1").await;
    assert_eq!((ids(&cut), &cut["agents"]), (vec![&*held], &json!([cat])));
    assert_eq!((cut["delegation_total"].number(), cut["agent_total"].number()), (3, 2));
    // The blast radius of a single delegation shows the totals as well.
    let of_one = app.get(&format!("/delegations/{given}/blast-radius")).await.is(200).body;
    assert_eq!((of_one["delegation_total"].number(), of_one["agent_total"].number()), (2, 2));
    assert_eq!(ids(&of_one), [&*given, &*below]);
    assert_eq!(of_one["agents"], json!([cat, dog]));
    let path = format!("/delegations/{held}/blast-radius");
    let cut = app.get(&format!("{path}?limit=1")).await.is(200).body;
    assert_eq!((ids(&cut), &cut["agents"]), (vec![&*held], &json!([bot])));
    assert_eq!((cut["delegation_total"].number(), cut["agent_total"].number()), (3, 3));
    app.get(&format!("{path}?limit=501")).await.is(400);
    // A suspended delegation is still in the list, because it may be reinstated. Revoking a
    // delegation ends it and all delegations below it.
    let act = async |id: &str, verb: &str| {
        let path = format!("/delegations/{id}/{verb}");
        app.call("POST", &path, json!({})).await.is(200);
    };
    act(&given, "suspend").await;
    assert_eq!(ids(&radius(&bot, "").await).len(), 3);
    act(&given, "revoke").await;
    assert_eq!(ids(&radius(&bot, "").await), [&*held]);
    assert_eq!(ids(&radius(&cat, "").await), [""; 0]);
    // The revoked delegation still has its own answer, without those above it.
    let of_one = app.get(&format!("/delegations/{given}/blast-radius")).await.is(200).body;
    assert_eq!(ids(&of_one), [&*given, &*below]);
    assert_eq!(ids(&app.get(&path).await.is(200).body), [&*held]);
    lend(&app, &tenant, (&ada, &cat), only("expires_at", "2020-01-01T00:00:00Z")).await;
    assert_eq!(ids(&radius(&cat, "").await), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_principal_has_no_blast_radius() {
    let app = App::start().await;
    let (acme, other) = (app.tenant("acme").await, app.tenant("other").await);
    let bot = app.principal(&acme, "agent", "Bot").await;
    let path = format!("/app/principals/{bot}/blast-radius");
    app.call_as(&acme, "GET", &path, Value::Null, &[]).await.is(200);
    app.call_as(&other, "GET", &path, Value::Null, &[]).await.is(404);
    app.get("/principals/svc:agent:acme:nobody/blast-radius").await.is(404);
    let refused = app.get(&format!("/principals/{bot}/blast-radius?limit=501")).await.is(400);
    assert_eq!(refused.fields(), ["limit"]);
}

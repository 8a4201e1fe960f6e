//! Counts equal the numbers of listed decisions, for each filter.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{super::demo, ACME};
use crate::support::{
    AGENT, Answered, Client, Members, Plain, TestApp, Wishes, asking, new_tenant,
};

/// Requests with every outcome, by two agents and an unknown one.
fn requests() -> Vec<Value> {
    let amounts = [10.0, 20_500.0, 75_000.0, 1200.0];
    let mut all = Vec::new();
    for (number, amount) in amounts.into_iter().cycle().take(120).enumerate() {
        let mut request = asking(amount, if number % 5 == 0 { "US" } else { "DE" });
        match number % 7 {
            0 => request["subject"] = json!("svc:agent:acme:support-bot"),
            1 => request["subject"] = json!("svc:agent:acme:unknown"),
            2 => request["action"] = json!("payment.refund"),
            3 => request["action"] = json!("ticket.close"),
            _ => {}
        }
        all.push(request);
    }
    all
}

/// Makes the decisions at the same time on two nodes, and counts them on both.
async fn decided(app: &TestApp, client: &Client) {
    let beside = app.beside(Wishes::default()).await;
    let other = beside.client(&client.token);
    for some in requests().chunks(20) {
        let asked = some.iter().enumerate().map(|(number, request)| {
            let node = if number % 2 == 0 { client } else { &other };
            node.evaluate(request.clone())
        });
        for (status, answer) in join_all(asked).await {
            assert_eq!(status, 200, "{answer:#}");
        }
    }
    tokio::join!(app.count_usage(), beside.count_usage());
}

/// Returns the number of decisions in the list.
async fn listed(client: &Client, query: &str) -> usize {
    let (status, page) = client.get(&format!("/api/v1/decisions?limit=500&{query}")).await;
    assert_eq!((status, &page["next_page_token"]), (200, &Value::Null), "{query}: {page:#}");
    page["decisions"].as_array().unwrap().len()
}

/// Returns all items of the list of usage, in pages of 3.
async fn counted(client: &Client, query: &str) -> Vec<Value> {
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/usage?limit=3&{query}&page_token={token}");
        let (status, page) = client.get(&path).await;
        assert_eq!(status, 200, "{path}: {page:#}");
        all.extend(page["usage"].as_array().unwrap().iter().cloned());
        match page["next_page_token"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => return all,
        }
    }
}

fn number(count: &Value) -> usize {
    usize::try_from(count.as_u64().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_the_numbers_of_listed_decisions() {
    let (app, client, _) = demo().await;
    decided(&app, &client).await;
    let owner = app.owner();
    let fields = "group_by=subject&group_by=action&group_by=reason_code";
    for period in ["hour", "day"] {
        let items = counted(&owner, &format!("tenant_id=acme&period={period}&{fields}")).await;
        let mut seen = BTreeSet::new();
        let mut sum = 0;
        for item in &items {
            let text = |field: &str| item[field].as_str().unwrap().to_owned();
            let (subject, action, reason) = (text("subject"), text("action"), text("reason_code"));
            assert!(seen.insert((
                text("starts_at"),
                subject.clone(),
                action.clone(),
                reason.clone()
            )));
            for decision in ["allow", "require_approval", "deny"] {
                let since = text("starts_at");
                let filter = format!(
                    "tenant_id=acme&subject={subject}&action={action}&reason_code={reason}\
                     &decision={decision}&since={since}"
                );
                // The test may run over the end of an hour. Its items then differ by their start.
                let later = items.iter().filter(|other| {
                    other["starts_at"].as_str().unwrap() > since.as_str()
                        && ["subject", "action", "reason_code"].iter().all(|f| other[f] == item[f])
                });
                let later: usize = later.map(|other| number(&other[decision])).sum();
                let here = number(&item[decision]);
                assert_eq!(listed(&owner, &filter).await - later, here, "{filter}");
                sum += here;
            }
        }
        assert_eq!(sum, 120, "{period}");
        assert!(seen.len() > 5, "{seen:?}");
    }
    // Each filter counts the same decisions as the list with this filter.
    for filter in [
        format!("subject={AGENT}"),
        "action=payment.refund".to_owned(),
        "decision=deny".to_owned(),
        "decision=allow".to_owned(),
        "reason_code=subject_unknown".to_owned(),
        format!("subject={AGENT}&decision=require_approval"),
    ] {
        let items = counted(&owner, &format!("tenant_id=acme&{filter}")).await;
        let counts =
            items.iter().flat_map(|item| ["allow", "require_approval", "deny"].map(|d| &item[d]));
        let sum: usize = counts.map(number).sum();
        let shown = listed(&owner, &format!("tenant_id=acme&{filter}")).await;
        assert_eq!(sum, shown, "{filter}: {items:#?}");
        assert!(sum > 0, "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_actions_and_reasons_are_ranked() {
    let (app, client, _) = demo().await;
    decided(&app, &client).await;
    let owner = app.owner();
    for (field, filter) in [
        ("subject", ""),
        ("subject", "&decision=deny"),
        ("action", "&decision=allow"),
        ("reason_code", "&decision=deny"),
    ] {
        for period in ["day", "hour"] {
            let query = format!("tenant_id=acme&period={period}{filter}");
            let found =
                owner.rank_usage(&format!("rank_by={field}&{query}")).await.assert_status(200);
            let ranks = found["ranks"].as_array().unwrap();
            let ranks: Vec<(usize, String)> = ranks
                .iter()
                .map(|rank| (number(&rank["count"]), rank["value"].as_str().unwrap().to_owned()))
                .collect();
            let mut sums: BTreeMap<String, usize> = BTreeMap::new();
            for item in counted(&owner, &format!("{query}&group_by={field}")).await {
                let sum = sums.entry(item[field].as_str().unwrap().to_owned()).or_default();
                let counts = ["allow", "require_approval", "deny"];
                *sum += counts.iter().map(|count| number(&item[*count])).sum::<usize>();
            }
            let mut expected: Vec<_> = sums.into_iter().map(|(value, sum)| (sum, value)).collect();
            expected.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
            assert_eq!(ranks, expected, "{field} {query}");
            let first = format!("/api/v1/usage:rank?rank_by={field}&{query}&limit=1");
            let (_, first) = owner.get(&first).await;
            assert_eq!(first["ranks"].as_array().unwrap().len(), 1, "{first:#}");
            assert_eq!(first["ranks"][0]["value"], expected[0].1);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_sees_only_its_own_counts() {
    let (app, client, _) = demo().await;
    assert_eq!(app.owner().create_tenant(new_tenant("Other", "other")).await.0, 201);
    let other = app.client(&app.api_key("svc:tenant:other", &["runtime:write"]).await);
    let elsewhere = asking(10.0, "DE").with("subject", "svc:agent:other:bot");
    assert_eq!(other.evaluate(elsewhere).await.0, 200);
    assert_eq!(client.evaluate(asking(10.0, "DE")).await.0, 200);
    app.count_usage().await;
    for (tenant, subject) in [(ACME, AGENT), ("svc:tenant:other", "svc:agent:other:bot")] {
        let own = app.person(tenant, "auditor", "a@example.org");
        for path in ["usage?group_by=subject", "usage?group_by=subject&all_tenants=true"] {
            let found = own.get(&format!("/api/v1/app/{path}")).await.assert_status(200);
            let usage = found["usage"].as_array().unwrap();
            assert!(!usage.is_empty() && usage.iter().all(|one| one["subject"] == subject));
        }
        let (_, ranks) = own.rank_usage("").await;
        assert_eq!(ranks["ranks"], json!([{"value": subject, "count": 1}]), "{ranks:#}");
        for path in ["/api/v1/usage:rank", "/api/v1/usage"] {
            assert_eq!(own.get(path).await.0, 403, "{path}");
        }
    }
    let approver = app.person(ACME, "approver", "a@example.org");
    assert_eq!(approver.rank_usage("").await.0, 403);
    let (_, both) = app.owner().rank_usage("").await;
    assert_eq!(both["ranks"].as_array().unwrap().len(), 2, "{both:#}");
    for (query, field) in [
        ("usage?period=week", "period"),
        ("usage?group_by=tenant_id", "group_by[0]"),
        ("usage?reason_code=policy_denid", "reason_code"),
        ("usage:rank?rank_by=tenant_id", "rank_by"),
        ("usage:rank?decision=allow_with_constraints", "decision"),
    ] {
        let (status, refused) = app.owner().get(&format!("/api/v1/{query}")).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, field), "{refused:#}");
    }
}

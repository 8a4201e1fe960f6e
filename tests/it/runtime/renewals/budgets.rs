//! A renewal continues the counters: all delegations of a line share one budget.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::json;

use super::{super::demo, answer, lend, reason, renew, try_renew, under};
use crate::support::{Plain, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_uses_continues() {
    let (app, client, demo) = demo().await;
    let max_uses = json!({"max_uses": {"count": 3, "window_seconds": 86400}});
    let first = lend(&app, &demo, max_uses).await;
    assert_eq!(reason(&client, &first).await, "permission_granted");
    let second = renew(&app, &first, nothing()).await;
    assert_eq!(reason(&client, &first).await, "permission_granted");
    let third = renew(&app, &second, nothing()).await;
    assert_eq!(reason(&client, &third).await, "permission_granted");
    for name in [&first, &second, &third] {
        assert_eq!(reason(&client, name).await, "constraint_exceeded", "{name}");
    }
    let more = json!({"max_uses": {"count": 4, "window_seconds": 86400}});
    let fourth = renew(&app, &third, more).await;
    assert_eq!(reason(&client, &second).await, "permission_granted");
    assert_eq!(reason(&client, &fourth).await, "constraint_exceeded");
}

/// A window of another length begins with what was used, for both kinds of counters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_of_another_length_is_not_empty() {
    let (app, client, demo) = demo().await;
    let uses = |seconds: u32| json!({"max_uses": {"count": 2, "window_seconds": seconds}});
    let total = |seconds: u32| {
        json!({"max_total_amount": {"amount": "3.00", "window_seconds": seconds},
               "max_uses": null})
    };
    let first = lend(&app, &demo, uses(86400)).await;
    for _ in 0..2 {
        assert_eq!(reason(&client, &first).await, "permission_granted");
    }
    let mut newest = first.clone();
    // Two other lengths, then the first one again. The first counter was not used in between.
    for seconds in [604_800, 31_536_000, 86_400] {
        newest = renew(&app, &newest, uses(seconds)).await;
        assert_eq!(reason(&client, &first).await, "constraint_exceeded", "{seconds}");
    }
    newest = renew(&app, &newest, total(86_400)).await;
    assert_eq!(answer(&client, under(&first, 2.5)).await["decision"], "allow");
    for seconds in [604_800, 86_400] {
        newest = renew(&app, &newest, total(seconds)).await;
        let refused = answer(&client, under(&first, 1.0)).await;
        assert_eq!(refused["reason_code"], "constraint_exceeded", "{seconds}");
    }
    assert_eq!(answer(&client, under(&first, 0.5)).await["decision"], "allow");
    // A bound that is removed and set again still counts the earlier uses.
    newest = renew(&app, &newest, json!({"max_total_amount": null})).await;
    assert_eq!(answer(&client, under(&newest, 9.0)).await["decision"], "allow");
    newest = renew(&app, &newest, total(604_800)).await;
    assert_eq!(reason(&client, &newest).await, "constraint_exceeded");
}

/// Requests that compete with renewals never exceed the bound together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewals_amid_requests_add_nothing() {
    let (app, client, demo) = demo().await;
    let bound = |seconds: u32| json!({"max_uses": {"count": 40, "window_seconds": seconds}});
    let first = lend(&app, &demo, bound(86400)).await;
    let asked = stream::iter(0..120).map(|_| answer(&client, under(&first, 1.0)));
    let asked = asked.buffer_unordered(8).collect::<Vec<_>>();
    let renewing = async {
        let mut newest = first.clone();
        for turn in 0..6_u32 {
            newest = renew(&app, &newest, bound(86400 * (1 + turn % 2))).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (answers, ()) = tokio::join!(asked, renewing);
    let allowed = answers.iter().filter(|answer| answer["decision"] == "allow").count();
    assert_eq!(allowed, 40);
    for answer in answers.iter().filter(|answer| answer["decision"] != "allow") {
        assert_eq!(answer["reason_code"], "constraint_exceeded", "{answer:#}");
    }
}

/// Amounts of two currencies have no sum: no counter continues in another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_budget_keeps_its_currency() {
    let (app, client, demo) = demo().await;
    let total = json!({"max_total_amount": {"amount": "100", "window_seconds": 31_536_000}});
    let first = lend(&app, &demo, total).await;
    // The budget is still unused.
    let dollars = renew(&app, &first, only("currency", "USD")).await;
    let euros = renew(&app, &dollars, only("currency", "EUR")).await;
    assert_eq!(answer(&client, under(&euros, 40.0)).await["decision"], "allow");
    for change in [
        only("currency", "USD"),
        json!({"currency": "USD", "max_total_amount": null}),
        json!({"currency": null, "max_total_amount": null}),
        json!({"currency": "JPY",
               "max_total_amount": {"amount": "15000", "window_seconds": 86_400}}),
    ] {
        let (status, refused) = try_renew(&app, &euros, change.clone()).await;
        assert_eq!(status, 400, "{change}: {refused:#}");
        assert_eq!(refused["details"][0]["field"], "currency", "{change}: {refused:#}");
        let problem = refused["details"][0]["problem"].as_str().unwrap();
        assert!(problem.contains("create another delegation"), "{problem}");
    }
    // The refused renewals had no effect. Without the total, the used amounts still count.
    assert_eq!(answer(&client, under(&euros, 60.0)).await["decision"], "allow");
    let free = renew(&app, &euros, json!({"max_total_amount": null})).await;
    let (status, refused) = try_renew(&app, &free, only("currency", "USD")).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "currency"));
    assert_eq!(answer(&client, under(&free, 1.0)).await["decision"], "allow");
}

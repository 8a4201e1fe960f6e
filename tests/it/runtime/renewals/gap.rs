//! A renewal does not interrupt requests, permissions and repeats.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    super::{demo, watch::Lines},
    END, TENANT, act, answer, chain, id, lend, read, renew, try_renew, under,
};
use crate::support::{Answered, EVALUATE, Members, Plain, asking, nothing, only};

/// Longer than the pause between two judgements of a watched permission.
const ROUND: Duration = Duration::from_millis(2_500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_permitted_throughout() {
    let (app, client, first) = demo().await;
    let is_over = AtomicBool::new(false);
    let ask = async |ask: Value| {
        let mut count = 0;
        while !is_over.load(Ordering::Relaxed) {
            let answer = answer(&client, ask.clone()).await;
            assert_eq!(answer["decision"], "allow", "{answer:#}");
            count += 1;
        }
        count
    };
    let renewing = async {
        let mut newest = first.clone();
        for _ in 0..10 {
            newest = renew(&app, &newest, nothing()).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        is_over.store(true, Ordering::Relaxed);
        newest
    };
    let (named, unnamed, newest) =
        tokio::join!(ask(under(&first, 1.0)), ask(asking(1.0, "DE")), renewing);
    assert!(named > 10 && unnamed > 10, "{named} {unnamed}");
    let decided = answer(&client, under(&first, 1.0)).await;
    assert_eq!(chain(&app, &decided).await, json!([newest]));
    let (old, new) = (read(&app, &first).await, read(&app, &newest).await);
    assert_eq!((old["state"].text(), new["state"].text()), ("revoked", "active"));
    assert_eq!(new["line_id"], first);
    for member in ["delegator_id", "delegate_id", "parent_id", "root_id", "actions", "purposes"] {
        assert_eq!(old[member], new[member], "{member}");
    }
    assert_eq!(new["expires_at"], END);
}

/// A permission ends with its authority, not with a renewal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_permission_continues() {
    let (app, client, first) = demo().await;
    let mut permitted = Vec::new();
    // The second request does not name the delegation.
    for ask in [under(&first, 1.0), asking(1.0, "DE")] {
        let decided = answer(&client, ask).await;
        permitted.push(Lines::stops(&client, decided["decision_id"].as_str().unwrap()).await.0);
    }
    let second = renew(&app, &first, nothing()).await;
    let third = renew(&app, &second, nothing()).await;
    for lines in &mut permitted {
        let ended = tokio::time::timeout(ROUND, lines.last()).await;
        assert!(ended.is_err(), "{ended:?}");
    }
    act(&app, &third, "suspend").await;
    for lines in &mut permitted {
        let ended = lines.last().await;
        assert_eq!(ended["stop_condition"], "delegation.revoked", "{ended:#}");
    }
}

/// A permission ends if the successor would not give it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_beyond_the_successor_ends() {
    let (app, client, first) = demo().await;
    let decided = answer(&client, under(&first, 100.0)).await;
    let (mut lines, _) = Lines::stops(&client, decided["decision_id"].as_str().unwrap()).await;
    renew(&app, &first, json!({"max_amount": "99", "currency": "EUR"})).await;
    let ended = lines.last().await;
    assert_eq!(ended["stop_condition"], "authority.changed", "{ended:#}");
    assert_eq!(ended["reason_code"], "constraint_exceeded", "{ended:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allow_is_repeated_after_a_renewal() {
    let (app, client, first) = demo().await;
    let repeated = async || {
        let ask = under(&first, 1.0).to_string();
        let request = client.http.post(format!("{}{EVALUATE}", client.base));
        let request = request.bearer_auth(&client.token).header("idempotency-key", "once");
        let answer = request.header("content-type", "application/json").body(ask).send().await;
        let answer = answer.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let made = repeated().await;
    assert_eq!(made.0, 200, "{made:?}");
    let second = renew(&app, &first, nothing()).await;
    assert_eq!(repeated().await, made);
    act(&app, &second, "revoke").await;
    let (status, refused) = repeated().await;
    assert_eq!(status, 409, "{refused}");
    assert!(refused.contains("decision_stopped"), "{refused}");
}

/// An approved request that names the renewed delegation is allowed once, under the successor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_outlasts_a_renewal() {
    let (app, client, first) = demo().await;
    let held = answer(&client, under(&first, 25_000.0)).await;
    assert_eq!(held["decision"], "require_approval", "{held:#}");
    let second = renew(&app, &first, nothing()).await;
    let approval = held["approval_id"].as_str().unwrap();
    let ann = app.person(TENANT, "approver", "ann@example.org");
    let approved = ann.approve_approval(approval).await.assert_status(200);
    assert_eq!(approved["approval"]["state"], "approved", "{approved:#}");
    let ask = under(&first, 25_000.0).with("approval_id", approval);
    let allowed = answer(&client, ask.clone()).await;
    assert_eq!(allowed["reason_code"], "permission_granted", "{allowed:#}");
    assert_eq!(chain(&app, &allowed).await, json!([second]));
    assert_ne!(answer(&client, ask).await["decision"], "allow");
}

/// People signed the bounds of the renewed delegation, not those of the successor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standing_approval_does_not_carry_over() {
    let (app, client, demo) = demo().await;
    let first = lend(&app, &demo, only("needs_standing_approval", true)).await;
    let ann = app.person(TENANT, "approver", "ann@example.org");
    ann.approve_delegation(&first).await.assert_status(200);
    assert_eq!(answer(&client, under(&first, 1.0)).await["decision"], "allow");
    let second = renew(&app, &first, nothing()).await;
    assert_eq!(read(&app, &second).await["standing"], json!([]));
    for name in [&first, &second] {
        assert_eq!(answer(&client, under(name, 1.0)).await["decision"], "require_approval");
    }
    // The renewed delegation can't be signed any more.
    let bob = app.person(TENANT, "approver", "bob@example.org");
    assert_eq!(bob.approve_delegation(&first).await.0, 409);
}

/// Of two simultaneous renewals, one succeeds. The line has one delegation in force.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_renewals_wins() {
    let (app, client, demo) = demo().await;
    for _ in 0..5 {
        let first = lend(&app, &demo, nothing()).await;
        let both =
            tokio::join!(try_renew(&app, &first, nothing()), try_renew(&app, &first, nothing()),);
        let (won, lost) = if both.0.0 == 200 { both } else { (both.1, both.0) };
        assert_eq!((won.0, lost.0), (200, 409), "{won:?} {lost:?}");
        assert_eq!(lost.1["error"], "transition_not_allowed");
        let second = id(&won.1);
        assert!(lost.1["message"].as_str().unwrap().contains(&second), "{lost:?}");
        assert_eq!(read(&app, &first).await["renewed_by"], second);
        let (_, listed) = app.owner().list_delegations("state=active&limit=500").await;
        let rows = listed["delegations"].as_array().unwrap().iter();
        let live: Vec<_> = rows.filter(|row| row["line_id"] == json!(first)).collect();
        assert_eq!(live.len(), 1, "{live:#?}");
        let allowed = answer(&client, under(&first, 1.0)).await;
        assert_eq!(chain(&app, &allowed).await, json!([second]));
    }
}

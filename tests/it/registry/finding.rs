//! Finding principals by text, stops by the records that they affect, and records by their expiry.

use std::time::{Duration, Instant};

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::rest::{App, id};
use crate::support::{Members, Plain, new_delegation, new_principal, only};

fn ids<'a>(body: &'a Value, list: &str) -> Vec<&'a str> {
    let records = body[list].as_array().unwrap().iter();
    records.map(|record| record["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn principals_are_found_by_a_text_of_their_id_name_or_address() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let apples = app.principal(&tenant, "agent", "ÄPFEL 100%").await;
    let under = app.principal(&tenant, "agent", "Some_one").await;
    let body = new_principal("human", r"Back\slash")
        .with("tenant_id", &tenant)
        .with("email", "ada@acme.example");
    let ada = id(&app.make("/principals", body).await);
    for (text, found) in [
        ("%C3%A4pfel", vec![&*apples]),
        ("%25", vec![&*apples]),
        ("_", vec![&*under]),
        ("%5C", vec![&*ada]),
        ("ADA@", vec![&*ada]),
        ("svc:AGENT:acme:some", vec![&*under]),
        ("nobody", vec![]),
    ] {
        let found_by = app.get(&format!("/principals?q={text}")).await.is(200).body;
        assert_eq!(ids(&found_by, "principals"), found, "{text}");
    }
    let both = app.get("/principals?q=acme&principal_class=agent&state=active").await.is(200).body;
    assert_eq!(ids(&both, "principals"), [&*apples, &*under]);
    let path = "/app/principals?q=some&count=true";
    let own = app.call_as(&tenant, "GET", path, Value::Null, &[]).await.is(200).body;
    assert_eq!((ids(&own, "principals"), own["total"].number()), (vec![&*under], 1));
    for text in [String::new(), "a".repeat(101)] {
        let refused = app.get(&format!("/principals?q={text}")).await.is(400);
        assert_eq!(refused.fields(), ["q"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_for_principals_takes_a_second_at_most() {
    let app = App::start().await;
    let mut db = app.database.owner().await;
    db.batch_execute("BEGIN; LOCK TABLE principals IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let begin = Instant::now();
    app.get("/principals?q=x").await.is(503);
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    db.batch_execute("ROLLBACK").await.unwrap();
    app.get("/principals?q=x").await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_are_found_by_what_they_concern() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let bot = app.principal(&tenant, "agent", "Bot").await;
    let cat = app.principal(&tenant, "agent", "Cat").await;
    let body = new_delegation(&bot, &cat, &["payment.*"]).with("tenant_id", &tenant);
    let delegation = id(&app.make("/delegations", body).await);
    let stop = async |path: &str, mut body: Value| {
        body["tenant_id"] = json!(tenant);
        body["reason"] = "it errs".into();
        id(&app.make(path, body).await)
    };
    let on_bot = stop("/stop-signals", only("actor_id", &bot)).await;
    stop("/stop-signals", only("actor_id", &cat)).await;
    let of_bot = stop("/quarantines", only("subject_id", &bot)).await;
    let of_action = stop("/quarantines", only("action", "payment.*")).await;
    let under = stop("/quarantines", only("delegation_id", &delegation)).await;
    for (path, list, found) in [
        (format!("/stop-signals?actor_id={bot}"), "stop_signals", &on_bot),
        (format!("/quarantines?subject_id={bot}"), "quarantines", &of_bot),
        ("/quarantines?action=payment.*".to_owned(), "quarantines", &of_action),
        (format!("/quarantines?delegation_id={delegation}"), "quarantines", &under),
    ] {
        let listed = app.get(&path).await.is(200).body;
        assert_eq!(ids(&listed, list), [found], "{path}");
        let path = format!("/app{path}");
        let listed = app.call_as(&tenant, "GET", &path, Value::Null, &[]).await.is(200).body;
        assert_eq!(ids(&listed, list), [found], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_found_by_the_time_at_which_they_expire() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let bot = app.principal(&tenant, "agent", "Bot").await;
    let cat = app.principal(&tenant, "agent", "Cat").await;
    let delegation = new_delegation(&bot, &cat, &["payment.*"]).with("tenant_id", &tenant);
    app.make("/delegations", delegation.clone()).await;
    let mut expiring = Vec::new();
    for end in ["2040-01-01T00:00:00Z", "2040-02-01T00:00:00Z"] {
        let body = delegation.clone().with("expires_at", end);
        app.make("/delegations", body).await;
        let all = app.get("/delegations").await.is(200).body;
        expiring.push((*ids(&all, "delegations").last().unwrap()).to_owned());
    }
    for (filter, found) in [
        ("expires_before=2040-01-15T00:00:00Z", &expiring[..1]),
        ("expires_after=2040-01-15T00:00:00Z", &expiring[1..]),
        ("expires_after=2040-01-01T00:00:00Z&expires_before=2040-02-01T00:00:00Z", &expiring[..1]),
        ("expires_after=2040-01-01T00:00:00Z", &expiring[..]),
        ("expires_after=2040-02-01T00:00:01Z", &[]),
    ] {
        let path = format!("/delegations?{filter}&count=true");
        let listed = app.get(&path).await.is(200).body;
        assert_eq!(ids(&listed, "delegations"), *found, "{path}");
        assert_eq!(listed["total"], json!(found.len()), "{path}");
    }
}

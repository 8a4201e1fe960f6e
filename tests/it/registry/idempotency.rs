//! Idempotency keys: the effect happens once, and only the same caller gets the stored response.

use std::collections::BTreeSet;

use authority_model::schema::idempotency_keys;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::rest::{Answer, App, id};
use crate::support::{
    Answered, Members, Plain, TestApp, new_api_key, new_delegation, new_tenant, nothing,
};

async fn keyed(app: &App, key: &str, path: &str, body: Value) -> Answer {
    app.call_as("owner", "POST", path, body, &[("idempotency-key", key)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_equal_requests_one_has_an_effect_and_all_have_its_answer() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let body = json!({"tenant_id": tenant, "name": "ops"});
    let answers = join_all((0..64).map(|_| keyed(&app, "k", "/teams", body.clone()))).await;
    let bodies: BTreeSet<_> = answers.iter().map(|answer| answer.body.to_string()).collect();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert!(answers.iter().all(|answer| answer.status == 201));
    let first = |answer: &&Answer| !answer.headers.contains_key("idempotency-replayed");
    assert_eq!(answers.iter().filter(first).count(), 1);
    let tags: BTreeSet<_> = answers.iter().map(|answer| &answer.headers["etag"]).collect();
    assert_eq!(tags.len(), 1);
    let teams = app.get("/teams?count=true").await.body;
    assert_eq!(teams["total"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_of_one_request_one_method_and_one_tenant() {
    let app = App::start().await;
    let (acme, beta) = (app.tenant("acme").await, app.tenant("beta").await);
    let team = |tenant: &str, name: &str| json!({"tenant_id": tenant, "name": name});
    let first = keyed(&app, "k", "/teams", team(&acme, "a")).await.is(201);
    let other = keyed(&app, "k", "/teams", team(&acme, "b")).await.is(422);
    assert_eq!(other.body["error"], "idempotency_key_reused");
    keyed(&app, "k", "/teams", team(&beta, "a")).await.is(201);
    keyed(&app, "k", "/workspaces", team(&acme, "a")).await.is(201);
    let again = keyed(&app, "k", "/teams", team(&acme, "a")).await.is(201);
    assert_eq!(
        (again.body, &again.headers["idempotency-replayed"]),
        (first.body, &"true".parse().unwrap())
    );
    for bad in ["", &"x".repeat(256)] {
        let refused = keyed(&app, bad, "/teams", team(&acme, "a")).await.is(400);
        assert_eq!(refused.fields(), ["idempotency-key"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_is_evaluated_again() {
    let app = App::start().await;
    let body = json!({"tenant_id": "svc:tenant:acme", "name": "ops"});
    keyed(&app, "k", "/teams", body.clone()).await.is(400);
    app.tenant("acme").await;
    keyed(&app, "k", "/teams", body).await.is(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs_happen_once_too() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let body = json!({"entity_class": "order", "tenant_id": tenant, "states": ["open", "closed"]});
    let machine = id(&app.make("/state-machines", body).await);
    let close = json!({"machine_id": machine, "entity_id": "o-1", "to_state": "closed"});
    let once = keyed(&app, "k", "/state-transitions", close.clone()).await.is(201);
    let twice = keyed(&app, "k", "/state-transitions", close.clone()).await.is(201);
    assert_eq!(once.body, twice.body);
    app.call("POST", "/state-transitions", close).await.is(409);
    let human = app.principal(&tenant, "human", "Ada").await;
    let agent = app.principal(&tenant, "agent", "bot").await;
    let made = app
        .make(
            "/delegations",
            new_delegation(&human, &agent, &["payment.*"]).with("tenant_id", &tenant),
        )
        .await;
    let path = format!("/delegations/{}/suspend", id(&made));
    let once = keyed(&app, "k", &path, nothing()).await.is(200);
    assert_eq!(keyed(&app, "k", &path, nothing()).await.is(200).body, once.body);
    app.call("POST", &path, nothing()).await.is(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_repeated_once_and_never_stored_in_the_clear() {
    let app = TestApp::start().await;
    let owner = app.owner();
    owner.create_tenant(new_tenant("acme", "acme")).await;
    let body = new_api_key("l", &["runtime:write"]);
    let make = async || {
        let headers = [("idempotency-key", "k")];
        owner.call("POST", "/api/v1/api-keys", Some(body.clone()), &headers).await
    };
    let first = make().await.assert_status(201);
    let secret = first["secret"].as_str().unwrap();
    let mut db = app.database.owner().await;
    let kept = idempotency_keys::table.select(idempotency_keys::answer).first(&mut db);
    let kept: Vec<u8> = kept.await.map(Option::unwrap).unwrap();
    let holds = |text: &str| kept.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!holds(secret) && !holds("svc:api_key:"));
    assert_eq!(make().await, (201, first));
    let (status, erased) = make().await;
    assert_eq!((status, erased["error"].text()), (409, "idempotency_answer_erased"));
    let (_, keys) = owner.list_api_keys("count=true").await;
    assert_eq!(keys["total"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_receives_another_callers_response() {
    let app = App::start().await;
    let tenant = app.tenant("acme").await;
    let body = json!({"entity_class": "order", "tenant_id": tenant, "states": ["open", "closed"]});
    let machine = id(&app.make("/state-machines", body).await);
    let close = json!({"machine_id": machine, "entity_id": "o-1", "to_state": "closed"});
    let ask = async |subject: &str| {
        let headers = [("x-subject", subject), ("idempotency-key", "k")];
        app.call_as(&tenant, "POST", "/app/state-transitions", close.clone(), &headers).await
    };
    ask("ada").await.is(201);
    ask("bob").await.is(409);
    ask("ada").await.is(201);
}
